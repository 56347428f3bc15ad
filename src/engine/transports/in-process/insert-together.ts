import type { AppValueOptions } from '../../codec/app-values.js';
import type { Doc } from '../../codec/document.js';
import type { Core } from '../../commands/command.js';
import { compileQuery } from '../../commands/read/query.js';
import { StepRefused, storeTogether } from '../../commands/write/write-together.js';
import { toDriverError } from './driver-errors.js';
import { openCommandSession } from './session.js';
import type { AppCondition } from './write-together.js';

/**
 * Stores new documents in one transaction, if the conditions hold then; a refusal of one, as the driver's error, or a
 * StepRefused with the number of a condition, leaves none.
 */
export async function insertTogether(
  core: Core,
  namespace: { db: string; collection: string },
  documents: readonly Doc[],
  conditions: readonly AppCondition[],
  options: AppValueOptions,
): Promise<void> {
  const { db, collection } = namespace;
  const session = openCommandSession(core, db, options);
  const stored = documents.map((document) => session.encode(document, document['_id']).bytes);
  const asked = conditions.map(({ collection: name, filter, matches }) => ({
    ns: `${db}.${name}`,
    query: compileQuery(session.readFilter(filter)),
    matches,
  }));
  try {
    await storeTogether(core.storage, `${db}.${collection}`, stored, asked);
  } catch (error) {
    if (error instanceof StepRefused) throw error;
    throw toDriverError(core.storage.damage.judge(error, `${db}.${collection}`));
  }
}
