import { trashDocument } from '../../../src/features/documents/write/trash-document.js';
import { defineDocumentCommand, documentArgument } from './one-document.js';

export default defineDocumentCommand({
  details: 'It can be taken back with "bsvc data recover" until the trash is emptied.',
  examples: ['bsvc data trash posts 665f1c2e9b1d8a0012ab34cd --project shop'],
  audited: true,
  parameters: { document: documentArgument },
  async run(context, { app, target, document }) {
    const id = await trashDocument(app, target, document);
    return { json: { id }, quiet: id, text: () => `Document ${id} is in the trash.` };
  },
});
