import type { App } from '../../src/app.js';
import { findBackupAge } from '../../src/features/backups/backup-age.js';
import { failed, passed, type CheckResult } from './check.js';

const HOUR_MS = 3_600_000;

/** Checks that the last good scheduled backup is not too old. */
export async function checkBackups(app: App): Promise<CheckResult> {
  const { backupTo, backupPassphrase, secretKey } = app.config;
  const age = await findBackupAge(app);
  if (!age) return passed('backups', 'none by schedule; BSVC_BACKUP_TO names a place for them');
  const last = age.last ? `the last good one is ${Math.floor(age.ageMs! / HOUR_MS)} h old` : 'there is no good one yet';
  if (age.isLate) {
    return failed(
      'backups',
      `${backupTo}: ${last}`,
      'See the log for "backups.run", or make one: bsvc backup --to <place>',
    );
  }
  const damagedFiles = age.last?.damagedFiles ?? 0;
  if (damagedFiles > 0) {
    return failed(
      'backups',
      `${backupTo}: ${last}, but ${damagedFiles} uploaded files were damaged or missing when it was made`,
      'No older backup is removed until then. "bsvc doctor --deep" lists the files: restore them from an older backup, or delete them.',
    );
  }
  const isEncryptedByFile = backupPassphrase === null && secretKey === null;
  const hint = isEncryptedByFile ? 'They are encrypted with secret.key: keep a copy of that file elsewhere.' : null;
  return { ...passed('backups', `${backupTo}: ${last}`), hint };
}
