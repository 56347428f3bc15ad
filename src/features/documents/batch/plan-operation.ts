import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import type { DecidedWrite } from '../store/commit-writes.js';
import type { DecidedUpdate, RecordWrite } from '../store/record-update.js';
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

/** The place of an operation, after those before it. */
export interface BatchPlace extends WriteTarget {
  earlier: readonly RecordWrite[];
}

export interface PlannedOperation {
  place: BatchPlace;
  write: DecidedWrite;
  /** What later operations have to know of it. */
  record: RecordWrite;
}

/** Plans one operation: everything is checked that needs no stored document, the rest is decided in the transaction. */
export function planOperation(app: App, place: BatchPlace, operation: BatchOperation): Promise<PlannedOperation> {
  const { op, id } = operation;
  if (op === 'insert') return planInsert(app, place, operation);
  if (id === undefined) throw invalid('INVALID_BODY', `"${op}" needs the id of a document`);
  return op === 'update' ? planChange(app, place, operation, id) : planState(app, place, operation, id);
}

async function planInsert(
  app: App,
  place: BatchPlace,
  { body = {}, id, ifMatch }: BatchOperation,
): Promise<PlannedOperation> {
  if (id !== undefined || ifMatch !== undefined) {
    throw invalid('INVALID_BODY', '"insert" takes neither id nor ifMatch: a document brings its own id as _id');
  }
  const { collection, writer } = place;
  const insert = readNewDocument(collection, body, writer, app.clock.now());
  requireCreatable(writer, insert);
  const [write] = await openInserts(app, place, [insert]);
  return { place, write: write!, record: { collection, insert } };
}

async function planChange(
  app: App,
  place: BatchPlace,
  { body = {}, ifMatch }: BatchOperation,
  id: string,
): Promise<PlannedOperation> {
  const expected = readIfMatch(ifMatch);
  const read = readUpdate(place, id, body, app.clock.now(), { expected, takesOperators: true });
  const update = await openUpdate(app, place, read);
  return planned(place, read.id, update);
}

/** Into the trash, or out of it. */
async function planState(
  app: App,
  place: BatchPlace,
  { op, body, ifMatch }: BatchOperation,
  idText: string,
): Promise<PlannedOperation> {
  const id = requireDocumentId(idText);
  const expected = readIfMatch(ifMatch);
  if (body !== undefined) throw invalid('INVALID_BODY', `"${op}" takes no body`);
  const decided =
    op === 'remove'
      ? decideTrashing(app, place, id, expected, place.earlier)
      : decideRecovery(app, place, id, expected);
  return planned(place, id, await decided);
}

function planned(place: BatchPlace, id: ObjectId, update: DecidedUpdate): PlannedOperation {
  const { collection } = place;
  return { place, write: { collection, id, ...update }, record: { collection, id, update } };
}
