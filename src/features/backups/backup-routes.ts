import type { App } from '../../app.js';
import { conflict } from '../../errors.js';
import { accepted, ok, route, type RouteList } from '../../http/routes/route.js';
import { enqueueTick } from '../../platform/jobs/schedules.js';
import { arrayOf, FLAG, MOMENT, number, object, orNull, TEXT, WHOLE } from '../../platform/schema/schema.js';
import { ofAllProjects, OPERATOR, owner } from '../access/operator-access.js';
import { findBackupAge } from './backup-age.js';
import type { KeptBackup } from './backup-place.js';
import { backupStore, openConfiguredPlace } from './keep-backup.js';
import { runBackupJob } from './run-backup.job.js';

const BACKUPS = object(
  {
    place: { ...orNull(TEXT), description: '`BSVC_BACKUP_TO`; null: no backups are made by the service.' },
    schedule: TEXT,
    keep: object({ days: WHOLE, weeks: WHOLE, months: WHOLE }),
    isLate: FLAG,
    problem: { ...orNull(TEXT), description: 'Why the place cannot be looked at.' },
    items: arrayOf(
      object({
        name: TEXT,
        at: MOMENT,
        bytes: number(),
        verified: {
          ...orNull(object({ documents: WHOLE, files: WHOLE })),
          description: 'What was in it when the service read it back; null: made elsewhere, or long ago.',
        },
      }),
    ),
  },
  'Backups',
);

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
    const verified = record ? { documents: record.documents, files: record.files } : null;
    return { name, at: at.toISOString(), bytes, verified };
  });
  const isLate = (await findBackupAge(app))?.isLate ?? false;
  return { place: place.address, schedule, keep, isLate, problem, items };
}

/** The backups that the service keeps, for the people who run it. */
export const BACKUP_ROUTES: RouteList = {
  prefix: '/api/admin/backups',
  tag: 'Operators',
  rate: 'operator',
  routes: [
    route('GET /api/admin/backups', {
      id: 'listBackups',
      summary: 'List the backups in the place that the settings name, the newest first',
      access: ofAllProjects(OPERATOR),
      answers: ok(BACKUPS, 'Backups'),
      refuses: { 403: ['ALL_PROJECTS_REQUIRED'] },
      handle: ({ app }) => listBackups(app),
    }),
    route('POST /api/admin/backups', {
      id: 'makeBackup',
      summary: 'Have a worker make a backup now, read it back, and remove those that are no longer kept',
      description: 'As the schedule does: one at a time, so that it is none more where one is being made.',
      access: ofAllProjects(owner('backup make')),
      answers: accepted(object({ job: TEXT }), 'The backup is due'),
      refuses: { 403: ['ALL_PROJECTS_REQUIRED'], 409: ['NO_BACKUP_PLACE'] },
      async handle({ app }) {
        if (app.config.backupTo === null) {
          throw conflict('NO_BACKUP_PLACE', 'Set BSVC_BACKUP_TO first: a directory, or s3://bucket/prefix');
        }
        const { backupSchedule: cron } = app.config;
        await enqueueTick(app, { job: runBackupJob, cron }, new Date(app.clock.now()));
        return { job: runBackupJob.name };
      },
    }),
  ],
};
