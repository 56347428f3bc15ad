import { recoverDocument } from '../../../src/features/documents/write/recover-document.js';
import { defineCommand } from '../../shell/command.js';
import { chooseTarget, oneDocument, presentOne } from './one-document.js';

export default defineCommand({
  details: 'Not when a unique value was taken meanwhile.',
  examples: ['bsvc data recover posts 665f1c2e9b1d8a0012ab34cd --project shop'],
  audited: true,
  parameters: oneDocument,
  async run(context, input) {
    const { app, target } = await chooseTarget(context, input);
    return presentOne(context, await recoverDocument(app, target, input.document));
  },
});
