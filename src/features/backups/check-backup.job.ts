import type { App } from '../../app.js';
import { AppError } from '../../errors.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import { timeOfBackup } from './backup-schedule.js';
import { backupStore, openConfiguredPlace, verifyKept } from './keep-backup.js';
import { requireBackupPlace } from './read-backup.js';

const MINUTE_MS = 60_000;

/** Reads a kept backup to its end and records what was found; a place that cannot be reached is tried again. */
export const checkBackupJob: JobDefinition<App, { name: string }> = {
  name: 'backups.check',
  retry: { delaysMs: [MINUTE_MS, 10 * MINUTE_MS] },
  concurrency: 1,
  async run(app, { name }) {
    const place = await openConfiguredPlace(app);
    if (!place) return;
    try {
      const kept = (await place.list()).find((each) => each.name === name);
      const at = timeOfBackup(name);
      if (!kept || !at) return;
      const _id = `${place.address}/${name}`;
      const common = { _id, place: place.address, at, bytes: kept.bytes, checkedAt: new Date(app.clock.now()) };
      const found = await verifyKept(app, place, name).catch(faultOf);
      const before = await backupStore(app).findOne({ _id });
      const { documents, files } = typeof found === 'string' ? (before ?? { documents: 0, files: 0 }) : found;
      const damagedFiles = before?.damagedFiles;
      const fault = typeof found === 'string' ? { fault: found } : {};
      await backupStore(app).replaceOne(
        { _id },
        { ...common, documents, files, ...(damagedFiles && { damagedFiles }), ...fault },
        { upsert: true },
      );
    } finally {
      place.close();
    }
  },
};

/** What is wrong with the backup itself, in words; throws everything else. */
function faultOf(error: unknown): string {
  if (!(error instanceof AppError) || error.kind === 'unavailable') throw error;
  return error.code === 'BACKUP_DAMAGED' ? 'It is damaged or cut short' : error.message;
}

/** Has a worker check a backup, once a minute at most. 404 BACKUP_NOT_FOUND; 409 NO_BACKUP_PLACE. */
export async function checkBackup(app: App, name: string): Promise<{ job: string }> {
  const place = await requireBackupPlace(app, name);
  try {
    const { body } = await place.read(name);
    body.destroy();
  } finally {
    place.close();
  }
  const minute = Math.floor(app.clock.now() / MINUTE_MS);
  await app.jobs.enqueue(checkBackupJob, { name }, { uniqueKey: `${checkBackupJob.name}:${name}@${minute}` });
  return { job: checkBackupJob.name };
}
