import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { AppError, invalid } from '../../errors.js';
import { operatorCaller, userCaller } from '../access/operator-access.js';
import type { Caller } from '../access/caller.js';
import { admitsDocument, explainRule } from '../access/rules/explain-rule.js';
import type { Collection } from '../collections/collection.js';
import { requireCollection } from '../collections/collection-store.js';
import { importDocuments } from '../documents/bulk/import-documents.js';
import { listDocuments } from '../documents/read/list-documents.js';
import { getDocument } from '../documents/read/get-document.js';
import { readEncoded } from '../documents/reply/encoded-reply.js';
import { documentStore } from '../documents/store/document-store.js';
import { insertDocument } from '../documents/write/insert-document.js';
import { deleteDocument, trashDocument } from '../documents/write/change-state.js';
import { updateDocument } from '../documents/write/update-document.js';
import { requireWriteTarget } from '../documents/write/write-target.js';
import type { Project } from '../projects/project.js';
import { signUp } from '../users/sign-up.js';
import { ANYONE_NAME, type Expectation, type RuleTestFile } from './rule-test-file.js';

/** An expectation that was not met. */
export interface UnmetExpectation {
  /** Its place in the file, counted from 1. */
  number: number;
  as: string;
  does: string;
  expected: string;
  answered: string;
}

/** Who may do what with the documents of a collection: by person the actions that are admitted. */
export interface AccessMatrix {
  collection: string;
  documents: { name: string; may: Record<string, readonly MatrixAction[]> }[];
}

export type MatrixAction = (typeof MATRIX_ACTIONS)[number];
const MATRIX_ACTIONS = ['read', 'update', 'delete'] as const;

export interface RuleTestOutcome {
  checked: number;
  unmet: UnmetExpectation[];
  matrix: AccessMatrix[];
}

/**
 * Stores the users and documents of a file in a project that has nothing yet, tries each expectation, and finds out who
 * may do what (rules.md 10). What an expectation changes is put back before the next. 400 INVALID_FILE for a file that
 * names what it does not have.
 */
export async function runRuleTests(app: App, project: Project, file: RuleTestFile): Promise<RuleTestOutcome> {
  const stage = await setStage(app, project, file);
  const unmet: UnmetExpectation[] = [];
  let checked = 0;
  for (const [at, expectation] of file.expect.entries()) {
    for (const as of [expectation.as].flat()) {
      checked++;
      const { does, expected, answered } = await tryOut(stage, expectation, as);
      if (expected !== answered) unmet.push({ number: at + 1, as, does, expected, answered });
    }
  }
  return { checked, unmet, matrix: await findMatrix(stage) };
}

interface Staged {
  id: string;
  collection: Collection;
  /** As it is stored for each expectation. */
  fields: Record<string, unknown>;
}

/** What expectations are tried with: the users and documents of the file, by their names there. */
interface Stage {
  app: App;
  project: Project;
  users: readonly string[];
  /** Of users and documents. */
  ids: ReadonlyMap<string, string>;
  staged: ReadonlyMap<string, Staged>;
}

async function setStage(app: App, project: Project, file: RuleTestFile): Promise<Stage> {
  const ids = new Map<string, string>();
  const take = (name: string, id: string): void => {
    if (ids.has(name) || name === ANYONE_NAME) throw badFile(`"${name}" is the name of two users or documents`);
    ids.set(name, id);
  };
  for (const [name, fields] of Object.entries(file.users)) {
    const body = { email: `${name.toLowerCase()}@example.test`, emailVerified: true, ...fields };
    const user = await signUp(app, project, body, 'project', { needsPassword: false });
    take(name, user._id.toHexString());
  }
  for (const documents of Object.values(file.documents)) {
    for (const name of Object.keys(documents)) take(name, new ObjectId().toHexString());
  }
  const staged = new Map<string, Staged>();
  for (const [collectionName, documents] of Object.entries(file.documents)) {
    const collection = await requireCollection(app, project._id, collectionName);
    for (const [name, fields] of Object.entries(documents)) {
      const document = { id: ids.get(name)!, collection, fields: resolveNames(fields, ids) as Staged['fields'] };
      staged.set(name, document);
      await store(app, name, document);
    }
  }
  return { app, project, users: Object.keys(file.users), ids, staged };
}

async function tryOut(stage: Stage, expectation: Expectation, as: string) {
  const does = describe(expectation);
  const { sees, answers } = expectation;
  const caller = callerOf(stage, as);
  const expected = sees ? `sees ${[...sees].sort().join(', ') || 'nothing'}` : (answers ?? 'ok');
  try {
    const answered = await carryOut(stage, caller, expectation);
    // A list is answered whatever it shows, where nothing is said of that.
    return { does, expected, answered: sees || !answered.startsWith('sees ') ? answered : 'ok' };
  } catch (error) {
    if (!(error instanceof AppError) || error.code === 'INVALID_FILE') throw error;
    return { does, expected, answered: error.code };
  }
}

async function findMatrix(stage: Stage): Promise<AccessMatrix[]> {
  const { app, users, staged } = stage;
  const matrix = new Map<string, AccessMatrix>();
  for (const [name, { collection, id }] of staged) {
    const own = matrix.get(collection.name) ?? { collection: collection.name, documents: [] };
    matrix.set(collection.name, own);
    const document = (await documentStore(app, collection).findOne({ _id: new ObjectId(id) }))!;
    const may: Record<string, MatrixAction[]> = {};
    for (const person of [...users, ANYONE_NAME]) {
      may[person] = [];
      for (const action of MATRIX_ACTIONS) {
        // Without row-level security, only readable documents can be changed.
        if (action !== 'read' && collection.rules && !may[person].includes('read')) continue;
        const caller = callerOf(stage, person);
        // An update that nothing this caller could write would pass is refused whatever it is.
        const leads = action !== 'update' || (await explainRule(app, collection, caller, 'updateTo')).admits !== 'no';
        if (leads && (await admitsDocument(app, collection, caller, action, document))) may[person].push(action);
      }
    }
    own.documents.push({ name, may });
  }
  return [...matrix.values()];
}

function callerOf({ project, users, ids }: Stage, as: string): Caller {
  if (as === ANYONE_NAME) return userCaller(project, null);
  if (!users.includes(as)) throw badFile(`there is no user "${as}"`);
  return userCaller(project, ids.get(as)!);
}

async function carryOut(stage: Stage, caller: Caller, expectation: Expectation): Promise<string> {
  const { app, ids, staged } = stage;
  const { read, create, update, delete: removed, without = [] } = expectation;
  if (read !== undefined) {
    const document = staged.get(read);
    return document ? get(app, caller, document, without) : list(stage, caller, expectation);
  }
  const body = resolveNames(expectation.with ?? {}, ids);
  if (create !== undefined) {
    const place = await requireWriteTarget(app, caller, create);
    const { _id } = await insertDocument(app, place, body);
    await remove(stage, create, _id);
    return 'ok';
  }
  const name = (update ?? removed)!;
  const document = staged.get(name);
  if (!document) throw badFile(`there is no document "${name}"`);
  const { collection, id } = document;
  const place = await requireWriteTarget(app, caller, collection.name);
  if (update !== undefined) await updateDocument(app, place, id, body, { takesOperators: true });
  else await trashDocument(app, place, id);
  // What the expectation left of the document goes, and it is stored as it was.
  await remove(stage, collection.name, id);
  await store(app, name, document);
  return 'ok';
}

async function list({ app, ids }: Stage, caller: Caller, { read, filter = '', without = [] }: Expectation) {
  const resolved = resolveNames(Object.fromEntries(new URLSearchParams(filter)), ids);
  const query = new URLSearchParams(resolved as Record<string, string>);
  query.set('limit', '1000');
  const reply = await listDocuments(app, caller, read!, query.toString());
  const items = 'items' in reply ? reply.items : [];
  const shown = without.filter((field) => items.length === 0 || items.some((item) => Object.hasOwn(item, field)));
  const nameOf = (id: string): string => [...ids].find(([, each]) => each === id)?.[0] ?? id;
  const names = items.map(({ _id }) => nameOf(_id)).sort();
  return shown.length > 0 ? `shows ${shown.join(', ')}` : `sees ${names.join(', ') || 'nothing'}`;
}

async function get(app: App, caller: Caller, document: Staged, without: readonly string[]): Promise<string> {
  const reply = await getDocument(app, caller, document.collection.name, document.id, '');
  const answered = readEncoded(reply) as object;
  const shown = without.filter((field) => Object.hasOwn(answered, field));
  return shown.length > 0 ? `shows ${shown.join(', ')}` : 'ok';
}

async function remove({ app, project }: Stage, collection: string, id: string): Promise<void> {
  await deleteDocument(app, await requireWriteTarget(app, operatorCaller(project), collection), id);
}

async function store(app: App, name: string, { id, collection, fields }: Staged): Promise<void> {
  const { rejected } = await importDocuments(app, collection, [{ _id: id, ...fields }]);
  if (rejected.length > 0) throw badFile(`the document "${name}" cannot be stored: ${rejected[0]!.message}`);
}

function describe({ read, create, update, delete: removed, filter }: Expectation): string {
  const named = [read, create, update, removed].filter((each) => each !== undefined);
  if (named.length !== 1) throw badFile('an expectation has one of read, create, update and delete');
  if (read !== undefined) return `reads ${read}${filter === undefined ? '' : ` where ${filter}`}`;
  return create === undefined ? `${update === undefined ? 'deletes' : 'updates'} ${named[0]!}` : `creates in ${create}`;
}

/** The value with `@name` replaced by the id of that user or document. */
function resolveNames(value: unknown, ids: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string' && value.startsWith('@')) {
    const id = ids.get(value.slice(1));
    if (id === undefined) throw badFile(`there is no user or document "${value.slice(1)}"`);
    return id;
  }
  if (Array.isArray(value)) return value.map((item) => resolveNames(item, ids));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, resolveNames(inner, ids)]));
}

function badFile(message: string): AppError {
  return invalid('INVALID_FILE', `The rule test file is invalid: ${message}`);
}
