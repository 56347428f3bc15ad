import { presentCollection } from '../../../src/features/collections/present-collection.js';
import { dropCollection } from '../../../src/features/collections/drop-collection.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { argument, defineCommand } from '../../shell/command.js';
import { confirmByName, requireConfirmable, yesOption } from '../../ask/confirm.js';

export default defineCommand({
  details: 'Removes the documents for good, those in the trash too.',
  examples: ['bsvc collection drop posts --project shop', 'bsvc collection drop posts --project shop --yes'],
  audited: true,
  parameters: { collection: argument('collection', 'name of the collection'), project: projectOption, yes: yesOption },
  async run(context, { collection, project: named, yes }) {
    requireConfirmable(context, yes);
    const { app, project } = await chooseProject(context, named);
    await confirmByName(
      context,
      yes,
      `Drops ${collection} of project ${project.name} with all its documents.`,
      collection,
    );
    const dropped = presentCollection(await dropCollection(app, project._id, collection));
    return { json: dropped, quiet: dropped.id, text: () => `Dropped ${dropped.name} with all its documents.` };
  },
});
