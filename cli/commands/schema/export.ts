import {
  declareCollection,
  SCHEMA_FORMAT,
  type SchemaFile,
} from '../../../src/features/collections/schema/collection-declaration.js';
import { listCollections } from '../../../src/features/collections/list-collections.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { replaceFile } from '../../formats/replace-file.js';
import { defineCommand, option } from '../../shell/command.js';
import { countOf } from '../../view/present-amount.js';
import { resolveOutput } from '../../shell/resolve-output.js';

export default defineCommand({
  details: 'Without --out, writes to standard output. "bsvc schema apply" takes it, in this or another project.',
  examples: [
    'bsvc schema export --project shop --out schema.json',
    'bsvc schema export --project shop | jq .collections',
  ],
  parameters: {
    project: projectOption,
    out: option('--out <file>', 'file to write'),
  },
  async run(context, { project: named, out }) {
    const path = out === undefined ? null : await resolveOutput(context, out);
    const { app, project } = await chooseProject(context, named);
    const collections = (await listCollections(app, project._id)).map(declareCollection);
    const file: SchemaFile = { format: SCHEMA_FORMAT, collections };
    const text = `${JSON.stringify(file, null, 2)}\n`;
    if (path === null || out === undefined) return { json: file, quiet: text, text: () => text };
    // A schema shows how a project is guarded: like every other file of its data it is its owner's, whichever mode the
    // file had.
    await replaceFile(path, text);
    return {
      json: { file: out, collections: collections.length },
      quiet: out,
      text: () => `Wrote ${countOf(collections.length, 'collection')} to ${out}.`,
    };
  },
});
