import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import type { Writer } from '../../access/access-rules.js';
import { holdsIn } from '../../access/rules/holds-in.js';
import { pinsOfDocument } from '../../access/rules/pins.js';
import type { StoredDocument } from '../store/document.js';
import type { RecordWrite } from '../store/record-update.js';
import { ruleRefused } from '../write/admit-write.js';
import { requireCreatable } from '../write/decide-insert.js';
import { openUpdate, readUpdate } from '../write/decide-update.js';
import { readIfMatch } from '../write/if-match.js';
import { readNewDocument } from '../write/new-document.js';
import { decideRecovery } from '../write/recover-document.js';
import { decideTrashing } from '../write/trash-document.js';
import { referrerOf, requireDocumentId, type WriteTarget } from '../write/write-target.js';

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
  write: RecordWrite;
}

/**
 * Plans one operation: everything is checked that needs no stored document, the rest is decided in the transaction. A
 * new document without an id of its own is stored as `givenId`, where that is said.
 */
export function planOperation(
  app: App,
  place: BatchPlace,
  operation: BatchOperation,
  givenId: ObjectId | undefined,
): Promise<PlannedOperation> {
  const { op, id } = operation;
  if (op === 'insert') return planInsert(app, place, operation, givenId);
  if (id === undefined) throw invalid('INVALID_BODY', `"${op}" needs the id of a document`);
  return op === 'update' ? planChange(app, place, operation, id) : planState(app, place, operation, id);
}

async function planInsert(
  app: App,
  place: BatchPlace,
  { body = {}, id, ifMatch }: BatchOperation,
  givenId: ObjectId | undefined,
): Promise<PlannedOperation> {
  if (id !== undefined || ifMatch !== undefined) {
    throw invalid('INVALID_BODY', '"insert" takes neither id nor ifMatch: a document brings its own id as _id');
  }
  const document = readNewDocument(place.collection, body, place.writer, app.clock.now());
  await requireCreatableBeside(place.writer, document);
  const named = givenId === undefined ? document : { ...document, _id: givenId };
  return {
    place,
    write: { collection: place.collection, referrer: referrerOf(place), insert: named },
  };
}

async function requireCreatableBeside(writer: Writer, document: StoredDocument): Promise<void> {
  requireCreatable(writer, document);
  if (!writer?.settledBy || writer.ownerField !== null) return;
  const settled = await writer.settle({ create: pinsOfDocument(document, writer.settledBy) });
  if (!holdsIn(settled.compiled('create'), document)) throw ruleRefused('create');
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
  return { place, write: { collection: place.collection, id: read.id, update } };
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
  return { place, write: { collection: place.collection, id, update: await decided } };
}
