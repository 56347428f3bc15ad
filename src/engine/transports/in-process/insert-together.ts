import type { AppValueOptions } from '../../codec/app-values.js';
import type { Doc } from '../../codec/document.js';
import type { Core } from '../../commands/command.js';
import { storeTogether } from '../../commands/write/insert.js';
import { toDriverError } from './driver-errors.js';
import { openCommandSession } from './session.js';

/** Stores new documents in one transaction; a refusal of one, as the driver's error, leaves none. */
export async function insertTogether(
  core: Core,
  namespace: { db: string; collection: string },
  documents: readonly Doc[],
  options: AppValueOptions,
): Promise<void> {
  const { db, collection } = namespace;
  const session = openCommandSession(core, db, options);
  const stored = documents.map((document) => session.encode(document, document['_id']).bytes);
  try {
    await storeTogether(core.storage, `${db}.${collection}`, stored);
  } catch (error) {
    throw toDriverError(core.storage.damage.judge(error, `${db}.${collection}`));
  }
}
