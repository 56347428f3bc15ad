import { soakKept } from '../helpers/soak/kept-soak.js';

/**
 * `npm run soak kept -- [minutes]`: webhooks, mails, changes and followers at an even pace, all of which are kept for a
 * minute; prints how large the data file was each minute. Exit code 1 when it grew after the first ones.
 */
const minutes = Number(process.argv[2] ?? 15);
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
process.stderr.write(`seed ${seed}, ${minutes} minutes\n`);
const report = await soakKept({ minutes, seed, onProgress: (line) => process.stderr.write(`${line}\n`) });
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
if (report.violations.length > 0) process.exitCode = 1;
