import { insertDocument } from '../../../src/features/documents/write/insert-document.js';
import { defineDocumentCommand, fieldsArgument, presentOne, readJsonText } from './one-document.js';

export default defineDocumentCommand({
  details: 'Checked by the fields of the collection; the audit log has the act without the document.',
  examples: ['bsvc data insert posts \'{"title":"Hello"}\' --project shop'],
  audited: true,
  parameters: { fields: fieldsArgument },
  async run(context, { app, target, fields }) {
    return presentOne(context, await insertDocument(app, target, await readJsonText(context, fields)));
  },
});
