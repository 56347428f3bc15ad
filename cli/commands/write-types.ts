import { describeProject } from '../../src/features/project-types/described-project.js';
import { writeTypeFile } from '../../src/features/project-types/type-file.js';
import { chooseProject, projectOption } from '../ask/choose-project.js';
import { defineCommand, flag, option } from '../shell/command.js';
import { UsageError } from '../view/exit.js';
import { giveFile, requireFresh } from '../formats/give-file.js';

export default defineCommand({
  details: [
    'For createClient<Project>(): what documents of each collection are made of, what may be sent, filtered and populated.',
    'Without --out the file goes to standard output. With --check nothing is written: exit 1 when the file is not what would be written.',
  ].join('\n'),
  examples: ['bsvc types --project shop --out src/bsvc.d.ts', 'bsvc types --project shop --out src/bsvc.d.ts --check'],
  parameters: {
    project: projectOption,
    out: option('--out <file>', 'file to write, or to check'),
    check: flag('--check', 'only compare the file, for CI'),
  },
  async run(context, { project: named, out, check }) {
    if (check && out === undefined) throw new UsageError('--check needs --out: the file to compare.');
    const { app, project } = await chooseProject(context, named);
    const text = await writeTypeFile(await describeProject(app, project, { isPublic: false }));
    if (check) return requireFresh(context, out!, text, `bsvc types --project ${project.name} --out ${out}`);
    return giveFile(context, out, { text, json: { types: text }, of: project.name });
  },
});
