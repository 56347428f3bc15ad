import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { editCollection } from '../world/collections.js';
import { importDocuments } from '../world/documents.js';
import { buildCollection, buildProject, storedDocuments } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const BOTH = { tags: ['a'], labels: ['b'] };
const ONE = { tags: ['a'], labels: 'b' };

const now = Date.UTC(2026, 10, 21);
const test = await useTestApp({ clock: { now: () => now } });
const owner = await buildProject(test.app);
const items = await buildCollection(test.app, owner.project, { name: 'items', indexes: ['tags,-labels'] });

const send = (method: 'post' | 'patch', path: string, body: object) =>
  request(test.server)[method](`/api/data/items${path}`).set('x-api-key', owner.secret).send(body);
const count = () => storedDocuments(test.app, items).countDocuments({});
const REFUSAL = {
  code: 'VALIDATION_FAILED',
  message: expect.stringContaining('only one of them may be an array') as string,
};

describe('a document with arrays in two fields of one index', () => {
  it('is refused with 400 by every way of storing it, and nothing of it stays', async () => {
    const { body: stored } = await send('post', '', ONE).expect(201);
    const before = await count();
    expect((await send('post', '', BOTH).expect(400)).body).toMatchObject(REFUSAL);
    expect((await send('post', '/bulk', [ONE, BOTH]).expect(400)).body).toMatchObject(REFUSAL);
    expect((await send('patch', `/${stored._id as string}`, { labels: ['b'] }).expect(400)).body).toMatchObject(
      REFUSAL,
    );
    expect(await count()).toBe(before);
    expect(await importDocuments(test.app, items, [BOTH, ONE])).toEqual({
      inserted: 1,
      rejected: [{ index: 0, message: expect.stringContaining('only one of them') as string }],
    });
  });

  it('keeps such an index from being made, with 409', async () => {
    const { name } = await buildCollection(test.app, owner.project, {});
    await request(test.server).post(`/api/data/${name}`).set('x-api-key', owner.secret).send(BOTH).expect(201);
    const making = editCollection(test.app, owner.project._id, name, { indexes: ['tags,labels'] });
    await expect(making).rejects.toMatchObject({ kind: 'conflict', code: 'INDEX_REFUSED' });
  });
});
