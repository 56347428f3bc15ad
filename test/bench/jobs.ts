import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openApp, type App } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import { migrate } from '../../src/migrations/migrate.js';
import { jobStore, type JobDefinition } from '../../src/platform/jobs/job.js';
import { openRunner } from '../../src/platform/jobs/runner.js';
import { openLogger } from '../../src/platform/observe/logger.js';
import { openTempDir } from '../helpers/temp-dir.js';

/**
 * `npm run bench jobs [jobs] [workers]`: worker processes on one queue; each job's effect must be there exactly once.
 */

interface Effect {
  _id: number;
  times: number;
}

const [jobs, workers, dataDir] = [Number(process.argv[2] ?? 10_000), Number(process.argv[3] ?? 4), process.argv[4]];

const effectJob: JobDefinition<App, { n: number }> = {
  name: 'bench.effect',
  retry: { delaysMs: [1_000] },
  async run(app, { n }) {
    await app.db.collection<Effect>('effects').updateOne({ _id: n }, { $inc: { times: 1 } }, { upsert: true });
  },
};

function open(dir: string): Promise<App> {
  const { config } = loadConfig([{ source: 'bench', values: { BSVC_DATA_DIR: dir } }]);
  return openApp(config, openLogger({ level: 'warn', format: 'json' }));
}

async function work(dir: string): Promise<void> {
  const app = await open(dir);
  const runner = openRunner(app, [effectJob], { concurrency: 20 });
  process.send!('ready');
  await once(process, 'message');
  runner.start();
  await once(process, 'message');
  await runner.stop(10_000);
  await app.close();
  process.disconnect();
}

async function measure(dir: string): Promise<void> {
  const app = await open(dir);
  await migrate(app.db);
  for (let n = 0; n < jobs; n += 100) {
    await Promise.all(
      Array.from({ length: Math.min(100, jobs - n) }, (_, at) => app.jobs.enqueue(effectJob, { n: n + at })),
    );
  }
  const children: ChildProcess[] = await Promise.all(
    Array.from({ length: workers }, async () => {
      const child = fork(process.argv[1]!, [String(jobs), String(workers), dir], { execArgv: ['--import', 'tsx'] });
      await once(child, 'message');
      return child;
    }),
  );
  const begun = performance.now();
  for (const child of children) child.send('go');
  while ((await jobStore(app).estimatedDocumentCount()) > 0) await new Promise((resolve) => setTimeout(resolve, 50));
  const seconds = (performance.now() - begun) / 1000;
  await Promise.all(
    children.map((child) => {
      child.send('stop');
      return once(child, 'exit');
    }),
  );
  const effects = app.db.collection<Effect>('effects');
  const report = {
    jobs,
    workers,
    seconds: Number(seconds.toFixed(2)),
    jobsPerSecond: Math.round(jobs / seconds),
    effects: await effects.countDocuments({}),
    effectsNotOnce: await effects.countDocuments({ times: { $ne: 1 } }),
  };
  await app.close();
  process.stdout.write(`${JSON.stringify(report)}\n`);
  if (report.effects !== jobs || report.effectsNotOnce > 0) process.exitCode = 1;
}

if (dataDir) {
  await work(dataDir);
} else {
  const dir = await openTempDir();
  try {
    await measure(dir.path);
  } finally {
    await dir.remove();
  }
}
