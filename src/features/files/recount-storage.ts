import type { App } from '../../app.js';
import { unavailable } from '../../errors.js';
import type { Project } from '../projects/project.js';
import { providerOf, type FileRecord, filesOf, fileStore } from './file.js';
import { chargeMark, closeMark, readUsage, usageStore, type UsageKey, type UsageRecord } from './usage-store.js';

const MAX_ATTEMPTS = 100;

export interface Recount {
  /** Bytes the counter said. */
  before: number;
  /** Bytes it says now. */
  after: number;
}

/**
 * Sets the counters of used bytes, the project's and those of its users, to what the files' records say. Charges and
 * refunds go on during it: one that falls between reading and writing makes it read again. 503 when they never pause.
 */
export async function recountStorage(app: App, project: Pick<Project, '_id'>): Promise<Recount> {
  const users = usageStore(app).find({ projectId: project._id }).project<UsageKey>({ _id: 1, projectId: 1 });
  for await (const user of users) await recount(app, user);
  return recount(app, project);
}

async function recount(app: App, key: UsageKey): Promise<Recount> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const usage = await readUsage(app, key);
    const after = await sumCharged(app, usage);
    const { matchedCount } = await usageStore(app).updateOne(
      // Every change of the bytes adds a mark, or else changes the generation.
      { _id: usage._id, generation: usage.generation, applied: { $size: usage.applied.length } },
      { $set: { bytes: after } },
    );
    if (matchedCount === 1) return { before: usage.bytes, after };
  }
  throw unavailable('RECOUNT_BUSY', 'The files of the project changed while they were counted. Try again', {
    retryAfterSeconds: 5,
  });
}

async function sumCharged(app: App, usage: UsageRecord): Promise<number> {
  const applied = new Set(usage.applied);
  const files = fileStore(app)
    .find(usage.projectId ? { projectId: usage.projectId, uploadedBy: usage._id.toHexString() } : filesOf(usage._id))
    .project<FileRecord>({ _id: 1, state: 1, size: 1, place: 1, settled: 1, confirmedAt: 1 });
  let bytes = 0;
  for await (const file of files) if (isCounted(file, applied)) bytes += file.size!;
  return bytes;
}

/** True if the counter, with these marks applied, must contain the file. */
function isCounted(file: FileRecord, applied: ReadonlySet<string>): boolean {
  if (providerOf(file.place) === 'external' || applied.has(closeMark(file._id))) return false;
  if (file.state === 'deleted' && file.settled) return false;
  return file.confirmedAt !== undefined || applied.has(chargeMark(file._id));
}
