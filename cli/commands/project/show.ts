import { presentProjectDetails } from '../../../src/features/management/present-project-details.js';
import { requireProject } from '../../../src/features/projects/project-store.js';
import { projectArgument } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';
import { presentProjectTable } from './present.js';

export default defineCommand({
  examples: ['bsvc project show shop', 'bsvc project show shop --quiet'],
  parameters: { project: projectArgument },
  async run(context, input) {
    const project = presentProjectDetails(await requireProject(await context.app(), input.project));
    return { json: project, quiet: project.id, text: (view) => presentProjectTable(view, project) };
  },
});
