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
}

/** Of so many sessions the last transaction is known. */
const MOST_SESSIONS = 1000;

/**
 * The transactions of clients, by their sessions. Between two commands nothing is locked: each command carries out all
 * that came before it again, in a transaction of the engine that is undone, and the commit does so in one that is kept.
 * Whatever is answered otherwise then was changed by others: a write conflict (112), after which the client begins
 * again.
 */
export class Transactions {
  private readonly sessions = new Map<string, Transaction>();

  /** Begins the transaction, in the place of an earlier one of the session. */
  begin(session: string, number: unknown): void {
    this.sessions.delete(session);
    this.sessions.set(session, { number, state: 'open', steps: [] });
    const [oldest] = this.sessions.keys();
    if (this.sessions.size > MOST_SESSIONS) this.sessions.delete(oldest!);
  }

  /** The reply to the next command. Every refusal ends the transaction. */
  async run(storage: Storage, session: string, number: unknown, prepare: () => Inside): Promise<Doc> {
    const transaction = this.openOne(session, number);
    try {
      const run = prepare();
      const reply = await tryOut(storage, () => {
        repeat(storage, transaction);
        return run(storage);
      });
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
      repeat(storage, transaction);
    });
    transaction.state = 'committed';
    transaction.steps.length = 0;
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
  constructor(readonly reply: Doc) {
    super('carried out to be undone');
  }
}

async function tryOut(storage: Storage, run: () => Doc): Promise<Doc> {
  try {
    return await storage.queue.write(() => {
      throw new Undone(run());
    });
  } catch (error) {
    if (error instanceof Undone) return error.reply;
    throw error;
  }
}
