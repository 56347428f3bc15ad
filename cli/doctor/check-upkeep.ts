import type { App } from '../../src/app.js';
import { findBackupAge } from '../../src/features/backups/backup-age.js';
import { failed, passed, type CheckResult } from './check.js';
import { collectionStore } from '../../src/features/collections/collection-store.js';
import { listBoundedLogs } from '../../src/features/changes/log-bound.js';
import { listProjects } from '../../src/features/projects/project-store.js';
import { DAY_MS } from '../../src/platform/time/clock.js';
import { countOf, presentBytes } from '../view/present.js';
import { randomUUID } from 'node:crypto';
import { rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { listActs } from '../../src/features/audit/audit-log.js';

const HOUR_MS = 3_600_000;

/** Checks that the last good scheduled backup is not too old. */
export async function checkBackups(app: App): Promise<CheckResult> {
  const { backupTo, backupPassphrase, secretKey } = app.config;
  const age = await findBackupAge(app);
  if (!age) return passed('backups', 'not scheduled; BSVC_BACKUP_TO sets where they go');
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
      'Older backups are kept until then. "bsvc doctor --deep" lists the files: restore them from an older backup, or delete them.',
    );
  }
  const isEncryptedByFile = backupPassphrase === null && secretKey === null;
  const hint = isEncryptedByFile ? 'They are encrypted with secret.key: keep a copy of that file elsewhere.' : null;
  return { ...passed('backups', `${backupTo}: ${last}`), hint };
}

/** The part of its bytes from which a log counts as full: the oldest changes go before their time. */
const FULL = 0.9;

/** What logs of changes take, and whether one of them reaches back less far than BSVC_KEEP says. */
export async function checkChanges(app: App): Promise<CheckResult> {
  let bytes = 0;
  let logs = 0;
  let full = 0;
  let shortestDays = Infinity;
  for (const project of await listProjects(app)) {
    for (const log of (await listBoundedLogs(app, project)).values()) {
      logs++;
      bytes += log.bytes;
      if (log.bytes < log.maxBytes * FULL) continue;
      full++;
      if (log.since) shortestDays = Math.min(shortestDays, (app.clock.now() - log.since.getTime()) / DAY_MS);
    }
  }
  if (logs === 0) return passed('changes', 'no change log yet');
  const all = `${countOf(logs, 'log')} of changes, ${presentBytes(bytes)}${await ageOfSets(app)}`;
  if (full === 0) return passed('changes', all);
  const reach = shortestDays === Infinity ? '' : `, the shortest reaches back ${shortestDays.toFixed(1)} days`;
  const hint = 'Clients that were away for longer start over. A larger plan of the project keeps more.';
  return { ...passed('changes', `${all}; ${full} at the largest size${reach}`), hint };
}

/** What a MongoDB cannot promise of rules that ask about memberships; nothing elsewhere, or without such rules. */
async function ageOfSets(app: App): Promise<string> {
  if (app.db.changeLogs) return '';
  const named = await collectionStore(app).findOne({ state: 'active', 'namedBy.0': { $exists: true } });
  return named ? '; on a MongoDB reads may see memberships that are 1 s old, and streams cannot follow them' : '';
}

const MAX_DRIFT_MS = 5000;
const HINT = 'Synchronize the clocks (NTP): tokens, signatures and schedules depend on them.';

/**
 * Compares our clock with that of the data directory's file system and with the last stored time, without asking a time
 * server.
 */
export async function checkClock(app: App): Promise<CheckResult> {
  const driftMs = await measureFileSystem(app.config.dataDir);
  if (Math.abs(driftMs) > MAX_DRIFT_MS) {
    return failed(
      'clock',
      `the data directory's file system is ${Math.round(driftMs / 1000)} s off this machine’s clock`,
      HINT,
    );
  }
  const [last] = await listActs(app, { limit: 1 });
  const aheadMs = last ? last.at.getTime() - Date.now() : 0;
  if (aheadMs > MAX_DRIFT_MS) {
    return failed('clock', `it is ${Math.round(aheadMs / 1000)} s before the last recorded action`, HINT);
  }
  return passed('clock', `${new Date().toISOString()}, the same as the file system’s and later than all stored times`);
}

/** Milliseconds; a directory that cannot be written to has a check of its own. */
async function measureFileSystem(dataDir: string): Promise<number> {
  const probe = join(dataDir, `.clock-${randomUUID()}`);
  try {
    await writeFile(probe, '', { flag: 'wx' });
    return (await stat(probe)).mtimeMs - Date.now();
  } catch {
    return 0;
  } finally {
    await rm(probe, { force: true });
  }
}
