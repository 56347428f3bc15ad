import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { databaseInAddress } from '../../src/config/setting-readers.js';
import { documentsName } from '../world/collections.js';
import { openEngine } from '../world/engine.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { buildWebhook } from '../helpers/build-webhook.js';
import { eventually } from '../helpers/eventually.js';
import { startService, type RunningService } from '../helpers/run-binary.js';
import { openCaller, type SoakCaller } from '../helpers/soak/caller.js';
import { runDocumentClient, type DocumentBooks } from '../helpers/soak/document-clients.js';
import { findLostDocuments } from '../helpers/soak/find-lost-documents.js';
import { openRandom } from '../helpers/random.js';
import { withApp } from '../helpers/with-app.js';
import { startTcpProxy } from '../helpers/tcp-proxy.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { openWebhookReceiver } from '../helpers/webhook-receiver.js';
import { use } from '../helpers/use.js';

let caller: SoakCaller;
let over: boolean;
let clients: Promise<unknown>;
const books: DocumentBooks = { documents: [], batches: new Map(), orders: new Map() };
let readNotes: () => Promise<Record<string, unknown>[]>;

const dir = use(await openTempDir());
const engine = use(openEngine({ dataDir: join(dir.path, 'engine') }));
const proxy = use(await startTcpProxy(Number(new URL((await engine.listen('127.0.0.1:0')).uri).port)));
const receiver = use(await openWebhookReceiver());
const env = {
  MONGODB_URI: `mongodb://127.0.0.1:${proxy.port}/?directConnection=true`,
  BSVC_SECRET_KEY: 'the master key of tests that cut cables',
  BSVC_DATA_DIR: join(dir.path, 'data'),
  BSVC_LOG_LEVEL: 'fatal',
  BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
};
const running: RunningService[] = [
  await startService(['serve', '--port', '0', '--processes', '2', '--no-worker'], env),
];
running.push(await startService(['worker'], env));
const owner = await withApp(env, async (app) => {
  const made = await buildProject(app);
  const notes = await buildCollection(app, made.project, { name: 'notes' });
  await buildWebhook(app, made.project, receiver.url);
  const stored = engine.db(databaseInAddress(app.config.mongodbUri!)).collection(documentsName(notes));
  readNotes = () => stored.find({}).toArray();
  return made;
});
afterAll(async () => {
  for (const service of running) await service.stop('SIGKILL');
});

/** Each fault meets clients of its own, who keep book together. */
let rounds = 0;
beforeEach(() => {
  over = false;
  caller = openCaller(
    () => running[0]!.ready.url,
    owner,
    () => over,
  );
  const random = openRandom(++rounds);
  clients = Promise.all(
    ['a', 'b', 'c'].map((name) => runDocumentClient(caller, `${name}${rounds}`, random.fork(name), books)),
  );
});
afterEach(async () => {
  over = true;
  await clients;
});

const answered = (): number =>
  [...caller.counts].reduce((sum, [label, count]) => (/ 20[01]$/.test(label) ? sum + count : sum), 0);
const refused = (): number =>
  [...caller.counts].reduce((sum, [label, count]) => (label.endsWith(' 503') ? sum + count : sum), 0);
const status = async (path: string): Promise<number> => {
  const reply = await fetch(`${running[0]!.ready.url}/api/health/${path}`, { headers: { connection: 'close' } });
  await reply.arrayBuffer();
  return reply.status;
};

/** The service has to come back by itself, for new work and for what waited. */
async function expectRecovery(): Promise<void> {
  await eventually('it is ready again', async () => (await status('ready')) === 200);
  const before = answered();
  await eventually('it answers again', () => answered() > before + 20);
  over = true;
  await clients;
  expect(caller.violations).toEqual([]);
  expect(findLostDocuments(await readNotes(), books.documents)).toEqual([]);
  const missing = (): string[] =>
    books.documents.flatMap(({ id, tag, acknowledged }) =>
      id !== null && new Set(receiver.actionsOf(id)).size < new Set(acknowledged).size ? [tag] : [],
    );
  await eventually('the worker has told of every answered change', () => missing().length === 0);
}

describe('the connection to the database, cut in the middle of work', () => {
  it('makes requests wait or answer 503, and mends by itself', async () => {
    await eventually('there is load', () => answered() > 30);
    await proxy.cut();
    await eventually('requests are refused', () => refused() > 3);
    expect(await status('ready')).toBe(503);
    expect(await status('live')).toBe(200);
    await proxy.restore();
    await expectRecovery();
  });

  it('breaking for a moment again and again loses nothing that was answered', async () => {
    for (let round = 0; round < 5; round++) {
      const before = answered();
      await eventually('there is load', () => answered() > before + 20);
      await proxy.cut();
      await proxy.restore();
    }
    await expectRecovery();
  });

  it('gone silent is noticed: what waits on it is refused in time, and the rest mends by itself', async () => {
    await eventually('there is load', () => answered() > 30);
    proxy.swallow();
    await eventually('health notices', async () => (await status('ready')) === 503);
    const before = refused();
    await eventually('what waited is refused', () => refused() > before);
    await proxy.restore();
    await expectRecovery();
  });
});
