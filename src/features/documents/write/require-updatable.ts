import type { Document } from 'bson';
import type { App } from '../../../app.js';
import type { Caller } from '../../access/caller.js';
import type { Collection } from '../../collections/collection.js';
import type { StoredDocument } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import { matching, requireDocumentId, requireWriteTarget, writeRuled } from './write-target.js';

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
  const _id = requireDocumentId(idText);
  const place = await requireWriteTarget(app, caller, collectionName);
  const { collection } = place;
  const state = { _id, isDeleted: false };
  const find = (filters: readonly Document[]): Promise<StoredDocument | null> =>
    documentStore(app, collection).findOne(matching(state, filters), { projection: { createdAt: 1 } });
  const ruled = { action: 'update' } as const;
  const { createdAt } = await writeRuled(app, place, state, ruled, find, () => undefined);
  return { collection, createdAt: createdAt ?? null };
}
