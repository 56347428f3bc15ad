import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { commitWrites, type DecidedWrite } from '../store/commit-writes.js';
import type { StoredDocument } from '../store/document.js';
import { openRemoval, openTrashing, type StateWrite } from '../store/state-writes.js';
import { openAdmission } from './admit-state.js';
import { askHooks } from './ask-hooks.js';
import { executeOnce, type Mark } from './idempotency.js';
import type { ExpectedVersion } from './if-match.js';
import { referrerOf, requireDocumentId, type WriteTarget } from './write-target.js';

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
  return removeOnce(app, place, { id: idText, permanent: false }, options, () =>
    decideTrashing(app, place, id, options.expected),
  );
}

/** The decision to trash an active document for a writer, beside other writes of the same transaction. */
export async function decideTrashing(
  app: App,
  place: WriteTarget,
  id: ObjectId,
  expected: ExpectedVersion = null,
  beside: Pick<StateWrite, 'earlier' | 'cascade'> = {},
): Promise<DecidedWrite> {
  const isThere = ({ isDeleted }: StoredDocument): boolean => isDeleted === false;
  const admit = await openAdmission(place, { action: 'delete', isThere, expected });
  return openTrashing(app, { collection: place.collection, id, admit, referrer: referrerOf(place), ...beside });
}

/** Removes a document at once and permanently, from the trash too. Refuses as trashDocument does. */
export async function deleteDocument(
  app: App,
  place: WriteTarget,
  idText: string,
  options: RemovalOptions = {},
): Promise<string> {
  const id = requireDocumentId(idText);
  return removeOnce(app, place, { id: idText, permanent: true }, options, async () => {
    const isThere = ({ isDeleted }: StoredDocument): boolean => typeof isDeleted === 'boolean';
    const admit = await openAdmission(place, { action: 'delete', isThere, expected: options.expected });
    return openRemoval(app, { collection: place.collection, id, admit, referrer: referrerOf(place) });
  });
}

function removeOnce(
  app: App,
  place: WriteTarget,
  body: { id: string; permanent: boolean },
  { idempotencyKey: key = null }: RemovalOptions,
  decide: () => Promise<DecidedWrite>,
): Promise<string> {
  const carryOut = async (mark: Mark): Promise<string> => {
    const write = await decide();
    const ask = askHooks(app, place.hooked, { isOne: true, idempotencyKey: key });
    await commitWrites(app, [write], { first: await mark([]), ask });
    return write.id.toHexString();
  };
  return executeOnce(app, { place, action: 'delete', key, body }, { carryOut, answerAgain: () => body.id });
}
