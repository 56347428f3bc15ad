import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import { nextVersion } from '../store/version.js';
import { readIfMatch, requireVersion, versionFilter } from '../write/if-match.js';
import { requireCreatable } from '../write/admit-write.js';
import { readNewDocument } from '../write/new-document.js';
import { openUpdate, readUpdate } from '../write/decide-update.js';
import { trashCutoff } from '../write/purge-trash.js';
import { notInTrash } from '../write/recover-document.js';
import { referrerOf } from '../write/settle-place.js';
import type { StoredMoment } from '../write/stored-moment.js';
import {
  documentNotFound,
  explainMiss,
  matching,
  requireDocumentId,
  ruledFilters,
  settleWrite,
  type RuledWrite,
  type WriteTarget,
} from '../write/write-target.js';
import { momentOfImage } from './earlier-writes.js';
import type { Image } from '../store/find-held.js';
import type { RecordChange, RecordWrite } from '../store/record-update.js';

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
  imageOf: (id: ObjectId) => Promise<Image | null>;
}

export interface PlannedOperation {
  place: BatchPlace;
  write: RecordWrite;
  /** Throws why the stored document does not take the write; returns when nothing speaks against it any more. */
  explain: () => Promise<void>;
}

/**
 * Plans one operation: everything is checked that needs no stored document, the rest is part of the write's filter. A
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
  await requireCreatable(place.writer, document);
  const named = givenId === undefined ? document : { ...document, _id: givenId };
  return {
    place,
    write: { collection: place.collection, referrer: referrerOf(place), insert: named },
    explain: () => Promise.resolve(),
  };
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
  return {
    place,
    write: { collection: place.collection, referrer: referrerOf(place), id: read.id, update },
    explain: () => Promise.resolve(),
  };
}

/** Into the trash, or out of it. */
function planState(app: App, place: BatchPlace, operation: BatchOperation, idText: string): Promise<PlannedOperation> {
  const _id = requireDocumentId(idText);
  const expected = readIfMatch(operation.ifMatch);
  if (operation.body !== undefined) throw invalid('INVALID_BODY', `"${operation.op}" takes no body`);
  const now = app.clock.now();
  const updatedAt = nextVersion(now, _id, expected);
  const inVersion = {
    own: [versionFilter(expected)],
    explain: ({ document }: StoredMoment) => requireVersion(document, expected),
  };
  if (operation.op === 'remove') {
    return planRuled(
      app,
      place,
      { _id, isDeleted: false },
      {
        ...inVersion,
        ruled: { action: 'delete' },
        record: { action: 'delete', set: { isDeleted: true, deletedAt: new Date(now), updatedAt } },
      },
    );
  }
  const trashed = { _id, isDeleted: true, deletedAt: { $gt: trashCutoff(app) } };
  return planRuled(app, place, trashed, {
    ...inVersion,
    ruled: { action: 'update' },
    record: { action: 'recover', set: { isDeleted: false, deletedAt: null, updatedAt } },
    notFound: notInTrash,
  });
}

interface RuledChange {
  ruled: RuledWrite;
  /** What the document must meet beside what rules ask. */
  own: readonly Record<string, unknown>[];
  record: RecordChange;
  explain: (found: StoredMoment) => unknown;
  notFound?: typeof documentNotFound;
}

async function planRuled(
  app: App,
  place: BatchPlace,
  state: Record<string, unknown> & { _id: ObjectId },
  { ruled, own, record, explain, notFound = documentNotFound }: RuledChange,
): Promise<PlannedOperation> {
  const settled = await settleWrite(app, place, state, ruled);
  const filter = matching(state, [...ruledFilters(settled, ruled), ...own]);
  return {
    place,
    write: { collection: place.collection, referrer: referrerOf(place), id: state._id, filter, record },
    async explain() {
      const image = await place.imageOf(state._id);
      // What operators make of a document that is not stored yet is told by the write alone.
      if (image?.isNew && !image.isExact) return;
      const read = image?.isExact ? () => momentOfImage(image, state) : undefined;
      const found = await explainMiss(app, settled, state, ruled, notFound, read);
      if (found) await explain(found);
    },
  };
}
