import { expect, it } from 'vitest';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';
import { attackFor } from '../helpers/strangers/attack.js';
import { openTarget } from '../helpers/strangers/target.js';

/** One short round with a seed of its own; `npm run soak strangers` goes on for minutes. */
it('no stranger harms another: a generated round stays within the bounds', async () => {
  const random = openRandom(openSeed('strangers'));
  const target = await openTarget();
  try {
    const { problems, volleys, costs } = await attackFor(target, random, { ms: 0, tried: 12, winners: 1, heldMs: 300 });
    expect(problems).toEqual([]);
    // It has reached what it is to look at.
    expect(volleys).toBeGreaterThanOrEqual(8);
    expect([...costs.values()].filter((ms) => ms > 0).length).toBeGreaterThan(3);
  } finally {
    await target.close();
  }
});
