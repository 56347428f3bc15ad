import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict, forbidden } from '../../../errors.js';
import { findLimit } from '../../plans/plan-limits.js';
import type { Project } from '../../projects/project.js';
import { providerOf, UNCONFIRMED_MS, type FileRecord } from '../file.js';
import { fileMissing, fileStore } from '../file-store.js';
import { chargeMark, closeMark, forgetMarks, readUsage, usageStore, type UsageRecord } from '../usage-store.js';

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
export async function confirmFile(app: App, project: Project, fileId: ObjectId): Promise<FileRecord>;
/** The same for the bytes in `object` alone: null when others have been chosen. */
export async function confirmFile(
  app: App,
  project: Project,
  fileId: ObjectId,
  object: string,
): Promise<FileRecord | null>;
export async function confirmFile(
  app: App,
  project: Project,
  fileId: ObjectId,
  object?: string,
): Promise<FileRecord | null> {
  for (;;) {
    const usage = await readUsage(app, project._id); // before the file: see UsageRecord
    const file = await fileStore(app).findOne({ _id: fileId });
    if (!file || file.state === 'deleted') throw fileMissing();
    if (file.state === 'confirmed') return file;
    if (object !== undefined && file.object !== object) return null;
    if (file.state === 'requested') throw notReady();
    if (providerOf(file.place) === 'internal') {
      const outcome = await charge(app, usage, file, findLimit(project, 'storage'));
      if (outcome === 'full') throw quotaExceeded();
      if (outcome === 'outdated') continue;
    }
    const confirmedAt = new Date(app.clock.now());
    const isAlone = (file.objects?.length ?? 0) < 2;
    const confirmed = await fileStore(app).findOneAndUpdate(
      // One more begun since, or another taken, is another record than the one that was read.
      { _id: fileId, state: 'stored', ...(file.objects && { objects: file.objects, object: file.object }) },
      isAlone
        ? { $set: { state: 'confirmed', confirmedAt }, $unset: { dueAt: '' } }
        : { $set: { state: 'confirmed', confirmedAt, dueAt: new Date(confirmedAt.getTime() + LATE_MS) } },
      { returnDocument: 'after' },
    );
    await forgetMarks(app, usage);
    if (confirmed) return confirmed;
  }
}

type Outcome = 'charged' | 'full' | 'outdated';

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
  const now = await readUsage(app, usage._id);
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

function quotaExceeded(): Error {
  return forbidden('QUOTA_EXCEEDED', 'The storage quota of the project is used up: delete files or raise the plan');
}

/** 403 QUOTA_EXCEEDED when `bytes` more cannot fit now; what counts in the end is the charge. */
export async function requireRoom(app: App, project: Project, bytes: number): Promise<void> {
  const limit = findLimit(project, 'storage');
  if (limit === null) return;
  const usage = await usageStore(app).findOne({ _id: project._id });
  if ((usage?.bytes ?? 0) + bytes > limit) throw quotaExceeded();
}
