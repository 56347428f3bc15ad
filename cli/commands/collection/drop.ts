import { presentCollection } from '../../../src/features/collections/present-collection.js';
import { dropCollection } from '../../../src/features/collections/drop-collection.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { argument } from '../../shell/command.js';

export default defineProjectCommand({
  details: 'Removes the documents, those in the trash too.',
  examples: ['bsvc collection drop posts --project shop', 'bsvc collection drop posts --project shop --yes'],
  audited: true,
  destroys: ({ project, collection }) => ({
    what: `Drops ${collection} of project ${project.name} with all its documents.`,
    name: collection,
  }),
  parameters: { collection: argument('collection', 'name of the collection') },
  async run(_context, { app, project, collection }) {
    const dropped = presentCollection(await dropCollection(app, project._id, collection));
    return { json: dropped, quiet: dropped.id, text: () => `Dropped ${dropped.name} with all its documents.` };
  },
});
