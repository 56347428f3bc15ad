import { conflict } from '../../errors.js';
import { accepted, naming, ok, own, route, type RouteList } from '../../http/routes/route.js';
import { enqueueTick } from '../../platform/jobs/schedules.js';
import { arrayOf, FLAG, MOMENT, number, object, orNull, text, TEXT, WHOLE } from '../../platform/schema/schema.js';
import { ofAllProjects, OPERATOR, owner } from '../access/operator-access.js';
import { checkBackup } from './check-backup.job.js';
import { readBackup } from './read-backup.js';
import { runBackupJob } from './run-backup.job.js';
import type { App } from '../../app.js';
import { findBackupAge } from './backup-age.js';
import type { KeptBackup } from './backup-place.js';
import { backupStore, openConfiguredPlace } from './keep-backup.js';

const BYTES = text({ contentMediaType: 'application/octet-stream' });

const BACKUPS = object(
  {
    place: { ...orNull(TEXT), description: '`BSVC_BACKUP_TO`; null if scheduled backups are off.' },
    schedule: TEXT,
    keep: object({ days: WHOLE, weeks: WHOLE, months: WHOLE }),
    isLate: FLAG,
    problem: { ...orNull(TEXT), description: 'Why the target cannot be read.' },
    items: arrayOf(
      object({
        name: TEXT,
        at: MOMENT,
        bytes: number(),
        verified: {
          ...orNull(object({ documents: WHOLE, files: WHOLE })),
          description: 'Its contents when it was read back; null if it was made elsewhere, long ago, or is damaged.',
        },
        fault: { ...orNull(TEXT), description: 'The error of the last verification.' },
        damagedFiles: {
          ...WHOLE,
          description: 'Uploaded files that were damaged or missing at the time of the backup.',
        },
        checkedAt: { ...orNull(MOMENT), description: 'Time of the last verification.' },
      }),
    ),
  },
  'Backups',
);

/** The backups that the service keeps, for the people who run it. */
export const BACKUP_ROUTES: RouteList = {
  prefix: '/api/admin/backups',
  tag: 'Operators',
  rate: 'operator',
  params: { name: naming('Name of a backup in the place', 'BACKUP_NOT_FOUND') },
  routes: [
    route('GET /api/admin/backups', {
      id: 'listBackups',
      command: 'backup --list',
      summary: 'List backups, newest first',
      access: ofAllProjects(OPERATOR),
      answers: ok(BACKUPS, 'Backups'),
      errors: { 403: ['ALL_PROJECTS_REQUIRED'] },
      handle: ({ app }) => listBackups(app),
    }),
    route('POST /api/admin/backups', {
      id: 'makeBackup',
      summary: 'Create a backup, verify it and remove expired ones',
      description: 'Runs in a worker. One backup runs at a time.',
      access: ofAllProjects(owner('backup make')),
      answers: accepted(object({ job: TEXT }), 'The backup is due'),
      errors: { 403: ['ALL_PROJECTS_REQUIRED'], 409: ['NO_BACKUP_PLACE'] },
      async handle({ app }) {
        if (app.config.backupTo === null) {
          throw conflict('NO_BACKUP_PLACE', 'Set BSVC_BACKUP_TO first: a directory, or s3://bucket/prefix');
        }
        const { backupSchedule: cron } = app.config;
        await enqueueTick(app, { job: runBackupJob, cron }, new Date(app.clock.now()));
        return { job: runBackupJob.name };
      },
    }),
    route('GET /api/admin/backups/:name/file', {
      id: 'downloadBackup',
      summary: 'Download an encrypted backup',
      description: 'Only the master key or the passphrase decrypts it. The API never returns them.',
      access: ofAllProjects(owner('backup download')),
      answers: own(200, 'The encrypted file', { 'application/octet-stream': BYTES }),
      errors: { 403: ['ALL_PROJECTS_REQUIRED'], 409: ['NO_BACKUP_PLACE', 'BACKUP_NOT_ENCRYPTED'] },
      async handle({ app, ctx, params: { name } }) {
        const { bytes, body } = await readBackup(app, name);
        ctx.type = 'application/octet-stream';
        ctx.attachment(name);
        ctx.length = bytes;
        ctx.body = body;
      },
    }),
    route('POST /api/admin/backups/:name/check', {
      id: 'checkBackup',
      summary: 'Verify a backup',
      access: ofAllProjects(owner('backup check')),
      answers: accepted(object({ job: TEXT }), 'The check is due'),
      errors: { 403: ['ALL_PROJECTS_REQUIRED'], 409: ['NO_BACKUP_PLACE'] },
      handle: ({ app, params: { name } }) => checkBackup(app, name),
    }),
  ],
};

/** The backups of the configured place, the newest first; `place` is null where the settings name none. */
async function listBackups(app: App) {
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
