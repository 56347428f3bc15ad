import { calculateObjectSize, ObjectId } from 'bson';
import request from 'supertest';
import { expect, it } from 'vitest';
import { documentsName } from '../world/collections.js';
import { insertDocument } from '../world/documents.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const MAX_BYTES = 100 * 1024;

const test = await useTestApp({ constants: { documentMaxBytes: 100 * 1024 } });
const owner = await buildProject(test.app);
const notes = await buildCollection(test.app, owner.project, { name: 'notes' });

const call = (method: 'patch' | 'delete', path: string) =>
  request(test.server)[method](`/api/data/notes/${path}`).set('x-api-key', owner.secret);

/** Stores a document that has so many bytes; answers the length of its text as well. */
async function insertOf(bytes: number): Promise<{ id: string; length: number }> {
  const { _id } = await insertDocument(test.app, { collection: notes, writer: null }, { text: '' });
  const stored = test.app.db.collection(documentsName(notes));
  const document = (await stored.findOneAndDelete({ _id: new ObjectId(_id) }))!;
  const length = bytes - calculateObjectSize(document);
  await stored.insertOne({ ...document, text: 'x'.repeat(length) });
  return { id: _id, length };
}

it.each([
  ['of the largest size', MAX_BYTES],
  ['larger than may be, since it was imported', MAX_BYTES * 2],
])('moves a document to the trash, recovers and removes it that is %s', async (_, bytes) => {
  const { id, length } = await insertOf(bytes);
  await call('delete', id).expect(200);
  await call('patch', `${id}/recover`).expect(200);
  const grown = await call('patch', id).send({ text: 'x'.repeat(length + 1) });
  expect([grown.status, grown.body.code]).toEqual([413, 'DOCUMENT_TOO_LARGE']);
  // What makes it smaller is no growth.
  await call('patch', id)
    .send({ text: 'x'.repeat(length - 1) })
    .expect(200);
  await call('patch', id).send({ text: 'short' }).expect(200);
  await call('delete', `${id}?permanent=true`).expect(200);
});
