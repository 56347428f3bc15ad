import { presentCollection } from '../../../src/features/collections/present-collection.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';
import { presentCollectionText } from './present.js';

export default defineCommand({
  examples: ['bsvc collection show posts --project shop', 'bsvc collection show posts --project shop --json'],
  parameters: { collection: collectionArgument, project: projectOption },
  async run(context, input) {
    const { collection } = await chooseCollection(context, input);
    const shown = presentCollection(collection);
    return { json: shown, quiet: shown.id, text: (view) => presentCollectionText(view, shown) };
  },
});
