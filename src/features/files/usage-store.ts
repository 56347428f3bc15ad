import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { unavailable } from '../../errors.js';
import { type Transaction, storeOf } from '../../platform/database/database.js';
import { hexOf } from '../../platform/ids.js';
import type { Project } from '../projects/project.js';
import { filesOf, type FileRecord, fileStore, providerOf } from './file.js';

/**
 * How many bytes of a project's quota, or of a user's share of it, are used. They change in one transaction with the
 * files' own records: a file is charged with its confirmation, and refunded when its bytes are gone.
 */
interface UsageRecord {
  /** The project, or the user who uploaded the files. */
  _id: ObjectId;
  /** The project of the user. */
  projectId?: ObjectId;
  bytes: number;
  /** Grows with every change of the bytes. */
  revision: number;
}

const STORAGE_USAGE = 'storage_usage';

export const usageStore = storeOf<UsageRecord>(STORAGE_USAGE);

/** A record of which the bytes of a file are part. */
export type UsageKey = Pick<UsageRecord, '_id' | 'projectId'>;

/** The records that a file is charged to: its uploader's before the project's. */
export function usagesOf({ projectId, uploadedBy }: Pick<FileRecord, 'projectId' | 'uploadedBy'>): UsageKey[] {
  return [...(uploadedBy === undefined ? [] : [{ _id: new ObjectId(uploadedBy), projectId }]), { _id: projectId }];
}

/** The line of transactions that write these records. */
export const usageLine = ({ projectId }: Pick<FileRecord, 'projectId'>): string => `storage ${hexOf(projectId)}`;

/** Charges bytes in a transaction; false, with nothing changed, where they would be more than the limit. */
export function chargeBytes(tx: Transaction, key: UsageKey, bytes: number, limit: number | null): boolean {
  const usage = tx.get<UsageRecord>(STORAGE_USAGE, key._id) ?? { ...key, bytes: 0, revision: 0 };
  if (limit !== null && usage.bytes + bytes > limit) return false;
  tx.put(STORAGE_USAGE, { ...usage, bytes: usage.bytes + bytes, revision: usage.revision + 1 });
  return true;
}

/** Gives the bytes of files back in a transaction; where the project is gone there is nothing to give back. */
export function refundFiles(tx: Transaction, files: readonly FileRecord[]): void {
  const refunds = new Map<string, { _id: ObjectId; bytes: number }>();
  for (const file of files.filter(isCharged)) {
    for (const { _id } of usagesOf(file)) {
      const id = _id.toHexString();
      refunds.set(id, { _id, bytes: (refunds.get(id)?.bytes ?? 0) + file.size! });
    }
  }
  for (const { _id, bytes } of refunds.values()) {
    const usage = tx.get<UsageRecord>(STORAGE_USAGE, _id);
    if (usage) tx.put(STORAGE_USAGE, { ...usage, bytes: usage.bytes - bytes, revision: usage.revision + 1 });
  }
}

function isCharged({ place, confirmedAt, settled }: FileRecord): boolean {
  return providerOf(place) === 'internal' && confirmedAt !== undefined && !settled;
}

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
  return recount(app, { _id: project._id });
}

async function recount(app: App, key: UsageKey): Promise<Recount> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const { bytes: before = 0, revision = 0 } = (await usageStore(app).findOne({ _id: key._id })) ?? {};
    const after = await sumCharged(app, key);
    const isStored = await app.db.transaction(
      (tx) => {
        const usage = tx.get<UsageRecord>(STORAGE_USAGE, key._id);
        if ((usage?.revision ?? 0) !== revision) return false;
        tx.put(STORAGE_USAGE, { ...(usage ?? key), bytes: after, revision: revision + 1 });
        return true;
      },
      usageLine({ projectId: key.projectId ?? key._id }),
    );
    if (isStored) return { before, after };
  }
  throw unavailable('RECOUNT_BUSY', 'The files of the project changed while they were counted. Try again', {
    retryAfterSeconds: 5,
  });
}

async function sumCharged(app: App, { _id, projectId }: UsageKey): Promise<number> {
  const files = fileStore(app)
    .find(projectId ? { projectId, uploadedBy: _id.toHexString() } : filesOf(_id))
    .project<FileRecord>({ size: 1, place: 1, settled: 1, confirmedAt: 1 });
  let bytes = 0;
  for await (const file of files) if (isCharged(file)) bytes += file.size!;
  return bytes;
}
