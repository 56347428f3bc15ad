import type { App } from '../../src/app.js';
import { addCollection } from '../../src/features/collections/add-collection.js';
import { importDocuments } from '../../src/features/documents/bulk/import-documents.js';
import { createProject } from '../../src/features/projects/create-project.js';
import { listProjects } from '../../src/features/projects/project-store.js';
import { addOperator, listOperators } from '../../src/features/operators/manage-operators.js';
import { makeSignInLink } from '../../src/features/operators/operator-sessions.js';
import type { Operator } from '../../src/features/access/operator.js';
import { randomToken } from '../../src/platform/ids.js';
import { parseFieldSpec } from '../ask/field-spec.js';

export interface Demo {
  project: { id: string; name: string };
  keys: { publishable: string; secret: string };
  /** Signs an operator of its own in at the console, once, within minutes. */
  link: string;
}

const DEMO_OPERATOR = 'demo@example.com';

const FIELDS = ['title:String!', 'body:String', 'status:String=draft', 'views:Number=0', 'tags:Array(String)'];

const TITLES = [
  'Hello, world',
  'Why small tools last',
  'A week without meetings',
  'Notes from the harbour',
  'Reading maps again',
  'Bread, day three',
  'The quiet keyboard',
  'On naming things',
  'Rain in the mountains',
  'What the logs said',
];

/**
 * Fills an empty store with project `demo`, a collection `posts`, ten documents and an operator. Null, and nothing
 * done, when there is any project.
 */
export async function createDemo(app: App): Promise<Demo | null> {
  if ((await listProjects(app)).length > 0) return null;
  const { project, keys } = await createProject(app, { name: 'demo', ifNotExists: true });
  if (!keys) return null;
  const { collection } = await addCollection(app, project, {
    name: 'posts',
    fields: FIELDS.map(parseFieldSpec),
    access: 'public',
    ifNotExists: true,
  });
  const posts = TITLES.map((title, index) => ({
    title,
    body: `Post number ${index + 1} of the demo.`,
    status: index % 3 === 2 ? 'draft' : 'live',
    views: (index * 37) % 101,
    tags: index % 2 === 0 ? ['demo', 'even'] : ['demo'],
  }));
  await importDocuments(app, collection, posts);
  const { link } = await makeSignInLink(app, await requireAnyOperator(app));
  return { project: { id: project._id.toHexString(), name: project.name }, keys, link };
}

/** The address that signs the operator of the demo in once more; null where another operator was added since. */
export async function makeDemoLink(app: App): Promise<string | null> {
  const operators = await listOperators(app);
  const [only] = operators;
  if (operators.length !== 1 || only?.email !== DEMO_OPERATOR) return null;
  return (await makeSignInLink(app, only)).link;
}

/** An operator; creates one with a random password if there is none. It signs in with links. */
async function requireAnyOperator(app: App): Promise<Operator> {
  const [found] = await listOperators(app);
  if (found) return found;
  return addOperator(app, { email: DEMO_OPERATOR, password: randomToken(24), role: 'owner', projects: null });
}
