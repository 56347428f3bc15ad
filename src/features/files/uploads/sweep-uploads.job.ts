import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { groupBy } from '../../../platform/group-by.js';
import { deletion, type FileRecord, fileStore } from '../file.js';
import { reapFiles, tidyFiles } from './reap-files.js';

export const sweepUploadsJob: JobDefinition<App> = {
  name: 'files.sweepUploads',
  retry: { delaysMs: [10_000, 60_000] },
  async run(app, _payload, { signal, stopping }) {
    await sweepUploads(app, AbortSignal.any([signal, stopping]));
  },
};

const BATCH = 200;

export interface Sweep {
  /** Uploads discarded because they were not confirmed. */
  abandoned: number;
  /** Deleted files whose bytes and charges were settled, those included. */
  settled: number;
  /** Old records of deleted files that were forgotten. */
  forgotten: number;
}

/**
 * Does what is due with files: gives up uploads that were not confirmed within an hour, settles deleted files that a
 * killed process or a failing bucket left, removes what repeated uploads left beside confirmed files, forgets old
 * records. Harmless to repeat and to run twice at once.
 */
export async function sweepUploads(app: App, stopping?: AbortSignal): Promise<Sweep> {
  const sweep: Sweep = { abandoned: 0, settled: 0, forgotten: 0 };
  await app.files.sweepSpool();
  while (!stopping?.aborted) {
    const now = new Date(app.clock.now());
    const due = await fileStore(app)
      .find({ dueAt: { $lte: now } })
      .sort({ dueAt: 1 })
      .limit(BATCH)
      .toArray();
    if (due.length === 0) break;
    const ids = due.map((file) => file._id);
    const abandoned = await fileStore(app).updateMany(
      { _id: { $in: ids }, state: { $in: ['requested', 'stored'] } },
      { $set: deletion(now) },
    );
    const forgotten = await fileStore(app).deleteMany({ _id: { $in: ids }, settled: true, dueAt: { $lte: now } });
    const unsettled = await fileStore(app)
      .find({ _id: { $in: ids }, state: 'deleted', settled: false })
      .toArray();
    for (const files of groupByProject(unsettled)) await reapFiles(app, files[0].projectId, files);
    const untidy = due.filter((file) => file.state === 'confirmed');
    for (const files of groupByProject(untidy)) await tidyFiles(app, files[0].projectId, files);
    sweep.abandoned += abandoned.modifiedCount;
    sweep.forgotten += forgotten.deletedCount;
    sweep.settled += unsettled.length;
  }
  return sweep;
}

function groupByProject(files: readonly FileRecord[]): Iterable<[FileRecord, ...FileRecord[]]> {
  return groupBy(files, ({ projectId }) => projectId.toHexString()).values();
}
