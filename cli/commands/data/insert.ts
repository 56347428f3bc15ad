import { insertDocument } from '../../../src/features/documents/write/insert-document.js';
import { defineCommand } from '../../shell/command.js';
import { chooseTarget, fieldsArgument, oneDocument, presentOne, readJsonText } from './one-document.js';

export default defineCommand({
  details: 'Checked by the fields of the collection; the audit log has the act without the document.',
  examples: ['bsvc data insert posts \'{"title":"Hello"}\' --project shop'],
  audited: true,
  parameters: {
    collection: oneDocument.collection,
    fields: fieldsArgument,
    project: oneDocument.project,
  },
  async run(context, input) {
    const { app, target } = await chooseTarget(context, input);
    return presentOne(context, await insertDocument(app, target, await readJsonText(context, input.fields)));
  },
});
