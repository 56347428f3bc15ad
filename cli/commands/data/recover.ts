import { recoverDocument } from '../../../src/features/documents/write/recover-document.js';
import { collectionArgument } from '../../ask/choose-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { argument, defineCommand } from '../../shell/command.js';
import { chooseTarget, documentArgument, presentOne } from './one-document.js';

export default defineCommand({
  details: 'Not when a unique value was taken meanwhile.',
  examples: ['bsvc data recover posts 665f1c2e9b1d8a0012ab34cd --project shop'],
  audited: true,
  parameters: {
    collection: argument('collection', collectionArgument.text),
    document: documentArgument,
    project: projectOption,
  },
  async run(context, input) {
    const { app, target } = await chooseTarget(context, input);
    return presentOne(context, await recoverDocument(app, target, input.document));
  },
});
