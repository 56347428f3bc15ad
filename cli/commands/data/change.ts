import { updateDocument } from '../../../src/features/documents/write/update-document.js';
import { collectionArgument } from '../../ask/choose-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { argument, defineCommand } from '../../shell/command.js';
import { chooseTarget, documentArgument, fieldsArgument, presentOne, readJsonFields } from './one-document.js';

export default defineCommand({
  details: 'Only the given fields change; a dotted key such as meta.views changes that nested one.',
  examples: ['bsvc data change posts 665f1c2e9b1d8a0012ab34cd \'{"title":"Hello again"}\' --project shop'],
  audited: true,
  parameters: {
    collection: argument('collection', collectionArgument.text),
    document: documentArgument,
    fields: fieldsArgument,
    project: projectOption,
  },
  async run(context, input) {
    const { app, target } = await chooseTarget(context, input);
    const fields = await readJsonFields(context, input.fields);
    return presentOne(context, await updateDocument(app, target, input.document, fields));
  },
});
