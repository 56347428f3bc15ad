import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict, forbidden, invalid, missing, type AppError } from '../../../errors.js';
import { findObjectId } from '../../../platform/ids.js';
import { requireWriter } from '../../access/access-rules.js';
import type { Caller } from '../../access/caller.js';
import type { Collection } from '../../collections/collection.js';
import { requireCollection } from '../../collections/collection-store.js';
import type { StoredDocument } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import { matchShown } from '../store/shown-documents.js';
import { requireVersion, versionFilter, type ExpectedVersion } from './if-match.js';
import type { Writer } from './new-document.js';

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
  return { collection, writer: requireWriter(collection, caller) };
}

/** 400 INVALID_ID for anything but 24 hexadecimal digits. */
export function requireDocumentId(text: string): ObjectId {
  const id = findObjectId(text);
  if (!id) throw invalid('INVALID_ID', 'A document id has 24 hexadecimal digits');
  return id;
}

/**
 * Restricts a write to what the writer owns. Part of the write itself, so that nothing can happen between check and
 * write.
 */
export function ownedBy(writer: Writer): Record<string, unknown> {
  return writer ? { [writer.ownerField]: writer.userId } : {};
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
 * Reads the document that a write did not match: throws 404 when it is not in that state, 403 when it is someone
 * else's; else answers it as it is now.
 */
export async function explainMiss(
  app: App,
  { collection, writer }: WriteTarget,
  state: Record<string, unknown>,
  notFound: () => AppError = documentNotFound,
): Promise<StoredDocument> {
  const found = await matchShown(
    app,
    collection,
    async (shown) => await documentStore(app, collection).findOne({ ...state, ...shown }),
  );
  if (!found) throw notFound();
  if (writer && found[writer.ownerField] !== writer.userId) {
    throw forbidden('OWNER_MISMATCH', 'The document belongs to another user');
  }
  return found;
}

/**
 * A write of the document in `state`, in the expected version and by its owner, tried again while others change it.
 * Throws what explainMiss does, and 412 CHANGED_MEANWHILE.
 */
export function writeInState<T>(
  app: App,
  place: WriteTarget,
  state: Record<string, unknown>,
  { expected, notFound }: { expected: ExpectedVersion; notFound?: () => AppError },
  write: (filter: Record<string, unknown>) => Promise<T | null>,
): Promise<T> {
  const filter = { ...state, ...versionFilter(expected), ...ownedBy(place.writer) };
  return writeOrExplain(
    () => write(filter),
    async () => requireVersion(await explainMiss(app, place, state, notFound), expected),
  );
}

export function documentNotFound(): AppError {
  return missing('DOCUMENT_NOT_FOUND', 'There is no document with this id in the collection');
}
