import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { unlessDuplicate } from '../../platform/database/database.js';
import { storeOf } from '../../platform/database/store-of.js';
import { type FileRecord, fileStore } from './file.js';

/**
 * How many bytes of a project's quota, or of a user's share of it, are used, and which files' charges and refunds that
 * number contains.
 *
 * A charge and its file are two records, and a process can be killed between writing the one and the other. So that
 * each charge and refund is applied exactly once: the write that changes `bytes` also adds a mark to `applied` (`+id`
 * charged, `-id` refunded or never to be charged) and is refused when the mark is there. Marks are forgotten only for
 * files whose own record says the same, and forgetting changes `generation`; every charge and refund is conditional on
 * the generation that was read *before* the file's record, so a worker with old knowledge is refused.
 */
export interface UsageRecord {
  /** The project, or the user who uploaded the files. */
  _id: ObjectId;
  /** The project of the user. */
  projectId?: ObjectId;
  bytes: number;
  generation: number;
  applied: string[];
}

/** More marks than this are not kept longer than needed: each write compares with all of them. */
const MANY_MARKS = 256;

export const chargeMark = (fileId: ObjectId): string => `+${fileId.toHexString()}`;
export const closeMark = (fileId: ObjectId): string => `-${fileId.toHexString()}`;

export const usageStore = storeOf<UsageRecord>('storage_usage');

/** A record of which the bytes of a file are part. */
export type UsageKey = Pick<UsageRecord, '_id' | 'projectId'>;

/** The records that a file is charged to: its uploader's before the project's. */
export function usagesOf({ projectId, uploadedBy }: Pick<FileRecord, 'projectId' | 'uploadedBy'>): UsageKey[] {
  return [...(uploadedBy === undefined ? [] : [{ _id: new ObjectId(uploadedBy), projectId }]), { _id: projectId }];
}

/** The record, made when there is none. */
export async function readUsage(app: Pick<App, 'db'>, key: UsageKey): Promise<UsageRecord> {
  const { _id, projectId } = key;
  const found = await usageStore(app).findOne({ _id });
  if (found) return found;
  const fresh: UsageRecord = { _id, ...(projectId && { projectId }), bytes: 0, generation: 0, applied: [] };
  return (await unlessDuplicate(usageStore(app).insertOne({ ...fresh }))) ? fresh : readUsage(app, key);
}

/**
 * Forgets the marks of files that need none any more, when `seen` had many. Losing the race against another writer is
 * harmless.
 */
export async function forgetMarks(app: Pick<App, 'db'>, seen: UsageRecord, many = MANY_MARKS): Promise<void> {
  if (seen.applied.length < many) return;
  const usage = await readUsage(app, seen);
  const ids = [...new Set(usage.applied.map((mark) => mark.slice(1)))];
  const unfinished = await fileStore(app)
    .find({ _id: { $in: ids.map((id) => new ObjectId(id)) }, state: { $ne: 'confirmed' }, settled: { $ne: true } })
    .project<{ _id: ObjectId }>({ _id: 1 })
    .toArray();
  const needed = new Set(unfinished.map((file) => file._id.toHexString()));
  const done = usage.applied.filter((mark) => !needed.has(mark.slice(1)));
  if (done.length === 0) return;
  await usageStore(app).updateOne(
    { _id: usage._id, generation: usage.generation },
    { $pull: { applied: { $in: done } }, $inc: { generation: 1 } },
  );
}
