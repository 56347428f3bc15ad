import type { App } from '../../app.js';
import type { JobDefinition } from '../../platform/jobs/job.js';
import type { Schedule } from '../../platform/jobs/schedules.js';
import { filesDamaged, isDamageReport } from '../store-copies/restore-backup.js';
import { keepBackup, openConfiguredPlace } from './keep-backup.js';

/**
 * Makes the backup that the schedule asks for. One that failed is tried again within minutes, unless something stored
 * is damaged, which no repetition mends; the next tick makes another in any case.
 */
export const runBackupJob: JobDefinition<App> = {
  name: 'backups.run',
  retry: { delaysMs: [60_000, 600_000] },
  isFinal: isDamageReport,
  concurrency: 1,
  async run(app, _payload, { signal }) {
    const place = await openConfiguredPlace(app);
    if (!place) return;
    try {
      const { file, bytes, documents, removed, damagedFiles, damage } = await keepBackup(
        app,
        place,
        app.config.backupKeep,
        {
          stop: signal,
          onProgress: () => undefined,
        },
      );
      if (damagedFiles > 0) throw filesDamaged(`The backup ${file}`, damagedFiles, damage);
      app.log.info({ backup: file, place: place.address, bytes, documents, removed }, 'a backup was made and verified');
    } finally {
      place.close();
    }
  },
};

/** The schedule of the settings; none without `BSVC_BACKUP_TO`. */
export function backupSchedules({ backupTo, backupSchedule }: App['config']): Schedule<App>[] {
  return backupTo === null ? [] : [{ job: runBackupJob, cron: backupSchedule }];
}
