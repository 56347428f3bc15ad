import { fullAddress, openBackupPlace } from '../../src/features/backups/backup-place.js';
import { keepBackup } from '../../src/features/backups/keep-backup.js';
import { backUp, type BackupReport } from '../../src/features/store-copies/back-up.js';
import { filesDamaged } from '../../src/features/store-copies/restore-backup.js';
import { defineCommand, flag, option } from '../shell/command.js';
import { explainFullDisk, resolveOutput } from '../formats/output-file.js';
import type { Context } from '../shell/context.js';
import { presentFailure, UsageError } from '../view/exit.js';
import type { Result } from '../view/output.js';
import { countOf, presentBytes, presentList } from '../view/present.js';

export default defineCommand({
  details: [
    'Writes all projects, documents, settings, indexes and local uploads into one file with checksums. The server can keep running.',
    'It also contains the generated master key: protect it like the data directory. It does not contain files in a bucket.',
    'If uploaded files are damaged or missing, the backup is still written; the command names them and exits with 1.',
    'With --to it is encrypted, stored there under a name with its time and read back. Older backups are removed as set by BSVC_BACKUP_KEEP.',
    '--list shows the backups there, or in BSVC_BACKUP_TO. Pass their names to "bsvc restore".',
  ].join('\n'),
  examples: [
    'bsvc backup',
    'bsvc backup --out /var/backups/bsvc-$(date +%F).bsvc --quiet',
    'bsvc backup --to /var/backups/bsvc',
    'bsvc backup --list --to /var/backups/bsvc',
  ],
  audited: ({ list }) => !list,
  parameters: {
    out: option('--out <file>', 'file to write (default: bsvc-<time>.backup)'),
    allowDamagedFiles: flag('--allow-damaged-files', 'exit with 0 even if uploaded files are damaged'),
    to: option('--to <place>', 'directory or s3://bucket/prefix for backups'),
    list: flag('--list', 'list the backups there'),
  },
  async run(context, { out, to, list, allowDamagedFiles }) {
    if (list) return listBackups(context, to);
    if (out !== undefined && to !== undefined) throw new UsageError('Give either --out or --to, not both.');
    if (to !== undefined) return keepIn(context, to, allowDamagedFiles);
    const given = out === undefined ? null : await resolveOutput(context, out);
    const app = await context.app();
    const time = new Date(app.clock.now()).toISOString().slice(0, 19).replaceAll(':', '');
    const file = out ?? `bsvc-${time}.backup`;
    const progress = await context.out.progress('Backing up');
    const path = given ?? (await resolveOutput(context, file));
    const written = backUp(app, path, {
      stop: context.stop,
      onProgress: (documents, files) => progress.update(`${documents} documents, ${files} files`),
    }).finally(() => progress.stop());
    const report = await explainFullDisk(path, written);
    return {
      json: { ...report, file },
      quiet: file,
      ...(!allowDamagedFiles && failureOf(file, report)),
      text: () =>
        `Wrote ${file}: ${countOf(report.documents, 'document')}, ${countOf(report.files, 'file')}, ${presentBytes(report.bytes)}.`,
    };
  },
});

async function keepIn(context: Context, to: string, allowDamagedFiles: boolean): Promise<Result> {
  const app = await context.app();
  const place = await openBackupPlace(app, fullAddress(to, context.io.cwd));
  const progress = await context.out.progress('Backing up');
  try {
    const report = await keepBackup(app, place, app.config.backupKeep, {
      stop: context.stop,
      onProgress: (documents, files) => progress.update(`${documents} documents, ${files} files`),
    });
    const removed = report.removed.length > 0 ? `; ${countOf(report.removed.length, 'older one')} removed` : '';
    return {
      json: { ...report, place: place.address },
      quiet: report.file,
      ...(!allowDamagedFiles && failureOf(report.file, report)),
      text: () =>
        `Stored and verified ${report.file} in ${place.address}: ${countOf(report.documents, 'document')}, ${presentBytes(report.bytes)}${removed}.`,
    };
  } finally {
    progress.stop();
    place.close();
  }
}

async function listBackups(context: Context, to: string | undefined): Promise<Result> {
  const { config } = context.settings();
  const address = to === undefined ? config.backupTo : fullAddress(to, context.io.cwd);
  if (address === null) throw new UsageError('No place given: add --to <place> or set BSVC_BACKUP_TO.');
  const place = await openBackupPlace({ config }, address);
  const backups = await place.list().finally(() => place.close());
  const shown = backups.map(({ name, at, bytes }) => ({ name, at: at.toISOString(), bytes }));
  return presentList(shown, {
    name: ({ name }) => name,
    empty: `No backups in ${place.address}.`,
    head: ['name', 'made', 'size'],
    row: ({ name, at, bytes }) => [name, at.slice(0, 16), presentBytes(bytes)],
  });
}

/** What makes the command fail although it wrote a backup. */
function failureOf(file: string, { damagedFiles, damage }: BackupReport): Pick<Result, 'failure'> {
  if (damagedFiles === 0) return {};
  return { failure: presentFailure(filesDamaged(file, damagedFiles, damage)) };
}
