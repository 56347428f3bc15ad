import { runCrashRounds } from '../helpers/webhook-crashes.js';

/**
 * `npm run soak webhooks [rounds]`: kills server and worker again and again under writes and compares what was answered
 * with what arrived.
 */
const rounds = Number(process.argv[2] ?? 200);
const report = await runCrashRounds({
  rounds,
  onRound: (round) => {
    if (round % 20 === 0) process.stderr.write(`${round} of ${rounds} rounds\n`);
  },
});
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
if (report.missing.length + report.tooMany.length + report.outOfOrder.length + report.undelivered > 0)
  process.exitCode = 1;
