import { createMonitoringApi } from '../../src/api.js';
import { watchSnapshots } from '../../src/platform/database/watch-snapshots.js';
import { removeStaleFiles, requireStrongSecrets, withWatchdog, waitForStop } from '../serve/run-service.js';
import { createWorker } from '../../src/worker.js';
import { startServer } from '../../src/http/server.js';
import { unixSocketOf } from '../../src/http/unix-socket.js';
import type { Context } from '../shell/context.js';
import { defineCommand, option } from '../shell/command.js';
import { wholeWithin } from '../../src/config/setting-readers.js';

export default defineCommand({
  details: 'Runs next to "bsvc serve --no-worker". Several workers share the work. Stops with SIGTERM or Ctrl-C.',
  examples: ['bsvc worker', 'bsvc worker --concurrency 20', 'bsvc worker --port 4001'],
  service: true,
  parameters: {
    concurrency: option('--concurrency <n>', 'jobs at once (default: 10)', wholeWithin(1, 999)),
    port: option(
      '--port <port>',
      'serve /metrics and /api/health on this port (default: none)',
      wholeWithin(0, 65_535),
    ),
  },
  async run(context, input) {
    requireStrongSecrets(context.settings().config);
    await withWatchdog(context, () => work(context, input));
  },
});

interface WorkerInput {
  concurrency: number | undefined;
  port: number | undefined;
}

async function work(context: Context, { concurrency, port }: WorkerInput): Promise<void> {
  const { config } = context.settings();
  const app = await context.app('service');
  const server =
    port === undefined
      ? null
      : await startServer(
          createMonitoringApi(app),
          unixSocketOf(config.host) === null ? config.host : '127.0.0.1',
          port,
        );
  const worker = createWorker(app, { concurrency });
  await removeStaleFiles(app);
  const endWatch = watchSnapshots(app);
  await context.out.print({
    json: { pid: process.pid, ...(server && { url: server.url }) },
    quiet: process.pid,
    text: () =>
      `The worker is running (process ${process.pid}${server ? `, health at ${server.url}/api/health` : ''}).`,
  });
  await waitForStop(context, app.db);
  endWatch();
  app.readiness.end();
  await worker.stop();
  await server?.stop(config.shutdownGraceMs);
}
