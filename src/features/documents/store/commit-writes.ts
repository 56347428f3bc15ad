import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import type { Exists, ReadFields, WriteTurn, WrittenStep } from '../../../platform/database/database.js';
import { OURS, ownTurn, takeTurns } from '../../../scheduler.js';
import { notifyFollowers } from '../../changes/change-log.js';
import { type Collection, documentsName } from '../../collections/collection.js';
import { isOfHook } from '../../hooks/before-calls.js';
import { eventTurns, relayLater, type Listeners } from '../../webhooks/events/queue-events.js';
import type { Action } from '../../webhooks/webhook-event.js';
import type { StoredDocument } from './document.js';
import { TRANSACTION_TOO_LARGE, explainWriteError } from './explain-write-error.js';

/** The write of one document, a new one or a stored one, decided inside of its transaction. */
export interface DecidedWrite {
  collection: Collection;
  id: ObjectId;
  action: Action;
  /** For whom its event is stored; null for nobody. */
  listeners: Listeners | null;
  /** The service's own notes change, of which no follower is told. */
  isNote?: boolean;
  /**
   * Answers what is stored from now on: null for nothing, the same object for no change. `stored` is null where there
   * is no document. Throws why the write is refused, or AskOutside. May run several times. `fill` sets fields of the
   * project's own code before the document is judged.
   */
  decide: (stored: StoredDocument | null, exists: Exists, read: ReadFields, fill?: Fill) => StoredDocument | null;
  /** Further writes that come right after it, and go with it. */
  also?: readonly DecidedWrite[];
  /** What is done here to a document that refers to another which went or came back. */
  cascaded?: string;
  /** Turns of the service's own that come after all of the writes, where this one has changed something. */
  follow?: readonly WriteTurn[];
}

/** Answers a copy of a document with further fields. */
export type Fill = (document: StoredDocument) => StoredDocument;

/** A document before and after its write; null where there was or is none. */
export interface Committed {
  before: StoredDocument | null;
  after: StoredDocument | null;
}

interface CommitOptions {
  /** A record of the service's own, stored in the same transaction before the documents. */
  first?: WriteTurn | undefined;
  /** The refusal of the write at a position. */
  naming?: (error: AppError, index: number) => unknown;
}

/** As many documents as take less than a turn of the event loop. */
const FEW = 10;
/** What precedes and follows a transaction of many is done in turns of so much; it has one of its own. */
export const TOGETHER_MS = 2;

/**
 * Carries out one write, with its further ones. Followers and webhooks receive an event for each change. Throws why it
 * is refused.
 */
export function commitWrite(app: App, write: DecidedWrite, first?: WriteTurn): Promise<Committed> {
  const { collection, id, decide, action, also, follow, listeners } = write;
  if (listeners || also?.length || follow?.length || first) {
    return commitWrites(app, [write], { first }).then(([written]) => written!);
  }
  const name = documentsName(collection);
  const store = (): Promise<WrittenStep> => app.db.transform(name, id, decide as WriteTurn['run'], action === 'insert');
  return carryOut(app, action === 'delete', store).then(
    (step) => {
      announce(app, write, step as Committed);
      return step as Committed;
    },
    (error: unknown) => {
      throw explainWriteError(error);
    },
  );
}

/** Carries writes out in one transaction, in their order, each seeing those before it: all or none. As commitWrite. */
export async function commitWrites(
  app: App,
  writes: readonly DecidedWrite[],
  { first, naming }: CommitOptions = {},
): Promise<Committed[]> {
  const all: DecidedWrite[] = [];
  const places: number[] = [];
  const follow: WriteTurn[] = [];
  for (const write of writes) {
    places.push(all.length);
    all.push(write);
    if (write.also) all.push(...write.also);
  }
  let at = -1;
  const turns: WriteTurn[] = first ? [first] : [];
  const changes: Committed[] = [];
  for (const [index, { collection, id, decide, follow: after = [] }] of all.entries()) {
    turns.push({
      ...{ collection: documentsName(collection), id },
      run(stored, exists, read) {
        at = index;
        const before = stored as StoredDocument | null;
        changes[index] = { before, after: decide(before, exists, read) };
        return changes[index].after;
      },
    });
    const isDone = (): boolean => changes[index]!.after !== changes[index]!.before;
    for (const turn of after) {
      follow.push({ ...turn, run: (kept, ...asking) => (isDone() ? turn.run(kept, ...asking) : kept) });
    }
  }
  const events = eventTurns(app, all, changes);
  turns.push(...follow, ...events);
  const isLarge = all.length > FEW;
  const [only] = turns;
  const store = (): Promise<WrittenStep[]> =>
    turns.length === 1
      ? app.db.transform(only!.collection, only!.id, only!.run, writes[0]?.action === 'insert').then((step) => [step])
      : app.db.transformTogether(turns);
  let written: WrittenStep[];
  try {
    if (isLarge) await ownTurn();
    const makesRoom = writes.every(({ action }) => action === 'delete');
    written = await carryOut(app, makesRoom, store);
    if (isLarge) await ownTurn();
  } catch (error) {
    if (all.length > writes.length && (error as { code?: unknown }).code === TRANSACTION_TOO_LARGE) {
      // The job does the further ones.
      return commitWrites(
        app,
        writes.map((write) => ({ ...write, also: [] })),
        { first, naming },
      );
    }
    const explained = explainWriteError(error);
    const { step } = error as { step?: number };
    const index = places.findLastIndex((place) => place <= (step === undefined ? at : step - (first ? 1 : 0)));
    // Own code refuses all that it was asked about.
    const isNamed = naming && explained instanceof AppError && index >= 0 && !isOfHook(explained);
    throw isNamed ? naming(explained, index) : explained;
  }
  if (follow.length > 0) app.jobs.wake();
  const from = first ? 1 : 0;
  const committed = written.slice(from, from + all.length) as Committed[];
  relayLater(app, written.slice(turns.length - events.length));
  const turn = isLarge ? takeTurns(OURS, TOGETHER_MS) : null;
  for (const [index, each] of committed.entries()) {
    if (turn) await turn();
    announce(app, all[index]!, each);
  }
  return places.map((place) => committed[place]!);
}

/** Notifies followers of a write that has changed something. */
function announce(app: App, { collection, cascaded, isNote }: DecidedWrite, { before, after }: Committed): void {
  if (after === before || isNote) return;
  if (cascaded) app.metrics.event('cascaded_references', cascaded);
  notifyFollowers(app, collection);
}

/**
 * Thrown by a decision inside of a write that needs what takes time: once `answer` has found it the decision is made
 * again. What `answer` throws refuses the write.
 */
export class AskOutside extends Error {
  constructor(readonly answer: () => Promise<void>) {
    super('a decision has to know more');
  }
}

/** So often a decision asks before it is made. */
const MAX_ASKED = 100;

/** Stores until the decisions ask nothing more. What `makesRoom`, removing documents, goes on when the disk is full. */
function carryOut<T>(app: App, makesRoom: boolean, store: () => Promise<T>, asked = 0): Promise<T> {
  return (makesRoom ? app.db.useReserve(store) : store()).catch(async (error: unknown) => {
    const { cause } = error as { cause?: unknown };
    const ask = error instanceof AskOutside ? error : cause;
    if (!(ask instanceof AskOutside) || asked === MAX_ASKED) throw error;
    try {
      await ask.answer();
    } catch (refusal) {
      // Of several writes the error says which one has asked.
      throw ask === error ? refusal : Object.assign(error as Error, { cause: refusal });
    }
    return carryOut(app, makesRoom, store, asked + 1);
  });
}

/** Looks at a document, or at none, by what is stored of others at the same moment. */
export async function lookAt<T>(
  app: App,
  collection: Collection,
  id: ObjectId,
  look: (stored: StoredDocument | null, exists: Exists) => T,
): Promise<T> {
  let seen: T;
  await app.db.transform(documentsName(collection), id, (stored, exists) => {
    seen = look(stored as StoredDocument | null, exists);
    return stored;
  });
  return seen!;
}
