/*
 *   npm run soak strangers -- [--minutes N] [--seed N]
 *
 * Grows what strangers may send to each route, bodies, queries, pipelines, subscriptions and headers; looks which cost
 * most for their length, keep a place, memory or stored bytes, or send mails; and sends those many times at once, cut
 * off, byte by byte and unread, from one address and from twenty, beside an honest user of another project. Prints
 * figures; fails beyond the bounds. BSVC_TEST_BINARY = bin/bsvc.js of another checkout attacks that one.
 */
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { openRandom } from '../helpers/random.js';
import { attackFor } from '../helpers/strangers/attack.js';
import { openTarget } from '../helpers/strangers/target.js';

const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' } } });
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const minutes = Number(values.minutes ?? 15);

// Beside other work the clock measures that work too.
const isTimed = loadavg()[0]! < availableParallelism();
const target = await openTarget();
console.log(
  `seed ${seed}, ${minutes} minutes, load ${loadavg()[0]!.toFixed(1)}${isTimed ? '' : ': times of others are not judged'}`,
);
const { problems, costs, volleys, arrivals, worst } = await attackFor(target, openRandom(seed), {
  ms: minutes * 60_000,
  isTimed,
  tell: (line) => console.log(line),
});
await target.close();
console.log('\nmilliseconds of processor time for a kilobyte, at most:');
for (const [route, ms] of [...costs].sort((a, b) => b[1] - a[1])) console.log(`${ms.toFixed(2).padStart(8)} ${route}`);
console.log('\nat most of the main thread, by the events that a megabyte arrives in:');
for (const [form, { events, ms, stallMs, status }] of [...arrivals].sort((a, b) => b[1].ms - a[1].ms)) {
  const micros = (1000 * ms) / Math.max(1, events);
  console.log(
    `${ms.toFixed(1).padStart(8)} ms, ${events} events of ${micros.toFixed(2)} us, stall ${stallMs} ms, ${status}: ${form}`,
  );
}
console.log(`\n${volleys} volleys, at worst: ${JSON.stringify(worst)}`);
console.log(problems.length === 0 ? 'nothing was beyond the bounds' : problems.join('\n'));
process.exitCode = problems.length === 0 ? 0 : 1;
