import { recoverDocument } from '../../../src/features/documents/write/recover-document.js';
import { defineDocumentCommand, documentArgument, presentOne } from './one-document.js';

export default defineDocumentCommand({
  details: 'Not when a unique value was taken meanwhile.',
  examples: ['bsvc data recover posts 665f1c2e9b1d8a0012ab34cd --project shop'],
  audited: true,
  parameters: { document: documentArgument },
  async run(context, { app, target, document }) {
    return presentOne(context, await recoverDocument(app, target, document));
  },
});
