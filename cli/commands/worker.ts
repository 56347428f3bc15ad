import { createWorker } from '../../src/worker.js';
import { defineCommand, value } from '../command.js';
import { requireStrongSecrets } from '../require-strong-secrets.js';
import { whenStopped } from '../when-stopped.js';

export default defineCommand({
  details: 'Runs beside "bsvc serve --no-worker"; several workers share the work. Stops with SIGTERM or Ctrl-C.',
  examples: ['bsvc worker', 'bsvc worker --concurrency 20'],
  service: true,
  parameters: {
    concurrency: value('--concurrency <n>', 'jobs at once (default: 10)', readConcurrency),
  },
  async run(context, { concurrency }) {
    requireStrongSecrets(context.settings().config);
    const app = await context.app('service');
    const worker = createWorker(app, { concurrency });
    await context.out.print({
      json: { pid: process.pid },
      quiet: process.pid,
      text: () => `The worker is running (process ${process.pid}).`,
    });
    await whenStopped(context);
    await worker.stop();
  },
});

function readConcurrency(text: string): number {
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new Error('must be a whole number from 1 to 999');
  return Number(text);
}
