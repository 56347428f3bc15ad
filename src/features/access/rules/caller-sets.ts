import type { Document } from 'bson';
import type { App } from '../../../app.js';
import { forbidden } from '../../../errors.js';
import type { Exists } from '../../../platform/database/database.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { findCollection } from '../../collections/collection-store.js';
import { OWN_ID, type CallerSet, type Literal } from '../../collections/rules/rule.js';
import type { Caller } from '../caller.js';
import { keyOfQuestion, setFilter, type CallerAttributes, type SetQuestion } from './compile-rule.js';
import { holdsAny, storedPath, valuesAt } from './bound-values.js';
import { findKept, readUserSet, setAge, type UserSet } from './set-cache.js';

export type SetAnswers = Map<string, boolean | readonly Literal[]>;

/**
 * Answers what a rule asks about the caller's sets, by keyOfQuestion (rules.md 5). Sets are read with the project's
 * right, and a trashed membership is none; on a MongoDB they may be a second old unless wanted `fresh`. 403
 * TOO_MANY_MEMBERSHIPS for a set that is too large to be read whole.
 */
export async function answerQuestions(
  app: App,
  { project }: Pick<Caller, 'project'>,
  attributes: CallerAttributes,
  questions: readonly SetQuestion[],
  { fresh = false }: { fresh?: boolean } = {},
): Promise<SetAnswers> {
  const answers: SetAnswers = new Map();
  for (const question of questions) {
    const key = keyOfQuestion(question);
    const { set, value } = question;
    const collection = await findCollection(app, project._id, set.collection);
    const members = collection && setFilter(set, attributes);
    if (!members) {
      answers.set(key, value === undefined ? [] : false);
      continue;
    }
    const own = userSet(collection, set, members, attributes);
    if (value === undefined) {
      const load = (): Promise<Literal[]> => readValues(app, collection, members, question);
      answers.set(key, own ? await readUserSet(app, own, { fresh, load }) : await load());
    } else {
      const kept = own && (await findKept(app, own, fresh));
      answers.set(key, kept ? kept.includes(value) : await holds(app, collection, members, set, value));
    }
  }
  return answers;
}

/** Whether what a rule asks of a document at hand is in the caller's set. */
export type AskSet = (question: SetQuestion, document: Document) => boolean;

/**
 * Opens the sets of rules for a decision inside of a write, which asks of a document at hand by what is stored at that
 * moment: a set of any size.
 */
export async function openWriterSets(
  app: App,
  { project }: Pick<Caller, 'project'>,
  attributes: CallerAttributes,
  sets: readonly CallerSet[],
): Promise<(exists: Exists) => AskSet> {
  const collections = new Map<string, Collection | null>();
  for (const { collection: name } of sets) collections.set(name, await findCollection(app, project._id, name));
  return (exists) =>
    ({ set, value, path }, document) => {
      const collection = collections.get(set.collection);
      const members = collection && setFilter(set, attributes);
      if (!members) return false;
      const asked = value === undefined ? valuesAt(document, storedPath(path!).split('.')) : [value];
      const filter = holdsAny(set, asked);
      return filter !== null && exists(documentsName(collection), { $and: [members, filter], isDeleted: false });
    };
}

function userSet(collection: Collection, set: CallerSet, members: Document, attributes: CallerAttributes): UserSet {
  const filterText = JSON.stringify([members, set.path]);
  return { collection, set, userId: String(attributes?.[OWN_ID]), filterText };
}

/** How old the membership set is that a read would use now, in milliseconds; 0 on the embedded engine. */
export async function findSetAge(
  app: App,
  { project }: Pick<Caller, 'project'>,
  attributes: CallerAttributes,
  set: CallerSet,
): Promise<number> {
  const collection = await findCollection(app, project._id, set.collection);
  const members = collection && setFilter(set, attributes);
  return members ? setAge(app, userSet(collection, set, members, attributes)) : 0;
}

async function holds(
  app: App,
  collection: Collection,
  members: Document,
  set: CallerSet,
  value: Literal,
): Promise<boolean> {
  const wanted = holdsAny(set, [value]);
  if (!wanted) return false;
  const filter = { $and: [members, wanted], isDeleted: false };
  const options = { ...app.db.confirmedReads, projection: { _id: 1 } };
  return (await app.db.collection(documentsName(collection)).findOne(filter, options)) !== null;
}

/** Each value once; more documents or values than may be are refused, never cut. */
async function readValues(
  app: App,
  collection: Collection,
  members: Document,
  question: SetQuestion,
): Promise<Literal[]> {
  const { set } = question;
  const most = app.config.ruleSet;
  const filter = { $and: [members], isDeleted: false };
  const field = storedPath(set.path);
  const found = await app.db
    .collection(documentsName(collection))
    .find(filter, app.db.confirmedReads)
    .project({ _id: field === '_id' ? 1 : 0, ...(field !== '_id' && { [field]: 1 }) })
    .limit(most + 1)
    .toArray();
  const values = new Set(found.flatMap((document) => valuesAt(document, field.split('.'))));
  if (found.length > most || values.size > most) throw tooManyMemberships(question, most);
  return [...values];
}

/** 403 TOO_MANY_MEMBERSHIPS, which names a field by which less is asked. */
export function tooManyMemberships({ set, path: field }: SetQuestion, most: number): Error {
  const named = field ?? 'another field';
  const message = `You have more than ${most} values of ${set.collection}.${set.path}: filter by ${named}`;
  return forbidden('TOO_MANY_MEMBERSHIPS', message, { details: [{ field: named, rule: 'memberships', message }] });
}
