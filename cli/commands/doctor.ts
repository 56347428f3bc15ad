import { defineCommand, flag } from '../shell/command.js';
import { EXIT } from '../view/exit.js';
import { checkContent, CONTENT } from '../doctor/check-content.js';
import { checkUploads, UPLOADED } from '../doctor/check-uploads.js';
import { diagnose } from '../doctor/diagnose.js';

/** Where the detail of a check begins. */
const INDENT = 21;

export default defineCommand({
  details:
    'Looks at settings, data directory, database, master key, migrations, indexes, clock, bucket, cache, mail and wire protocol. Changes nothing without --fix. With --deep it reads the whole embedded store and all uploaded files, and names what is damaged.',
  examples: ['bsvc doctor', 'bsvc doctor --deep', 'bsvc doctor --json'],
  audited: ({ fix }) => fix,
  parameters: {
    fix: flag('--fix', 'make missing indexes, let browsers upload to the bucket'),
    deep: flag('--deep', 'read the whole embedded store and all uploaded files, also while a server runs'),
  },
  async run(context, { fix, deep }) {
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
