import { missing } from '../../../src/errors.js';
import { operatorCaller } from '../../../src/features/access/operator-caller.js';
import { listDocuments } from '../../../src/features/documents/read/list-documents.js';
import { requireDocumentId } from '../../../src/features/documents/write/write-target.js';
import { defineDocumentCommand, documentArgument, presentOne } from './one-document.js';

export default defineDocumentCommand({
  details: 'One in the trash too.',
  examples: ['bsvc data get posts 665f1c2e9b1d8a0012ab34cd --project shop'],
  parameters: { document: documentArgument },
  async run(context, { app, project, target, document }) {
    const id = requireDocumentId(document).toHexString();
    const query = `_id=${id}&include_deleted=true&limit=1`;
    const page = await listDocuments(app, operatorCaller(project), target.collection.name, query, context.stop);
    const [found] = 'items' in page ? page.items : [];
    if (!found) throw missing('DOCUMENT_NOT_FOUND', 'There is no document with this id in the collection');
    return presentOne(context, found);
  },
});
