import request from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Collection, documentsName } from '../world/collections.js';
import { measureStorage, updateProject } from '../world/projects.js';
import { projectStore, recountStorage, usageStore } from '../world/stored.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { openStorageClient, putSigned, type StorageClient } from '../helpers/storage-client.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, openUserClient } from '../helpers/user-client.js';

const LIMIT = 400_000;
const SHARE = LIMIT / 2;
const DOCUMENT = { text: 'x'.repeat(8_000) };
const AT_ONCE = 12;

let shop: TestProject;

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', BSVC_AUTH_RATE_LIMIT: 'off' } });
beforeEach(async () => {
  shop = await buildProject(test.app);
  await updateProject(test.app, shop.project.name, { publishableUploads: true });
  await limit({ database: LIMIT, storage: LIMIT });
});

async function limit(limits: Record<string, number>): Promise<void> {
  await projectStore(test.app).updateOne({ _id: shop.project._id }, { $set: { limits } });
}

type Headers = Record<string, string>;

async function signUp(): Promise<Headers> {
  const { body } = await openUserClient(test, shop.publishable).signUp();
  return { 'x-api-key': shop.publishable, ...bearer((body as { accessToken: string }).accessToken) };
}

const USED_UP = { code: 'QUOTA_EXCEEDED', message: expect.stringContaining('their share') };

/** The kinds of collections that users store documents in: with the one who owns them, and without. */
const KINDS = {
  'with an owner field': { rls: { mode: 'public-read', ownerField: 'userId' } },
  'with rules that name no owner': {
    rules: { read: 'anyone', create: 'user', update: 'user', delete: 'user' },
  },
} as const;

let sent = 0;
const post = (headers: Headers, path: string, body: object): request.Test =>
  request(test.server).post(path).set(headers).send(body);

/** What adds documents. */
const WAYS: Record<string, (headers: Headers) => request.Test> = {
  insert: (headers) => post(headers, '/api/data/items', DOCUMENT),
  'insert with an Idempotency-Key': (headers) =>
    post({ ...headers, 'idempotency-key': `key${sent++}` }, '/api/data/items', DOCUMENT),
  bulk: (headers) => post(headers, '/api/data/items/bulk', [DOCUMENT, DOCUMENT]),
  batch: (headers) =>
    post(headers, '/api/batch', { operations: [{ op: 'insert', collection: 'items', body: DOCUMENT }] }),
};

const bytesOf = async (collection: Collection): Promise<number> =>
  (await test.app.db.measure(documentsName(collection))).bytes;

describe.each(Object.entries(KINDS))('a user’s share of the database, in a collection %s', (_, settings) => {
  it.each(Object.keys(WAYS))('is not exceeded by %s, however many at once', async (way) => {
    const items = await buildCollection(test.app, shop.project, { name: 'items', ...settings } as never);
    const [eve, ann] = [await signUp(), await signUp()];
    const seen = new Set<number>();
    for (let round = 0; round < 6; round++) {
      const replies = await Promise.all(Array.from({ length: AT_ONCE }, () => WAYS[way]!(eve)));
      for (const { status, body } of replies) {
        seen.add(status);
        if (status === 403) expect(body).toMatchObject(USED_UP);
      }
    }
    expect([...seen].sort()).toEqual([way === 'batch' ? 200 : 201, 403]);
    expect(await bytesOf(items)).toBeLessThanOrEqual(SHARE);
    expect(await bytesOf(items)).toBeGreaterThan(SHARE / 2);
    // Others have theirs.
    await WAYS[way]!(ann).expect(({ status }) => expect(status).toBeLessThan(300));
    await post({ 'x-api-key': shop.secret }, '/api/data/items', DOCUMENT).expect(201);
  });
});

describe('a user’s share of the database', () => {
  it('has room again when documents are deleted permanently, and can be switched off', async () => {
    await buildCollection(test.app, shop.project, { name: 'items', ...KINDS['with an owner field'] } as never);
    const eve = await signUp();
    const ids: string[] = [];
    for (;;) {
      const { status, body } = await WAYS.insert!(eve);
      if (status === 403) break;
      ids.push((body as { _id: string })._id);
    }
    const [first, second] = ids;
    await request(test.server).patch(`/api/data/items/${first!}`).set(eve).send({ text: 'short' }).expect(200);
    await request(test.server).delete(`/api/data/items/${first!}?permanent=true`).set(eve).expect(200);
    await request(test.server).delete(`/api/data/items/${second!}?permanent=true`).set(eve).expect(200);
    await eventually('there is room again', async () => (await WAYS.insert!(eve)).status === 201);
    await limit({ database: LIMIT, userShare: 100 });
    await eventually('all is theirs', async () => (await WAYS.bulk!(eve)).status === 201);
  });

  it('measures nothing while the project has less than a share', async () => {
    await buildCollection(test.app, shop.project, { name: 'items', ...KINDS['with an owner field'] } as never);
    const eve = await signUp();
    for (let at = 0; at < 5; at++) await WAYS.insert!(eve).expect(201);
  });
});

describe('a user’s share of the storage', () => {
  const SIZE = 30_000;
  const used = async (): Promise<number> => (await measureStorage(test.app, shop.project)).bytes;
  const FILE_WAYS: Record<string, (storage: StorageClient) => Promise<{ status: number; body: object }>> = {
    upload: (storage) => storage.upload(Buffer.alloc(SIZE)),
    async 'signed upload'(storage) {
      const size = SIZE;
      const granted = await storage.request({ filename: 'a.png', contentType: 'image/png', size });
      if (granted.status !== 200) return granted;
      await putSigned(granted.body.signedUrl, Buffer.alloc(size), 'image/png');
      return storage.confirm({ filePath: granted.body.filePath, size });
    },
  };

  it.each(Object.entries(FILE_WAYS))('is not exceeded by %s, however many at once', async (_, store) => {
    const [eve, ann] = [await signUp(), await signUp()].map((headers) =>
      openStorageClient(test, shop.publishable, headers),
    );
    const stored: string[] = [];
    for (let round = 0; round < 2; round++) {
      const replies = await Promise.all(Array.from({ length: AT_ONCE }, () => store(eve!)));
      for (const { status, body } of replies) {
        if (status === 403) expect(body).toMatchObject(USED_UP);
        else stored.push((body as { path: string }).path);
      }
    }
    expect(stored).toHaveLength(Math.floor(SHARE / SIZE));
    expect(await used()).toBe(stored.length * SIZE);
    expect((await store(ann!)).status).toBeLessThan(300);
    const files = openStorageClient(test, shop.secret);
    expect((await files.remove(stored[0])).status).toBe(200);
    await eventually('there is room again', async () => (await store(eve!)).status < 300);
    expect((await store(eve!)).status).toBe(403);

    const users = { projectId: shop.project._id };
    const counted = await usageStore(test.app).find(users).toArray();
    await usageStore(test.app).updateMany(users, { $set: { bytes: 1 } });
    await recountStorage(test.app, shop.project);
    const again = await usageStore(test.app).find(users).toArray();
    expect(again.map(({ bytes }) => bytes)).toEqual(counted.map(({ bytes }) => bytes));
    await files.removeAll();
    await eventually('all is given back', async () =>
      (await usageStore(test.app).find(users).toArray()).every(({ bytes }) => bytes === 0),
    );
  });
});
