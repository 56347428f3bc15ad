import { expect, it } from 'vitest';
import { type UntypedProject, createClient, inOrder } from '../world/client.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { openRandom } from '../helpers/random.js';
import { openTestApp } from '../helpers/open-test-app.js';

const SEED = 31;
const random = openRandom(SEED);

/** As JSON holds them: kinds of values, characters beyond the first plane, lists and what lies inside. */
function valueOf(depth: number): unknown {
  const kinds: (() => unknown)[] = [
    () => null,
    () => random.below(5) - 2,
    () => random.pick([0.5, -0.5, 1e15, 9, 10]),
    () => random.chance(0.5),
    () => random.pick(['', 'a', 'A', 'é', 'ab', '9', '10', '\u{1f600}', '\uff5e', '\u{1f600}a']),
  ];
  if (depth > 0) {
    kinds.push(
      () => Array.from({ length: random.below(4) }, () => valueOf(depth - 1)),
      () => Object.fromEntries(['x', 'y'].filter(() => random.chance(0.6)).map((name) => [name, valueOf(depth - 1)])),
    );
  }
  return random.pick(kinds)();
}

it('a list that keeps itself is sorted as the service sorts, whatever the values', async () => {
  const test = await openTestApp();
  try {
    const shop = await buildProject(test.app);
    await buildCollection(test.app, shop.project, { name: 'things', mode: 'flexible' });
    const things = createClient<UntypedProject>({ url: test.url, key: shop.secret }).collection('things');
    for (let batch = 0; batch < 3; batch++) {
      await things.insertMany(
        Array.from({ length: 100 }, () => ({ ...(random.chance(0.9) && { v: valueOf(3) }), w: random.below(3) })),
      );
    }
    for (const sort of ['v', '-v', 'v.x', '-v.x', 'w', '-w', ['w', '-v'], ['-w', 'v.y'], 'createdAt', '-_id']) {
      const { items } = await things.list({ sort, limit: 1000 });
      const keys = typeof sort === 'string' ? [sort] : sort;
      const mixed = [...items].sort((a, b) => (a._id.slice(-1) < b._id.slice(-1) ? -1 : 1));
      const shown = (list: readonly Record<string, unknown>[]) =>
        list.map(({ _id, v, w }) => JSON.stringify([w, v, _id]));
      expect(shown(inOrder(mixed, keys)), `seed ${SEED}, sort ${String(sort)}`).toEqual(shown(items));
    }
  } finally {
    await test.close();
  }
});
