import { defineCommand, flag } from '../shell/command.js';
import { EXIT, UsageError } from '../view/exit.js';
import type { Result } from '../view/output.js';
import { checkContent, CONTENT, checkUploads, UPLOADED } from '../doctor/check-data.js';
import { diagnose } from '../doctor/diagnose.js';
import { repair } from '../doctor/repair.js';

/** Where the detail of a check begins. */
const INDENT = 21;

export default defineCommand({
  details: [
    'Checks settings, data directory, database, master key, migrations, indexes, clock, bucket, cache, mail and wire protocol. Changes nothing without --fix. --deep reads the whole embedded database and all uploaded files, and lists what is damaged.',
    '--repair copies intact documents of a damaged embedded database into a new file, rebuilds indexes, checks the result and replaces the old file. It reports lost documents by collection and id. Documents that may have been deleted or changed since are left out and named. The damaged file stays next to the new one: delete it when you no longer need it.',
    'Stop "bsvc serve" and "bsvc worker" first. If --repair is interrupted, nothing has changed: run it again. Restore lost documents from a backup ("bsvc restore").',
  ].join('\n'),
  examples: ['bsvc doctor', 'bsvc doctor --deep', 'bsvc doctor --json', 'bsvc doctor --repair --dry-run'],
  audited: ({ fix, repair: repairs, dryRun }) => fix || (repairs && !dryRun),
  parameters: {
    fix: flag('--fix', 'create missing indexes, recount used storage, set the CORS rules of the bucket'),
    repair: flag('--repair', 'recover intact data from a damaged embedded database'),
    dryRun: flag('--dry-run', 'with --repair: only show what would be lost'),
    deep: flag('--deep', 'read the whole embedded database and all uploaded files, also while a server runs'),
  },
  async run(context, { fix, deep, repair: repairs, dryRun }): Promise<Result> {
    if (dryRun && !repairs) throw new UsageError('--dry-run goes with --repair.');
    if (repairs) return repair(context, { dryRun });
    const checks = await diagnose(context, { fix });
    if (deep) checks.push(await checkContent(context), await checkUploads(context));
    const failed = checks.filter(({ ok }) => !ok);
    // Damage that was found is known, although other checks could not reach it.
    const unreachable =
      failed.some(({ away }) => away) && !failed.some(({ name }) => name === CONTENT || name === UPLOADED);
    return {
      json: {
        ok: failed.length === 0,
        checks: checks.map(({ name, ok, detail, hint }) => ({ name, ok, detail, hint })),
      },
      quiet: failed.length === 0 ? 'ok' : failed.map(({ name }) => name),
      ...(failed.length > 0 && {
        failure: {
          exitCode: unreachable ? EXIT.unreachable : EXIT.refused,
          code: 'UNHEALTHY',
          message: `Unhealthy: ${failed.map(({ name }) => name).join(', ')}. The report says what to do.`,
        },
      }),
      text: ({ paint, hang }) =>
        checks
          .map(({ name, ok, detail, hint }) => {
            const line = `${ok ? paint.green('ok  ') : paint.red('FAIL')} ${name.padEnd(15)} ${hang(INDENT, detail)}`;
            return hint ? `${line}\n${' '.repeat(INDENT)}${hang(INDENT, hint)}` : line;
          })
          .join('\n'),
    };
  },
});
