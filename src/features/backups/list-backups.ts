import type { App } from '../../app.js';
import { findBackupAge } from './backup-age.js';
import type { KeptBackup } from './backup-place.js';
import { backupStore, openConfiguredPlace } from './keep-backup.js';

/** The backups of the configured place, the newest first; `place` is null where the settings name none. */
export async function listBackups(app: App) {
  const { backupSchedule: schedule, backupKeep: keep } = app.config;
  const place = await openConfiguredPlace(app);
  if (!place) return { place: null, schedule, keep, isLate: false, problem: null, items: [] };
  let kept: KeptBackup[] = [];
  let problem: string | null = null;
  try {
    kept = await place.list();
  } catch (error) {
    app.log.warn({ err: error, place: place.address }, 'the place of backups cannot be listed');
    problem = `${place.address} cannot be listed: ${(error as Error).message}`;
  } finally {
    place.close();
  }
  const records = await backupStore(app).find({ place: place.address }).toArray();
  const known = new Map(records.map((record) => [record._id, record]));
  const items = kept.reverse().map(({ name, at, bytes }) => {
    const record = known.get(`${place.address}/${name}`);
    const { documents, files, damagedFiles } = record ?? {};
    const fault = record?.fault ?? null;
    const verified = documents === undefined || files === undefined || fault !== null ? null : { documents, files };
    const checkedAt = record ? (record.checkedAt ?? record.at).toISOString() : null;
    return { name, at: at.toISOString(), bytes, verified, fault, damagedFiles: damagedFiles ?? 0, checkedAt };
  });
  const isLate = (await findBackupAge(app))?.isLate ?? false;
  return { place: place.address, schedule, keep, isLate, problem, items };
}
