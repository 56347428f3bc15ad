import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectStore } from '../../../src/features/projects/project-store.js';
import { migrate } from '../../../src/migrations/migrate.js';
import { buildCollection, buildProject, type TestProject } from '../build-project.js';
import { buildWebhook } from '../build-webhook.js';
import { findFreePort } from '../listen.js';
import { startMailProviderDouble, type Mood } from '../mail-provider-double.js';
import { runBinary } from '../run-binary.js';
import { openTempDir } from '../temp-dir.js';
import { openWebhookReceiver, type WebhookReceiver } from '../webhook-receiver.js';
import { openCaller } from './caller.js';
import { openCommandBooks, runAndKillCommand } from './commands.js';
import {
  runBatchReader,
  runBulkClient,
  runDocumentClient,
  runOrderClient,
  type DocumentBooks,
} from './document-clients.js';
import { runFileClient } from './file-clients.js';
import { findLosses, type SoakBooks } from './find-losses.js';
import { runMailClient } from './mail-clients.js';
import { openRandom, type Random } from '../random.js';
import { startServices, type Victim } from './services.js';
import { findLostUsers, runUserClient } from './user-clients.js';
import { holdSnapshot, killHard } from '../../../src/engine/test/helpers/snapshot-holder.js';
import { eventually } from '../eventually.js';
import { withApp } from '../with-app.js';

export interface SoakOptions {
  seconds: number;
  seed: number;
  /** The data are kept by a process of its own, behind its wire transport, as a MongoDB's are. */
  wire?: boolean;
  /** Longest pause between two kills. */
  pauseMs?: number;
  /** How long the workers may take to finish what waits before it is finished with a clock set ahead. */
  settleMs?: number;
  /** How long a start may take. */
  mostStartMs?: number;
  onProgress?: (line: string) => void;
}

export interface SoakReport {
  seed: number;
  seconds: number;
  database: 'embedded' | 'wire transport';
  /** How often each kind was killed, and how long it took until the service was healthy again. */
  kills: Record<string, { count: number; medianMs: number; slowestMs: number }>;
  /** Replies by kind of request and status; `cut` had none. */
  requests: Record<string, number>;
  commands: Record<'ended' | 'killed', Record<string, number>>;
  /** What was compared at the end. */
  compared: Record<string, number>;
  logged: Record<string, number>;
  /** Starts that took too long on a machine that was busy with something else. */
  notJudged: string[];
  violations: string[];
}

const MAX_START_MS = 10_000;
/**
 * With processes waiting for a processor for so much of the time, how long a start takes says little about the start.
 */
const STARVED = 0.8;
const MASTER_KEY = 'a master key for soaking only: 0123456789abcdef';

/**
 * Mixed load on real processes of which a random one is killed (SIGKILL) again and again; then everything that was
 * answered is compared with what is there.
 */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const { seconds, seed, wire = false, onProgress = () => undefined } = options;
  const dir = await openTempDir();
  const random = openRandom(seed);
  const mail = await startMailProviderDouble();
  const hooks = await openRestartingReceiver();
  const dataDir = join(dir.path, 'data');
  const databasePort = await findFreePort();
  const storeEnv = { BSVC_DATA_DIR: dataDir, BSVC_SECRET_KEY: MASTER_KEY, BSVC_LOG_LEVEL: 'warn', TMPDIR: dir.path };
  const env = {
    ...storeEnv,
    ...(wire && { MONGODB_URI: `mongodb://127.0.0.1:${databasePort}/?directConnection=true` }),
    BSVC_BCRYPT_COST: '4',
    BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
    RESEND_API_KEY: 're_soak',
    RESEND_BASE_URL: mail.url,
    BSVC_MAIL_FROM: 'soak@example.test',
    BSVC_MAIL_RATE: '50/1s',
  };
  const databaseEnv = wire ? { ...storeEnv, BSVC_ENGINE_LISTEN: `127.0.0.1:${databasePort}` } : null;
  const embeddedEnv = without(env, 'MONGODB_URI');
  const owner = await prepare(embeddedEnv, hooks.url, seconds);
  const services = await startServices({ env, databaseEnv });
  let over = false;
  const caller = openCaller(
    () => services.url,
    owner,
    () => over,
  );
  const documents: DocumentBooks = { documents: [], batches: new Map(), orders: new Map() };
  const books: SoakBooks = {
    ...documents,
    users: [],
    files: { confirmed: new Map(), deleted: new Set() },
    mails: { queued: new Set(), batched: new Set() },
    commands: openCommandBooks(),
  };
  const restarts = new Map<string, number[]>();
  const notJudged: string[] = [];
  const kinds: (Victim | 'receiver' | 'command' | 'reader')[] = [
    'supervisor',
    'api',
    'api',
    'worker',
    'worker',
    'receiver',
    'command',
    'command',
    'reader',
    'reader',
    'everything',
  ];
  if (wire) kinds.push('database');
  // Each kind comes early once, then they come at random.
  const first = [...new Set(kinds)];
  try {
    const clients = [
      ...['a', 'b', 'c'].map((name) => runDocumentClient(caller, name, random.fork(name), documents)),
      runBulkClient(caller, random.fork('bulk'), documents),
      ...['one', 'two'].map((name) => runBatchReader(caller, random.fork(`reader ${name}`), documents)),
      runOrderClient(caller, random.fork('orders'), documents),
      ...['ann', 'bob'].map((name) => runUserClient(caller, name, random.fork(name), books.users)),
      ...['files', 'more files'].map((name) => runFileClient(caller, random.fork(name), books.files)),
      runMailClient(caller, random.fork('mail'), books.mails),
    ];
    const killing = killUntilOver();
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    // On a busy machine the time may be over before each kind had its turn.
    await eventually('each kind was killed once', () => first.length === 0, 240_000);
    over = true;
    await Promise.all([killing, ...clients]);
    onProgress('the load is over; waiting for what is under way');
    caller.violations.push(...(await findLostUsers(caller, books.users, random)));
    const settled = await hooks.settle(books, options.settleMs ?? 120_000);
    const doctor = await runBinary(['doctor', '--json'], { env });
    if (doctor.code !== 0) caller.violations.push(`doctor: exit ${doctor.code} ${doctor.stdout}`);
    for (const code of await services.stop()) if (code !== 0) caller.violations.push(`SIGTERM: exit ${code}`);
    const { violations, compared } = await findLosses({
      env: embeddedEnv,
      dataDir,
      owner,
      books,
      mail,
      arrivals: hooks.arrivals,
    });
    return {
      seed,
      seconds,
      database: wire ? 'wire transport' : 'embedded',
      kills: Object.fromEntries([...restarts].map(([kind, times]) => [kind, summarise(times)])),
      requests: sorted(caller.counts),
      commands: { ended: sorted(books.commands.ended), killed: sorted(books.commands.killed) },
      compared: { ...compared, 'webhooks settled by the workers after ms': settled },
      logged: sorted(services.logged()),
      notJudged,
      violations: [...caller.violations, ...services.problems, ...books.commands.failures, ...violations],
    };
  } finally {
    over = true;
    await services.destroy();
    await hooks.close();
    await mail.close();
    await dir.remove();
  }

  /** Killed in the middle of reading, so that its snapshot stays behind. */
  async function killReader(): Promise<null> {
    await killHard(await holdSnapshot(dataDir));
    return null;
  }

  async function killUntilOver(): Promise<void> {
    for (let round = 0; !over; round++) {
      await new Promise((resolve) => setTimeout(resolve, 200 + random.below(options.pauseMs ?? 4_000)));
      if (over) return;
      mail.moods.push(...humours(random));
      const kind = first.shift() ?? random.pick(kinds);
      const place = { env, dir: dir.path, project: owner.project.name };
      const starved = measureStarvation();
      const ms =
        kind === 'receiver'
          ? await hooks.restart(random.below(1_500))
          : kind === 'command'
            ? await runAndKillCommand(place, random, books.commands).then(() => null)
            : kind === 'reader'
              ? await killReader()
              : await services.kill(kind, random.below(2));
      if (ms !== null) restarts.set(kind, [...(restarts.get(kind) ?? []), ms]);
      if (ms !== null && ms > (options.mostStartMs ?? MAX_START_MS)) {
        const start = `start after killing ${kind}: ${Math.round(ms)} ms`;
        const share = starved();
        if (share < STARVED) caller.violations.push(start);
        else
          notJudged.push(`${start}, with processes waiting for a processor ${Math.round(share * 100)} % of the time`);
      }
      if (round % 10 === 9)
        onProgress(`${round + 1} kills, ${sum(caller.counts)} requests, ${caller.violations.length} violations`);
    }
  }
}

/** What the mail provider does to its next callers. */
function humours(random: Random): Mood[] {
  const all: Mood[] = [
    { status: 429, name: 'rate_limit_exceeded', headers: { 'retry-after': '1' } },
    { status: 500, name: 'internal_server_error' },
    'accept-silently',
    'reset',
  ];
  return random.chance(0.5) ? [random.pick(all)] : [];
}

async function prepare(env: Record<string, string>, hook: string, seconds: number): Promise<TestProject> {
  return withApp(env, async (app) => {
    await migrate(app.db);
    const owner = await buildProject(app, 'soak');
    for (const name of ['notes', 'batches', 'orders', 'imports']) await buildCollection(app, owner.project, { name });
    await buildWebhook(app, owner.project, hook);
    // Little enough to be used up before the end.
    const limits = { mail: seconds * 2, storage: 3_000_000 };
    await projectStore(app).updateOne({ _id: owner.project._id }, { $set: { plan: 'pro', limits } });
    return owner;
  });
}

/** A receiver of webhooks that is closed and opened again at the same address. */
async function openRestartingReceiver() {
  let receiver: WebhookReceiver = await openWebhookReceiver();
  const { url } = receiver;
  const port = Number(new URL(url).port);
  const earlier: WebhookReceiver['received'] = [];
  const arrivals = (): WebhookReceiver['received'] => [...earlier, ...receiver.received];
  return {
    url,
    arrivals,
    async restart(pauseMs: number): Promise<null> {
      await receiver.close();
      earlier.push(...receiver.received);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      receiver = await openWebhookReceiver(port);
      return null;
    },
    /**
     * Waits until the events of all answered changes have arrived; after how long, or -1 when some were still on their
     * way.
     */
    async settle(books: SoakBooks, mostMs: number): Promise<number> {
      const begun = performance.now();
      const wanted = books.documents.reduce((all, { acknowledged }) => all + acknowledged.length, 0);
      const ids = new Set(books.documents.map(({ id }) => id));
      while (performance.now() - begun < mostMs) {
        const events = new Set(arrivals().flatMap(({ event }) => (ids.has(event.documentId) ? [event.id] : [])));
        if (events.size >= wanted) return Math.round(performance.now() - begun);
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
      return -1;
    },
    close: () => receiver.close(),
  };
}

/**
 * From now on: the share of the time in which some process waited for a processor; 0 where the system does not tell.
 */
function measureStarvation(): () => number {
  const read = (): number => {
    try {
      return Number(/^some .*total=(\d+)$/m.exec(readFileSync('/proc/pressure/cpu', 'utf8'))?.[1] ?? 0) / 1000;
    } catch {
      return 0;
    }
  };
  const [waited, begun] = [read(), performance.now()];
  return () => (read() - waited) / (performance.now() - begun);
}

function summarise(times: number[]): { count: number; medianMs: number; slowestMs: number } {
  const ordered = times.map(Math.round).sort((a, b) => a - b);
  return { count: ordered.length, medianMs: ordered[ordered.length >> 1]!, slowestMs: ordered.at(-1)! };
}

const sorted = (counts: Map<string, number>): Record<string, number> =>
  Object.fromEntries([...counts].sort(([a], [b]) => a.localeCompare(b)));

const sum = (counts: Map<string, number>): number => [...counts.values()].reduce((all, count) => all + count, 0);

function without(env: Record<string, string>, name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([key]) => key !== name));
}
