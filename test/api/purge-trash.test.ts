import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { parseFieldSpec } from '../world/collections.js';
import { purgeTrash } from '../world/documents.js';
import { fileStore } from '../world/stored.js';
import { buildCollection, buildProject, placeDocuments, storedDocuments } from '../helpers/build-project.js';
import { buildWebhook, settleWebhooks } from '../helpers/build-webhook.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { use, useTestApp } from '../helpers/use.js';
import { openWebhookReceiver } from '../helpers/webhook-receiver.js';

const DAY_MS = 24 * 3_600_000;

const clock = createFakeClock();

const test = await useTestApp({ clock, settings: { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
const receiver = use(await openWebhookReceiver());
const owner = await buildProject(test.app);
const notes = await buildCollection(test.app, owner.project, { name: 'notes' });

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

  it('is purged untold, with its files and with what still refers to it', async () => {
    const build = (specs: string[]) => buildCollection(test.app, owner.project, { fields: specs.map(parseFieldSpec) });
    const boards = await build(['name:String']);
    const cards = await build([`board:Ref(${boards.name}){onDelete:unset}`]);
    const api = (method: 'post' | 'delete', path: string) =>
      request(test.server)[method](`/api/data/${path}`).set('x-api-key', owner.secret);
    const { _id: board } = (await api('post', boards.name).send({ name: 'a' }).expect(201)).body as { _id: string };
    const file = await request(test.server)
      .post('/api/storage/upload')
      .set('x-api-key', owner.secret)
      .field('attach', JSON.stringify({ collection: boards.name, id: board }))
      .attach('file', Buffer.from('plan'), 'plan.txt');
    expect(file.status).toBe(201);
    await api('delete', `${boards.name}/${board}`).expect(200);
    // As a job leaves it that never came to its end.
    await placeDocuments(test.app, cards, [{ board }]);
    clock.advance(31 * DAY_MS);

    await buildWebhook(test.app, owner.project, receiver.url);
    expect(await purgeTrash(test.app)).toBeGreaterThan(0);
    await settleWebhooks(test.app);
    expect(await storedDocuments(test.app, boards).countDocuments({})).toBe(0);
    expect((await storedDocuments(test.app, cards).findOne({}))?.board).toBeUndefined();
    expect(await fileStore(test.app).countDocuments({ state: 'confirmed' })).toBe(0);
    const told = receiver.received.map(({ event }) => (event as { event: string }).event);
    expect(told).toEqual([`${cards.name}.update`]);
  });
});
