import type { App } from '../../../app.js';
import { conflict, forbidden } from '../../../errors.js';
import { findLimit, findUserShare } from '../../plans/plan-limits.js';
import type { Project } from '../../projects/project.js';
import { shareUsedUp } from '../../quota/user-share.js';
import { providerOf, UNCONFIRMED_MS, type FileRecord, fileMissing, fileStore } from '../file.js';
import {
  chargeMark,
  closeMark,
  forgetMarks,
  readUsage,
  usagesOf,
  usageStore,
  type UsageKey,
  type UsageRecord,
} from '../usage-store.js';

/**
 * After this time nothing that was on its way to another object of a confirmed upload arrives any more: no request and
 * no signed address lives so long.
 */
const LATE_MS = UNCONFIRMED_MS;

/**
 * Turns a stored file into a confirmed one and charges it to the quota, exactly once however often and from wherever it
 * is called, and whichever line a process dies at: a charge without its confirmation is taken up by the next call or
 * given back by the sweep. 403 QUOTA_EXCEEDED, 404 when deleted since.
 */
export async function confirmFile(app: App, project: Project, begun: BegunFile): Promise<FileRecord>;
/** The same for the bytes in `object` alone: null when others have been chosen. */
export async function confirmFile(
  app: App,
  project: Project,
  begun: BegunFile,
  object: string,
): Promise<FileRecord | null>;
export async function confirmFile(
  app: App,
  project: Project,
  begun: BegunFile,
  object?: string,
): Promise<FileRecord | null> {
  for (;;) {
    // Before the file: see UsageRecord.
    const usages = await Promise.all(usagesOf(begun).map((key) => readUsage(app, key)));
    const file = await fileStore(app).findOne({ _id: begun._id });
    if (!file || file.state === 'deleted') throw fileMissing();
    if (file.state === 'confirmed') return file;
    if (object !== undefined && file.object !== object) return null;
    if (file.state === 'requested') throw notReady();
    if (providerOf(file.place) === 'internal') {
      const outcome = await chargeAll(app, project, usages, file);
      if (outcome === 'outdated') continue;
    }
    const confirmedAt = new Date(app.clock.now());
    const isAlone = (file.objects?.length ?? 0) < 2;
    const confirmed = await fileStore(app).findOneAndUpdate(
      // One more begun since, or another taken, is another record than the one that was read.
      { _id: file._id, state: 'stored', ...(file.objects && { objects: file.objects, object: file.object }) },
      isAlone
        ? { $set: { state: 'confirmed', confirmedAt }, $unset: { dueAt: '' } }
        : { $set: { state: 'confirmed', confirmedAt, dueAt: new Date(confirmedAt.getTime() + LATE_MS) } },
      { returnDocument: 'after' },
    );
    for (const usage of usages) await forgetMarks(app, usage);
    if (confirmed) return confirmed;
  }
}

type BegunFile = Pick<FileRecord, '_id' | 'projectId' | 'uploadedBy'>;

type Outcome = 'charged' | 'full' | 'outdated';

/** 403 QUOTA_EXCEEDED where the file does not fit; what was charged of it until then is given back with the file. */
async function chargeAll(
  app: App,
  project: Project,
  usages: readonly UsageRecord[],
  file: FileRecord,
): Promise<Exclude<Outcome, 'full'>> {
  for (const usage of usages) {
    const outcome = await charge(app, usage, file, limitOf(project, usage));
    if (outcome === 'full') throw quotaExceeded(usage);
    if (outcome === 'outdated') return outcome;
  }
  return 'charged';
}

function limitOf(project: Project, { projectId }: UsageKey): number | null {
  return projectId ? findUserShare(project, 'storage') : findLimit(project, 'storage');
}

async function charge(app: App, usage: UsageRecord, file: FileRecord, limit: number | null): Promise<Outcome> {
  const [charged, closed] = [chargeMark(file._id), closeMark(file._id)];
  const size = file.size!;
  const { matchedCount } = await usageStore(app).updateOne(
    {
      _id: usage._id,
      generation: usage.generation,
      applied: { $nin: [charged, closed] },
      ...(limit !== null && { bytes: { $lte: limit - size } }),
    },
    { $inc: { bytes: size }, $push: { applied: charged } },
  );
  if (matchedCount === 1) return 'charged';
  const now = await readUsage(app, usage);
  if (now.applied.includes(charged)) return 'charged';
  const isFull = limit !== null && now.bytes + size > limit && now.generation === usage.generation;
  return isFull && !now.applied.includes(closed) ? 'full' : 'outdated';
}

/** 409: the bytes are not there yet; the client may ask again shortly. */
export function notReady(): Error {
  return conflict('UPLOAD_NOT_READY', 'The upload has not arrived yet: send the bytes first, or try again shortly', {
    retryAfterSeconds: 2,
  });
}

function quotaExceeded({ projectId }: UsageKey): Error {
  if (projectId) return shareUsedUp('storage');
  return forbidden('QUOTA_EXCEEDED', 'The storage quota of the project is used up. Delete files, or upgrade the plan');
}

/** 403 QUOTA_EXCEEDED when `bytes` more cannot fit now; what counts in the end is the charge. */
export async function requireRoom(app: App, project: Project, bytes: number, uploadedBy: string | null): Promise<void> {
  for (const key of usagesOf({ projectId: project._id, ...(uploadedBy !== null && { uploadedBy }) })) {
    const limit = limitOf(project, key);
    if (limit === null) continue;
    const usage = await usageStore(app).findOne({ _id: key._id });
    if ((usage?.bytes ?? 0) + bytes > limit) throw quotaExceeded(key);
  }
}
