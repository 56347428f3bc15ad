import { findBoundedLog, presentLog } from '../../../src/features/changes/log-bound.js';
import { presentCollection } from '../../../src/features/collections/present-collection.js';
import { readIndexSizes } from '../../../src/features/collections/indexes/index-sizes.js';
import { suggestedIndexes } from '../../../src/features/collections/indexes/unindexed-reads.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';
import { presentBytes } from '../../view/present-amount.js';
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

function presentLogText(log: ReturnType<typeof presentLog>): string {
  if (!log) return '';
  const reach = log.since === null ? '' : `, back to ${log.since}`;
  return `\nlog of changes: ${presentBytes(log.bytes)} of at most ${presentBytes(log.maxBytes)}${reach}`;
}

/** The largest first; of the index of `_id`, which is the documents themselves on an embedded store, nothing. */
function presentSizes(sizes: Readonly<Record<string, number>>): string {
  const lines = Object.entries(sizes)
    .filter(([, bytes]) => bytes > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([name, bytes]) => `\n  ${name}: ${presentBytes(bytes)}`);
  return lines.length === 0 ? '' : `\nstored indexes:${lines.join('')}`;
}

export default defineCommand({
  examples: ['bsvc collection show posts --project shop', 'bsvc collection show posts --project shop --json'],
  parameters: { collection: collectionArgument, project: projectOption },
  async run(context, input) {
    const { app, project, collection } = await chooseCollection(context, input);
    const log = presentLog(await findBoundedLog(app, project, collection));
    const shown = { ...presentCollection(collection), log };
    const suggested = suggestedIndexes(collection);
    const indexBytes = await readIndexSizes(app, collection);
    return {
      json: { ...shown, indexBytes, ...(suggested.length > 0 && { suggestedIndexes: suggested }) },
      quiet: shown.id,
      text: async (view) =>
        (await presentCollectionText(view, shown)) +
        presentLogText(log) +
        presentSizes(indexBytes) +
        presentSuggestions(shown, suggested),
    };
  },
});
