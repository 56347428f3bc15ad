import { listProjects } from '../../../src/features/projects/list-projects.js';
import { presentProject } from '../../../src/features/projects/present-project.js';
import { defineCommand } from '../../shell/command.js';
import { presentList } from '../../view/present-list.js';

export default defineCommand({
  examples: ['bsvc project list', 'bsvc project list --json'],
  async run(context) {
    const projects = (await listProjects(await context.app())).map(presentProject);
    return presentList(projects, {
      name: ({ id }) => id,
      empty: 'No projects yet. Create one with: bsvc project create <name>',
      head: ['id', 'name', 'plan', 'created'],
      row: ({ id, name, plan, createdAt }) => [id, name, plan, createdAt],
    });
  },
});
