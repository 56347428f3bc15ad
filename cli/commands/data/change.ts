import { updateDocument } from '../../../src/features/documents/write/update-document.js';
import { readIfMatch } from '../../../src/features/documents/write/if-match.js';
import { option } from '../../shell/command.js';
import { defineDocumentCommand, documentArgument, fieldsArgument, presentOne, readJsonText } from './one-document.js';

export default defineDocumentCommand({
  details: 'Only the given fields change; a dotted key such as meta.views changes that nested one.',
  examples: ['bsvc data change posts 665f1c2e9b1d8a0012ab34cd \'{"title":"Hello again"}\' --project shop'],
  audited: true,
  parameters: {
    document: documentArgument,
    fields: fieldsArgument,
    ifMatch: option('--if-match <updatedAt>', 'only if the document was not changed since: its updatedAt', (text) =>
      readIfMatch(`"${text.replaceAll('"', '')}"`),
    ),
  },
  async run(context, { app, target, document, fields, ifMatch }) {
    const change = await readJsonText(context, fields);
    return presentOne(
      context,
      await updateDocument(app, target, document, change, {
        expected: ifMatch ?? null,
        takesOperators: true,
      }),
    );
  },
});
