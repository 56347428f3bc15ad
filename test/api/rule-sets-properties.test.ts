import { describe, expect, it } from 'vitest';
import { openFollower, type FeedFollower } from '../helpers/feed-follower.js';
import { buildMemberWorld, type MemberWorld } from '../helpers/member-world.js';
import { openRandom, type Random } from '../helpers/random.js';
import { openStreamFollower, type StreamFollower } from '../helpers/stream-follower.js';
import { useTestApp } from '../helpers/use.js';
import { openChangeLog } from '../world/stored.js';

let aheadMs = 0;
const ON_MONGODB = process.env.BSVC_TEST_TRANSPORT === 'wire';
const PAGE_STATUSES = ON_MONGODB ? [200, 410] : [200];

const clock = { now: () => Date.now() + aheadMs };
const test = await useTestApp({ clock, constants: { streamsPerAddress: 1000 } });

const shownTo = ({ known }: Pick<FeedFollower, 'known'>): Map<string, unknown> =>
  new Map([...known].map(([id, { n }]) => [id, n]));

interface Pages {
  userId: string | null;
  follower: FeedFollower;
}

/** Follows by pages of one to four, each user and filter twice, while cards and memberships change. */
async function followPages(world: MemberWorld, random: Random, rounds: number): Promise<{ pages: number }> {
  const users = [null, ...world.userIds, ...world.userIds];
  const all: Pages[] = users.map((userId) => ({
    userId,
    follower: openFollower(test, 'cards', world.headers(userId)),
  }));
  let pages = 0;
  const page = async ({ follower }: Pages): Promise<boolean> => {
    pages++;
    return follower.step(`&limit=${1 + random.below(4)}`);
  };
  for (let round = 0; round < rounds; round++) {
    for (let n = 0; n < 1 + random.below(8); n++) {
      await world.change(random);
      if (random.chance(0.7)) await Promise.all([page(random.pick(all)), world.change(random)]);
    }
    if (round % 5 !== 4) continue;
    // What the jobs do: nothing is so old that it is trimmed, but what was removed for good is erased.
    if (!ON_MONGODB)
      for (const each of [world.cards, world.members])
        await openChangeLog(test.app, each).trim(new Date(0), Number.MAX_SAFE_INTEGER);
    for (const each of all) {
      while (await page(each));
      expect(shownTo(each.follower), `round ${round}`).toEqual(await world.expected(each.userId));
    }
  }
  const restarts = all.reduce((sum, { follower }) => sum + follower.restarts, 0);
  // Nobody has to start over, but on a MongoDB, which does not know what a set was before.
  expect(restarts > 0).toBe(ON_MONGODB);
  return { pages };
}

/** A list, a count and the documents one by one show what is expected. */
async function expectLists(world: MemberWorld): Promise<void> {
  // On a MongoDB a set may be a second old.
  aheadMs += 1_000;
  for (const userId of [null, ...world.userIds]) {
    const listed = await openFollower(test, 'cards', world.headers(userId)).list();
    expect(new Map([...listed].map(([id, { n }]) => [id, n]))).toEqual(await world.expected(userId));
  }
}

describe('cards of boards whose members change', () => {
  it.each([1, 2, 3])('are told exactly by pages (seed %i)', async (seed) => {
    const world = await buildMemberWorld(test);
    const { pages } = await followPages(world, openRandom(seed), 25);
    await expectLists(world);
    expect(pages).toBeGreaterThan(100);
  });

  it.each([11, 12])('are told exactly by streams that come and go (seed %i)', async (seed) => {
    const random = openRandom(seed);
    const world = await buildMemberWorld(test);
    const all: { userId: string | null; follower: StreamFollower }[] = [null, ...world.userIds, ...world.userIds].map(
      (userId) => ({ userId, follower: openStreamFollower('cards', '') }),
    );
    try {
      for (let round = 0; round < 12; round++) {
        for (let n = 0; n < 1 + random.below(10); n++) await world.change(random);
        for (const { userId, follower } of all) {
          if (follower.isOpen() ? random.chance(0.2) : random.chance(0.7)) {
            if (follower.isOpen()) await follower.disconnect();
            else if (random.chance(0.2))
              expect(PAGE_STATUSES).toContain(await follower.poll(test, world.headers(userId)));
            else expect(await follower.connect(test, world.headers(userId))).toBe(200);
          }
        }
        if (round % 4 !== 3) continue;
        for (const { userId, follower } of all) {
          if (!follower.isOpen()) expect(await follower.connect(test, world.headers(userId))).toBe(200);
          const expected = await world.expected(userId);
          await expect.poll(() => shownTo(follower)).toEqual(expected);
        }
      }
      expect(all.map(({ follower }) => follower.ends)).toEqual(all.map(() => []));
      expect(all.some(({ follower }) => follower.restarts > 0)).toBe(ON_MONGODB);
    } finally {
      for (const { follower } of all) await follower.disconnect();
    }
  });

  it.skipIf(ON_MONGODB)('are told anew where the log of the memberships does not reach back', async () => {
    const random = openRandom(21);
    const world = await buildMemberWorld(test);
    for (let n = 0; n < 60; n++) await world.change(random);
    const [userId] = world.userIds as [string];
    const follower = openFollower(test, 'cards', world.headers(userId));
    await follower.catchUp();
    for (let n = 0; n < 30; n++) await world.change(random);
    const { changeLogs } = test.app.db;
    await changeLogs!.trim(`documents_${world.owner.project._id.toHexString()}_${world.members._id.toHexString()}`, {
      since: Date.now() + 1_000,
      maxBytes: 0,
    });
    await follower.catchUp();
    expect(follower.restarts).toBe(1);
    expect(shownTo(follower)).toEqual(await world.expected(userId));
  });
});
