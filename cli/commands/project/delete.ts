import { deleteProject } from '../../../src/features/management/delete-project.js';
import { presentProject } from '../../../src/features/projects/present-project.js';
import { findProject } from '../../../src/features/projects/project-store.js';
import { doomedProjectArgument } from '../../ask/choose-project.js';
import { defineCommandOn } from '../../shell/command.js';

const defineNamedProjectCommand = defineCommandOn({ project: doomedProjectArgument }, async (context, { project }) => {
  const app = await context.app();
  // A project half deleted is no longer found, but deleting it again finishes the work.
  return { app, project, name: (await findProject(app, project))?.name ?? project };
});

export default defineNamedProjectCommand({
  details: 'Its keys stop working at once. If it is interrupted, run it again: it goes on where it stopped.',
  examples: ['bsvc project delete shop', 'bsvc project delete shop --yes'],
  audited: true,
  destroys: ({ name }) => ({ what: `Deletes project ${name} with its collections, documents and keys.`, name }),
  async run(_context, { app, project }) {
    const deleted = presentProject(await deleteProject(app, project));
    return { json: deleted, quiet: deleted.id, text: () => `Deleted project ${deleted.name} and everything in it.` };
  },
});
