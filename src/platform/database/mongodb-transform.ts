import { setTimeout as wait } from 'node:timers/promises';
import type { ClientSession, Collection, Db, Document, MongoClient, MongoError } from 'mongodb';
import { EJSON, ObjectId } from 'bson';
import { conflict } from '../../errors.js';

type Stored = Record<string, unknown>;
/** By any `_id`. */
type Keyed = Document & { _id: string };

/** As the engine takes it; only the database's own module knows that. */
export interface MongodbTurn {
  collection: string;
  id: unknown;
  isNew?: boolean | undefined;
  run: (
    stored: Stored | null,
    exists: (collection: string, filter: object, keep?: boolean) => boolean,
    read: (collection: string, id: unknown, fields: ReadonlySet<string>) => Stored | null,
  ) => Stored | null;
}

interface Written {
  before: Stored | null;
  after: Stored | null;
}

/** A decision asks what has to be read first: it is made again with the answer. */
export class Asked extends Error {
  constructor(
    readonly key: string,
    readonly collection: string,
    readonly filter: object,
    readonly keep: boolean,
    readonly fields: ReadonlySet<string> = new Set(['_id']),
  ) {
    super('a decision has to know more');
  }
}

/** One write has at most 1,000 references, each of which a rule may ask four sets about. */
const MAX_ASKED = 5_000;

/** Written into a document on which a transaction depends, so that no other one changes it before it ends. */
export const HELD_PATH = '_bsvc.held';

/** The driver alone would try for two minutes. */
export const MAX_ATTEMPTS = 20;

export const TRANSACTION = {
  readConcern: { level: 'snapshot' },
  writeConcern: { w: 'majority' },
  readPreference: 'primary',
} as const;

/** The 409 for what others change all the time. */
export function changedByOthers(): Error {
  return conflict('DOCUMENT_CHANGING', 'The documents were changed concurrently. Try again', {
    retryAfterSeconds: 1,
  });
}

/** The service's notes, which others change without a new version: compared where the decision changes them. */
const NOTES = '_bsvc';

/** The last work under each key that this process is doing: its own writers stand in line. */
const lines = new Map<string, Promise<unknown>>();

/**
 * `Database.transform`: read, decide, and store if the document is of the same version still, again where it is not. A
 * decision that asks for what has to be kept is made and stored in a transaction.
 */
export function transformAlone(client: MongoClient, db: Db, turn: MongodbTurn): Promise<Written> {
  return inLine(keyOf(turn), () => untilStored(client, db, turn));
}

/** Does work when what this process began before under the same key has ended. */
export async function inLine<T>(key: string, work: () => Promise<T>): Promise<T> {
  const mine = (lines.get(key) ?? Promise.resolve()).then(work);
  const settled = mine.catch(() => undefined);
  lines.set(key, settled);
  try {
    return await mine;
  } finally {
    if (lines.get(key) === settled) lines.delete(key);
  }
}

const idOf = ({ id }: MongodbTurn): { _id: string } => ({ _id: id as string });

/**
 * `Database.transformTogether`: what others change at the same moment has the driver begin the transaction again. Those
 * of this process that begin with the same document stand in line.
 */
export function transformInLine(client: MongoClient, db: Db, turns: readonly MongodbTurn[]): Promise<Written[]> {
  return inLine(keyOf(turns[0]!), () => transformInTransaction(client, db, turns));
}

async function untilStored(client: MongoClient, db: Db, turn: MongodbTurn): Promise<Written> {
  const stored: Collection<Keyed> = db.collection(turn.collection);
  for (let made = 0; made < MAX_ATTEMPTS; made++) {
    if (made > 0) await wait(Math.random() * 2 ** Math.min(made, 6));
    const before = turn.isNew && made === 0 ? null : ((await stored.findOne(idOf(turn))) as Stored | null);
    let after: Stored | null;
    try {
      after = await decide(turn, before, (asked) => {
        if (asked.keep) throw asked;
        return look(db, asked, {});
      });
    } catch (error) {
      if (error instanceof Asked) return (await transformInTransaction(client, db, [turn]))[0]!;
      throw error;
    }
    if (after === before || (await isStored(stored, before, after))) return { before, after };
  }
  throw changedByOthers();
}

/** Whether the change was stored; false after a concurrent change. */
async function isStored(stored: Collection<Keyed>, before: Stored | null, after: Stored | null): Promise<boolean> {
  if (before === null) {
    try {
      await stored.insertOne(after as Keyed);
      return true;
    } catch (error) {
      const { code, keyPattern } = error as { code?: unknown; keyPattern?: object };
      if (code === 11_000 && keyPattern && Object.hasOwn(keyPattern, '_id')) return false;
      throw error;
    }
  }
  const version: Stored = { _id: before._id, updatedAt: before.updatedAt ?? null };
  if (after?.[NOTES] !== before[NOTES]) version[NOTES] = before[NOTES] ?? null;
  if (after === null) return (await stored.deleteOne(version)).deletedCount === 1;
  return (await stored.updateOne(version, difference(before, after))).matchedCount === 1;
}

/** The server refused one of several documents without saying which. */
class OneRefused extends Error {}

async function transformInTransaction(client: MongoClient, db: Db, turns: readonly MongodbTurn[]): Promise<Written[]> {
  let attempts = 0;
  const run = (isBatched: boolean): Promise<Written[]> =>
    client.withSession((session) =>
      session.withTransaction(async () => {
        if (++attempts > MAX_ATTEMPTS) throw changedByOthers();
        return transformInside(db, session, turns, isBatched);
      }, TRANSACTION),
    );
  try {
    return await run(true);
  } catch (error) {
    if (error instanceof OneRefused) return run(false);
    throw error;
  }
}

/**
 * The documents of a transaction that is under way, read by one command for each collection, and new ones that follow
 * one another stored by one. `step` of the server's refusal is the number of the document.
 */
async function transformInside(
  db: Db,
  session: ClientSession,
  turns: readonly MongodbTurn[],
  isBatched = true,
): Promise<Written[]> {
  const current = await readAll(db, session, turns);
  const written: Written[] = [];
  const added: { step: number; collection: string; document: Stored }[] = [];
  const flush = async (): Promise<void> => {
    const [first] = added;
    if (!first) return;
    const documents = added.map(({ document }) => document);
    const command = { insert: first.collection, documents };
    const answer = await db.command(command, { session, ignoreUndefined: true }).catch((error: unknown) => {
      if ((error as Partial<MongoError>).hasErrorLabel?.('TransientTransactionError')) throw error;
      throw added.length > 1 ? new OneRefused() : Object.assign(error as Error, { step: first.step });
    });
    const [refusal] = (answer.writeErrors ?? []) as { index: number; errmsg: string }[];
    if (refusal) throw Object.assign(new Error(refusal.errmsg), refusal, { step: added[refusal.index]!.step });
    added.length = 0;
  };
  for (const [step, turn] of turns.entries()) {
    const key = keyOf(turn);
    const before = current.get(key) ?? null;
    const after = await decide(turn, before, async (asked) => {
      await flush();
      return look(db, asked, { session });
    });
    written.push({ before, after });
    if (after === before) continue;
    current.set(key, after);
    const isNew = before === null && after !== null;
    if (!isNew || !isBatched || added[0]?.collection !== turn.collection) await flush();
    if (isNew) {
      added.push({ step, collection: turn.collection, document: after });
      continue;
    }
    const stored: Collection<Keyed> = db.collection(turn.collection);
    try {
      if (after === null) await stored.deleteOne(idOf(turn), { session });
      else await stored.updateOne(idOf(turn), difference(before!, after), { session });
    } catch (error) {
      throw Object.assign(error as Error, { step });
    }
  }
  await flush();
  return written;
}

const keyOf = ({ collection, id }: MongodbTurn): string => `${collection} ${EJSON.stringify(id)}`;

async function readAll(
  db: Db,
  session: ClientSession,
  turns: readonly MongodbTurn[],
): Promise<Map<string, Stored | null>> {
  const found = new Map<string, Stored | null>();
  const known = turns.filter(({ isNew }) => !isNew);
  for (const collection of new Set(known.map((turn) => turn.collection))) {
    const ids = known.filter((turn) => turn.collection === collection).map(({ id }) => id);
    const documents = await db
      .collection<Keyed>(collection)
      .find({ _id: { $in: ids as string[] } }, { session })
      .toArray();
    for (const document of documents) found.set(`${collection} ${EJSON.stringify(document._id)}`, document);
  }
  return found;
}

async function decide(
  { run }: MongodbTurn,
  before: Stored | null,
  answer: (asked: Asked) => Promise<Stored | null>,
): Promise<Stored | null> {
  const known = new Map<string, Stored | null>();
  const find = (...[collection, filter, keep, fields]: Question): Stored | null => {
    const key = `${collection} ${EJSON.stringify([filter, ...(fields ?? [])])}`;
    const found = known.get(key);
    if (found === undefined) throw new Asked(key, collection, filter, keep, fields);
    return found;
  };
  for (;;) {
    try {
      return run(
        before,
        (collection, filter, keep = false) => find(collection, filter, keep) !== null,
        (collection, id, fields) => find(collection, { _id: id }, true, fields),
      );
    } catch (error) {
      if (!(error instanceof Asked)) throw error;
      if (known.size === MAX_ASKED) throw new Error('a decision does not settle: it asks something else each time');
      known.set(error.key, await answer(error));
    }
  }
}

type Question = [collection: string, filter: object, keep: boolean, fields?: ReadonlySet<string>];

/** In a transaction what is kept is written to, so that another one that changes it cannot be committed beside it. */
async function look(
  db: Db,
  { collection, filter, keep, fields }: Asked,
  { session }: { session?: ClientSession },
): Promise<Stored | null> {
  const stored = db.collection(collection);
  const projection = Object.fromEntries([...fields].map((name) => [name, 1]));
  if (!session) return stored.findOne(filter, { projection, readConcern: { level: 'majority' } });
  if (!keep) return stored.findOne(filter, { projection, session });
  return stored.findOneAndUpdate(filter, { $set: { [HELD_PATH]: new ObjectId() } }, { projection, session });
}

/** Only what is not the very same: what other programs have stored of the rest stays as it is. */
function difference(before: Stored, after: Stored): Document {
  const set: Stored = {};
  const unset: Stored = {};
  for (const name of Object.keys(after)) if (before[name] !== after[name]) set[name] = after[name];
  for (const name of Object.keys(before)) if (!Object.hasOwn(after, name)) unset[name] = '';
  return {
    ...(Object.keys(set).length > 0 && { $set: set }),
    ...(Object.keys(unset).length > 0 && { $unset: unset }),
  };
}
