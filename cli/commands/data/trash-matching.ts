import { countWhatMatches, removeMatching } from '../../../src/features/documents/bulk/write-matching.js';
import { filterOption } from '../../ask/filter-option.js';
import { flag } from '../../shell/command.js';
import { confirmMatching, presentMatching, readFilters } from './matching-documents.js';
import { defineDocumentCommand } from './one-document.js';

export default defineDocumentCommand({
  details: 'With the filters of "bsvc data query", at least one. At most 10,000 documents; the question says how many.',
  examples: [
    'bsvc data trash-matching posts --filter status=archived --project shop --dry-run',
    'bsvc data trash-matching posts --filter status=archived --permanent --only-deleted --project shop --yes',
  ],
  audited: ({ dryRun }) => !dryRun,
  destroys: 'at times',
  parameters: {
    filters: filterOption([]),
    permanent: flag('--permanent', 'delete them for good'),
    onlyDeleted: flag('--only-deleted', 'with --permanent: those that are in the trash'),
    dryRun: flag('--dry-run', 'only count them'),
  },
  async run(context, { app, target, filters, permanent, onlyDeleted, dryRun }) {
    const query = readFilters(target, filters, { isRemoval: true, permanent, onlyDeleted });
    const count = await countWhatMatches(app, target, query);
    const done = permanent ? 'deleted for good' : 'moved to the trash';
    if (dryRun) return presentMatching({ matching: count }, count, `would be ${done}`);
    const does = permanent ? 'Deletes for good' : 'Moves to the trash';
    await confirmMatching(context, target, count, { does, reversible: !permanent });
    const removed = await removeMatching(app, target, { ...query, confirm: count }, context.stop);
    return presentMatching({ removed }, removed, done);
  },
});
