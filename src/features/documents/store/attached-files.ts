import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { Collection } from '../../collections/collection.js';
import type { WriteTurn } from '../../../platform/database/database.js';
import { jobTurn, type Enqueueable } from '../../../platform/jobs/job-queue.js';

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

/**
 * The deletion of the files of a document, as a turn after the one that removes it permanently. What is attached
 * between the two reads is found within the hour.
 */
export async function openRemovalOfAttached(
  app: App,
  { projectId, _id }: Collection,
  id: ObjectId,
): Promise<WriteTurn[]> {
  const attachedTo = {
    projectId: projectId.toHexString(),
    collectionId: _id.toHexString(),
    id: id.toHexString(),
  };
  const prefix = attachedPrefix(attachedTo);
  const files = app.db.collection<{ _id: ObjectId; path: string }>(FILES);
  const path = { $gte: prefix, $lt: `${prefix.slice(0, -1)}.` };
  const isAttached = (await files.findOne({ path }, { projection: { _id: 1 } })) !== null;
  return isAttached ? [jobTurn(app, REMOVE_ATTACHED, attachedTo)] : [];
}
