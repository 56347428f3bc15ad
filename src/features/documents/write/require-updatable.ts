import type { App } from '../../../app.js';
import type { Caller } from '../../access/caller.js';
import type { Collection } from '../../collections/collection.js';
import { documentStore } from '../store/document-store.js';
import { matchShown } from '../store/shown-documents.js';
import { matching, requireDocumentId, requireWriteTarget, writeRuled } from './write-target.js';

/**
 * Throws what an update by the caller of no field at all would throw: 404 without such an active document, 401 or 403
 * where the caller may not change it. Answers the collection. Nothing is written.
 */
export async function requireUpdatable(
  app: App,
  caller: Caller,
  collectionName: string,
  idText: string,
): Promise<Collection> {
  const _id = requireDocumentId(idText);
  const place = await requireWriteTarget(app, caller, collectionName);
  const { collection } = place;
  const state = { _id, isDeleted: false };
  const nothing = { set: {}, unset: [] };
  const find = (filters: Parameters<Parameters<typeof writeRuled>[4]>[0]): Promise<unknown> =>
    matchShown(
      app,
      collection,
      async (shown) =>
        await documentStore(app, collection).findOne(
          { ...matching(state, filters), ...shown },
          { projection: { _id: 1 } },
        ),
    );
  await writeRuled(app, place, state, { action: 'update', change: nothing }, find, () => undefined);
  return collection;
}
