import { trashDocument } from '../../../src/features/documents/write/trash-document.js';
import { defineCommand } from '../../shell/command.js';
import { chooseTarget, oneDocument } from './one-document.js';

export default defineCommand({
  details: 'It can be taken back with "bsvc data recover" until the trash is emptied.',
  examples: ['bsvc data trash posts 665f1c2e9b1d8a0012ab34cd --project shop'],
  audited: true,
  parameters: oneDocument,
  async run(context, input) {
    const { app, target } = await chooseTarget(context, input);
    const id = await trashDocument(app, target, input.document);
    return { json: { id }, quiet: id, text: () => `Document ${id} is in the trash.` };
  },
});
