import { presentCollection } from '../../../src/features/collections/present-collection.js';
import { suggestedIndexes } from '../../../src/features/collections/indexes/unindexed-reads.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';
import { presentCollectionText } from './present.js';

/** `edit` replaces the indexes, so that the present ones are named too. */
function presentSuggestions({ name, indexes }: { name: string; indexes: string[] }, suggested: string[]): string {
  if (suggested.length === 0) return '';
  const options = [...indexes, ...suggested].map((index) => `--index ${index}`);
  return [
    `\nReads looked at more than 10,000 documents for want of an index: ${suggested.join(' · ')}`,
    `Add it with: bsvc collection edit ${name} ${options.join(' ')}`,
  ].join('\n');
}

export default defineCommand({
  examples: ['bsvc collection show posts --project shop', 'bsvc collection show posts --project shop --json'],
  parameters: { collection: collectionArgument, project: projectOption },
  async run(context, input) {
    const { collection } = await chooseCollection(context, input);
    const shown = presentCollection(collection);
    const suggested = suggestedIndexes(collection);
    return {
      json: { ...shown, ...(suggested.length > 0 && { suggestedIndexes: suggested }) },
      quiet: shown.id,
      text: async (view) => (await presentCollectionText(view, shown)) + presentSuggestions(shown, suggested),
    };
  },
});
