import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { openApp, type App } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import { updateProject } from '../../src/features/projects/update-project.js';
import { migrate } from '../../src/migrations/migrate.js';
import { openLogger } from '../../src/platform/observe/logger.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { buildWebhook } from '../helpers/build-webhook.js';
import { eventually } from '../helpers/eventually.js';
import { startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { openWebhookReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.js';

/**
 * `npm run bench webhooks`: what a writer pays for three webhooks, and what fifty good receivers notice of one that
 * hangs. Real server and worker, full durability; writes come one after the other.
 */

const WRITES = Number(process.argv[2] ?? 1_000);
const ROUNDS = 5;

interface Place {
  app: App;
  env: Record<string, string>;
  receivers: WebhookReceiver[];
}

const percentile = (sorted: readonly number[], part: number): number => sorted[Math.floor(sorted.length * part)]!;

function summarise(samples: number[]): { p50: number; p95: number; p99: number } {
  const sorted = [...samples].sort((a, b) => a - b);
  const round = (ms: number): number => Number(ms.toFixed(2));
  return {
    p50: round(percentile(sorted, 0.5)),
    p95: round(percentile(sorted, 0.95)),
    p99: round(percentile(sorted, 0.99)),
  };
}

async function within<T>(work: (place: Place) => Promise<T>): Promise<T> {
  const dir = await openTempDir();
  const env = { BSVC_DATA_DIR: dir.path, BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_PORT: '0' };
  const { config } = loadConfig([{ source: 'bench', values: env }]);
  const app = await openApp(config, openLogger({ level: 'error', format: 'json' }));
  await migrate(app.db);
  const receivers: WebhookReceiver[] = [];
  try {
    return await work({ app, env, receivers });
  } finally {
    await Promise.all(receivers.map((receiver) => receiver.close()));
    await app.close();
    await dir.remove();
  }
}

async function openReceiver({ receivers }: Place): Promise<WebhookReceiver> {
  const receiver = await openWebhookReceiver();
  receivers.push(receiver);
  return receiver;
}

/** Milliseconds of single inserts over HTTP, in two projects by turns: one without webhooks, one with three. */
function measureWrites() {
  return within(async (place) => {
    const plain = await buildProject(place.app);
    const hooked = await buildProject(place.app);
    for (const { project } of [plain, hooked]) await buildCollection(place.app, project, { name: 'posts' });
    const receivers = fork(join(import.meta.dirname, 'receiver-process.ts'), ['3'], { execArgv: ['--import', 'tsx'] });
    const [urls] = (await once(receivers, 'message')) as [string[]];
    for (const url of urls) await buildWebhook(place.app, hooked.project, url);
    const allReceived = async (count: number): Promise<boolean> => {
      receivers.send('count');
      const [counts] = (await once(receivers, 'message')) as [number[]];
      return counts.every((received) => received >= count);
    };
    const server = await startService(['serve', '--no-worker'], place.env);
    const worker = await startService(['worker'], place.env);
    const write = async (key: string): Promise<number> => {
      const begun = performance.now();
      const answer = await fetch(`${server.ready.url}/api/data/posts`, {
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        body: JSON.stringify({ title: 'bench', text: 'x'.repeat(500) }),
      });
      await answer.arrayBuffer();
      if (answer.status !== 201) throw new Error(`answered ${answer.status}`);
      return performance.now() - begun;
    };
    const samples = { without: [] as number[], with: [] as number[] };
    for (let n = 0; n < 100; n++) await write(plain.secret);
    for (let round = 0; round < ROUNDS; round++) {
      for (const kind of ['without', 'with'] as const) {
        const key = kind === 'with' ? hooked.secret : plain.secret;
        for (let n = 0; n < WRITES / ROUNDS; n++) samples[kind].push(await write(key));
        // What one kind left to do must not slow the other.
        await eventually('all is delivered', () => allReceived(samples.with.length), 600_000);
      }
    }
    await Promise.all([server.stop(), worker.stop()]);
    receivers.kill();
    const [without, withThree] = [summarise(samples.without), summarise(samples.with)];
    return { writes: WRITES, without, with3: withThree, ratioP50: Number((withThree.p50 / without.p50).toFixed(2)) };
  });
}

/**
 * Milliseconds from the answered write to the arrival at fifty good receivers, alone or beside one that never answers.
 */
function measureFairness(hanging: boolean) {
  return within(async (place) => {
    const { project: made, secret } = await buildProject(place.app);
    const project = await updateProject(place.app, made.name, { plan: 'pro' });
    await buildCollection(place.app, project, { name: 'posts' });
    const samples: number[] = [];
    const writtenAt = new Map<number, number>();
    const good = await Promise.all(Array.from({ length: 50 }, () => openReceiver(place)));
    for (const receiver of good) {
      receiver.answer = (response, { event }) => {
        samples.push(performance.now() - writtenAt.get(event.data.n as number)!);
        response.writeHead(200).end();
      };
      await buildWebhook(place.app, project, receiver.url);
    }
    if (hanging) {
      const receiver = await openReceiver(place);
      receiver.answer = () => undefined;
      await buildWebhook(place.app, project, receiver.url);
    }
    const server = await startService(['serve', '--no-worker'], place.env);
    const worker = await startService(['worker'], place.env);
    for (let n = 0; n < 30; n++) {
      writtenAt.set(n, performance.now());
      const answer = await fetch(`${server.ready.url}/api/data/posts`, {
        method: 'POST',
        headers: { 'x-api-key': secret, 'content-type': 'application/json' },
        body: JSON.stringify({ n }),
      });
      await answer.arrayBuffer();
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    await eventually('all is delivered', () => samples.length === 30 * 50, 600_000);
    await Promise.all([server.stop(), worker.stop()]);
    return summarise(samples);
  });
}

const print = (what: string, value: unknown): void =>
  void process.stdout.write(`${JSON.stringify({ what, ...(value as object) })}\n`);

print('write, ms', await measureWrites());
const alone = await measureFairness(false);
print('arrival at 50 receivers, ms', alone);
const beside = await measureFairness(true);
print('arrival at 50 receivers beside one that hangs, ms', {
  ...beside,
  ratioP95: Number((beside.p95 / alone.p95).toFixed(2)),
});
