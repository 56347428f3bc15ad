import { soakOldBeside } from '../helpers/soak/old-beside.js';

/**
 * `npm run soak oldbeside -- [commit or folder] [rounds]`: a server of an earlier version with commands of this one,
 * and the other way round; three processes serve under load. Exit code 1 when anything failed.
 */
const [commit = '4bade07', rounds = '3'] = process.argv.slice(2);
const report = await soakOldBeside({
  commit,
  rounds: Number(rounds),
  onProgress: (line) => process.stderr.write(`${line}\n`),
});
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
if (report.violations.length > 0) process.exitCode = 1;
