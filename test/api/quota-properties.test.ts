import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { ROUTE_LISTS } from '../world/app.js';
import { projectStore } from '../world/stored.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';
import { storedBytes } from '../helpers/stored-bytes.js';
import { growAt, placesOf } from '../helpers/strangers/grow.js';
import { useTestApp } from '../helpers/use.js';
import { buildEmail, openUserClient, PASSWORD } from '../helpers/user-client.js';

const LIMIT = 120_000;
/** What may be stored for a request to a full project: a session, a code, a mark. */
const SMALL = 1_024;
const METHODS = { POST: 'post', PUT: 'put', PATCH: 'patch' } as const;

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' } });

interface World extends TestProject {
  id: string;
  token: string;
  document: string;
}

async function buildWorld(): Promise<World> {
  const owner = await buildProject(test.app);
  await projectStore(test.app).updateOne({ _id: owner.project._id }, { $set: { limits: { database: LIMIT } } });
  const rls = { mode: 'public-read', ownerField: 'userId' } as const;
  await buildCollection(test.app, owner.project, { name: 'posts', rls });
  const users = openUserClient(test, owner.publishable);
  const { accessToken } = (await users.signUp({ email: buildEmail() })).body as { accessToken: string };
  const { body } = await request(test.server)
    .post('/api/data/posts')
    .set({ 'x-api-key': owner.publishable, authorization: `Bearer ${accessToken}` })
    .send({ title: 'Mine' })
    .expect(201);
  return {
    ...owner,
    id: owner.project._id.toHexString(),
    token: accessToken,
    document: (body as { _id: string })._id,
  };
}

const callersOf = ({ publishable, secret, token }: World): Record<string, string>[] => [
  { 'x-api-key': publishable },
  { 'x-api-key': publishable, authorization: `Bearer ${token}` },
  { 'x-api-key': secret },
];

/** Every route that takes a body, but for those of operators, who are no strangers to a project. */
const STORING = ROUTE_LISTS.flatMap(({ routes }) => routes).filter(
  ({ method, path, example }) =>
    method in METHODS && example !== undefined && !path.startsWith('/api/projects') && !path.startsWith('/api/admin'),
);

const INSERT = STORING.find(({ path, method }) => method === 'POST' && path === '/api/data/:collectionName')!;

let sent = 0;
/** The example of a route, one place of it grown to so many characters. */
function send(world: World, route: (typeof STORING)[number], place: string, characters: number, by: number) {
  const path = route.path.replace(':collectionName', 'posts').replace(/:\w+/g, world.document);
  const isAccount = path.startsWith('/api/userAuth') && typeof route.example === 'object';
  const own = { ...(route.example as object), email: buildEmail(), password: PASSWORD, currentPassword: PASSWORD };
  return request(test.server)
    [METHODS[route.method as keyof typeof METHODS]](path)
    .set({ ...callersOf(world)[by], 'idempotency-key': `key${sent++}`, 'content-type': 'application/json' })
    .send(growAt(isAccount ? own : route.example, place, JSON.stringify('x'.repeat(characters))));
}

/** Stores documents until the project is full. */
async function fill(world: World): Promise<void> {
  for (let status = 201; status === 201;) {
    const text = 'x'.repeat(5_000);
    ({ status } = await request(test.server).post('/api/data/posts').set('x-api-key', world.secret).send({ text }));
  }
}

describe('what is stored for a project', () => {
  it('grows by less than a kilobyte by any request to a full one, whoever sends it', async () => {
    const world = await buildWorld();
    await fill(world);
    let refused = 0;
    let tried = 0;
    let before = await storedBytes(test.app.db, world.id);
    for (const route of STORING) {
      for (const place of placesOf(route.example).slice(-1)) {
        for (const by of [1, 2]) {
          const { status, body } = await send(world, route, place, 12_000, by);
          const now = await storedBytes(test.app.db, world.id);
          const grown = now - before;
          before = now;
          if ((body as { code?: string }).code === 'QUOTA_EXCEEDED') refused++;
          tried++;
          expect(grown, `${route.method} ${route.path} ${place} ${by}: ${status}`).toBeLessThan(SMALL);
        }
      }
    }
    expect(tried).toBeGreaterThan(40);
    expect(refused).toBeGreaterThan(1);
  });

  it('stays within the quota and a tenth, whatever is sent one after the other', async () => {
    const random = openRandom(openSeed('quota'));
    const world = await buildWorld();
    let most = 0;
    let stored = 0;
    for (let at = 0; at < 100; at++) {
      const route = random.chance(0.5) ? INSERT : random.pick(STORING);
      const place = random.pick(placesOf(route.example));
      const reply = await send(world, route, place, random.pick([10, 1_000, 5_000, 12_000]), random.below(3));
      if (reply.status === 201) stored++;
      const id = (reply.body as { _id?: string })._id;
      if (reply.status === 201 && id !== undefined && random.chance(0.5)) {
        await request(test.server)
          .delete(`/api/data/posts/${id}?permanent=true`)
          .set('x-api-key', world.secret)
          .expect(200);
      }
      if (at % 3 > 0) continue;
      most = Math.max(most, await storedBytes(test.app.db, world.id));
      expect(most).toBeLessThanOrEqual(LIMIT * 1.1);
    }
    expect(stored).toBeGreaterThan(10);
    expect(most).toBeGreaterThan(LIMIT / 10);
  });
});
