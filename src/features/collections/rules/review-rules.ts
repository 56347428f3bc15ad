import type { App } from '../../../app.js';
import { AppError, type FieldProblem } from '../../../errors.js';
import type { Collection } from '../collection.js';
import { requireKnownNames } from './require-sound-rules.js';
import { requireRuleFit } from './rule-misfits.js';
import { listUnindexedPaths } from './unindexed-rules.js';

/** Something that is wrong with the rules of a collection, or that costs much. */
export interface RuleFinding {
  collection: string;
  /** `UNINDEXED` alone is no error. */
  code: string;
  message: string;
  details?: FieldProblem[];
}

/**
 * Looks at the rules of a collection as it is stored (rules.md 10): grammar, names and types, alternatives without an
 * index, and with `data` whether stored documents are what the rules take them for.
 */
export async function reviewRules(
  app: App,
  collection: Collection,
  { data }: { data: boolean },
): Promise<RuleFinding[]> {
  const findings: RuleFinding[] = [];
  const note = async (check: () => Promise<void>): Promise<boolean> => {
    try {
      await check();
      return true;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const { code, message, details } = error;
      findings.push({ collection: collection.name, code, message, ...(details && { details }) });
      return false;
    }
  };
  if (!(await note(() => requireKnownNames(app, collection)))) return findings;
  if (data) await note(() => requireRuleFit(app, null, collection));
  for (const path of listUnindexedPaths(collection)) {
    const message = `rule read: no index finds documents by doc.${path}, so a list may look at all of them`;
    findings.push({ collection: collection.name, code: 'UNINDEXED', message });
  }
  return findings;
}
