import { rulesOf, type CollectionAccess } from '../../collections/rules/collection-rules.js';
import type { Caller } from '../caller.js';
import type { Document } from 'bson';
import { LRUCache } from 'lru-cache';
import type { App } from '../../../app.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { beginEngineLog } from '../../collections/rules/log-settings.js';
import { OWN_ID, type CallerSet, type Literal } from '../../collections/rules/rule.js';
import { holdsAny, storedPath, valuesAt, valuesOfChanges } from './bound-values.js';
import { forbidden } from '../../../errors.js';
import type { Exists } from '../../../platform/database/database.js';
import { whenKnown } from '../../../platform/when-known.js';
import { findCollection, peekCollection } from '../../collections/collection-store.js';
import { keyOfQuestion, setFilter, type CallerAttributes, type SetQuestion } from './compile-rule.js';

/** The number of membership sets that one request may use. */
export const MAX_SETS = 4;

/**
 * Whether the rules of the collections use more membership sets than one request may (rules.md 14). Always false for
 * secret keys. `trash` includes the rule `delete`.
 */
export function exceedsSetLimit(
  collections: readonly CollectionAccess[],
  { key }: Pick<Caller, 'key'>,
  trash: boolean,
): boolean {
  if (key.type === 'secret') return false;
  const rules = collections.map(rulesOf).flatMap(({ read, delete: remove }) => (trash ? [read, remove] : [read]));
  return new Set(rules.flatMap(({ sets }) => sets.map(({ text }) => text))).size > MAX_SETS;
}

type Values = readonly Literal[];

/** A membership set of a user, and what distinguishes it from those of others. */
export interface UserSet {
  collection: Collection;
  set: CallerSet;
  userId: string;
  /** The filter of the memberships as text: sets may depend on other attributes of the user too. */
  filterText: string;
}

/** Values that a process keeps: about 20 MB. */
const MAX_VALUES = 200_000;
/** A larger set is read for each request. */
const MAX_KEPT_VALUES = 1_000;
/** Where more has changed nothing is kept: reading it all takes longer than reading the sets again. */
const MAX_FOLLOWED = 2_000;
const CHUNK = 500;
const CHUNK_BYTES = 4 * 1024 * 1024;
/** On a MongoDB, which has no position of a log that is read as cheaply as here: sets for reads may be this old. */
const MAX_AGE_MS = 1_000;

/** What is kept of one user in one collection; of another generation than the follower's it counts for nothing. */
interface KeptSets {
  generation: number;
  byFilter: Map<string, { values: Values; atMs: number }>;
}

/** The log of a collection is followed up to here: whatever is kept is as of this position. */
interface LogFollower {
  epoch: number;
  seq: number;
  generation: number;
  /** Fields that are asked for the user. */
  userPaths: Set<string>;
  /** The end of the line of those who read on. */
  reading: Promise<void>;
}

interface SetCache {
  kept: LRUCache<string, KeptSets>;
  followers: Map<string, LogFollower>;
}

const caches = new WeakMap<App['db'], SetCache>();

function cacheOf({ db }: Pick<App, 'db'>): SetCache {
  let cache = caches.get(db);
  if (!cache) {
    const sizeCalculation = ({ byFilter }: KeptSets): number =>
      [...byFilter.values()].reduce((sum, { values }) => sum + values.length + 1, 1);
    cache = { kept: new LRUCache({ maxSize: MAX_VALUES, sizeCalculation }), followers: new Map() };
    caches.set(db, cache);
  }
  return cache;
}

/**
 * The values of a set, kept or read by `load`. On the embedded engine they are those of a moment after the call: what
 * another process has stored and answered before counts (rules.md 5). On a MongoDB they may be a second old, unless
 * they are wanted `fresh`.
 */
export async function readUserSet(
  app: App,
  asked: UserSet,
  { fresh, load }: { fresh: boolean; load: () => Promise<Values> },
): Promise<Values> {
  const known = await findKept(app, asked, fresh);
  if (known) return known;
  const [before, atMs] = [positionOf(app, asked.collection), app.clock.now()];
  const values = await load();
  if (values.length > MAX_KEPT_VALUES) return values;
  if (!app.db.changeLogs) {
    keep(app, asked, values, { generation: 0, atMs });
    return values;
  }
  const follower = cacheOf(app).followers.get(asked.collection._id.toHexString());
  const after = positionOf(app, asked.collection);
  const isSame = (position: { epoch: number; seq: number } | null): boolean =>
    position !== null && position.epoch === follower?.epoch && position.seq === follower.seq;
  if (follower && isSame(before) && isSame(after)) keep(app, asked, values, { generation: follower.generation, atMs });
  return values;
}

/**
 * The age of a cached set in milliseconds; 0 if it is always exact: on the embedded engine, and where
 * nothing is kept.
 */
export function setAge(app: App, asked: UserSet): number {
  if (app.db.changeLogs) return 0;
  const found = cacheOf(app).kept.get(keyOf(asked))?.byFilter.get(asked.filterText);
  const ageMs = found ? app.clock.now() - found.atMs : 0;
  return ageMs >= 0 && ageMs < MAX_AGE_MS ? ageMs : 0;
}

/** The values of a set if they are kept, as readUserSet; null otherwise. */
export async function findKept(app: App, asked: UserSet, fresh: boolean): Promise<Values | null> {
  const { kept } = cacheOf(app);
  const key = keyOf(asked);
  if (!app.db.changeLogs) {
    const found = fresh ? undefined : kept.get(key)?.byFilter.get(asked.filterText);
    const ageMs = found ? app.clock.now() - found.atMs : Infinity;
    // A clock that was set back makes no set younger.
    return found && ageMs >= 0 && ageMs < MAX_AGE_MS ? found.values : null;
  }
  const follower = await followLog(app, asked);
  const own = kept.get(key);
  return own?.generation === follower.generation ? (own.byFilter.get(asked.filterText)?.values ?? null) : null;
}

function keep(
  app: App,
  asked: UserSet,
  values: Values,
  { generation, atMs }: { generation: number; atMs: number },
): void {
  const { kept } = cacheOf(app);
  const key = keyOf(asked);
  const known = kept.get(key);
  const byFilter = new Map(known?.generation === generation ? known.byFilter : []);
  byFilter.set(asked.filterText, { values, atMs });
  kept.set(key, { generation, byFilter });
}

function keyOf({ collection, userId }: UserSet): string {
  return `${collection._id.toHexString()} ${userId}`;
}

function positionOf(app: Pick<App, 'db'>, collection: Collection): { epoch: number; seq: number } | null {
  return app.db.changeLogs?.position(documentsName(collection)) ?? null;
}

/** Drops what has changed since: what is kept afterwards is as of a moment after the call. */
async function followLog(app: App, { collection, set }: UserSet): Promise<LogFollower> {
  const { followers } = cacheOf(app);
  const id = collection._id.toHexString();
  let follower = followers.get(id);
  if (!follower) {
    follower = { epoch: -1, seq: -1, generation: 0, userPaths: new Set(), reading: Promise.resolve() };
    followers.set(id, follower);
  }
  follower.userPaths.add(set.userPath);
  const end = positionOf(app, collection);
  if (!end) {
    await beginEngineLog(app, collection);
    follower.generation++;
    return follower;
  }
  const own = follower;
  follower.reading = follower.reading.then(() => readOn(app, collection, own, end));
  await follower.reading;
  return follower;
}

async function readOn(
  app: App,
  collection: Collection,
  follower: LogFollower,
  end: { epoch: number; seq: number },
): Promise<void> {
  const { kept } = cacheOf(app);
  const startOver = (): void => {
    follower.generation++;
    follower.epoch = end.epoch;
    follower.seq = end.seq;
  };
  if (follower.epoch !== end.epoch || end.seq - follower.seq > MAX_FOLLOWED) {
    startOver();
    return;
  }
  const id = collection._id.toHexString();
  while (follower.seq < end.seq) {
    const users = await findConcerned(app, collection, follower).catch(() => null);
    if (!users) {
      startOver();
      return;
    }
    for (const user of users.ids) kept.delete(`${id} ${user}`);
    follower.seq = users.seq;
  }
}

/** The users whose memberships changed; null if unknown. */
async function findConcerned(
  app: App,
  collection: Collection,
  { epoch, seq: after, userPaths }: LogFollower,
): Promise<{ ids: Set<Literal>; seq: number } | null> {
  const found = await app.db.changeLogs?.read(documentsName(collection), {
    epoch,
    after,
    filter: {},
    earlierAccess: {},
    earlierConditions: {},
    limit: CHUNK,
    maxBytes: CHUNK_BYTES,
    earlierOf: CHUNK,
  });
  if (!found || found.seq === after) return null;
  const ids = valuesOfChanges(found.changes, [...userPaths]);
  return ids && { ids, seq: found.seq };
}

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

/** What answers it inside of one decision about a write, in which a question has one answer. */
export type WriterSets = (exists: Exists) => AskSet;

/** For what no set decides about. */
export const askNothing: AskSet = () => false;

/** Where no rule names a set. */
export const NO_SETS: WriterSets = () => askNothing;

/**
 * Opens the sets of rules for a decision inside of a write, which asks of a document at hand by what is stored at that
 * moment: a set of any size. A promise only when it takes time.
 */
export function openWriterSets(
  app: App,
  { project }: Pick<Caller, 'project'>,
  attributes: CallerAttributes,
  sets: readonly CallerSet[],
): WriterSets | Promise<WriterSets> {
  const names = [...new Set(sets.map(({ collection }) => collection))];
  const found = names.map((name) => peekCollection(app, project._id, name) ?? findCollection(app, project._id, name));
  return whenKnown(found, (collections): WriterSets => (exists) => {
    const answers = new Map<string, boolean>();
    return (question, document) => {
      const { set, value, path } = question;
      const key = value === undefined ? null : keyOfQuestion(question);
      const known = key === null ? undefined : answers.get(key);
      if (known !== undefined) return known;
      const collection = collections[names.indexOf(set.collection)];
      const members = collection && setFilter(set, attributes);
      if (!members) return false;
      const asked = value === undefined ? valuesAt(document, storedPath(path!).split('.')) : [value];
      const filter = holdsAny(set, asked);
      const isHeld =
        filter !== null && exists(documentsName(collection), { $and: [members, filter], isDeleted: false });
      if (key !== null) answers.set(key, isHeld);
      return isHeld;
    };
  });
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
