import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { openEngine, type Engine } from '../../../src/engine/index.js';
import { storedBytes } from '../stored-bytes.js';
import { startService, type RunningService } from '../run-binary.js';
import { openTempDir } from '../temp-dir.js';
import { nextAddress, send, type Identity } from './send.js';

const TOKEN = 'operator-token-of-the-attacked-service';
export const PASSWORD = 'correct horse 1';
export const QUOTA = 2_000_000;
const IMPORTED = 40;

/** A project as strangers know it. */
export interface AttackedProject {
  id: string;
  publishable: string;
  /** A user who has sent nothing yet, and has a document. */
  join(): Promise<Identity>;
}

/** What the service holds of what was done to it. */
export interface Measures {
  /** Memory of the process that is not the mapped file. */
  memory: number;
  /** Bytes stored for the project with a quota. */
  stored: number;
  /** Mails to the address that got most. */
  mails: number;
  /** Mails to all addresses. */
  allMails: number;
}

/** A read of an honest user: how long it took, and what the service spent on whatever until it was answered. */
export interface Read {
  status: number | 'waiting';
  ms: number;
  cpuMs: number;
}

/** A service with a project that has room for everything, one with a small quota, and their neighbour. */
export interface Target {
  service: RunningService;
  roomy: AttackedProject;
  /** Another one after each `renewSmall`. */
  readonly small: AttackedProject;
  renewSmall(): Promise<void>;
  measure(): Promise<Measures>;
  measureMemory(): number;
  /** The reads of the other project since this was last asked; the last one may wait still. */
  takeReads(): Read[];
  /** Does work while nobody of the other project reads, so that all that the service spends is for this. */
  withoutReads<T>(work: () => Promise<T>): Promise<T>;
  /** Processor time in milliseconds that the main thread has spent so far, and all threads together. */
  spentMs(): { main: number; all: number };
  /** Each time that the event loop was kept, in milliseconds of processor time. */
  stalls(): number[];
  close(): Promise<void>;
}

export async function openTarget(): Promise<Target> {
  const dir = await openTempDir();
  const stallsFile = join(dir.path, 'stalls');
  const service = await startService(['serve', '--port', '0'], {
    BSVC_DATA_DIR: join(dir.path, 'data'),
    BSVC_ADMIN_TOKEN: TOKEN,
    BSVC_TRUST_PROXY: '1',
    BSVC_RATE_LIMIT: '100/15m',
    BSVC_AUTH_RATE_LIMIT: '20/15m',
    BSVC_BCRYPT_COST: '4',
    BSVC_LOG_LEVEL: 'error',
    BSVC_DURABILITY: 'relaxed',
    NODE_OPTIONS: `--require ${join(import.meta.dirname, 'stall-monitor.cjs')}`,
    STALLS_FILE: stallsFile,
  });
  const { url, pid } = service.ready;
  const operator = { authorization: `Bearer ${TOKEN}` };
  const call = async <T>(
    method: string,
    path: string,
    sent: unknown,
    headers: Record<string, string> = operator,
  ): Promise<T> => {
    const answer = await send(url, { method, path, headers, body: JSON.stringify(sent) }, nextAddress());
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text}`);
    return JSON.parse(answer.text) as T;
  };
  /**
   * One large write after the other, of a server: a process that has begun just now lets its heap grow with the first
   * large requests, whoever sends them, and by how much strangers let it grow is to be seen.
   */
  const importMuch = async (secret: string): Promise<void> => {
    const documents = [{ text: 'i'.repeat(1_000_000) }];
    for (let at = 0; at < IMPORTED; at++)
      await call('POST', '/api/data/posts/bulk', documents, { 'x-api-key': secret });
  };
  const build = async (name: string, database: number): Promise<AttackedProject> => {
    const { data } = await call<{
      data: { project: { id: string }; keys: { publishable: string; secret: string } };
    }>('POST', '/api/projects', { name });
    const { id } = data.project;
    await call('PATCH', `/api/projects/${id}`, { limits: { database } });
    const rls = { mode: 'public-read', ownerField: 'userId' };
    const large = Array.from({ length: name === 'roomy' ? 20 : 1 }, () => ({ title: `h${'i'.repeat(40_000)}` }));
    for (const collection of name === 'roomy' ? ['posts', 'notes'] : ['posts']) {
      await call('POST', `/api/projects/${id}/collections`, { name: collection, mode: 'flexible', rls });
      await call('POST', `/api/data/${collection}/bulk`, large, { 'x-api-key': data.keys.secret });
    }
    if (name === 'neighbour') await importMuch(data.keys.secret);
    const { publishable } = data.keys;
    const key = { 'x-api-key': publishable };
    const join = async (): Promise<Identity> => {
      const account = { email: `victim{n}@${name}.example`, password: PASSWORD };
      const { accessToken: token } = await call<{ accessToken: string }>('POST', '/api/userAuth/signup', account, key);
      const own = { ...key, authorization: `Bearer ${token}` };
      const { _id: document } = await call<{ _id: string }>('POST', '/api/data/posts', { title: 'Mine' }, own);
      return { token, document };
    };
    return { id, publishable, join };
  };
  const roomy = await build('roomy', 10_000_000_000);
  let small = await build('small', QUOTA);
  let renewals = 0;
  const { publishable: neighbour } = await build('neighbour', 10_000_000_000);
  const reads: Read[] = [];
  let waiting: { since: number; spent: number } | null = null;
  const reader = new Worker(join(import.meta.dirname, 'neighbour.cjs'), {
    workerData: { url, key: neighbour, pid },
    execArgv: [],
  });
  let paused = (): void => undefined;
  reader.on('message', (message: Read | { begun: true; spent: number } | { paused: boolean }) => {
    if ('paused' in message) paused();
    else if ('begun' in message) waiting = { since: performance.now(), spent: message.spent };
    else {
      waiting = null;
      reads.push(message);
    }
  });
  const engine = openEngine({ dataDir: join(dir.path, 'data') });
  return {
    service,
    roomy,
    get small() {
      return small;
    },
    async renewSmall() {
      small = await build(`small${++renewals}`, QUOTA);
    },
    takeReads() {
      const taken = reads.splice(0);
      if (!waiting) return taken;
      const cpuMs = Math.max(0, processMs(pid) - waiting.spent);
      return [...taken, { status: 'waiting', ms: performance.now() - waiting.since, cpuMs }];
    },
    async withoutReads(work) {
      await new Promise<void>((resolve) => {
        paused = resolve;
        reader.postMessage(true);
      });
      try {
        return await work();
      } finally {
        reader.postMessage(false);
      }
    },
    measureMemory: () => anonymousBytes(pid),
    measure: async () => ({
      memory: anonymousBytes(pid),
      stored: await storedOf(engine, small.id),
      ...(await countMails(engine)),
    }),
    spentMs: () => ({ main: threadMs(pid, `${pid}`), all: allThreads(pid) }),
    stalls: () => readFileSync(stallsFile, 'latin1').split('\n').filter(Boolean).map(Number),
    async close() {
      await reader.terminate();
      await engine.close();
      await service.stop('SIGKILL');
      await dir.remove();
    },
  };
}

/** Of a thread; 0 when it has ended. */
function threadMs(pid: number, thread: string): number {
  const path = `/proc/${pid}/task/${thread}/schedstat`;
  return existsSync(path) ? Number(readFileSync(path, 'latin1').split(' ')[0]) / 1e6 : 0;
}

/** Of all threads that are there, exactly, so that one request shows. */
function allThreads(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  return (existsSync(tasks) ? readdirSync(tasks) : []).reduce((sum, thread) => sum + threadMs(pid, thread), 0);
}

/** Of the process with threads that have ended, in hundredths of a second as the neighbour counts. */
function processMs(pid: number): number {
  const path = `/proc/${pid}/stat`;
  if (!existsSync(path)) return 0;
  const fields = readFileSync(path, 'latin1').split(') ').at(-1)!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** 0 when the process has ended. */
function anonymousBytes(pid: number): number {
  const status = existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, 'latin1') : '';
  return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024;
}

/** All that is stored for a project, read beside the service. */
function storedOf(engine: Engine, projectId: string): Promise<number> {
  const db = engine.db('bsvc');
  return storedBytes(
    {
      listNames: async () => (await db.collections()).map(({ collectionName }) => collectionName),
      measure: async (name) => {
        const { size, count } = await db.command({ collStats: name });
        return { bytes: Number(size), documents: Number(count) };
      },
      collection: (name) => db.collection(name),
      changeLogs: engine.changeLogs('bsvc'),
    },
    projectId,
  );
}

async function countMails(engine: Engine): Promise<{ mails: number; allMails: number }> {
  const sent = await engine
    .db('bsvc')
    .collection('mail_outbox')
    .aggregate([{ $unwind: '$to' }, { $group: { _id: '$to', mails: { $sum: 1 } } }])
    .toArray();
  const counts = sent.map(({ mails }) => Number(mails));
  return { mails: Math.max(0, ...counts), allMails: counts.reduce((sum, count) => sum + count, 0) };
}
