import type { Doc } from '../codec/document.js';
import { encodeDocument } from '../codec/encode.js';
import { CODES, EngineError } from '../errors.js';
import type { Storage } from '../storage/storage.js';

/** A command of a transaction, as it is carried out inside a write transaction of the engine; may run several times. */
export type Inside = (storage: Storage) => Doc;

interface Transaction {
  readonly number: unknown;
  state: 'open' | 'committed' | 'aborted';
  /** What it has done so far, with the reply that its client was given. */
  readonly steps: { readonly run: Inside; readonly reply: Buffer }[];
  written: Written | null;
}

/** All that a transaction has written so far, by key, in a database whose next commit had this id then. */
interface Written {
  readonly next: number;
  readonly entries: ReadonlyMap<string, Buffer | null>;
}

/** Of so many sessions the last transaction is known. */
const MOST_SESSIONS = 1000;

/**
 * The transactions of clients, by their sessions. Between two commands nothing is locked: each command has one of the
 * engine's that is undone, and the commit one that is kept. What came before it is written again there as it was; if
 * anybody has committed since, it is carried out again, and whatever is answered otherwise then was changed by others:
 * a write conflict (112), after which the client begins again.
 */
export class Transactions {
  private readonly sessions = new Map<string, Transaction>();

  /** Begins the transaction, in the place of an earlier one of the session. */
  begin(session: string, number: unknown): void {
    this.sessions.delete(session);
    this.sessions.set(session, { number, state: 'open', steps: [], written: null });
    const [oldest] = this.sessions.keys();
    if (this.sessions.size > MOST_SESSIONS) this.sessions.delete(oldest!);
  }

  /** The reply to the next command. Every refusal ends the transaction. */
  async run(storage: Storage, session: string, number: unknown, prepare: () => Inside): Promise<Doc> {
    const transaction = this.openOne(session, number);
    try {
      const run = prepare();
      const { reply, written } = await tryOut(storage, () => carryOn(storage, transaction, run));
      transaction.written = written;
      transaction.steps.push({ run, reply: encodeDocument(reply) });
      return reply;
    } catch (error) {
      transaction.state = 'aborted';
      throw error;
    }
  }

  /** Keeps all that the transaction has done; once more, when the answer was lost, is no error. */
  async commit(storage: Storage, session: string, number: unknown): Promise<Doc> {
    const known = this.sessions.get(session);
    if (known?.state === 'committed' && known.number === number) return {};
    const transaction = this.openOne(session, number);
    transaction.state = 'aborted';
    await storage.queue.write(() => {
      if (!isBroughtBack(storage, transaction)) repeat(storage, transaction);
    });
    transaction.state = 'committed';
    transaction.steps.length = 0;
    transaction.written = null;
    return {};
  }

  abort(session: string, number: unknown): Doc {
    this.openOne(session, number).state = 'aborted';
    return {};
  }

  private openOne(session: string, number: unknown): Transaction {
    const transaction = this.sessions.get(session);
    if (transaction?.state === 'open' && transaction.number === number) return transaction;
    throw new EngineError(CODES.NoSuchTransaction, 'the session has no such transaction under way', TRANSIENT);
  }
}

/** With this label drivers begin the transaction again. */
const TRANSIENT = { errorLabels: ['TransientTransactionError'] };

interface Trial {
  reply: Doc;
  written: Written;
}

function carryOn(storage: Storage, transaction: Transaction, run: Inside): Trial {
  const { queue, catalog, environment } = storage;
  const next = environment.store.getWriteTxnId();
  const isKnown = isBroughtBack(storage, transaction);
  const entries = new Map(isKnown ? transaction.written!.entries : []);
  queue.noted = entries;
  try {
    if (!isKnown) repeat(storage, transaction);
    const reply = run(storage);
    // The counts are a part of what is written; others have theirs in the same transaction.
    if (entries.size > 0) catalog.finishTransaction();
    return { reply, written: { next, entries } };
  } finally {
    queue.noted = null;
  }
}

/** Writes what the transaction has written so far; false, and nothing, when the database is another one than then. */
function isBroughtBack({ queue, catalog, environment }: Storage, { written }: Transaction): boolean {
  if (written === null || !queue.isUntouched() || environment.store.getWriteTxnId() !== written.next) return false;
  queue.repeat(written.entries);
  catalog.refresh();
  return true;
}

function repeat(storage: Storage, { steps }: Transaction): void {
  for (const { run, reply } of steps) {
    let again: Buffer | null;
    try {
      again = encodeDocument(run(storage));
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      again = null;
    }
    if (again?.equals(reply) !== true) throw conflict();
  }
}

function conflict(): EngineError {
  return new EngineError(CODES.WriteConflict, 'another client has changed what this transaction depends on', TRANSIENT);
}

/** What a trial has come to, thrown so that nothing of it is kept. */
class Undone extends Error {
  constructor(readonly trial: Trial) {
    super('carried out to be undone');
  }
}

async function tryOut(storage: Storage, run: () => Trial): Promise<Trial> {
  try {
    return await storage.queue.write(() => {
      throw new Undone(run());
    });
  } catch (error) {
    if (error instanceof Undone) return error.trial;
    throw error;
  }
}
