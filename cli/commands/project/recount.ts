import { recountStorage } from '../../../src/features/files/recount-storage.js';
import { requireProject } from '../../../src/features/projects/project-store.js';
import { projectArgument } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';

export default defineCommand({
  details: 'Usage is counted automatically. Use this after data was restored or changed from outside.',
  examples: ['bsvc project recount shop', 'bsvc project recount shop --json'],
  audited: true,
  parameters: { project: projectArgument },
  async run(context, input) {
    const app = await context.app();
    const storage = await recountStorage(app, await requireProject(app, input.project));
    return {
      json: { storage },
      quiet: storage.after,
      text: () => `Storage: ${storage.after} bytes (the counter said ${storage.before})`,
    };
  },
});
