import {
  declareCollection,
  SCHEMA_FORMAT,
  type SchemaFile,
} from '../../../src/features/collections/schema/collection-declaration.js';
import type { App } from '../../../src/app.js';
import type { Project } from '../../../src/features/projects/project.js';
import { describeProject } from '../../../src/features/project-types/described-project.js';
import { writeProjectFile } from '../../../src/features/project-types/project-files.js';
import { listCollections } from '../../../src/features/collections/list-collections.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { giveFile } from '../../formats/give-file.js';
import { replaceFile } from '../../formats/replace-file.js';
import { choice, defineCommand, option } from '../../shell/command.js';
import type { Context } from '../../shell/context.js';
import type { Result } from '../../view/output.js';
import { countOf } from '../../view/present-amount.js';
import { resolveOutput } from '../../shell/resolve-output.js';

export default defineCommand({
  details: 'Without --out, writes to standard output. "bsvc schema apply" takes it, in this or another project.',
  examples: [
    'bsvc schema export --project shop --out schema.json',
    'bsvc schema export --project shop | jq .collections',
    'bsvc schema export --project shop --format json-schema --out documents.schema.json',
  ],
  parameters: {
    project: projectOption,
    out: option('--out <file>', 'file to write'),
    format: choice('--format <format>', 'what to write (bsvc)', ['bsvc', 'json-schema']),
  },
  async run(context, { project: named, out, format }) {
    const path = out === undefined ? null : await resolveOutput(context, out);
    const { app, project } = await chooseProject(context, named);
    if (format === 'json-schema') return giveSchema(context, out, app, project);
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

async function giveSchema(context: Context, out: string | undefined, app: App, project: Project): Promise<Result> {
  const text = await writeProjectFile('schema.json', [], await describeProject(app, project, { isPublic: false }));
  return giveFile(context, out, { text, json: JSON.parse(text) as unknown, of: project.name });
}
