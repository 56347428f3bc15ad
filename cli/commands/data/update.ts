import { countWhatMatches, updateMatching } from '../../../src/features/documents/bulk/write-matching.js';
import { readIfMatch } from '../../../src/features/documents/write/if-match.js';
import { updateDocument } from '../../../src/features/documents/write/update-document.js';
import { filterOption } from '../../ask/filter-option.js';
import { flag, option } from '../../shell/command.js';
import { chooseByFilter, confirmMatching, presentMatching, readFilters } from './matching-documents.js';
import { defineDocumentCommand, documentArgument, fieldsArgument, presentOne, readJsonText } from './one-document.js';

export default defineDocumentCommand({
  details:
    'Changes the given fields only; a dotted key such as meta.views changes that nested one. Names one document by its id, or all that match --filter: at most 10,000, and the question says how many.',
  examples: [
    'bsvc data update posts \'{"title":"Hello again"}\' 665f1c2e9b1d8a0012ab34cd --project shop',
    'bsvc data update posts \'{"status":"archived"}\' --filter status=live --filter views_lt=10 --project shop --dry-run',
    'bsvc data update posts \'{"$inc":{"views":1}}\' --filter status=live --project shop --yes',
  ],
  audited: ({ dryRun }) => !dryRun,
  destroys: 'at times',
  parameters: {
    fields: fieldsArgument,
    document: documentArgument,
    filters: filterOption([]),
    ifMatch: option('--if-match <updatedAt>', 'only if the document was not changed since: its updatedAt', (text) =>
      readIfMatch(`"${text.replaceAll('"', '')}"`),
    ),
    dryRun: flag('--dry-run', 'with --filter: only count them'),
  },
  async run(context, { app, target, document, fields, filters, ifMatch, dryRun }) {
    const byFilter = chooseByFilter(document, filters, { dryRun }, { ifMatch });
    const change = await readJsonText(context, fields);
    if (!byFilter) {
      const options = { expected: ifMatch ?? null, takesOperators: true };
      return presentOne(context, await updateDocument(app, target, document!, change, options));
    }
    const query = readFilters(target, filters, {});
    const count = await countWhatMatches(app, target, query);
    if (dryRun) return presentMatching({ matching: count }, count, 'would be changed');
    await confirmMatching(context, target, count, { does: 'Changes', reversible: false });
    const changed = await updateMatching(app, target, { ...query, confirm: count }, change, context.stop);
    return presentMatching({ changed }, changed, 'changed');
  },
});
