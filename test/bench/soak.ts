import { parseArgs } from 'node:util';
import { runSoak } from '../helpers/soak/run-soak.js';

/**
 * `npm run soak -- [--seconds 600] [--seed n] [--wire]`: mixed load on real processes of which one after the other is
 * killed, then a comparison of all that was answered with all that is there. `--wire` keeps the data in a process of
 * its own behind its wire transport. Exit code 1 when anything was lost.
 */
const { values } = parseArgs({
  options: { seconds: { type: 'string' }, seed: { type: 'string' }, wire: { type: 'boolean', default: false } },
});
const report = await runSoak({
  seconds: Number(values.seconds ?? 600),
  seed: Number(values.seed ?? Date.now() % 1_000_000),
  wire: values.wire,
  onProgress: (line) => process.stderr.write(`${line}\n`),
});
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
if (report.violations.length > 0) process.exitCode = 1;
