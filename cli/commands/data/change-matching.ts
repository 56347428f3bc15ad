import { countWhatMatches, updateMatching } from '../../../src/features/documents/bulk/write-matching.js';
import { filterOption } from '../../ask/filter-option.js';
import { flag } from '../../shell/command.js';
import { confirmMatching, presentMatching, readFilters } from './matching-documents.js';
import { defineDocumentCommand, fieldsArgument, readJsonText } from './one-document.js';

export default defineDocumentCommand({
  details:
    'With the filters of "bsvc data query", at least one, and the fields and operators of "bsvc data change". At most 10,000 documents; the question says how many there are.',
  examples: [
    'bsvc data change-matching posts \'{"status":"archived"}\' --filter status=live --filter views_lt=10 --project shop --dry-run',
    'bsvc data change-matching posts \'{"$inc":{"views":1}}\' --filter status=live --project shop --yes',
  ],
  audited: ({ dryRun }) => !dryRun,
  destroys: 'at times',
  parameters: {
    fields: fieldsArgument,
    filters: filterOption([]),
    dryRun: flag('--dry-run', 'only count them'),
  },
  async run(context, { app, target, fields, filters, dryRun }) {
    const change = await readJsonText(context, fields);
    const query = readFilters(target, filters, {});
    const count = await countWhatMatches(app, target, query);
    if (dryRun) return presentMatching({ matching: count }, count, 'would be changed');
    await confirmMatching(context, target, count, { does: 'Changes', reversible: false });
    const changed = await updateMatching(app, target, { ...query, confirm: count }, change, context.stop);
    return presentMatching({ changed }, changed, 'changed');
  },
});
