import { ObjectId } from 'bson';
import type { ClientSession, Collection, Db, Document, MongoClient } from 'mongodb';
import { changedByOthers, HELD_PATH, inLine, MAX_ATTEMPTS, TRANSACTION } from './mongodb-transform.js';

type Stored = Record<string, unknown>;
/** By any `_id`. */
type Keyed = Document & { _id: string };

/** As the engine gives it; only the database's own module knows that. */
interface Tx {
  get<T extends object>(collection: string, id: unknown): T | null;
  exists(collection: string, filter: object, keep?: boolean): boolean;
  put(collection: string, document: object): void;
  remove(collection: string, id: unknown): void;
}

/** What a transaction has asked or written; a read has an answer. */
interface Step {
  isRead: boolean;
  carryOut(): Promise<Stored | null>;
}

/** Ends a run that cannot go on without an answer. */
const UNANSWERED = new Error('a transaction has to know more');

/**
 * `Database.transaction`: `run` is repeated until it has all answers, each of which is read inside of the transaction
 * after the writes before it. Where others change the same, the driver begins it again.
 */
export function replayInTransaction<T>(client: MongoClient, db: Db, run: (tx: Tx) => T, line?: string): Promise<T> {
  let attempts = 0;
  const begin = (): Promise<T> =>
    client.withSession((session) =>
      session.withTransaction(() => {
        if (++attempts > MAX_ATTEMPTS) throw changedByOthers();
        return replay(db, session, run);
      }, TRANSACTION),
    );
  return line === undefined ? begin() : inLine(`line ${line}`, begin);
}

async function replay<T>(db: Db, session: ClientSession, run: (tx: Tx) => T): Promise<T> {
  /** What the first steps came to: they are the same ones in each run. */
  const answers: (Stored | null)[] = [];
  for (;;) {
    const open: Step[] = [];
    let at = 0;
    let isUnanswered = false;
    /** Documents that were read and not written. */
    const read = new Map<string, () => Promise<unknown>>();
    const written = new Set<string>();
    const take = (step: Step): Stored | null => {
      if (at < answers.length) return answers[at++]!;
      if (isUnanswered) throw UNANSWERED;
      open.push(step);
      if (step.isRead) {
        isUnanswered = true;
        throw UNANSWERED;
      }
      return null;
    };
    const write = (name: string, id: unknown, store: (documents: Collection<Keyed>) => Promise<unknown>): void => {
      read.delete(keyOf(name, id));
      written.add(keyOf(name, id));
      take({ isRead: false, carryOut: () => store(db.collection(name)).then(() => null) });
    };
    const tx: Tx = {
      get<T extends object>(name: string, id: unknown) {
        const documents: Collection<Keyed> = db.collection(name);
        const own = { _id: id as string };
        const found = take({ isRead: true, carryOut: () => documents.findOne(own, { session }) });
        const key = keyOf(name, id);
        if (found && !written.has(key)) read.set(key, () => hold(documents, own, session));
        return found as T | null;
      },
      exists(name, filter, keep = false) {
        const documents: Collection<Keyed> = db.collection(name);
        const projection = { _id: 1 };
        const carryOut = (): Promise<Stored | null> =>
          keep ? hold(documents, filter, session) : documents.findOne(filter, { session, projection });
        return take({ isRead: true, carryOut }) !== null;
      },
      put(name, document) {
        const { _id, ...fields } = document as Stored;
        const own = { _id: _id as string };
        write(name, _id, (documents) => documents.replaceOne(own, fields, { session, upsert: true }));
      },
      remove(name, id) {
        write(name, id, (documents) => documents.deleteOne({ _id: id as string }, { session }));
      },
    };
    let result: { given: T } | null = null;
    try {
      result = { given: run(tx) };
    } catch (error) {
      if (!isUnanswered) throw error;
    }
    for (const step of open) answers.push(await step.carryOut());
    if (result && !isUnanswered) {
      for (const keep of read.values()) await keep();
      return result.given;
    }
  }
}

const keyOf = (name: string, id: unknown): string => `${name} ${String(id)}`;

/** Writes to what a transaction rests on, so that another one that changes it cannot be committed beside it. */
function hold(documents: Collection<Keyed>, filter: object, session: ClientSession): Promise<Stored | null> {
  const mark = { $set: { [HELD_PATH]: new ObjectId() } };
  return documents.findOneAndUpdate(filter, mark, { session, projection: { _id: 1 } });
}
