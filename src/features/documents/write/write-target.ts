import type { Document, ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict, forbidden, invalid, missing, type AppError } from '../../../errors.js';
import { findObjectId } from '../../../platform/ids.js';
import { requireWriter, type Writer } from '../../access/access-rules.js';
import type { Caller } from '../../access/caller.js';
import type { Collection } from '../../collections/collection.js';
import { requireCollection } from '../../collections/collection-store.js';
import type { StoredDocument } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import { matchShown } from '../store/shown-documents.js';
import { requireVersion, versionFilter, type ExpectedVersion } from './if-match.js';
import { filtersBefore, readableFilter, ruleRefused, type RuledAction } from './admit-write.js';

/** The place of a write and its writer. */
export interface WriteTarget {
  collection: Collection;
  writer: Writer;
}

/**
 * The collection a caller may write to: 404 for an unknown one, 403 or 401 when this caller may not write at all
 * (rest-api.md 5).
 */
export async function requireWriteTarget(app: App, caller: Caller, collectionName: string): Promise<WriteTarget> {
  const collection = await requireCollection(app, caller.project._id, collectionName);
  return { collection, writer: await requireWriter(app, collection, caller) };
}

/** 400 INVALID_ID for anything but 24 hexadecimal digits. */
export function requireDocumentId(text: string): ObjectId {
  const id = findObjectId(text);
  if (!id) throw invalid('INVALID_ID', 'A document id has 24 hexadecimal digits');
  return id;
}

const MAX_ATTEMPTS = 5;

/**
 * The result of a conditional write. When it matches nothing (null), `explain` throws the reason found in the stored
 * document; without a reason the document has changed and the write is tried again. 409 DOCUMENT_CHANGING after five
 * times.
 */
export async function writeOrExplain<T>(write: () => Promise<T | null>, explain: () => Promise<unknown>): Promise<T> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const written = await write();
    if (written !== null) return written;
    await explain();
  }
  throw conflict('DOCUMENT_CHANGING', 'The document is being changed by others: try again', { retryAfterSeconds: 1 });
}

/**
 * Reads the document that a write did not match: throws 404 when it is not in that state or not readable, 403 when it
 * is someone else's or the rule of the write does not admit it; else answers it as it is now.
 */
export async function explainMiss(
  app: App,
  { collection, writer }: WriteTarget,
  state: Record<string, unknown>,
  { action, after = [] }: RuledWrite,
  notFound: () => AppError = documentNotFound,
): Promise<StoredDocument> {
  const find = (filters: readonly Document[]): Promise<StoredDocument | null> =>
    matchShown(
      app,
      collection,
      async (shown) => await documentStore(app, collection).findOne({ ...matching(state, filters), ...shown }),
    );
  const readable = readableFilter(writer);
  const found = await find(readable ? [readable] : []);
  if (!found) throw notFound();
  if (!writer) return found;
  if (writer.ownerField !== null) {
    if (found[writer.ownerField] === writer.userId) return found;
    throw forbidden('OWNER_MISMATCH', 'The document belongs to another user');
  }
  if (!(await find(filtersBefore(writer, action)))) {
    // Of the trash only those know who may fill it.
    const isKnown = found.isDeleted === false || (await find(filtersBefore(writer, 'delete')));
    throw isKnown ? ruleRefused(action, 'before') : notFound();
  }
  if (after === null || (after.length > 0 && !(await find(after)))) throw ruleRefused(action, 'after');
  return found;
}

/** What rules ask of a write; `after` is filtersAfter, where the write changes anything that a rule could name. */
export interface RuledWrite {
  action: RuledAction;
  after?: Document[] | null;
}

/** A state with further conditions. */
export function matching(state: Record<string, unknown>, filters: readonly Document[]): Record<string, unknown> {
  return filters.length > 0 ? { ...state, $and: filters } : state;
}

/**
 * A write of the document in `state`, in the expected version and by somebody who may, tried again while others change
 * it. What the document must meet is part of the write itself, so that nothing can happen between check and write.
 * Throws what explainMiss does, and 412 CHANGED_MEANWHILE.
 */
export function writeInState<T>(
  app: App,
  place: WriteTarget,
  state: Record<string, unknown>,
  { expected, notFound, ...ruled }: RuledWrite & { expected: ExpectedVersion; notFound?: () => AppError },
  write: (filter: Record<string, unknown>) => Promise<T | null>,
): Promise<T> {
  const asked = [...filtersBefore(place.writer, ruled.action), ...(ruled.after ?? [])];
  const filter = matching({ ...state, ...versionFilter(expected) }, asked);
  return writeOrExplain(
    () => write(filter),
    async () => requireVersion(await explainMiss(app, place, state, ruled, notFound), expected),
  );
}

export function documentNotFound(): AppError {
  return missing('DOCUMENT_NOT_FOUND', 'There is no document with this id in the collection');
}
