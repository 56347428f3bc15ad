import { access, constants } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isEmptyStore, restoreBackup, verifyBackup } from '../../src/features/operators/restore-backup.js';
import { MIGRATIONS } from '../../src/migrations/index.js';
import { argument, defineCommand, flag } from '../command.js';
import { confirmByName, yesOption } from '../confirm.js';
import { countOf } from '../present-amount.js';

export default defineCommand({
  details: [
    'The whole file is checked before anything is changed. A store with projects in it is replaced only when that is confirmed.',
    'Interrupted, run it again: until then every other command refuses the store. Start running servers anew afterwards: the master key may be another.',
  ].join('\n'),
  examples: [
    'bsvc restore bsvc.backup',
    'bsvc restore bsvc.backup --verify',
    'bsvc restore bsvc.backup --data-dir ./elsewhere --yes',
  ],
  audited: ({ verify }) => !verify,
  parameters: {
    file: argument('file', 'backup to restore'),
    verify: flag('--verify', 'only check the file'),
    yes: yesOption,
  },
  async run(context, { file, verify, yes }) {
    const path = resolve(context.io.cwd, file);
    // Before a store is made that nothing would be restored into.
    await access(path, constants.R_OK);
    const app = await context.app('migration');
    const progress = await context.out.progress(`Checking ${file}`);
    const { createdAt, version } = await verifyBackup(
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
    if (!(await isEmptyStore(app))) {
      await confirmByName(context, yes, 'Replaces everything that is stored now by the backup.', 'replace');
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
        `Restored ${countOf(report.documents, 'document')} in ${countOf(report.collections, 'collection')} and ${countOf(report.files, 'file')}, as of ${createdAt}. Start running servers anew.`,
    };
  },
});
