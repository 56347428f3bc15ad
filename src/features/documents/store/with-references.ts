import type { App } from '../../../app.js';
import type { StoredDocument } from './document.js';
import type { RecordWrite } from './record-update.js';
import { checkReferences, concernsReferences, type ReferenceCheck } from './reference-checks.js';
import { writeRecordsTogether, WriteRefused } from './write-together.js';

/**
 * Carries one write out with what references ask of it: an insert by `plain` with these checks as its conditions,
 * another write in one transaction. Null where no document matched, or where others came between.
 */
export async function withReferences<W extends RecordWrite>(
  app: App,
  write: W,
  plain: (write: W, checks: readonly ReferenceCheck[]) => Promise<StoredDocument | null>,
): Promise<StoredDocument | null> {
  if (!(await concernsReferences(app, write))) return plain(write, []);
  if ('insert' in write) return plain(write, (await checkReferences(app, write)).checks);
  return writeInTransaction(app, write);
}

/** So often a write is planned again that others came between. */
const ATTEMPTS = 5;

async function writeInTransaction(app: App, write: RecordWrite): Promise<StoredDocument | null> {
  const makesRoom = 'removed' in write || ('record' in write && write.record.action === 'delete');
  const run = (): Promise<StoredDocument[]> => writeRecordsTogether(app, [write]);
  for (let attempt = 1; ; attempt++) {
    try {
      const [document] = await (makesRoom ? app.db.useReserve(run) : run());
      return document ?? null;
    } catch (error) {
      if (!(error instanceof WriteRefused)) throw error;
      if (error.cause) throw error.cause;
      if (!error.isStale || attempt === ATTEMPTS) return null;
    }
  }
}
