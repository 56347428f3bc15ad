import { updateDocument } from '../../../src/features/documents/write/update-document.js';
import { readIfMatch } from '../../../src/features/documents/write/if-match.js';
import { defineCommand, value } from '../../shell/command.js';
import { chooseTarget, oneDocument, fieldsArgument, presentOne, readJsonText } from './one-document.js';

export default defineCommand({
  details: 'Only the given fields change; a dotted key such as meta.views changes that nested one.',
  examples: ['bsvc data change posts 665f1c2e9b1d8a0012ab34cd \'{"title":"Hello again"}\' --project shop'],
  audited: true,
  parameters: {
    collection: oneDocument.collection,
    document: oneDocument.document,
    fields: fieldsArgument,
    project: oneDocument.project,
    ifMatch: value('--if-match <updatedAt>', 'only if the document was not changed since: its updatedAt', (text) =>
      readIfMatch(`"${text.replaceAll('"', '')}"`),
    ),
  },
  async run(context, input) {
    const { app, target } = await chooseTarget(context, input);
    const fields = await readJsonText(context, input.fields);
    return presentOne(
      context,
      await updateDocument(app, target, input.document, fields, { expected: input.ifMatch ?? null }),
    );
  },
});
