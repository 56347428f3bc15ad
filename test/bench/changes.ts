import { request } from 'node:http';
import { join } from 'node:path';
import { openEngine } from '../../src/engine/index.js';
import { migrate } from '../../src/migrations/migrate.js';
import { setChanges } from '../../src/features/changes/set-changes.js';
import { updateProject } from '../../src/features/projects/update-project.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { withApp } from '../helpers/with-app.js';

/*
 * `npm run bench changes [streams]`: what a log costs a write, and what idle streams and one change to all of them cost.
 */

const STREAMS = Number(process.argv[2] ?? 1_000);
const UPDATES = 4_000;
const ROUNDS = 5;
const FANOUTS = 5;

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

/** Microseconds of processor time of one update, without a log and with one, in turns. */
async function measureWrites(): Promise<{ without: number; with: number }> {
  const dir = await openTempDir();
  const engine = openEngine({ dataDir: dir.path, durability: 'relaxed' });
  try {
    const names = ['without', 'with'] as const;
    for (const name of names) {
      await engine
        .db('bench')
        .collection(name)
        .insertMany(
          Array.from({ length: 1_000 }, (_, n) => ({
            _id: n as never,
            title: `document ${n}`,
            state: 'open',
            userId: 'a'.repeat(24),
            n,
            tags: ['one', 'two'],
            meta: { level: n % 5, lang: 'en' },
            isDeleted: false,
          })),
        );
    }
    await engine.changeLogs('bench').begin('with', { first: ['isDeleted', 'userId'], omit: ['_bsvc'] });
    const costs = { without: [] as number[], with: [] as number[] };
    for (let round = 0; round <= ROUNDS; round++) {
      for (const name of names) {
        const store = engine.db('bench').collection<{ _id: number }>(name);
        const before = process.cpuUsage();
        for (let at = 0; at < UPDATES; at++) {
          await store.updateOne({ _id: at % 1_000 }, { $set: { n: at + round } } as never);
        }
        const { user, system } = process.cpuUsage(before);
        // The first round warms up.
        if (round > 0) costs[name].push((user + system) / UPDATES);
      }
    }
    return { without: median(costs.without), with: median(costs.with) };
  } finally {
    await engine.close();
    await dir.remove();
  }
}

interface Fanout {
  idleBytesPerStream: number;
  idleProcessorShare: number;
  toAllMs: number;
  processorMicrosPerDelivery: number;
}

async function measureStreams(): Promise<Fanout> {
  const dir = await openTempDir();
  const env = {
    BSVC_DATA_DIR: join(dir.path, 'data'),
    BSVC_SECRET_KEY: 'a-master-key-for-benches-0123456789abcdef',
    BSVC_LOG_LEVEL: 'error',
    BSVC_RATE_LIMIT: 'off',
    BSVC_AUTH_RATE_LIMIT: 'off',
    BSVC_STREAMS_PER_ADDRESS: String(STREAMS),
  };
  try {
    const { secret } = await withApp(env, async (app) => {
      await migrate(app.db);
      const owner = await buildProject(app);
      await updateProject(app, owner.project._id.toHexString(), { plan: 'pro' });
      await buildCollection(app, owner.project, { name: 'items', mode: 'flexible' });
      await setChanges(app, owner.project._id, 'items', { on: true });
      return owner;
    });
    const service = await startService(['serve', '--port', '0', '--processes', '1', '--no-worker'], env);
    try {
      const { url } = service.ready;
      const before = await measureProcess(service.process.pid!);
      const headers = { 'x-api-key': secret, 'content-type': 'application/json' };
      let heard = 0;
      let wake: () => void = () => undefined;
      const streams = await Promise.all(
        Array.from({ length: STREAMS }, () => openOne(url, secret, () => ++heard === STREAMS && wake())),
      );
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      const idle = await measureProcess(service.process.pid!);
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      const later = await measureProcess(service.process.pid!);
      const times: number[] = [];
      const began = await measureProcess(service.process.pid!);
      for (let at = 0; at < FANOUTS; at++) {
        heard = 0;
        const all = new Promise<void>((resolve) => (wake = resolve));
        const start = performance.now();
        await fetch(`${url}/api/data/items`, { method: 'POST', headers, body: JSON.stringify({ state: 'open', at }) });
        await all;
        times.push(performance.now() - start);
      }
      const ended = await measureProcess(service.process.pid!);
      for (const close of streams) close();
      return {
        idleBytesPerStream: Math.round((idle.bytes - before.bytes) / STREAMS),
        idleProcessorShare: (later.micros - idle.micros) / 5_000_000,
        toAllMs: Math.round(median(times)),
        processorMicrosPerDelivery: (ended.micros - began.micros) / FANOUTS / STREAMS,
      };
    } finally {
      await service.stop('SIGTERM');
    }
  } finally {
    await dir.remove();
  }
}

/** Opens a stream and calls `onChange` for each event of a change; answers when it is caught up. */
function openOne(url: string, key: string, onChange: () => void): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const headers = { accept: 'text/event-stream', 'x-api-key': key };
    const sent = request(`${url}/api/data/items/changes?state=open&since=now`, { headers, agent: false });
    sent.on('error', reject);
    sent.on('response', (response) => {
      response.setEncoding('latin1');
      response.on('error', () => undefined);
      response.on('data', (text: string) => {
        if (text.includes('event: change')) onChange();
        else if (text.includes('event: ready')) resolve(() => sent.destroy());
      });
    });
    sent.end();
  });
}

/** Resident bytes and processor time of a process so far, as Linux tells them. */
async function measureProcess(pid: number): Promise<{ bytes: number; micros: number }> {
  const { readFile } = await import('node:fs/promises');
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]!.split(' ');
  return {
    bytes: Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024,
    // Ticks of a hundredth of a second.
    micros: (Number(fields[11]) + Number(fields[12])) * 10_000,
  };
}

const writes = await measureWrites();
const figures = {
  updateMicros: writes,
  logShare: writes.with / writes.without - 1,
  streams: STREAMS,
  ...(await measureStreams()),
};
process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);
