import type { App } from '../../../app.js';
import type { StoredDocument } from './document.js';
import type { RecordWrite } from './record-update.js';
import { checkReferences, concernsReferences, requireReferences, type ReferenceCheck } from './reference-checks.js';
import { settleLater } from './settle-later.js';
import { writeRecordsTogether, WriteRefused } from './write-together.js';

/**
 * Carries one write out with what references ask of it: an insert into the embedded engine by `plain` with these checks
 * as its conditions, else in one transaction where the database has them, else checked before `plain` writes. Null
 * where no document matched, or where others came between.
 */
export async function withReferences<W extends RecordWrite>(
  app: App,
  write: W,
  plain: (write: W, checks: readonly ReferenceCheck[]) => Promise<StoredDocument | null>,
): Promise<StoredDocument | null> {
  if (!(await concernsReferences(app, write))) return plain(write, []);
  if (app.db.insertTogether && 'insert' in write) return plain(write, (await checkReferences(app, write)).checks);
  if (app.db.writeTogether) return writeInTransaction(app, write);
  const checked = await checkReferences(app, write);
  if (!(await requireReferences(app, checked))) return null;
  const settle = await settleLater(app, [checked]);
  // A checked write is of the kind that it was.
  const written = await plain(checked.write as W, []);
  await settle();
  return written;
}

/** Checks what references ask of a new document by reads, before it is written. */
export async function requireReferred(app: App, write: RecordWrite & { insert: StoredDocument }): Promise<void> {
  if (await concernsReferences(app, write)) await requireReferences(app, await checkReferences(app, write));
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
