import type { Db, Document, MongoClient, ClientSession } from 'mongodb';
import { EJSON, ObjectId } from 'bson';
import {
  changedByOthers,
  HELD_PATH,
  MAX_ATTEMPTS,
  TRANSACTION,
  Asked,
  transformInside,
  type MongodbTurn,
} from './mongodb-transform.js';

/** As the engine takes them; only the database's own module knows that. */
type WriteStep = { collection: string } & (
  | { insert: object }
  | { filter: object; update: object }
  | { filter: object; remove: true }
  | { filter: object; matches: boolean }
  | Omit<MongodbTurn, 'collection'>
);

/** Many documents at once, of which nobody asks what has been written. */
interface Insertion {
  collection: string;
  documents: readonly Document[];
}

interface WrittenStep {
  before: Document | null;
  after: Document | null;
}

/**
 * A step was refused, or matched nothing, or something that it must not (`cause` is null then): none of the steps was
 * carried out.
 */
class StepRefused extends Error {
  constructor(
    readonly step: number,
    override readonly cause: unknown,
  ) {
    super(`step ${step} of a batch was refused`);
  }
}

/**
 * Carries writes out together by a transaction, as `Database.writeTogether` says. What
 * others change at the same moment has the driver begin the transaction again, 409 DOCUMENT_CHANGING after twenty
 * times; a commit whose answer was lost it repeats.
 */
export async function writeInTransaction(
  client: MongoClient,
  db: Db,
  steps: readonly (WriteStep | Insertion)[],
): Promise<WrittenStep[]> {
  let at = 0;
  let attempts = 0;
  try {
    return await client.withSession((session) =>
      session.withTransaction(async () => {
        if (++attempts > MAX_ATTEMPTS) throw changedByOthers();
        const written = new WrittenSteps();
        for (const [n, step] of steps.entries()) {
          at = n;
          if ('documents' in step) await insertAll(db, session, step);
          else await carryOut(db, session, step, written);
        }
        return written.finish(db, session);
      }, TRANSACTION),
    );
  } catch (error) {
    if (error === NOTHING_MATCHED) throw new StepRefused(at, null);
    if (error instanceof DecisionRefused) throw new StepRefused(at, error.cause);
    // Of the others the one who asked makes a refusal or a fault.
    throw isRefusal(error) ? new StepRefused(at, error) : error;
  }
}

/**
 * Stores all of the documents or none, if the conditions hold then: `Database.insertTogether`. A refused document is
 * the driver's own error.
 */
export async function insertInTransaction(
  client: MongoClient,
  db: Db,
  collection: string,
  documents: readonly Document[],
  conditions: readonly Extract<WriteStep, { matches: boolean }>[] = [],
): Promise<void> {
  try {
    await writeInTransaction(client, db, [...conditions, { collection, documents }]);
  } catch (error) {
    throw error instanceof StepRefused && error.cause !== null ? error.cause : error;
  }
}

const NOTHING_MATCHED = new Error('nothing matched');

/** What a decision has thrown. */
class DecisionRefused extends Error {
  constructor(override readonly cause: unknown) {
    super('a decision refused a step of a batch');
  }
}

/** True for what the server says of a step; not for one that could not be asked. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && error.name === 'MongoServerError';
}

/**
 * The documents before and after each step. What stands after an update is what the next step of its document finds, or
 * is read once at the end.
 */
class WrittenSteps {
  private readonly steps: WrittenStep[] = [];
  /** Those whose document afterwards is not known yet, by collection and id. */
  private readonly open = new Map<string, { collection: string; id: unknown; step: WrittenStep }>();

  add(collection: string, step: WrittenStep, isKnown: boolean): void {
    this.steps.push(step);
    const id: unknown = (step.before ?? step.after)?._id;
    const key = `${collection} ${EJSON.stringify(id)}`;
    const earlier = this.open.get(key);
    if (earlier) earlier.step.after = step.before;
    if (isKnown) this.open.delete(key);
    else this.open.set(key, { collection, id, step });
  }

  async finish(db: Db, session: ClientSession): Promise<WrittenStep[]> {
    const open = [...this.open.values()];
    for (const name of new Set(open.map(({ collection }) => collection))) {
      const wanted = open.filter(({ collection }) => collection === name);
      const filter = { _id: { $in: wanted.map(({ id }) => id) } } as Document;
      const found = await db.collection(name).find(filter, { session }).toArray();
      const byId = new Map(found.map((document) => [EJSON.stringify(document._id), document]));
      for (const { id, step } of wanted) step.after = byId.get(EJSON.stringify(id)) ?? null;
    }
    return this.steps;
  }
}

/** By one command, whose refusal is that of its document: the driver's `insertMany` hides it in one of its own. */
async function insertAll(db: Db, session: ClientSession, { collection, documents }: Insertion): Promise<void> {
  const command = { insert: collection, documents };
  const answer = await db.command(command, { session, ignoreUndefined: true });
  const [refusal] = (answer.writeErrors ?? []) as { errmsg: string }[];
  if (refusal) throw Object.assign(new Error(refusal.errmsg), refusal);
}

async function carryOut(db: Db, session: ClientSession, step: WriteStep, written: WrittenSteps): Promise<void> {
  const stored = db.collection<Document & { _id: unknown }>(step.collection);
  if ('insert' in step) {
    await stored.insertOne(step.insert as Document & { _id: unknown }, { session });
    written.add(step.collection, { before: null, after: step.insert }, true);
    return;
  }
  if ('run' in step) {
    const refusing = { ...step, run: refusingRun(step.run) };
    written.add(step.collection, (await transformInside(db, session, [refusing]))[0]!, true);
    return;
  }
  if ('matches' in step) {
    const found = step.matches
      ? await stored.findOneAndUpdate(
          step.filter,
          { $set: { [HELD_PATH]: new ObjectId() } },
          { session, projection: ID },
        )
      : await stored.findOne(step.filter, { session, projection: ID });
    if ((found !== null) !== step.matches) throw NOTHING_MATCHED;
    written.add(step.collection, { before: null, after: null }, true);
    return;
  }
  const before =
    'remove' in step
      ? await stored.findOneAndDelete(step.filter, { session })
      : await stored.findOneAndUpdate(step.filter, step.update, { session, returnDocument: 'before' });
  if (before === null) throw NOTHING_MATCHED;
  written.add(step.collection, { before, after: null }, 'remove' in step);
}

/** The decision, whose own refusals can be told from the server's. */
function refusingRun(run: MongodbTurn['run']): MongodbTurn['run'] {
  return (...given) => {
    try {
      return run(...given);
    } catch (error) {
      throw error instanceof Asked ? error : new DecisionRefused(error);
    }
  };
}

const ID = { _id: 1 } as const;
