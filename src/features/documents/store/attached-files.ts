import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { Collection } from '../../collections/collection.js';
import type { Enqueueable } from '../../../platform/jobs/job-queue.js';

/** The records of files, each with its path. */
export const FILES = 'files';

/** A document whose files go with it. */
export interface AttachedTo {
  projectId: string;
  collectionId: string;
  id: string;
}

/** The job that deletes the files of a document that is gone. */
export const REMOVE_ATTACHED: Enqueueable<AttachedTo> & { name: string } = { name: 'files.removeAttached' };

/** How the path of every file of a document begins; no other file's path begins with an x. */
export function attachedPrefix({ projectId, collectionId, id }: AttachedTo): string {
  return `${projectId}/x${collectionId}-${id}-`;
}

/** A write takes less than this. */
const WRITTEN_MS = 2_000;

/**
 * Asks for the deletion of the files of a document that is about to be removed for good. When the process dies before
 * the write, the job finds the document; when the write comes after the job, the hourly sweep finds the files.
 */
export async function removeAttachedLater(app: App, { projectId, _id }: Collection, id: ObjectId): Promise<void> {
  const attachedTo = {
    projectId: projectId.toHexString(),
    collectionId: _id.toHexString(),
    id: id.toHexString(),
  };
  const prefix = attachedPrefix(attachedTo);
  const files = app.db.collection<{ _id: ObjectId; path: string }>(FILES);
  const path = { $gte: prefix, $lt: `${prefix.slice(0, -1)}.` };
  if (!(await files.findOne({ path }, { projection: { _id: 1 } }))) return;
  const runAt = new Date(app.clock.now() + WRITTEN_MS);
  const uniqueKey = `attached:${attachedTo.collectionId}:${attachedTo.id}`;
  await app.jobs.enqueue(REMOVE_ATTACHED, attachedTo, { uniqueKey, whenPresent: 'rerun', runAt });
}
