import { presentCollection } from '../../../src/features/collections/present-collection.js';
import { renameCollection } from '../../../src/features/collections/rename-collection.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { argument } from '../../shell/command.js';

export default defineProjectCommand({
  details: 'Documents stay where they are; clients must use the new name from then on.',
  examples: ['bsvc collection rename posts articles --project shop'],
  audited: true,
  parameters: {
    collection: argument('collection', 'present name'),
    newName: argument('new-name', 'new name'),
  },
  async run(context, { app, project, collection, newName }) {
    const renamed = presentCollection(await renameCollection(app, project._id, collection, newName));
    return { json: renamed, quiet: renamed.id, text: () => `Collection ${collection} is now ${renamed.name}.` };
  },
});
