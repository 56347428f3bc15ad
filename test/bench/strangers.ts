/*
 *   npm run soak strangers -- [--minutes N] [--seed N]
 *
 * Grows the bodies of all routes that strangers may call, keeps what costs most for its length, and sends that once and
 * fifty times at once, whole and half, from one address and from twenty. Prints figures; fails beyond the bounds.
 */
import { parseArgs } from 'node:util';
import { openRandom } from '../helpers/random.js';
import { attackFor, openTarget } from '../helpers/strangers/attack.js';

const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' } } });
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const minutes = Number(values.minutes ?? 15);

const target = await openTarget();
console.log(`seed ${seed}, ${minutes} minutes`);
const problems = await attackFor(target, openRandom(seed), minutes * 60_000, (line) => console.log(line));
await target.close();
console.log(problems.length === 0 ? 'nothing was beyond the bounds' : problems.join('\n'));
process.exitCode = problems.length === 0 ? 0 : 1;
