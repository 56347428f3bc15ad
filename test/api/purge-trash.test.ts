import request from 'supertest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Collection } from '../world/collections.js';
import { purgeTrash } from '../world/documents.js';
import { buildCollection, buildProject, storedDocuments, type TestProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

const DAY_MS = 24 * 3_600_000;

let test: TestApp;
let owner: TestProject;
let notes: Collection;
const clock = createFakeClock();

beforeAll(async () => {
  test = await openTestApp({ clock });
  owner = await buildProject(test.app);
  notes = await buildCollection(test.app, owner.project, { name: 'notes' });
});
afterAll(() => test.close());

const call = (method: 'post' | 'patch' | 'delete', path: string) =>
  request(test.server)[method](`/api/data/notes${path}`).set('x-api-key', owner.secret);

async function trashed(): Promise<string> {
  const { _id } = (await call('post', '').send({ a: 1 }).expect(201)).body as { _id: string };
  await call('delete', `/${_id}`).expect(200);
  return _id;
}

describe('the trash', () => {
  it('keeps a document for 30 days, then it cannot be recovered and is purged', async () => {
    const old = await trashed();
    clock.advance(DAY_MS);
    const young = await trashed();
    clock.advance(29 * DAY_MS - 1);
    expect(await purgeTrash(test.app)).toBe(0);
    await call('patch', `/${old}/recover`).expect(200);
    await call('delete', `/${old}`).expect(200);

    clock.advance(DAY_MS + 1);
    expect((await call('patch', `/${young}/recover`)).status).toBe(404);
    expect(await purgeTrash(test.app)).toBe(1);
    expect(await storedDocuments(test.app, notes).countDocuments({})).toBe(1);
    await call('patch', `/${old}/recover`).expect(200);
  });

  it('is purged in batches, active documents stay', async () => {
    const moment = new Date(clock.now() - 31 * DAY_MS);
    const times = { createdAt: moment, updatedAt: moment };
    await storedDocuments(test.app, notes).insertMany(
      Array.from({ length: 1203 }, (_, n) => ({ n, isDeleted: true, deletedAt: moment, ...times })) as never[],
    );
    const active = await storedDocuments(test.app, notes).countDocuments({ isDeleted: false });
    expect(await purgeTrash(test.app)).toBe(1203);
    expect(await storedDocuments(test.app, notes).countDocuments({})).toBe(active);
  });
});
