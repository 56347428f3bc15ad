/**
 * What the contract says of writes (rest-api.md 4, rules.md 6, writes.md), on plain objects and without any of the
 * service's code: who may do what, what is stored then, and the status and code of a refusal.
 */
export interface ModelDocument extends Record<string, unknown> {
  _id: string;
  isDeleted: boolean;
  /** The document with which it was trashed. */
  trashedWith?: string;
}

/** By collection and id. */
export type ModelState = Record<string, Record<string, ModelDocument>>;

export interface ModelWrite {
  op: 'insert' | 'update' | 'upsert' | 'trash' | 'remove' | 'recover';
  collection: string;
  /** Of an upsert: the id of what it came to. */
  id: string;
  body?: Record<string, unknown>;
  /** The unique fields of an upsert. */
  by?: readonly string[];
  /** False: an If-Match that names another version. */
  isFresh?: boolean;
}

/** The secret key (null), a user's id, or somebody unknown (undefined). */
export type ModelWriter = string | null | undefined;

export class ModelRefusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
  ) {
    super(`${status} ${code}`);
  }
}

const refuse = (status: number, code: string): never => {
  throw new ModelRefusal(status, code);
};
const rejectRule = (): never => refuse(403, 'RULE_REFUSED');
const violation = (): never => refuse(400, 'VALIDATION_FAILED');

type Rule = (user: string | undefined, document: ModelDocument, state: ModelState) => boolean;
interface ModelCollection {
  rules?: Record<'read' | 'create' | 'update' | 'delete', Rule>;
  /** Row-level security. */
  owner?: string;
  level?: Rule;
  fields: Record<string, Field>;
  uniques: { fields: string[]; where?: Record<string, unknown> }[];
}
interface Field {
  fits: (value: unknown) => boolean;
  required?: boolean;
  preset?: unknown;
  fixed?: boolean;
  ref?: 'trash' | 'unset' | 'restrict';
}

const text = (most = Infinity): Field => ({ fits: (value) => typeof value === 'string' && value.length <= most });
const oneOf = (...values: string[]): Field => ({ fits: (value) => values.includes(value as string) });
const between = (min: number, max: number): Field => ({
  fits: (value) => typeof value === 'number' && value >= min && value <= max,
});
const ref = (onDelete: Field['ref']): Field => ({
  fits: (value) => typeof value === 'string' && /^[0-9a-f]{24}$/.test(value),
  ref: onDelete,
});
const isListOfTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');
const fitsTags = (value: unknown): boolean =>
  isListOfTexts(value) && value.length <= 3 && new Set(value).size === value.length;

/** In the declarations of test/api/deep/write-model.test.ts. */
const ITEM: Record<string, Field> = {
  title: { ...text(6), required: true },
  n: { ...between(0, 9), preset: 0 },
  tags: { fits: fitsTags },
  slug: text(),
  state: { ...oneOf('open', 'closed'), preset: 'open' },
  by: { ...text(), fixed: true },
  level: between(-1e9, 1e9),
  team: text(),
  board: ref('trash'),
  also: ref('unset'),
  kept: ref('restrict'),
};
const ITEM_UNIQUES = [{ fields: ['slug'] }, { fields: ['team', 'title'], where: { state: 'open' } }];
const ofTeam =
  (...roles: string[]): Rule =>
  (user, { team }, { members }) =>
    Object.values(members!).some(
      (each) => !each.isDeleted && each.user === user && each.team === team && roles.includes(String(each.role)),
    );
const mine: Rule = (user, { by }) => user !== undefined && by === user;
const mineOrOpen: Rule = (user, document) => mine(user, document, {}) || document.state === 'open';
const isUser: Rule = (user) => user !== undefined;
const nobody: Rule = () => false;

export const MODEL: Record<string, ModelCollection> = {
  members: {
    fields: {
      team: { ...text(), required: true },
      user: { ...text(), required: true },
      role: { ...oneOf('viewer', 'editor', 'owner'), required: true },
    },
    uniques: [{ fields: ['team', 'user'] }],
  },
  boards: {
    rules: { read: isUser, create: nobody, update: isUser, delete: isUser },
    fields: { name: text(6) },
    uniques: [],
  },
  plain: { fields: ITEM, uniques: ITEM_UNIQUES },
  owned: { owner: 'owner', fields: { ...ITEM, owner: text() }, uniques: ITEM_UNIQUES },
  ruled: {
    rules: { read: mineOrOpen, create: isUser, update: mineOrOpen, delete: mine },
    level: (_, { state }) => state === 'closed',
    fields: ITEM,
    uniques: ITEM_UNIQUES,
  },
  shared: {
    rules: {
      read: ofTeam('viewer', 'editor', 'owner'),
      create: ofTeam('viewer', 'editor', 'owner'),
      update: ofTeam('editor', 'owner'),
      delete: ofTeam('owner'),
    },
    level: ofTeam('owner'),
    fields: ITEM,
    uniques: ITEM_UNIQUES,
  },
};
export const ITEMS = ['plain', 'owned', 'ruled', 'shared'];
const SYSTEM = ['_id', 'isDeleted', 'deletedAt', 'createdAt', 'updatedAt'];

/**
 * What is refused without a look at what is stored; the rest is for the function, inside of the transaction.
 * `hasUniques`: false for what is refused before any unique is looked at. `now`: by which an upsert is planned as an
 * update or an insert.
 */
export function planWrite(
  writer: ModelWriter,
  write: ModelWrite,
  hasUniques = true,
  now: ModelState = {},
): (state: ModelState) => void {
  if (write.op === 'upsert') return planUpsert(writer, write, hasUniques, now);
  const model = MODEL[write.collection]!;
  const isProject = writer === null;
  if (!isProject) {
    if (!model.rules && !model.owner) refuse(403, 'WRITE_BLOCKED');
    const { read, create, update, delete: remove } = model.rules ?? {};
    const asked: Partial<Record<ModelWrite['op'], (Rule | undefined)[]>> = {
      insert: [create],
      update: [read, update],
      recover: [read, update],
      trash: [read, remove],
      remove: [read, remove],
    };
    const needsUser = model.owner || asked[write.op]!.some((rule) => rule !== nobody && rule !== mineOrOpen);
    if (writer === undefined && needsUser) refuse(401, 'AUTH_REQUIRED');
  }
  const user = writer ?? undefined;
  const { op, collection, id } = write;
  const rules = isProject ? null : (model.rules ?? null);
  if (op === 'insert') {
    const document = planNew(model, user, isProject, write);
    if (rules && collection !== 'shared' && !rules.create(user, document, {})) rejectRule();
    return (state) => {
      if (rules && !rules.create(user, document, state)) rejectRule();
      if (rules && collection === 'shared' && document.level !== undefined && !model.level!(user, document, state))
        refuse(403, 'FIELD_PROTECTED');
      requireReferences(model, writer, document, null, state);
      if (state[collection]![id]) refuse(409, 'DUPLICATE_VALUE');
      put(state, collection, document, hasUniques);
    };
  }
  const changes = op === 'update' ? planChanges(model, write.body!) : [];
  if (!isProject && changes.some(({ name, isPlain }) => model.fields[name]?.fixed && !isPlain))
    refuse(403, 'FIELD_FIXED');
  return (state) => {
    const stored = state[collection]![id];
    const isThere =
      op === 'recover'
        ? stored?.isDeleted === true
        : op === 'remove'
          ? stored !== undefined
          : stored?.isDeleted === false;
    if (!stored || !isThere) return refuse(404, 'DOCUMENT_NOT_FOUND');
    const action = op === 'update' || op === 'recover' ? 'update' : 'delete';
    if (!isProject) requireAdmitted(model, user, action, stored, state);
    if (rules && op === 'recover' && !rules.update(user, stored, state)) rejectRule();
    if (write.isFresh === false) refuse(412, 'CHANGED_MEANWHILE');
    if (op === 'update') return put(state, collection, changed(model, writer, stored, changes, state), hasUniques);
    if (op === 'recover') {
      for (const { document } of referencesOf(model, stored))
        if (document && state.boards![document]?.isDeleted !== false) refuse(409, 'REFERENCE_MISSING');
      const { trashedWith: _, ...back } = stored;
      return put(state, collection, { ...back, isDeleted: false }, hasUniques);
    }
    if (collection === 'boards') requireFree(user, isProject, id, state);
    if (op === 'trash') state[collection]![id] = { ...stored, isDeleted: true };
    else delete state[collection]![id];
    if (collection === 'boards') settle(id, state);
  };
}

/** The update of the active document with the same key, where the writer may know of it, else an insert. */
function planUpsert(
  writer: ModelWriter,
  { by, ...write }: ModelWrite,
  hasUniques: boolean,
  state: ModelState,
): (state: ModelState) => void {
  const model = MODEL[write.collection]!;
  const { body } = write;
  const insert = () => planWrite(writer, { ...write, op: 'insert' }, hasUniques);
  const isBlocked = writer !== null && !model.rules && !model.owner;
  if (isBlocked || (writer === undefined && write.collection !== 'ruled')) return insert();
  if (by!.some((name) => body![name] === undefined || body![name] === null || !model.fields[name]!.fits(body![name])))
    violation();
  const found = Object.values(state[write.collection]!).find(
    (each) => !each.isDeleted && by!.every((name) => each[name] === body![name]),
  );
  if (!found) return insert();
  try {
    if (writer !== null) requireAdmitted(model, writer, 'update', found, state);
  } catch (error) {
    if ((error as ModelRefusal).status === 404) return insert();
  }
  const update = () => planWrite(writer, { ...write, op: 'update', id: found._id }, hasUniques);
  if (writer !== undefined) return update();
  try {
    return update();
  } catch {
    return insert();
  }
}

function planNew(
  model: ModelCollection,
  user: string | undefined,
  isProject: boolean,
  { id, body }: ModelWrite,
): ModelDocument {
  const given = { ...body };
  if (!isProject && model.owner) {
    if (Object.hasOwn(given, model.owner) && given[model.owner] !== user) refuse(403, 'OWNER_MISMATCH');
    given[model.owner] = user;
  }
  if (!isProject && model.fields.by) {
    if (given.by === undefined) given.by = user;
    else if (given.by !== user) refuse(403, 'FIELD_FIXED');
  }
  const document: ModelDocument = { _id: id, isDeleted: false };
  for (const [name, { fits, required, preset }] of Object.entries(model.fields)) {
    const value = given[name] ?? preset;
    if (value === undefined && required) violation();
    if (value !== undefined && !fits(value)) violation();
    if (value !== undefined) document[name] = value;
  }
  if (Object.keys(given).some((name) => !model.fields[name])) violation();
  const isGuarded = !isProject && model.level && model !== MODEL.shared;
  if (isGuarded && given.level !== undefined && given.level !== null && !model.level!(user, document, {}))
    refuse(403, 'FIELD_PROTECTED');
  return document;
}

interface Change {
  name: string;
  isPlain: boolean;
  value: unknown;
  /** Throws for a result that does not fit. */
  apply: (held: unknown) => unknown;
}

const fitting = (fits: boolean, value: unknown): unknown => (fits ? value : violation());
const OPERATORS: Record<string, (operand: unknown, held: unknown, field: Field) => unknown> = {
  $inc: (by, held, { fits }) => fitting(fits(Number(held ?? 0) + Number(by)), Number(held ?? 0) + Number(by)),
  $max: (to, held, { fits }) => (held !== undefined && Number(held) >= Number(to) ? held : fitting(fits(to), to)),
  $push: (value, held, { fits }) =>
    fitting(fits([...((held as string[]) ?? []), value]), [...((held as string[]) ?? []), value]),
  $addToSet: (value, held = []) => {
    const list = held as unknown[];
    if (list.includes(value)) return list;
    return fitting(list.length < 3, [...list, value]);
  },
  $pull: (value, held) => (held as unknown[] | undefined)?.filter((item) => item !== value),
};
const takes = (name: string, operand: unknown): boolean =>
  typeof operand === (name === '$inc' || name === '$max' ? 'number' : 'string');

function planChanges(model: ModelCollection, body: Record<string, unknown>): Change[] {
  const operators = Object.entries(body).filter(([name]) => OPERATORS[name]);
  const unset = (body.$unset ?? []) as string[];
  const operated = [...operators.flatMap(([, paths]) => Object.keys(paths as object)), ...unset];
  if (Object.keys(body).length === 0) refuse(400, 'INVALID_BODY');
  if (operated.some((name) => Object.hasOwn(body, name)) || new Set(operated).size < operated.length)
    refuse(400, 'CONFLICTING_PATHS');
  if (model.owner && operated.includes(model.owner)) refuse(403, 'OWNER_IMMUTABLE');
  const changes: Change[] = [];
  const fieldOf = (name: string): Field => model.fields[name] ?? (violation() as never);
  for (const [name, value] of Object.entries(body)) {
    if (name.startsWith('$') || name === model.owner) continue;
    if (name === 'isDeleted' && value === false) continue;
    if (SYSTEM.includes(name)) violation();
    const { fits, required, preset } = fieldOf(name);
    if (value === null ? required : !fits(value)) violation();
    changes.push({ name, isPlain: true, value: value ?? preset, apply: () => value ?? preset });
  }
  for (const name of unset) {
    const { required, preset } = fieldOf(name);
    if (required) violation();
    changes.push({ name, isPlain: true, value: preset, apply: () => preset });
  }
  for (const [operator, paths] of operators) {
    for (const [name, operand] of Object.entries(paths as object)) {
      const field = fieldOf(name);
      const isList = name === 'tags';
      const isNumber = name === 'n' || name === 'level';
      if (!takes(operator, operand) || (takes(operator, 0) ? !isNumber : !isList)) violation();
      changes.push({ name, isPlain: false, value: null, apply: (held) => OPERATORS[operator]!(operand, held, field) });
    }
  }
  const owner = model.owner;
  if (owner && Object.hasOwn(body, owner))
    changes.push({ name: owner, isPlain: true, value: body[owner], apply: () => body[owner] });
  return changes;
}

function changed(
  model: ModelCollection,
  writer: ModelWriter,
  stored: ModelDocument,
  changes: readonly Change[],
  state: ModelState,
): ModelDocument {
  const user = writer ?? undefined;
  const own = changes.filter(({ name }) => name !== model.owner);
  const same = ({ name, isPlain, value }: Change): boolean =>
    isPlain && JSON.stringify(value ?? null) === JSON.stringify(stored[name] ?? null);
  for (const change of writer === null ? [] : own) {
    const { fixed } = model.fields[change.name]!;
    const isOpen = !fixed && (change.name !== 'level' || !model.level || model.level(user, stored, state));
    if (!isOpen && !same(change)) refuse(403, fixed ? 'FIELD_FIXED' : 'FIELD_PROTECTED');
  }
  for (const { name, value } of changes) {
    if (name !== model.owner) continue;
    const isOpen = writer === null && stored[name] === undefined;
    if (typeof value !== 'string' || (stored[name] !== value && !isOpen)) refuse(403, 'OWNER_IMMUTABLE');
  }
  const next: ModelDocument = { ...stored };
  for (const { name, apply } of changes) {
    next[name] = apply(stored[name]);
    if (next[name] === undefined) delete next[name];
  }
  if (writer !== null && model.rules && !model.rules.update(user, next, state)) rejectRule();
  requireReferences(model, writer, next, stored, state);
  return next;
}

function requireAdmitted(
  model: ModelCollection,
  user: string | undefined,
  action: 'update' | 'delete',
  stored: ModelDocument,
  state: ModelState,
): void {
  if (model.owner) {
    if (stored[model.owner] !== user) refuse(403, 'OWNER_MISMATCH');
    return;
  }
  const rules = model.rules!;
  if (!rules.read(user, stored, state)) refuse(404, 'DOCUMENT_NOT_FOUND');
  if (rules[action](user, stored, state)) return;
  if (stored.isDeleted && !rules.delete(user, stored, state)) refuse(404, 'DOCUMENT_NOT_FOUND');
  rejectRule();
}

function referencesOf(
  { fields }: ModelCollection,
  document: ModelDocument,
): { name: string; document: string | undefined }[] {
  return Object.keys(fields).flatMap((name) =>
    fields[name]!.ref ? [{ name, document: document[name] as string | undefined }] : [],
  );
}

function requireReferences(
  model: ModelCollection,
  writer: ModelWriter,
  next: ModelDocument,
  stored: ModelDocument | null,
  state: ModelState,
): void {
  for (const { name, document } of referencesOf(model, next)) {
    if (document === undefined || document === stored?.[name]) continue;
    // Users read boards, and nobody else.
    if (writer === undefined || state.boards![document]?.isDeleted !== false) refuse(400, 'REFERENCE_MISSING');
  }
}

/** Active documents that refer to a board by a field, in the order of their ids. */
function referring(state: ModelState, name: string, board: string): [string, ModelDocument][] {
  return ITEMS.flatMap((collection) =>
    Object.values(state[collection]!)
      .filter((each) => each[name] === board && !each.isDeleted)
      .map((each): [string, ModelDocument] => [collection, each]),
  );
}

/** `restrict`: any keeps it from the project, from a user those that the user may do something about. */
function requireFree(user: string | undefined, isProject: boolean, board: string, state: ModelState): void {
  const holds = ([collection, each]: [string, ModelDocument]): boolean => {
    const { owner, rules } = MODEL[collection]!;
    if (isProject || owner) return isProject || each[owner!] === user;
    return (
      rules !== undefined &&
      rules.read(user, each, state) &&
      (rules.update(user, each, state) || rules.delete(user, each, state))
    );
  };
  if (referring(state, 'kept', board).some(holds)) refuse(409, 'DOCUMENT_REFERRED_TO');
}

function settle(board: string, state: ModelState): void {
  for (const [collection, { _id }] of referring(state, 'board', board))
    Object.assign(state[collection]![_id]!, { isDeleted: true, trashedWith: board });
  for (const name of ['also', 'kept'])
    for (const [collection, { _id }] of referring(state, name, board)) delete state[collection]![_id]![name];
}

/** What the jobs do once a board is back: what was trashed with one comes back where it may. */
export function returnWith(board: string, state: ModelState): void {
  for (const collection of ITEMS) {
    for (const each of Object.values(state[collection]!).sort((a, b) => (a._id < b._id ? -1 : 1))) {
      if (!each.isDeleted || each.trashedWith === undefined || each.board !== board) continue;
      try {
        planWrite(null, { op: 'recover', collection, id: each._id })(state);
      } catch (error) {
        if (!(error instanceof ModelRefusal)) throw error;
      }
    }
  }
}

/** 409 where another active document has the same values. */
function put(state: ModelState, collection: string, document: ModelDocument, hasUniques: boolean): void {
  for (const { fields, where = {} } of hasUniques ? MODEL[collection]!.uniques : []) {
    const counts = (each: ModelDocument): boolean =>
      !each.isDeleted &&
      fields.every((name) => each[name] !== undefined) &&
      Object.entries(where).every(([name, value]) => each[name] === value);
    const isTaken = (each: ModelDocument): boolean =>
      each._id !== document._id && counts(each) && fields.every((name) => each[name] === document[name]);
    if (counts(document) && Object.values(state[collection]!).some(isTaken)) refuse(409, 'DUPLICATE_VALUE');
  }
  state[collection]![document._id] = document;
}
