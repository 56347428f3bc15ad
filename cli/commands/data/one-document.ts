import type { App } from '../../../src/app.js';
import { forbidden, invalid } from '../../../src/errors.js';
import { operatorCaller } from '../../../src/features/access/operator-access.js';
import { USERS } from '../../../src/features/collections/users-collection.js';
import { requireWriteTarget, type WriteTarget } from '../../../src/features/documents/write/write-target.js';
import type { Project } from '../../../src/features/projects/project.js';
import { readTextStream } from '../../../src/text.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { MAX_ENTRY_BYTES } from '../../formats/parse-entry.js';
import { projectOption } from '../../ask/choose-project.js';
import { argument, defineCommandOn, optionalArgument } from '../../shell/command.js';
import type { Context } from '../../shell/context.js';
import type { Result } from '../../view/output.js';

/** Parameters that name a collection to write to. */
const targetParameters = {
  collection: argument('collection', collectionArgument.description),
  project: projectOption,
};

export const documentArgument = optionalArgument('id', 'id of the document');

/** Fields of a document. They are a project's own business, so the audit log does not have them. */
export const fieldsArgument = { ...argument('json', 'fields as a JSON object; - for standard input'), isContent: true };

/** The collection to write to, as the project itself; 403 USERS_BLOCKED for end users. */
async function chooseTarget(
  context: Context,
  named: { project: string | undefined; collection: string | undefined },
): Promise<{ app: App; project: Project; target: WriteTarget }> {
  const { app, project, collection } = await chooseCollection(context, named);
  if (collection.name === USERS) throw forbidden('USERS_BLOCKED', 'Users are not documents: see "bsvc user".');
  return { app, project, target: await requireWriteTarget(app, operatorCaller(project), collection.name) };
}

/** `defineCommand` for work on documents: with `<collection>`, `--project`, and `app`, `project` and `target`. */
export const defineDocumentCommand = defineCommandOn(targetParameters, chooseTarget);

/** A name or a text that stands without quotes or in single ones, as JavaScript has them and shells leave them. */
const UNQUOTED = /[{,[:]\s*(?:'|(?!(?:true|false|null)\b)[A-Za-z_$])/;

/** The JSON of an argument, or of standard input for `-`; 400 INVALID_JSON. */
export async function readJsonText({ io }: Context, text: string, what = 'The fields are'): Promise<unknown> {
  const json = text === '-' ? await readTextStream(io.stdin, 'Standard input', MAX_ENTRY_BYTES) : text;
  try {
    return JSON.parse(json) as unknown;
  } catch (error) {
    const quotes = UNQUOTED.test(json) ? ' JSON has names and texts in double quotes: \'{"title": "Hello"}\'.' : '';
    throw invalid('INVALID_JSON', `${what} not JSON: ${(error as Error).message}.${quotes}`);
  }
}

/** A document as the outcome of a command: indented at a terminal. */
export function presentOne({ io }: Context, document: { _id: unknown }): Result {
  const indent = io.stdout.isTTY ? 2 : undefined;
  return {
    json: document,
    quiet: String(document._id),
    text: () => JSON.stringify(document, null, indent),
    untrusted: true,
  };
}
