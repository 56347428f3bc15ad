import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import { changeDocumentRecord, removeDocumentRecord } from '../store/document-store.js';
import { visibleDocuments } from '../store/document.js';
import { runIdempotent } from './idempotency.js';
import { nextVersion } from '../store/version.js';
import type { ExpectedVersion } from './if-match.js';
import { referrerOf } from './settle-place.js';
import { requireDocumentId, writeInState, type WriteTarget } from './write-target.js';

interface RemovalOptions {
  expected?: ExpectedVersion;
  idempotencyKey?: string | null;
}

/**
 * Moves an active document to the trash (rest-api.md 3.1). 404 when there is none, one already trashed included; 403
 * OWNER_MISMATCH for another user's, 412 CHANGED_MEANWHILE for another version than the expected one. With an
 * idempotency key a repeated request is answered like the first one.
 */
export async function trashDocument(
  app: App,
  place: WriteTarget,
  idText: string,
  options: RemovalOptions = {},
): Promise<string> {
  const id = requireDocumentId(idText);
  const { expected = null } = options;
  return removeOnce(app, place, { id: idText, permanent: false }, options, async () => {
    const now = app.clock.now();
    const set = { isDeleted: true, deletedAt: new Date(now), updatedAt: nextVersion(now, id, expected) };
    await writeInState(app, place, { _id: id, isDeleted: false }, { action: 'delete', expected }, (filter) =>
      changeDocumentRecord(app, place.collection, filter, { action: 'delete', set }, referrerOf(place)),
    );
    return id.toHexString();
  });
}

/** Removes a document at once and for good, from the trash too. Refuses as trashDocument does. */
export async function deleteDocument(
  app: App,
  place: WriteTarget,
  idText: string,
  options: RemovalOptions = {},
): Promise<string> {
  const id = requireDocumentId(idText);
  const { expected = null } = options;
  return removeOnce(app, place, { id: idText, permanent: true }, options, async () => {
    await writeInState(app, place, { _id: id, ...visibleDocuments(true) }, { action: 'delete', expected }, (filter) =>
      removeDocumentRecord(app, place.collection, filter, referrerOf(place)),
    );
    return id.toHexString();
  });
}

/** A removal; where an earlier attempt of the same request may have made it, that it is gone is what was asked for. */
function removeOnce(
  app: App,
  place: WriteTarget,
  body: { id: string; permanent: boolean },
  { idempotencyKey: key = null }: RemovalOptions,
  removal: () => Promise<string>,
): Promise<string> {
  if (key === null) return removal();
  return runIdempotent(
    app,
    { place, action: 'delete', key, body },
    {
      prepare: () => ({
        ids: [],
        async run(_, isRepeated) {
          try {
            return await removal();
          } catch (error) {
            if (isRepeated && error instanceof AppError && error.code === 'DOCUMENT_NOT_FOUND') return body.id;
            throw error;
          }
        },
      }),
      answerAgain: () => body.id,
    },
  );
}
