import { expect, it } from 'vitest';
import { attackFor } from '../../helpers/strangers/attack.js';
import { openTarget, QUOTA } from '../../helpers/strangers/target.js';
import { openRandom } from '../../helpers/random.js';
import { use } from '../../helpers/use.js';
import { openSeed } from '../../helpers/seed.js';

/**
 * One round of every operator that makes a request large; `npm run soak strangers` draws more of them, sends more and
 * goes on for minutes. Judged is what other work of the machine does not change: processor time, memory, what is
 * stored and sent; and of that what every measure of a volley shows (`measureLeast`).
 */
it('no stranger harms another: a generated round stays within the bounds', { timeout: 900_000 }, async () => {
  const random = openRandom(openSeed('strangers'));
  const target = use(await openTarget());
  const short = {
    ms: 0,
    tried: 6,
    isEach: true,
    winners: 1,
    paired: 16,
    together: 6,
    heldMs: 250,
    repeated: 8,
  };
  const { problems, volleys, costs, arrivals, worst } = await attackFor(target, random, short);
  expect(problems.join('\n')).toBe('');
  // It has reached what it is to look at.
  expect([...arrivals.values()].filter(({ ms }) => ms > 0).length).toBeGreaterThan(10);
  expect(volleys).toBeGreaterThanOrEqual(10);
  expect(worst.storedBytes).toBeGreaterThan(QUOTA / 10);
  expect(worst.neighbourMs).toBeGreaterThan(0);
  expect([...costs.values()].filter((ms) => ms > 0).length).toBeGreaterThan(10);
});
