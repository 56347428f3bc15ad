import request from 'supertest';
import { describe, expect, it } from 'vitest';
import {
  type Collection,
  editCollection,
  type Expire,
  parseFieldSpec,
  readExpire,
  writeExpire,
} from '../world/collections.js';
import { removeExpiredDocuments } from '../world/documents.js';
import { fileStore } from '../world/stored.js';
import { buildCollection, buildProject, placeDocuments, storedDocuments } from '../helpers/build-project.js';
import { buildWebhook, settleWebhooks } from '../helpers/build-webhook.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { buildOperator } from '../helpers/operator-client.js';
import { use, useTestApp } from '../helpers/use.js';
import { openWebhookReceiver } from '../helpers/webhook-receiver.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FIELDS = ['title:String', 'expiresAt:Date'];

const clock = createFakeClock();

const test = await useTestApp({ clock, settings: { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
const receiver = use(await openWebhookReceiver());
const owner = await buildProject(test.app);

const build = (expire: Expire, specs: string[] = FIELDS): Promise<Collection> =>
  buildCollection(test.app, owner.project, { fields: specs.map(parseFieldSpec), expire });
const at = (ms: number): string => new Date(clock.now() + ms).toISOString();
const send = (method: 'get' | 'post' | 'patch' | 'delete', path: string, body?: object) =>
  request(test.server)[method](`/api/${path}`).set('x-api-key', owner.secret).send(body);
const insert = async ({ name }: Collection, body: object): Promise<string> =>
  ((await send('post', `data/${name}`, body).expect(201)).body as { _id: string })._id;
/** What is stored of each document, by its title: `active`, `trashed` or nothing. */
async function states(collection: Collection): Promise<Record<string, string>> {
  const stored = await storedDocuments(test.app, collection).find({}).toArray();
  return Object.fromEntries(
    stored
      .filter(({ isDeleted }) => typeof isDeleted === 'boolean')
      .map(({ title, isDeleted }) => [title, isDeleted ? 'trashed' : 'active']),
  );
}

describe('documents that expire', () => {
  it.each<[Expire, Record<string, string>]>([
    [{ field: 'expiresAt' }, { over: 'trashed', now: 'trashed', later: 'active', never: 'active' }],
    [
      { field: 'expiresAt', permanent: true },
      { later: 'active', never: 'active' },
    ],
    [
      { field: 'expiresAt', after: '2h' },
      { over: 'active', now: 'active', later: 'active', never: 'active' },
    ],
    [
      { field: 'expiresAt', after: '1m' },
      { over: 'trashed', now: 'active', later: 'active', never: 'active' },
    ],
    [
      { field: 'createdAt', after: '1d' },
      { over: 'active', now: 'active', later: 'active', never: 'active' },
    ],
  ])('go as %j says', async (expire, expected) => {
    const collection = await build(expire);
    await insert(collection, { title: 'over', expiresAt: at(-HOUR_MS) });
    await insert(collection, { title: 'now', expiresAt: at(0) });
    await insert(collection, { title: 'later', expiresAt: at(1) });
    await insert(collection, { title: 'never' });
    await removeExpiredDocuments(test.app);
    expect(await states(collection)).toEqual(expected);
    expect(await removeExpiredDocuments(test.app)).toBe(0);
  });

  it('go some time after they were stored or last changed', async () => {
    const [created, changed] = [
      await build({ field: 'createdAt', after: '30d', permanent: true }),
      await build({ field: 'updatedAt', after: '30d' }),
    ];
    for (const collection of [created, changed]) {
      const id = await insert(collection, { title: 'touched' });
      await insert(collection, { title: 'left alone' });
      clock.advance(29 * DAY_MS);
      await send('patch', `data/${collection.name}/${id}`, { title: 'touched' }).expect(200);
      await removeExpiredDocuments(test.app);
      clock.advance(DAY_MS);
      await removeExpiredDocuments(test.app);
    }
    expect(await states(created)).toEqual({});
    expect(await states(changed)).toEqual({ touched: 'active', 'left alone': 'trashed' });
  });

  it('go as any removal does: with what refers to them, their files, an event and their room', async () => {
    const parents = await build({ field: 'expiresAt', permanent: true });
    const refer = async (onDelete: string): Promise<Collection> =>
      buildCollection(test.app, owner.project, {
        fields: [`of:Ref(${parents.name}){onDelete:${onDelete}}`, 'title:String'].map(parseFieldSpec),
      });
    const [gone, kept] = [await refer('remove'), await refer('restrict')];
    const [first, second] = [
      await insert(parents, { title: 'goes', expiresAt: at(0) }),
      await insert(parents, { title: 'held', expiresAt: at(0) }),
    ];
    await insert(gone, { title: 'with it', of: first });
    const holder = await insert(kept, { title: 'holds', of: second });
    const upload = request(test.server).post('/api/storage/upload').set('x-api-key', owner.secret);
    await upload
      .field('attach', JSON.stringify({ collection: parents.name, id: first }))
      .attach('file', Buffer.from('bytes'), 'a.txt')
      .expect(201);
    await buildWebhook(test.app, owner.project, receiver.url, ['*']);

    expect(await removeExpiredDocuments(test.app)).toBe(1);
    await settleWebhooks(test.app);
    expect(await states(parents)).toEqual({ held: 'active' });
    expect(await states(gone)).toEqual({});
    expect(await fileStore(test.app).countDocuments({ projectId: owner.project._id, state: 'confirmed' })).toBe(0);
    const told = receiver.received.map(({ event }) => event as { event: string; documentId?: string });
    expect(told.map(({ event }) => event)).toContain(`${parents.name}.delete`);

    await send('delete', `data/${kept.name}/${holder}`).expect(200);
    expect(await removeExpiredDocuments(test.app)).toBe(1);
    expect(await states(parents)).toEqual({});
  });

  it('go all, however many, and stay when their moment is moved before', async () => {
    const collection = await build({ field: 'expiresAt' });
    const many = Array.from({ length: 120 }, (_, n) => ({ title: `t${n}`, expiresAt: new Date(clock.now()) }));
    const [first] = await placeDocuments(test.app, collection, many);
    await send('patch', `data/${collection.name}/${first}`, { expiresAt: at(DAY_MS) }).expect(200);
    const counts = await Promise.all([removeExpiredDocuments(test.app), removeExpiredDocuments(test.app)]);
    expect(Math.max(...counts)).toBeLessThanOrEqual(119);
    expect(Object.values(await states(collection)).filter((state) => state === 'active')).toHaveLength(1);
  });

  it('can be declared for a collection, changed and given up', async () => {
    const collection = await buildCollection(test.app, owner.project, { fields: FIELDS.map(parseFieldSpec) });
    const edit = (expire: Expire | null) => editCollection(test.app, owner.project._id, collection.name, { expire });
    await insert(collection, { title: 'a', expiresAt: at(0) });
    expect((await edit({ field: 'expiresAt' })).expire).toEqual({ field: 'expiresAt' });
    expect((await edit(null)).expire).toBeNull();
    expect(await removeExpiredDocuments(test.app)).toBe(0);
    await edit({ field: 'expiresAt' });
    await expect(
      editCollection(test.app, owner.project._id, collection.name, { dropFields: ['expiresAt'] }),
    ).rejects.toMatchObject({ code: 'INVALID_EXPIRE' });
    expect(await removeExpiredDocuments(test.app)).toBe(1);
  });

  it.each<[string, Expire, string]>([
    ['a field that nobody declares', { field: 'until' }, 'enforced'],
    ['a field of another type', { field: 'title' }, 'enforced'],
    ['the moment at which they were stored', { field: 'createdAt' }, 'enforced'],
    ['a field that may hold anything', { field: 'expiresAt' }, 'flexible'],
  ])('cannot go by %s', async (_, expire, mode) => {
    const input = { fields: FIELDS.map(parseFieldSpec), expire, mode: mode as 'enforced' };
    await expect(buildCollection(test.app, owner.project, input)).rejects.toMatchObject({ code: 'INVALID_EXPIRE' });
  });

  it('are refused over HTTP by a moment that they cannot have, and told of by one that they can', async () => {
    const { call } = await buildOperator(test);
    const path = `/api/projects/${owner.project._id.toHexString()}/collections`;
    const fields = [
      { name: 'title', type: 'String' },
      { name: 'expiresAt', type: 'Date' },
    ];
    const added = { name: 'sessions', fields, expire: { field: 'title' } };
    expect((await call('post', path, added).expect(400)).body).toMatchObject({
      code: 'INVALID_EXPIRE',
      message: expect.stringContaining('a declared field of type Date'),
    });
    await call('post', path, { ...added, expire: { field: 'expiresAt', after: '2h' } }).expect(201);
    const edit = (expire: Expire | null) => call('patch', `${path}/sessions`, { expire });
    expect((await edit({ field: 'updatedAt' }).expect(400)).body).toMatchObject({ code: 'INVALID_EXPIRE' });
    const { body } = await call('get', `${path}/sessions`).expect(200);
    expect(body).toMatchObject({ data: { expire: { field: 'expiresAt', after: '2h' } } });
    await edit(null).expect(200);
    expect(((await call('get', `${path}/sessions`)).body as { data: object }).data).not.toHaveProperty('expire');
  });

  it.each<[string, Expire]>([
    ['expiresAt', { field: 'expiresAt' }],
    ['createdAt after 30d permanently', { field: 'createdAt', after: '30d', permanent: true }],
  ])('is written at the command line as %s', (text, expire) => {
    expect(readExpire(text)).toEqual(expire);
    expect(writeExpire(expire)).toBe(text);
  });
});
