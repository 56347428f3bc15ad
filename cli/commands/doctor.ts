import { defineCommand, flag } from '../shell/command.js';
import { EXIT, UsageError } from '../view/exit.js';
import type { Result } from '../view/output.js';
import { checkContent, CONTENT } from '../doctor/check-content.js';
import { checkUploads, UPLOADED } from '../doctor/check-uploads.js';
import { diagnose } from '../doctor/diagnose.js';
import { repair } from '../doctor/repair.js';

/** Where the detail of a check begins. */
const INDENT = 21;

export default defineCommand({
  details: [
    'Looks at settings, data directory, database, master key, migrations, indexes, clock, bucket, cache, mail and wire protocol. Changes nothing without --fix. With --deep it reads the whole embedded store and all uploaded files, and names what is damaged.',
    '--repair copies every whole document of a damaged embedded store into a new file, builds damaged indexes again, checks the result and puts it into place. It reports what is lost, by collection and id; documents that may have been deleted or changed since are left out and named. The damaged file stays beside the new one: delete it when you no longer need it.',
    'Stop "bsvc serve" and "bsvc worker" first. If --repair is interrupted, the store is unchanged: run it again. A recent backup ("bsvc restore") brings back what it cannot.',
  ].join('\n'),
  examples: ['bsvc doctor', 'bsvc doctor --deep', 'bsvc doctor --json', 'bsvc doctor --repair --dry-run'],
  audited: ({ fix, repair: repairs, dryRun }) => fix || (repairs && !dryRun),
  parameters: {
    fix: flag('--fix', 'make missing indexes, let browsers upload to the bucket'),
    repair: flag('--repair', 'recover intact data from a damaged embedded store'),
    dryRun: flag('--dry-run', 'with --repair: only say what would be lost'),
    deep: flag('--deep', 'read the whole embedded store and all uploaded files, also while a server runs'),
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
