import { describeProject } from '../../../src/features/project-types/described-project.js';
import { writeBrief } from '../../../src/features/project-types/project-brief.js';
import { requireProject } from '../../../src/features/projects/project-store.js';
import { projectArgument } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';

export default defineCommand({
  details: 'At most 4 kB of Markdown for a coding agent; a server serves the same at /api/schemas/brief.md.',
  examples: ['bsvc project brief shop'],
  parameters: { project: projectArgument },
  async run(context, input) {
    const app = await context.app();
    const text = writeBrief(await describeProject(app, await requireProject(app, input.project), { isPublic: false }));
    return { json: { brief: text }, quiet: text.trimEnd(), text: () => text.trimEnd() };
  },
});
