import { readFile, statfs } from 'node:fs/promises';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { isTimeExceeded } from '../../platform/database/database.js';
import { jobStore } from '../../platform/jobs/job.js';
import { VERSION } from '../../package.js';
import { type BackupAge, findBackupAge } from '../backups/backup-age.js';
import { listProjects } from '../projects/project-store.js';
import { webhookStore, openTarget } from '../webhooks/webhook-store.js';

/** One process's report on itself. */
interface ProcessStatus {
  pid: number;
  uptimeSeconds: number;
  /** Memory of its own: what the system shares of the store's file and can take back is not in it. */
  memoryBytes: number;
}

export interface Problem {
  kind: 'webhook' | 'jobs' | 'disk' | 'backup';
  /** Id of the project that it concerns. */
  project: string | null;
  /** Of the webhook that it concerns. */
  id: string | null;
  text: string;
  /** When it began, where that is known. */
  since: string | null;
}

const FULL = 0.9;

/** Answers `readStatus` of other processes. */
export function offerStatus(app: App): void {
  app.processGroup?.onCollect('status', readOwnStatus);
}

/** Get the state of all processes. 400 QUERY_TIMEOUT when its jobs take long to count. */
export async function readStatus(app: App) {
  const gathered = app.processGroup ? await app.processGroup.collect('status') : [await readOwnStatus()];
  const processes = gathered as ProcessStatus[];
  const [disk, jobs, backup] = await Promise.all([readDisk(app), countJobs(app), findBackupAge(app)]);
  return {
    version: VERSION,
    store: app.db.kind,
    storedBytes: app.db.stats().fileBytes ?? null,
    uptimeSeconds: Math.max(...processes.map(({ uptimeSeconds }) => uptimeSeconds)),
    processes: processes.length,
    memoryBytes: processes.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0),
    disk,
    jobs,
    backup: backup && { at: backup.last?.at.toISOString() ?? null, isLate: backup.isLate },
    problems: [...(await findFailingWebhooks(app)), ...findOwnProblems(disk, jobs, backup)],
  };
}

async function readOwnStatus(): Promise<ProcessStatus> {
  return { pid: process.pid, uptimeSeconds: Math.floor(process.uptime()), memoryBytes: await readOwnMemory() };
}

async function readOwnMemory(): Promise<number> {
  try {
    const kilobytes = /^RssAnon:\s+(\d+) kB/m.exec(await readFile('/proc/self/status', 'utf8'))?.[1];
    if (kilobytes !== undefined) return Number(kilobytes) * 1024;
  } catch {
    // Another system than Linux.
  }
  return process.memoryUsage.rss();
}

interface Disk {
  freeBytes: number;
  totalBytes: number;
}

/** Of the data directory; null where there is none. */
async function readDisk({ config: { dataDir } }: App): Promise<Disk | null> {
  try {
    const { bavail, blocks, bsize } = await statfs(dataDir);
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
  } catch {
    return null;
  }
}

type JobCounts = Record<'queued' | 'running' | 'dead', number>;

/** Consoles ask again and again: they get a timeout sooner than others. */
const COUNT_MS = 1_000;

async function countJobs(app: App): Promise<JobCounts> {
  const maxTimeMS = Math.min(COUNT_MS, app.config.queryTimeoutMs);
  const count = (state: keyof JobCounts): Promise<number> =>
    jobStore(app).countDocuments({ state }, { maxTimeMS }).catch(failCount);
  const [queued, running, dead] = await Promise.all([count('queued'), count('running'), count('dead')]);
  return { queued, running, dead };
}

function failCount(error: unknown): never {
  if (!isTimeExceeded(error)) throw error;
  throw invalid('QUERY_TIMEOUT', 'Counting the jobs took too long. List them instead', { cause: error });
}

function findOwnProblems(disk: Disk | null, jobs: JobCounts, backup: BackupAge | null): Problem[] {
  const problems: Problem[] = [];
  const of = { project: null, id: null, since: null };
  if (jobs.dead > 0) problems.push({ kind: 'jobs', ...of, text: `${jobs.dead} jobs have failed for the last time` });
  if (disk && disk.freeBytes < (1 - FULL) * disk.totalBytes) {
    problems.push({ kind: 'disk', ...of, text: 'The disk of the data directory is nearly full' });
  }
  if (backup?.isLate) {
    const since = backup.last?.at.toISOString() ?? null;
    problems.push({ kind: 'backup', ...of, text: 'The last good backup is too old', since });
  }
  return problems;
}

const MAX_FAILING = 50;

/** Webhooks that fail now, or that were disabled because they failed. */
async function findFailingWebhooks(app: App): Promise<Problem[]> {
  const failing = {
    $elemMatch: { $or: [{ failingSince: { $ne: null } }, { disabled: { $in: ['gone', 'failing'] } }] },
  };
  const stored = await webhookStore(app).find({ webhooks: failing }).limit(MAX_FAILING).toArray();
  const active = new Set((await listProjects(app)).map(({ _id }) => _id.toHexString()));
  return stored
    .filter(({ _id }) => active.has(_id.toHexString()))
    .flatMap(({ _id, webhooks }) =>
      webhooks
        .filter(({ failingSince, disabled }) => disabled !== 'requested' && (failingSince ?? disabled) !== null)
        .map((webhook) => openTarget(app, _id, webhook))
        .map(({ id, url, disabled, failingSince }) => ({
          kind: 'webhook' as const,
          project: _id.toHexString(),
          id: id.toHexString(),
          text: `${new URL(url).host} ${disabled === null ? 'fails' : 'was disabled because it failed'}`,
          since: failingSince?.toISOString() ?? null,
        })),
    )
    .slice(0, MAX_FAILING);
}
