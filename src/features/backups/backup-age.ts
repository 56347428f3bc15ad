import type { App } from '../../app.js';
import { readTicks } from '../../platform/jobs/schedules.js';
import { fullAddress } from './backup-place.js';
import { backupStore, type BackupRecord } from './keep-backup.js';

const HOUR_MS = 3_600_000;

/** The age of the last good backup against its schedule. */
export interface BackupAge {
  last: BackupRecord | null;
  /** Milliseconds since the last good one; null when there was none. */
  ageMs: number | null;
  /** No good backup for two intervals of the schedule and an hour. */
  isLate: boolean;
}

/** Shows in the metrics how old the last good backup is; nothing without a schedule. */
export function measureBackups(app: App): void {
  if (app.config.backupTo === null) return;
  app.metrics.gauge(
    'backup_age_seconds',
    'Age of the last good backup; absent while there is none',
    async () => {
      const age = await findBackupAge(app);
      return age?.ageMs == null ? [] : [{ value: age.ageMs / 1000 }];
    },
    { shared: true },
  );
}

/** Looks up the last good backup in the place that the settings name; null when they name none. */
export async function findBackupAge(app: App): Promise<BackupAge | null> {
  const { backupTo, backupSchedule } = app.config;
  if (backupTo === null) return null;
  const [last = null] = await backupStore(app)
    .find({ place: fullAddress(backupTo), fault: { $exists: false } })
    .sort({ at: -1, _id: -1 })
    .limit(1)
    .toArray();
  const now = app.clock.now();
  const ageMs = last && now - last.at.getTime();
  const ticks = readTicks(backupSchedule);
  const next = ticks.after(now);
  const afterNext = next === null ? null : ticks.after(next);
  const intervalMs = next === null || afterNext === null ? 0 : afterNext - next;
  return { last: last, ageMs, isLate: ageMs === null || ageMs > 2 * intervalMs + HOUR_MS };
}
