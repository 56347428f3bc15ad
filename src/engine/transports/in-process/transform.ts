import { docFromApp } from '../../codec/app-values.js';
import { decodeDocument } from '../../codec/decode.js';
import type { Doc } from '../../codec/document.js';
import { encodeDocument } from '../../codec/encode.js';
import { changedNames, spliceDocument } from '../../codec/splice.js';
import type { Core } from '../../commands/command.js';
import { compileQuery } from '../../commands/read/query.js';
import { existsInside, readPlace, writePlace, type DocumentPlace } from '../../commands/write/transform.js';
import { EntryBudget } from '../../storage/keys/entry-budget.js';
import { openDataDb } from './database.js';
import { toDriverError } from './driver-errors.js';

/**
 * Whether a document of a collection matches a filter at the moment of the write. `keep`: one that does is not changed
 * by others before the write is committed, which is so here in any case.
 */
export type Exists = (collection: string, filter: object, keep?: boolean) => boolean;

/**
 * The named fields of the document of an id at the moment of the write; null where there is none. It is not changed by
 * others before the write is committed.
 */
export type ReadFields = (collection: string, id: unknown, fields: ReadonlySet<string>) => Doc | null;

/**
 * Gives the next form of a document (null: there is none), a copy in which what stays is the very same; null removes
 * it, the same object keeps it. Synchronous and without effects, as it may run several times. A throw refuses the
 * write.
 */
export type Transform<T extends object> = (stored: T | null, exists: Exists, read: ReadFields) => T | null;

/** A document before and after a write; null where there was or is none. */
export interface AppModified {
  before: Doc | null;
  after: Doc | null;
}

/** One document of a transaction. */
export interface AppTurn {
  collection: string;
  id: unknown;
  run: Transform<Doc>;
}

/** What one transaction reads and writes, each step seeing those before it. */
export interface Transaction {
  /** The document of an id, which others do not change before the transaction is committed; null: there is none. */
  get<T extends object = Doc>(collection: string, id: unknown): T | null;
  exists: Exists;
  /** Stores a document, in the place of the one of its `_id` if there is one. */
  put(collection: string, document: object): void;
  remove(collection: string, id: unknown): void;
}

/** A decision asks about more entries than a transaction looks at: they are looked at outside, and it is made again. */
class AskedTooMuch extends Error {
  constructor(
    readonly key: string,
    readonly collection: string,
    readonly filter: object,
  ) {
    super('a decision asks about too many documents');
  }
}

/** A decision refused the write: `cause` is what its caller gets, whatever its words. */
class Refused extends Error {
  constructor(override readonly cause: unknown) {
    super('a decision refused the write');
  }
}

/** What the decisions of one transaction ask, and what they were answered outside of it where that was too much. */
class Decisions {
  private known: Map<string, boolean> | null = null;
  /** What went wrong inside of what was asked: the engine's own errors, which may have failed the transaction. */
  private faults: unknown[] | null = null;

  constructor(
    readonly core: Core,
    private readonly db: string,
  ) {}

  /** Carries out a turn inside the transaction that is under way. */
  carryOut({ collection, id, run }: AppTurn, budget: EntryBudget): AppModified {
    const place = readPlace(this.core.storage, this.nsOf(collection), id);
    const before = place.stored && decodeDocument(place.stored, 'app');
    const after = this.decide(() => run(before, this.exists, this.read));
    if (after !== before) this.write(place, before, after, budget);
    return { before, after };
  }

  /** Runs a transaction inside the one that is under way. */
  transact<T>(run: (tx: Transaction) => T): T {
    const put = (collection: string, id: unknown, after: Buffer | null): void => {
      const place = readPlace(this.core.storage, this.nsOf(collection), id);
      writePlace(this.core.storage, place, after, null, new EntryBudget());
    };
    const tx: Transaction = {
      get: <D extends object>(collection: string, id: unknown) =>
        this.ask(() => {
          const { stored } = readPlace(this.core.storage, this.nsOf(collection), id);
          return stored && (decodeDocument(stored, 'app') as D);
        }),
      exists: this.exists,
      put: (collection, document) => {
        const { _id } = document as Doc;
        this.ask(() => put(collection, _id, encodeDocument(document as Doc, _id)));
      },
      remove: (collection, id) => {
        this.ask(() => put(collection, id, null));
      },
    };
    return this.decide(() => run(tx));
  }

  /** Looks for what a decision asked too much for, so that all can be carried out again; else what the caller gets. */
  async settle(error: unknown, of: string | null): Promise<void> {
    if (error instanceof Refused) throw error.cause;
    if (!(error instanceof AskedTooMuch)) {
      throw toDriverError(this.core.storage.damage.judge(error, of && this.nsOf(of)));
    }
    const { key, collection, filter } = error;
    const asked = openDataDb(this.core, this.db, { ignoreUndefined: false }).collection(collection);
    this.known ??= new Map();
    this.known.set(key, (await asked.findOne(filter, { projection: { _id: 1 } })) !== null);
  }

  private nsOf(collection: string): string {
    return `${this.db}.${collection}`;
  }

  private write(place: DocumentPlace, before: Doc | null, after: Doc | null, budget: EntryBudget): void {
    const touched = before && after && changedNames(before, after);
    const bytes = touched
      ? spliceDocument(place.stored!, after, touched)
      : after && encodeDocument(after, after['_id']);
    writePlace(this.core.storage, place, bytes, touched, budget);
  }

  private readonly exists: Exists = (collection, filter) =>
    this.ask(() => {
      const inside = existsInside(this.core.storage, this.nsOf(collection), compileQuery(docFromApp(filter)));
      if (inside !== undefined) return inside;
      const key = `${collection} ${JSON.stringify(filter)}`;
      const outside = this.known?.get(key);
      if (outside === undefined) throw new AskedTooMuch(key, collection, filter);
      return outside;
    });

  private readonly read: ReadFields = (collection, id, fields) =>
    this.ask(() => {
      const { stored } = readPlace(this.core.storage, this.nsOf(collection), id);
      return stored && decodeDocument(stored, 'app', fields);
    });

  private ask<T>(look: () => T): T {
    try {
      return look();
    } catch (error) {
      (this.faults ??= []).push(error);
      throw error;
    }
  }

  /** Runs a decision. What it throws refuses the write, unless what it asked has failed. */
  private decide<T>(decision: () => T): T {
    this.faults = null;
    let decided: T;
    try {
      decided = decision();
    } catch (error) {
      throw this.faultsInside()?.includes(error) ? error : new Refused(error);
    }
    const faults = this.faultsInside();
    if (faults) throw faults[0];
    return decided;
  }

  /** As a method, because a decision that has just run may have set them. */
  private faultsInside(): unknown[] | null {
    return this.faults;
  }
}

/** Changes a document, decided from what is stored at that very moment. */
export function transformInProcess(core: Core, db: string, turn: AppTurn): Promise<AppModified> {
  return decideInside(new Decisions(core, db), turn.collection, (inside) => inside.carryOut(turn, new EntryBudget()));
}

/** Carries such changes out in one transaction, in their order: all or none. */
export function transformTogether(core: Core, db: string, turns: readonly AppTurn[]): Promise<AppModified[]> {
  return decideInside(new Decisions(core, db), turns[0]?.collection ?? null, (inside) => {
    const budget = new EntryBudget();
    return turns.map((turn) => inside.carryOut(turn, budget));
  });
}

/** Runs `run` in one transaction; what it throws is thrown, and nothing is stored. */
export function transactInProcess<T>(core: Core, db: string, run: (tx: Transaction) => T): Promise<T> {
  return decideInside(new Decisions(core, db), null, (inside) => inside.transact(run));
}

/** Runs `work` in a transaction, again once what its decisions ask too much for was found. */
function decideInside<T>(decisions: Decisions, collection: string | null, work: (inside: Decisions) => T): Promise<T> {
  return decisions.core.storage.queue
    .write(() => work(decisions))
    .catch((error: unknown) =>
      decisions.settle(error, collection).then(() => decideInside(decisions, collection, work)),
    );
}
