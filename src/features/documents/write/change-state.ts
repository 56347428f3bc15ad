import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { type AppError, missing } from '../../../errors.js';
import type { Caller } from '../../access/caller.js';
import type { Collection } from '../../collections/collection.js';
import type { PresentedDocument } from '../reply/present-document.js';
import { type DecidedWrite, commitWrite, lookAt } from '../store/commit-writes.js';
import { type StoredDocument, trashCutoff } from '../store/document.js';
import { type StateWrite, openRecovery, openRemoval } from '../store/state-writes.js';
import { type RuledAction, requireAdmitted, requireAdmittedAfter, presentWritten } from './admit-write.js';
import { type ExpectedVersion, requireVersion } from './if-match.js';
import { writeOne } from './idempotency.js';
import { type WriteTarget, documentNotFound, requireDocumentId, requireWriteTarget } from './write-target.js';

interface AskedState {
  /** The rule that decides. */
  action: RuledAction;
  /** Whether the document is where the writer says it is. */
  isThere: (stored: StoredDocument) => boolean;
  expected?: ExpectedVersion | undefined;
  notFound?: () => AppError;
}

/**
 * Whether a writer may do something to a document that changes none of its fields: 401 at once, 404, 403, 412 by what
 * is stored.
 */
async function openAdmission(
  { writer }: WriteTarget,
  { action, isThere, expected = null, notFound = documentNotFound }: AskedState,
): Promise<StateWrite['admit']> {
  const rules = action === 'update' ? (['read', 'update', 'updateTo'] as const) : (['read', 'delete'] as const);
  for (const name of rules) writer?.requireKnown(name);
  const sets = await writer?.openSets();
  return (stored, exists): stored is StoredDocument => {
    if (!stored || !isThere(stored)) throw notFound();
    if (writer) {
      const ask = sets!(exists);
      requireAdmitted(writer, action, stored, ask, notFound);
      if (action === 'update') requireAdmittedAfter(writer, stored, ask);
    }
    requireVersion(stored, expected);
    return true;
  };
}

/**
 * Throws what an update by the caller of no field at all would throw: 404 without such an active document, 401 or 403
 * where the caller may not change it. Answers where it is and when it was stored. Nothing is written.
 */
export async function requireUpdatable(
  app: App,
  caller: Caller,
  collectionName: string,
  idText: string,
): Promise<{ collection: Collection; createdAt: Date | null }> {
  const id = requireDocumentId(idText);
  const place = await requireWriteTarget(app, caller, collectionName);
  const { collection } = place;
  const admit = await openAdmission(place, { action: 'update', isThere: ({ isDeleted }) => !isDeleted });
  return lookAt(app, collection, id, (stored, exists) => {
    admit(stored, exists);
    return { collection, createdAt: stored?.createdAt ?? null };
  });
}

interface RemovalOptions {
  expected?: ExpectedVersion;
  idempotencyKey?: string | null;
}

/**
 * Moves an active document to the trash (rest-api.md 3.1). 404 when there is none, one already trashed included; 403
 * OWNER_MISMATCH for another user's, 412 CHANGED_MEANWHILE for another version than the expected one. With an
 * idempotency key a repeated request is answered like the first one.
 */
export function trashDocument(app: App, place: WriteTarget, id: string, options?: RemovalOptions): Promise<string> {
  return removeDocument(app, place, { id, permanent: false }, options);
}

/** Removes a document at once and permanently, from the trash too. Refuses as trashDocument does. */
export function deleteDocument(app: App, place: WriteTarget, id: string, options?: RemovalOptions): Promise<string> {
  return removeDocument(app, place, { id, permanent: true }, options);
}

async function removeDocument(
  app: App,
  place: WriteTarget,
  body: { id: string; permanent: boolean },
  { expected, idempotencyKey: key = null }: RemovalOptions = {},
): Promise<string> {
  const id = requireDocumentId(body.id);
  const request = { place, action: 'delete' as const, key, body };
  await writeOne(app, request, () => decideRemoval(app, place, id, { expected, isPermanent: body.permanent }));
  return id.toHexString();
}

/** A removal as it is asked for, beside other writes of the same transaction. */
interface Removal extends Pick<StateWrite, 'earlier' | 'cascade'> {
  expected: ExpectedVersion | undefined;
  isPermanent?: boolean;
}

/** The decision to trash an active document for a writer, or to remove one permanently. */
export async function decideRemoval(
  app: App,
  place: WriteTarget,
  id: ObjectId,
  { expected, isPermanent = false, ...beside }: Removal,
): Promise<DecidedWrite> {
  const { collection } = place;
  const isThere = ({ isDeleted }: StoredDocument): boolean => isPermanent || !isDeleted;
  const admit = await openAdmission(place, { action: 'delete', isThere, expected });
  return openRemoval(app, {
    collection,
    id,
    admit,
    referrer: place.referrer ?? place.writer,
    permanent: isPermanent,
    ...beside,
  });
}

/**
 * Takes a document out of the trash (decisions.md 3). 404 when it is not there or too long there, 403 for another
 * user's, 409 when a unique value was taken since, 412 CHANGED_MEANWHILE for another version than the expected one.
 */
export async function recoverDocument(
  app: App,
  place: WriteTarget,
  idText: string,
  expected: ExpectedVersion = null,
): Promise<PresentedDocument> {
  const id = requireDocumentId(idText);
  const recovered = await commitWrite(app, await decideRecovery(app, place, id, expected));
  return presentWritten(recovered.after!, place.writer);
}

/** The decision to take a document back for a writer. */
export async function decideRecovery(
  app: App,
  place: WriteTarget,
  id: ObjectId,
  expected: ExpectedVersion,
): Promise<DecidedWrite> {
  const cutoff = trashCutoff(app);
  const admit = await openAdmission(place, {
    action: 'update',
    isThere: ({ isDeleted, deletedAt }) => isDeleted && deletedAt !== null && deletedAt > cutoff,
    expected,
    notFound: () => missing('DOCUMENT_NOT_FOUND', 'There is no document with this id in the trash'),
  });
  return openRecovery(app, { collection: place.collection, id, admit });
}
