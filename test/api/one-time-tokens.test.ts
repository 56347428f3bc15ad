import { ObjectId } from 'bson';
import { expect, it } from 'vitest';
import { noteUsed, ONE_TIME_TOKENS, oneTimeTokens } from '../world/stored.js';
import { buildProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { useTestApp } from '../helpers/use.js';

const LIFE_MS = 60_000;
const TOKENS = oneTimeTokens<{ user: ObjectId; n: number }>('tested', LIFE_MS);
const OTHERS = oneTimeTokens<object>('tested-otherwise', LIFE_MS);
const clock = createFakeClock(Date.now());
const held = { user: new ObjectId(), n: 7 };

const test = await useTestApp({ clock });
const shop = await buildProject(test.app);

it('gives what it holds to one of many who take it at the same time', async () => {
  const token = await TOKENS.give(test.app, shop.project, held);
  expect(await TOKENS.find(test.app, null, token)).toMatchObject({ projectId: shop.project._id, held });
  const taken = await Promise.all(Array.from({ length: 6 }, () => TOKENS.take(test.app, shop.project, token)));
  expect(taken.filter((one) => one !== null)).toMatchObject([{ held }]);
});

it('is used up by one of many transactions', async () => {
  const token = await TOKENS.give(test.app, shop.project, held);
  const found = (await TOKENS.find(test.app, shop.project, token))!;
  const used = await Promise.all(Array.from({ length: 4 }, () => test.app.db.transaction(found.use)));
  expect(used.sort()).toEqual([false, false, false, true]);
});

it('counts five tries, also those at the same time', async () => {
  const token = await TOKENS.give(test.app, shop.project, held);
  const met = await Promise.all(Array.from({ length: 8 }, () => TOKENS.meet(test.app, shop.project, token)));
  expect(met.filter((one) => one !== null)).toHaveLength(5);
});

it('is good for its purpose and its project alone, and only for its time; a refused one stays', async () => {
  const token = await TOKENS.give(test.app, shop.project, held);
  const foreign = await buildProject(test.app);
  expect(await OTHERS.take(test.app, shop.project, token)).toBeNull();
  expect(await TOKENS.take(test.app, foreign.project, token)).toBeNull();
  expect(await TOKENS.take(test.app, null, token, ({ n }) => n !== 7)).toBeNull();
  expect(await TOKENS.find(test.app, shop.project, token)).not.toBeNull();
  clock.advance(LIFE_MS);
  expect(await TOKENS.take(test.app, shop.project, token)).toBeNull();
});

it('notes once that somebody else’s token was used, and stores none in the clear', async () => {
  const id = new ObjectId().toHexString();
  const note = () => noteUsed(test.app, shop.project._id, id, new Date(clock.now() + LIFE_MS));
  expect([await note(), await note()]).toEqual([true, false]);
  const token = await TOKENS.give(test.app, shop.project, held);
  const stored = JSON.stringify(await test.app.db.collection(ONE_TIME_TOKENS).find({}).toArray());
  for (const secret of [token, held.user.toHexString()]) expect(stored).not.toContain(secret);
});
