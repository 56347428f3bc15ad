import { soakChanges } from '../helpers/soak/changes-soak.js';

/**
 * `npm run soak changes [seconds] [embedded|wire]`: kills processes under writes and followers, and compares what each
 * follower has in the end with what a list shows.
 */
const seconds = Number(process.argv[2] ?? 600);
const transport = process.argv[3] === 'wire' ? 'wire' : 'embedded';
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
process.stderr.write(`seed ${seed}, ${seconds} s, ${transport}\n`);
const report = await soakChanges({ seconds, seed, transport, processes: 3 });
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
if (report.different.length + report.leaked.length > 0) process.exitCode = 1;
