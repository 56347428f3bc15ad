import { isDeepStrictEqual } from 'node:util';
import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, conflict } from '../../../errors.js';
import type { Collection } from '../collection.js';
import { collectionStore } from '../collection-store.js';
import { defaultUsersCollection, USERS } from '../users-collection.js';
import { checkFieldRules, checkRules, type RuleSurroundings } from './check-rules.js';
import { namedSets } from './collection-rules.js';
import { hasRules } from './field-rules.js';
import { requireNoRuleViolations } from './rule-violations.js';
import { parseRule, RuleProblem } from './rule-text.js';

/**
 * Refuses settings under which rules would name what is not there: 400 INVALID_RULE or INVALID_RULES for rules that are
 * new, 409 NAMED_BY_RULE when a field goes that rules name, 409 RULE_VIOLATIONS for stored documents. `from` is null
 * for a collection that is being registered.
 */
export async function requireSoundRules(app: App, from: Collection | null, to: Collection): Promise<void> {
  await requireNamed(app, to);
  if (!isRuled(to) && to.name !== USERS) return;
  const surroundings = await findSurroundings(app, to);
  if (from && isDeepStrictEqual(textsOf(from), textsOf(to))) asNamed(() => checkAll(to, surroundings));
  else checkAll(to, surroundings);
  if (from && to.name !== USERS) await requireNoRuleViolations(app, from, to);
}

function isRuled({ rules, fields }: Collection): boolean {
  return Boolean(rules) || fields.some(hasRules);
}

function checkAll(collection: Collection, surroundings: RuleSurroundings): void {
  checkRules(collection, surroundings);
  checkFieldRules(collection, surroundings);
}

/** What the rules of a collection and of its fields say. */
function textsOf({ rules, fields }: Collection): unknown {
  const marks = fields.filter(hasRules).map(({ name, hidden, read, write }) => ({ name, hidden, read, write }));
  return [rules ?? null, marks];
}

/** 400 INVALID_RULE or INVALID_RULES for rules that name what is not there; stored documents are not looked at. */
export async function requireKnownNames(app: App, collection: Collection): Promise<void> {
  if (isRuled(collection)) checkAll(collection, await findSurroundings(app, collection));
}

/** The rules of other collections may name what this one has: attributes of users, and fields of sets. */
async function requireNamed(app: App, to: Collection): Promise<void> {
  for (const collection of await listNaming(app, to, to.name === USERS)) {
    const surroundings = await findSurroundings(app, collection);
    const others = new Map([...surroundings.others, [to.name, to]]);
    asNamed(() => checkAll(collection, { users: to.name === USERS ? to : surroundings.users, others }));
  }
}

/** 409 NAMED_BY_RULE where the rules of another collection name sets of this one, or with `own` its own rules. */
export async function requireUnnamed(app: App, collection: Collection, own = false): Promise<void> {
  const isOwn = own && namedSets(collection).some((set) => set.collection === collection.name);
  const [naming] = isOwn ? [collection] : await listNaming(app, collection, false);
  if (!naming) return;
  const message = `The rules of "${naming.name}" name "${collection.name}": change these rules first`;
  throw conflict('NAMED_BY_RULE', message);
}

/** The other collections whose rules name this one, or all that have rules. */
export async function listNaming(app: App, { _id, projectId, name }: Collection, all: boolean): Promise<Collection[]> {
  const found = await collectionStore(app).find({ projectId, state: 'active' }).toArray();
  const isNaming = (each: Collection): boolean => namedSets(each).some(({ collection }) => collection === name);
  return found.filter((each) => isRuled(each) && !each._id.equals(_id) && (all || isNaming(each)));
}

async function findSurroundings(app: App, collection: Collection): Promise<RuleSurroundings> {
  const { projectId, name } = collection;
  const users = name === USERS ? collection : await findUsers(app, projectId);
  const names = readSetNames(collection).filter((each) => each !== name && each !== USERS);
  const found =
    names.length === 0
      ? []
      : await collectionStore(app)
          .find({ projectId, state: 'active', name: { $in: names } })
          .toArray();
  return { users, others: new Map(found.map((each) => [each.name, each])) };
}

/** The collections of which rules name sets; what cannot be read is checkRules's to refuse. */
function readSetNames({ rules, fields }: Collection): string[] {
  const ofFields = fields.flatMap(({ write = [] }) => write);
  return [...Object.values<string>(rules ? { ...rules } : {}), ...ofFields].flatMap((text) => {
    try {
      return parseRule(text).sets.map(({ collection }) => collection);
    } catch (error) {
      if (error instanceof RuleProblem) return [];
      throw error;
    }
  });
}

function asNamed(check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'INVALID_RULE') throw error;
    const { details, mistake } = error;
    const message = `A rule names what this would take away. ${error.message}: change the rule first`;
    throw conflict('NAMED_BY_RULE', message, { details, mistake, cause: error });
  }
}

async function findUsers(app: App, projectId: ObjectId): Promise<Collection> {
  const stored = await collectionStore(app).findOne({ projectId, name: USERS, state: 'active' });
  return stored ?? defaultUsersCollection(projectId);
}
