import { listCollections } from '../../../src/features/collections/list-collections.js';
import { presentCollection } from '../../../src/features/collections/present-collection.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { presentList } from '../../view/present-list.js';
import { presentCollectionAccess } from './present.js';

export default defineProjectCommand({
  examples: ['bsvc collection list --project shop', 'BSVC_PROJECT=shop bsvc collection list --json'],
  async run(context, { app, project }) {
    const collections = (await listCollections(app, project._id)).map(presentCollection);
    return presentList(collections, {
      name: ({ name }) => name,
      empty: 'No collections yet. Register one with: bsvc collection add <name> --field title:String!',
      head: ['name', 'mode', 'fields', 'access', 'id'],
      row: (each) => [each.name, each.mode, each.fields.length, presentCollectionAccess(each), each.id],
    });
  },
});
