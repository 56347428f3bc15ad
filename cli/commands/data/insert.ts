import { insertDocument } from '../../../src/features/documents/write/insert-document.js';
import { collectionArgument } from '../../ask/choose-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { argument, defineCommand } from '../../shell/command.js';
import { chooseTarget, fieldsArgument, presentOne, readJsonFields } from './one-document.js';

export default defineCommand({
  details: 'Checked by the fields of the collection; the audit log has the act without the document.',
  examples: ['bsvc data insert posts \'{"title":"Hello"}\' --project shop'],
  audited: true,
  parameters: {
    collection: argument('collection', collectionArgument.text),
    fields: fieldsArgument,
    project: projectOption,
  },
  async run(context, input) {
    const { app, target } = await chooseTarget(context, input);
    return presentOne(context, await insertDocument(app, target, await readJsonFields(context, input.fields)));
  },
});
