import { withPlainBackup } from '../../src/features/backups/find-backup.js';
import type { Context } from '../shell/context.js';
import type { Result } from '../view/output.js';
import {
  isEmptyStore,
  requireSpace,
  restoreBackup,
  verifyBackup,
} from '../../src/features/store-copies/restore-backup.js';
import { MIGRATIONS } from '../../src/migrations/migrate.js';
import { argument, defineCommand, flag } from '../shell/command.js';
import { countOf } from '../view/present.js';

export default defineCommand({
  details: [
    'Checks the whole file before it changes anything. Asks before it replaces a database with projects.',
    'If it is interrupted, run it again. Until then other commands fail and running servers respond with 503. Afterwards they continue automatically.',
  ].join('\n'),
  examples: [
    'bsvc restore bsvc.backup',
    'bsvc restore bsvc.backup --verify',
    'bsvc restore latest',
    'bsvc restore s3://backups/shop/bsvc-2026-11-22T030000Z.backup',
    'bsvc restore bsvc.backup --data-dir ./elsewhere --yes',
  ],
  audited: ({ verify }) => !verify,
  destroys: 'at times',
  parameters: {
    file: argument(
      'file',
      'backup to restore: a file, a name from "bsvc backup --list", latest, or s3://bucket/prefix/name',
    ),
    verify: flag('--verify', 'only check the file'),
  },
  run: (context, options) =>
    withPlainBackup(context.settings(), options.file, context.io.cwd, (path) => restore(context, path, options)),
});

async function restore(
  context: Context,
  path: string,
  { file, verify }: { file: string; verify: boolean },
): Promise<Result> {
  const app = await context.app('migration');
  const progress = await context.out.progress(`Checking ${file}`);
  const { createdAt, version, documentBytes } = await verifyBackup(
    app,
    path,
    MIGRATIONS.map(({ id }) => id),
  ).finally(() => progress.stop());
  if (verify) {
    return {
      json: { file, createdAt, version, intact: true },
      quiet: createdAt,
      text: () => `${file} is whole: made ${createdAt} by version ${version}.`,
    };
  }
  await requireSpace(app, documentBytes);
  if (!(await isEmptyStore(app))) {
    await context.confirm({ what: 'Replaces everything that is stored now by the backup.', name: 'replace' });
  }
  const restoring = await context.out.progress('Restoring');
  const report = await restoreBackup(app, path, {
    stop: context.stop,
    onProgress: (documents, files) => restoring.update(`${documents} documents, ${files} files`),
  }).finally(() => restoring.stop());
  return {
    json: { file, createdAt, ...report },
    quiet: report.documents,
    text: () =>
      `Restored ${countOf(report.documents, 'document')} in ${countOf(report.collections, 'collection')} and ${countOf(report.files, 'file')}, as of ${createdAt}.`,
  };
}
