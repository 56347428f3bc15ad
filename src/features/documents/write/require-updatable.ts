import type { App } from '../../../app.js';
import type { Caller } from '../../access/caller.js';
import type { Collection } from '../../collections/collection.js';
import { openAdmission } from './admit-state.js';
import { lookAt, requireDocumentId, requireWriteTarget } from './write-target.js';

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
  const admit = await openAdmission(place, { action: 'update', isThere: ({ isDeleted }) => isDeleted === false });
  return lookAt(app, collection, id, (stored, exists) => {
    admit(stored, exists);
    return { collection, createdAt: stored?.createdAt ?? null };
  });
}
