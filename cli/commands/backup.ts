import { backUp } from '../../src/features/operators/back-up.js';
import { defineCommand, value } from '../command.js';
import { countOf, presentBytes } from '../present-amount.js';
import { resolveOutput } from '../resolve-output.js';

export default defineCommand({
  details: [
    'One file with all projects, documents, settings, indexes and locally kept uploads, while the server goes on; checksummed.',
    'It holds the generated master key too: keep it as safe as the data directory. Files in a bucket are not in it.',
  ].join('\n'),
  examples: ['bsvc backup', 'bsvc backup --out /var/backups/bsvc-$(date +%F).bsvc --quiet'],
  audited: true,
  parameters: { out: value('--out <file>', 'file to write (default: bsvc-<time>.backup)') },
  async run(context, { out }) {
    const given = out === undefined ? null : await resolveOutput(context, out);
    const app = await context.app();
    const time = new Date(app.clock.now()).toISOString().slice(0, 19).replaceAll(':', '');
    const file = out ?? `bsvc-${time}.backup`;
    const progress = await context.out.progress('Backing up');
    const report = await backUp(app, given ?? (await resolveOutput(context, file)), {
      stop: context.stop,
      onProgress: (documents, files) => progress.update(`${documents} documents, ${files} files`),
    }).finally(() => progress.stop());
    return {
      json: { ...report, file },
      quiet: file,
      text: () =>
        `Wrote ${file}: ${countOf(report.documents, 'document')}, ${countOf(report.files, 'file')}, ${presentBytes(report.bytes)}.`,
    };
  },
});
