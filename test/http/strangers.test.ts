import { afterAll, beforeAll, expect, it } from 'vitest';
import { openRandom } from '../helpers/random.js';
import { attackFor, openTarget, type Target } from '../helpers/strangers/attack.js';

let target: Target;
beforeAll(async () => {
  target = await openTarget();
}, 60_000);
afterAll(() => target.close());

const REQUESTS = 25;

// `npm run soak strangers` looks for longer, with a new seed each time.
it('strangers harm nobody by the dearest requests that are found within their limits', async () => {
  const seed = Math.floor(Math.random() * 1_000_000);
  const problems = await attackFor(target, openRandom(seed), 0, undefined, REQUESTS);
  expect(problems, `seed ${seed}`).toEqual([]);
}, 120_000);
