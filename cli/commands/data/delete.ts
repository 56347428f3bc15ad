import { countWhatMatches, removeMatching } from '../../../src/features/documents/bulk/write-matching.js';
import { recoverDocument } from '../../../src/features/documents/write/recover-document.js';
import { trashDocument } from '../../../src/features/documents/write/trash-document.js';
import { filterOption } from '../../ask/filter-option.js';
import { flag } from '../../shell/command.js';
import { chooseByFilter, confirmMatching, presentMatching, readFilters } from './matching-documents.js';
import { defineDocumentCommand, documentArgument, presentOne } from './one-document.js';

export default defineDocumentCommand({
  details:
    'Moves one document to the trash, or all that match --filter: at most 10,000, and the question says how many. --undo takes one back until the trash is emptied, unless a unique value was taken in the meantime.',
  examples: [
    'bsvc data delete posts 665f1c2e9b1d8a0012ab34cd --project shop',
    'bsvc data delete posts 665f1c2e9b1d8a0012ab34cd --undo --project shop',
    'bsvc data delete posts --filter status=archived --project shop --dry-run',
    'bsvc data delete posts --filter status=archived --permanent --only-deleted --project shop --yes',
  ],
  audited: ({ dryRun }) => !dryRun,
  destroys: 'at times',
  parameters: {
    document: documentArgument,
    filters: filterOption([]),
    undo: flag('--undo', 'take the document back from the trash'),
    permanent: flag('--permanent', 'with --filter: delete them permanently'),
    onlyDeleted: flag('--only-deleted', 'with --permanent: those that are in the trash'),
    dryRun: flag('--dry-run', 'with --filter: only count them'),
  },
  async run(context, { app, target, document, filters, undo, permanent, onlyDeleted, dryRun }) {
    if (!chooseByFilter(document, filters, { permanent, onlyDeleted, dryRun }, { undo })) {
      if (undo) return presentOne(context, await recoverDocument(app, target, document!));
      const id = await trashDocument(app, target, document!);
      return { json: { id }, quiet: id, text: () => `Document ${id} is in the trash.` };
    }
    const query = readFilters(target, filters, { isRemoval: true, permanent, onlyDeleted });
    const count = await countWhatMatches(app, target, query);
    const done = permanent ? 'deleted permanently' : 'moved to the trash';
    if (dryRun) return presentMatching({ matching: count }, count, `would be ${done}`);
    const does = permanent ? 'Deletes permanently' : 'Moves to the trash';
    await confirmMatching(context, target, count, { does, reversible: !permanent });
    const removed = await removeMatching(app, target, { ...query, confirm: count }, context.stop);
    return presentMatching({ removed }, removed, done);
  },
});
