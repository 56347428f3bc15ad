import { createWorker } from '../../src/worker.js';
import { defineCommand } from '../command.js';
import { whenStopped } from '../when-stopped.js';

export default defineCommand({
  details: 'Runs beside "bsvc serve --no-worker"; several workers share the work. Stops with SIGTERM or Ctrl-C.',
  examples: ['bsvc worker', 'bsvc worker --json'],
  service: true,
  parameters: {},
  async run(context) {
    const app = await context.app('service');
    const worker = createWorker(app);
    await context.out.print({
      json: { pid: process.pid },
      quiet: process.pid,
      text: () => `The worker is running (process ${process.pid}).`,
    });
    await whenStopped(context);
    await worker.stop();
  },
});
