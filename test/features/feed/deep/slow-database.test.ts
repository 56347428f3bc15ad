import { join } from 'node:path';
import supertest from 'supertest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEngine } from '../../../../src/engine/index.js';
import { setChanges } from '../../../../src/features/changes/set-changes.js';
import { buildCollection, buildProject, type TestProject } from '../../../helpers/build-project.js';
import { openStreamClient } from '../../../helpers/event-stream.js';
import { openFollower } from '../../../helpers/feed-follower.js';
import { openTestApp, type TestApp } from '../../../helpers/open-test-app.js';
import { openRandom } from '../../../helpers/random.js';
import { openSeed } from '../../../helpers/seed.js';
import { startTcpProxy } from '../../../helpers/tcp-proxy.js';
import { openTempDir } from '../../../helpers/temp-dir.js';

const ROUNDS = Number(process.env.BSVC_TEST_RUNS ?? 20);
const WRITERS = 3;
const FOLLOWERS = 6;
const MAX_DELAY_MS = 300;

describe('followers on a MongoDB whose answers take longer now and then', () => {
  let test: TestApp;
  let owner: TestProject;
  let stop: () => Promise<void>;
  let isSlow = false;

  beforeAll(async () => {
    const random = openRandom(openSeed('slow-database'));
    const dir = await openTempDir();
    const engine = openEngine({ dataDir: join(dir.path, 'wire'), durability: 'relaxed' });
    const { port } = new URL((await engine.listen('127.0.0.1:0')).uri);
    const delay = (): number => (isSlow && random.chance(0.04) ? random.below(MAX_DELAY_MS) : 0);
    const proxy = await startTcpProxy(Number(port), delay);
    test = await openTestApp({
      settings: {
        MONGODB_URI: `mongodb://127.0.0.1:${proxy.port}/?directConnection=true`,
        BSVC_SECRET_KEY: 'a-master-key-for-tests-only-0123456789',
      },
    });
    owner = await buildProject(test.app);
    isSlow = true;
    stop = async () => {
      isSlow = false;
      await test.close();
      await proxy.close();
      await engine.close();
      await dir.remove();
    };
  });
  afterAll(() => stop());

  it('have what a list shows after bulk inserts that came to stand while they read, by pages and by streams', async () => {
    const headers = { 'x-api-key': owner.secret };
    const { name } = await buildCollection(test.app, owner.project, { name: 'items', mode: 'flexible' });
    await setChanges(test.app, owner.project._id, name, { on: true });
    const stream = await openStreamClient(test, { headers, body: { subscriptions: [{ collection: name }] } });
    await stream.until(({ event }) => event === 'ready');
    const followers = Array.from({ length: FOLLOWERS }, () => openFollower(test, name, headers));
    let isOver = false;
    const following = followers.map(async (follower) => {
      while (!isOver) await follower.step();
    });
    const writing = Array.from({ length: WRITERS }, async (_, writer) => {
      for (let round = 0; round < ROUNDS; round++) {
        const path = `/api/data/${name}`;
        const body = [1, 2, 3].map((n) => ({ writer, round, n }));
        const answer = await supertest(test.server).post(`${path}/bulk`).set(headers).send(body);
        expect(answer.status).toBe(201);
        const { ids } = (answer.body as { data: { ids: string[] } }).data;
        if (round % 4 > 0) continue;
        await supertest(test.server).patch(`${path}/${ids[0]}`).set(headers).send({ n: 4 }).expect(200);
        await supertest(test.server).delete(`${path}/${ids[1]}`).set(headers).expect(200);
      }
    });
    await Promise.all(writing);
    isOver = true;
    await Promise.all(following);

    const list = await openFollower(test, name, headers).list();
    expect(list.size).toBe(WRITERS * (3 * ROUNDS - Math.ceil(ROUNDS / 4)));
    const sizes: number[] = [];
    for (const follower of followers) {
      await follower.catchUp();
      sizes.push(follower.known.size);
      if (follower.known.size === list.size) expect(follower.known).toEqual(list);
    }
    expect(sizes).toEqual(followers.map(() => list.size));
    await expect.poll(() => stream.known().size).toBe(list.size);
    expect(stream.known()).toEqual(list);
    stream.close();
  });
});
