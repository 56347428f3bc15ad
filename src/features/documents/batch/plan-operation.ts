import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import type { DecidedWrite } from '../store/commit-writes.js';
import type { StateWrite } from '../store/state-writes.js';
import { openInserts, requireCreatable } from '../write/decide-insert.js';
import { openUpdate, readUpdate } from '../write/decide-update.js';
import { readIfMatch } from '../write/if-match.js';
import { readNewDocument } from '../write/new-document.js';
import { decideRecovery } from '../write/recover-document.js';
import { decideTrashing } from '../write/trash-document.js';
import { requireDocumentId, type WriteTarget } from '../write/write-target.js';

/** One operation of a batch (writes.md 4). */
export interface BatchOperation {
  op: 'insert' | 'update' | 'remove' | 'recover';
  collection: string;
  id?: string;
  body?: Record<string, unknown>;
  /** The ETag of the version that is meant. */
  ifMatch?: string;
}

/** What an operation has to know of its batch. */
export type InBatch = Required<Pick<StateWrite, 'earlier' | 'cascade'>>;

/** Plans one operation: everything is checked that needs no stored document, the rest is decided in the transaction. */
export function planOperation(
  app: App,
  place: WriteTarget,
  operation: BatchOperation,
  batch: InBatch,
): Promise<DecidedWrite> {
  const { op, id } = operation;
  if (op === 'insert') return planInsert(app, place, operation);
  if (id === undefined) throw invalid('INVALID_BODY', `"${op}" needs the id of a document`);
  return op === 'update' ? planChange(app, place, operation, id) : planState(app, place, operation, id, batch);
}

async function planInsert(
  app: App,
  place: WriteTarget,
  { body = {}, id, ifMatch }: BatchOperation,
): Promise<DecidedWrite> {
  if (id !== undefined || ifMatch !== undefined) {
    throw invalid('INVALID_BODY', '"insert" takes neither id nor ifMatch: a document brings its own id as _id');
  }
  const { collection, writer } = place;
  const insert = readNewDocument(collection, body, writer, app.clock.now());
  requireCreatable(writer, insert);
  const [write] = await openInserts(app, place, [insert]);
  return write!;
}

function planChange(
  app: App,
  place: WriteTarget,
  { body = {}, ifMatch }: BatchOperation,
  id: string,
): Promise<DecidedWrite> {
  const expected = readIfMatch(ifMatch);
  const read = readUpdate(place, id, body, app.clock.now(), { expected, takesOperators: true });
  return openUpdate(app, place, read);
}

/** Into the trash, or out of it. */
async function planState(
  app: App,
  place: WriteTarget,
  { op, body, ifMatch }: BatchOperation,
  idText: string,
  batch: InBatch,
): Promise<DecidedWrite> {
  const id = requireDocumentId(idText);
  const expected = readIfMatch(ifMatch);
  if (body !== undefined) throw invalid('INVALID_BODY', `"${op}" takes no body`);
  return op === 'remove' ? decideTrashing(app, place, id, expected, batch) : decideRecovery(app, place, id, expected);
}
