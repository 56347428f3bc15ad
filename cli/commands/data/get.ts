import { missing } from '../../../src/errors.js';
import { operatorCaller } from '../../../src/features/access/operator-caller.js';
import { listDocuments } from '../../../src/features/documents/read/list-documents.js';
import { requireDocumentId } from '../../../src/features/documents/write/write-target.js';
import { defineCommand } from '../../shell/command.js';
import { chooseTarget, oneDocument, presentOne } from './one-document.js';

export default defineCommand({
  details: 'One in the trash too.',
  examples: ['bsvc data get posts 665f1c2e9b1d8a0012ab34cd --project shop'],
  parameters: oneDocument,
  async run(context, input) {
    const { app, project, target } = await chooseTarget(context, input);
    const id = requireDocumentId(input.document).toHexString();
    const query = `_id=${id}&include_deleted=true&limit=1`;
    const page = await listDocuments(app, operatorCaller(project), target.collection.name, query);
    const [found] = 'items' in page ? page.items : [];
    if (!found) throw missing('DOCUMENT_NOT_FOUND', 'There is no document with this id in the collection');
    return presentOne(context, found);
  },
});
