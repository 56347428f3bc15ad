import { existsSync, readFileSync } from 'node:fs';
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
}

/** A service with a project that has room for everything, one with a small quota, and their neighbour. */
export interface Target {
  service: RunningService;
  roomy: AttackedProject;
  small: AttackedProject;
  measure(): Promise<Measures>;
  measureMemory(): number;
  /** How long each read of the other project took since this was last asked; endless when it was refused. */
  takeReads(): number[];
  /** Processor time in milliseconds that the main thread has spent so far. */
  mainThreadMs(): number;
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
  const build = async (name: string, database: number): Promise<AttackedProject> => {
    const { data } = await call<{
      data: { project: { id: string }; keys: { publishable: string; secret: string } };
    }>('POST', '/api/projects', { name });
    const { id } = data.project;
    await call('PATCH', `/api/projects/${id}`, { limits: { database } });
    const rls = { mode: 'public-read', ownerField: 'userId' };
    await call('POST', `/api/projects/${id}/collections`, { name: 'posts', mode: 'flexible', rls });
    const large = Array.from({ length: database > QUOTA ? 20 : 1 }, () => ({ title: `h${'i'.repeat(40_000)}` }));
    await call('POST', '/api/data/posts/bulk', large, { 'x-api-key': data.keys.secret });
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
  const small = await build('small', QUOTA);
  const { publishable: neighbour } = await build('neighbour', 10_000_000_000);
  const reads: number[] = [];
  const reader = new Worker(join(import.meta.dirname, 'neighbour.cjs'), { workerData: { url, key: neighbour } });
  reader.on('message', ({ status, ms }: { status: number; ms: number }) => reads.push(status === 200 ? ms : Infinity));
  const engine = openEngine({ dataDir: join(dir.path, 'data'), upgrade: false });
  return {
    service,
    roomy,
    small,
    takeReads: () => reads.splice(0),
    measureMemory: () => anonymousBytes(pid),
    measure: async () => ({
      memory: anonymousBytes(pid),
      stored: await storedOf(engine, small.id),
      mails: await mostMails(engine),
    }),
    mainThreadMs: () => Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6,
    stalls: () => readFileSync(stallsFile, 'latin1').split('\n').filter(Boolean).map(Number),
    async close() {
      await reader.terminate();
      await engine.close();
      await service.stop('SIGKILL');
      await dir.remove();
    },
  };
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
    },
    projectId,
  );
}

async function mostMails(engine: Engine): Promise<number> {
  const sent = await engine
    .db('bsvc')
    .collection('mail_outbox')
    .aggregate([
      { $unwind: '$to' },
      { $group: { _id: '$to', mails: { $sum: 1 } } },
      { $sort: { mails: -1 } },
      { $limit: 1 },
    ])
    .toArray();
  return Number((sent[0] as { mails?: number } | undefined)?.mails ?? 0);
}
