import { expect, it } from 'vitest';
import { openRandom } from '../helpers/random.js';
import { attackFor } from '../helpers/strangers/attack.js';
import { openTarget, QUOTA } from '../helpers/strangers/target.js';

/**
 * One short round of a seed that stays; `npm run soak strangers` draws others and goes on for minutes. It also sends
 * the dearest two requests together, 48 times each: pipelines of a megabyte from one address still grow the process by
 * more than 64 MB. Collecting garbage and other work of the machine add to one round, hardly to three: a fault stays.
 */
it('no stranger harms another: a generated round stays within the bounds', { retry: 2 }, async () => {
  const random = openRandom(Number(process.env.BSVC_TEST_SEED ?? 3));
  const target = await openTarget();
  try {
    const short = { ms: 0, tried: 6, winners: 1, paired: 0, heldMs: 250, repeated: 8 };
    const { problems, volleys, costs, worst } = await attackFor(target, random, short);
    expect(problems).toEqual([]);
    // It has reached what it is to look at.
    expect(volleys).toBeGreaterThanOrEqual(10);
    expect(worst.storedBytes).toBeGreaterThan(QUOTA / 10);
    expect(worst.neighbourMs).toBeGreaterThan(0);
    expect([...costs.values()].filter((ms) => ms > 0).length).toBeGreaterThan(3);
  } finally {
    await target.close();
  }
});
