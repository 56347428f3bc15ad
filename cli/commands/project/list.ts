import { listProjects } from '../../../src/features/projects/list-projects.js';
import { presentProject } from '../../../src/features/projects/present-project.js';
import { defineCommand } from '../../shell/command.js';

export default defineCommand({
  examples: ['bsvc project list', 'bsvc project list --json'],
  parameters: {},
  async run(context) {
    const projects = (await listProjects(await context.app())).map(presentProject);
    return {
      json: projects,
      quiet: projects.map(({ id }) => id),
      text: (view) =>
        projects.length === 0
          ? 'No projects yet. Create one with: bsvc project create <name>'
          : view.table(
              ['id', 'name', 'plan', 'created'],
              projects.map(({ id, name, plan, createdAt }) => [id, name, plan, createdAt]),
            ),
    };
  },
});
