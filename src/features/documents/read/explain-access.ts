import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import { findVisibility } from '../../access/access-rules.js';
import { userCaller } from '../../access/operator-access.js';
import { explainRule, type ExplainedRule } from '../../access/rules/explain-rule.js';
import type { Collection } from '../../collections/collection.js';
import { RULE_NAMES } from '../../collections/rules/collection-rules.js';
import type { Project } from '../../projects/project.js';
import { redactDocument } from '../reply/redact-fields.js';
import { documentStore } from '../store/document-store.js';
import { documentNotFound, requireDocumentId } from '../write/write-target.js';
import { type ExplainedList, explainList } from './list-documents.js';

/** What a user, or with null an anonymous caller, may do in a collection, and why. */
export interface ExplainedAccess {
  collection: string;
  as: string | null;
  rules: ExplainedRule[];
  /** How a list is read, or the code with which it is refused. Not where a document is asked about. */
  list?: Pick<ExplainedList, 'indexes' | 'examined' | 'returned'> | { refused: string };
  /** The document that was asked about, and those of its fields that are left out. */
  document?: { id: string; leftOut: string[] };
}

export interface AccessQuestion {
  /** The user's id; null for an anonymous caller. */
  as: string | null;
  id?: string;
  /** Filters of a list, as a query string. */
  filter?: string;
}

/**
 * Explains the rules of a collection for a caller (rules.md 10). 404 for an unknown document, 400 for a bad filter.
 * Reading ends when `signal` aborts.
 */
export async function explainAccess(
  app: App,
  project: Project,
  collection: Collection,
  { as, id, filter = '' }: AccessQuestion,
  signal: AbortSignal,
): Promise<ExplainedAccess> {
  const caller = userCaller(project, as);
  const document =
    id === undefined ? undefined : await documentStore(app, collection).findOne({ _id: requireDocumentId(id) });
  if (document === null) throw documentNotFound();
  const names = RULE_NAMES.filter((name) => name !== 'updateTo' || collection.rules?.updateTo !== undefined);
  const rules: ExplainedRule[] = [];
  for (const name of names) rules.push(await explainRule(app, collection, caller, name, document));
  const explained = { collection: collection.name, as, rules };
  if (!document) return { ...explained, list: await explainPage(app, collection, project, { as, filter, signal }) };
  const shown = redactDocument(document, await findVisibility(app, collection, caller));
  const leftOut = Object.keys(document).filter((name) => !Object.hasOwn(shown, name));
  return { ...explained, document: { id: document._id.toHexString(), leftOut } };
}

async function explainPage(
  app: App,
  { name }: Collection,
  project: Project,
  { as, filter, signal }: { as: string | null; filter: string; signal: AbortSignal },
): Promise<ExplainedAccess['list']> {
  try {
    const { indexes, examined, returned } = await explainList(app, userCaller(project, as), name, filter, signal);
    return { indexes, examined, returned };
  } catch (error) {
    if (error instanceof AppError && (error.kind === 'unauthenticated' || error.kind === 'forbidden')) {
      return { refused: error.code };
    }
    throw error;
  }
}
