import { defaulted, optional } from './setting.js';
import { asIs, cron, keepRule } from './setting-readers.js';

/** Backups that are made by a schedule. */
export const BACKUP_SETTINGS = {
  backupTo: optional(
    'BSVC_BACKUP_TO',
    asIs,
    'target of scheduled backups: a directory, or `s3://bucket/prefix` in the account of BSVC_S3_URL',
  ),
  backupSchedule: defaulted('BSVC_BACKUP_SCHEDULE', cron, '0 3 * * *', 'schedule of backups (cron, UTC)'),
  backupKeep: defaulted(
    'BSVC_BACKUP_KEEP',
    keepRule,
    { days: 7, weeks: 4, months: 6 },
    'backups to keep: the newest of this many days, weeks and months',
    { defaultText: '7d,4w,6m' },
  ),
  backupPassphrase: optional(
    'BSVC_BACKUP_PASSPHRASE',
    asIs,
    'passphrase that encrypts scheduled backups; without it the master key does',
    { secret: true },
  ),
};
