import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { App } from '../world/app.js';
import { type Collection, documentsName } from '../world/collections.js';
import {
  type WriteTarget,
  deleteDocument,
  insertDocument,
  recoverDocument,
  trashDocument,
} from '../world/documents.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

let test: TestApp;
let collection: Collection;
let place: WriteTarget;
beforeAll(async () => {
  test = await openTestApp();
  collection = await buildCollection(test.app, (await buildProject(test.app)).project);
  place = { collection, writer: null };
});
afterAll(() => test.close());

/**
 * The app, where somebody else does something each time after a write has matched nothing, before the reason is looked
 * for.
 */
function appWithOther(act: () => Promise<unknown>): App {
  const store = test.app.db.collection(documentsName(collection));
  const findOne = async (...given: Parameters<typeof store.findOne>) => {
    await act();
    return store.findOne(...given);
  };
  const watched = Object.assign(Object.create(store) as object, { findOne });
  const collectionOf = (name: string) => (name === documentsName(collection) ? watched : test.app.db.collection(name));
  const db = { ...test.app.db, collection: collectionOf };
  return { ...test.app, db } as unknown as App;
}

async function insertTrashed(): Promise<string> {
  const { _id } = await insertDocument(test.app, place, { a: 1 });
  return trashDocument(test.app, place, _id);
}
const recover = (id: string) => recoverDocument(test.app, place, id);
const trash = (id: string) => trashDocument(test.app, place, id);

describe('a write that meets the document in the wrong state, which is then the right one', () => {
  it('moves a document to the trash that has just been recovered', async () => {
    const id = await insertTrashed();
    let others = 0;
    await trashDocument(
      appWithOther(async () => others++ === 0 && (await recover(id))),
      place,
      id,
    );
    expect(others).toBe(1);
    await expect(trash(id)).rejects.toMatchObject({ code: 'DOCUMENT_NOT_FOUND' });
  });

  it('recovers a document that has just been trashed', async () => {
    const { _id } = await insertDocument(test.app, place, { a: 1 });
    let others = 0;
    const recovered = await recoverDocument(
      appWithOther(async () => others++ === 0 && (await trash(_id))),
      place,
      _id,
    );
    expect(recovered).toMatchObject({ _id, isDeleted: false });
  });

  it('answers 409 when the document is always in the wrong state for the write and in the right one for the look', async () => {
    const { _id } = await insertDocument(test.app, place, { a: 1 });
    const store = test.app.db.collection(documentsName(collection));
    const none = () => Promise.resolve(null);
    const missing = Object.assign(Object.create(store) as object, { findOneAndUpdate: none, findOneAndDelete: none });
    const app = { ...test.app, db: { ...test.app.db, collection: () => missing } } as unknown as App;
    const changing = { kind: 'conflict', code: 'DOCUMENT_CHANGING', retryAfterSeconds: 1 };
    await expect(trashDocument(app, place, _id)).rejects.toMatchObject(changing);
    await expect(deleteDocument(app, place, _id)).rejects.toMatchObject(changing);
  });
});
