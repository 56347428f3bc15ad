import { deleteProject } from '../../../src/features/management/delete-project.js';
import { presentProject } from '../../../src/features/projects/present-project.js';
import { findProject } from '../../../src/features/projects/project-store.js';
import { projectArgument } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';
import { confirmByName, requireConfirmable, yesOption } from '../../ask/confirm.js';

export default defineCommand({
  details: 'Its keys stop working at once. If it is interrupted, run it again: it goes on where it stopped.',
  examples: ['bsvc project delete shop', 'bsvc project delete shop --yes'],
  audited: true,
  parameters: { project: projectArgument, yes: yesOption },
  async run(context, input) {
    requireConfirmable(context, input.yes);
    const app = await context.app();
    // A project half deleted is no longer found, but deleting it again finishes the work.
    const name = (await findProject(app, input.project))?.name ?? input.project;
    await confirmByName(context, input.yes, `Deletes project ${name} with its collections, documents and keys.`, name);
    const deleted = presentProject(await deleteProject(app, input.project));
    return { json: deleted, quiet: deleted.id, text: () => `Deleted project ${deleted.name} and everything in it.` };
  },
});
