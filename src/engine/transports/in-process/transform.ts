import { docFromApp } from '../../codec/app-values.js';
import { decodeDocument } from '../../codec/decode.js';
import type { Doc } from '../../codec/document.js';
import { encodeDocument } from '../../codec/encode.js';
import { spliceDocument } from '../../codec/splice.js';
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
  private readonly known = new Map<string, boolean>();
  /** What went wrong inside of what was asked: the engine's own errors, which may have failed the transaction. */
  private faults: unknown[] = [];

  constructor(
    private readonly core: Core,
    private readonly db: string,
  ) {}

  /** Carries out the turns in their order inside the transaction that is under way. */
  carryOut(turns: readonly AppTurn[]): AppModified[] {
    const budget = new EntryBudget();
    return turns.map(({ collection, id, run }) => {
      const place = readPlace(this.core.storage, this.nsOf(collection), id);
      const before = place.stored && decodeDocument(place.stored, 'app');
      const after = this.decide(() => run(before, this.exists, this.read));
      if (after !== before) this.write(place, before, after, budget);
      return { before, after };
    });
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
  async settle(error: unknown, ns: string | null): Promise<void> {
    if (error instanceof Refused) throw error.cause;
    if (!(error instanceof AskedTooMuch)) throw toDriverError(this.core.storage.damage.judge(error, ns));
    const { key, collection, filter } = error;
    const asked = openDataDb(this.core, this.db, { ignoreUndefined: false }).collection(collection);
    this.known.set(key, (await asked.findOne(filter, { projection: { _id: 1 } })) !== null);
  }

  nsOf(collection: string): string {
    return `${this.db}.${collection}`;
  }

  private write(place: DocumentPlace, before: Doc | null, after: Doc | null, budget: EntryBudget): void {
    const isChange = before !== null && after !== null;
    const bytes = isChange
      ? spliceDocument(place.stored!, before, after)
      : after && encodeDocument(after, after['_id']);
    writePlace(this.core.storage, place, bytes, isChange ? changedFields(before, after) : null, budget);
  }

  private readonly exists: Exists = (collection, filter) =>
    this.ask(() => {
      const inside = existsInside(this.core.storage, this.nsOf(collection), compileQuery(docFromApp(filter)));
      if (inside !== undefined) return inside;
      const key = `${collection} ${JSON.stringify(filter)}`;
      const outside = this.known.get(key);
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
      this.faults.push(error);
      throw error;
    }
  }

  /** Runs a decision. What it throws refuses the write, unless what it asked has failed. */
  private decide<T>(decision: () => T): T {
    if (this.faults.length > 0) this.faults = [];
    let decided: T;
    try {
      decided = decision();
    } catch (error) {
      throw this.faults.includes(error) ? error : new Refused(error);
    }
    if (this.faults.length > 0) throw this.faults[0];
    return decided;
  }
}

/** Carries changes out in one transaction, each decided from what is stored at that very moment: all or none. */
export async function transformInProcess(core: Core, db: string, turns: readonly AppTurn[]): Promise<AppModified[]> {
  const decisions = new Decisions(core, db);
  for (;;) {
    try {
      return await core.storage.queue.write(() => decisions.carryOut(turns));
    } catch (error) {
      await decisions.settle(error, decisions.nsOf(turns[0]!.collection));
    }
  }
}

/** Runs `run` in one transaction; what it throws is thrown, and nothing is stored. */
export async function transactInProcess<T>(core: Core, db: string, run: (tx: Transaction) => T): Promise<T> {
  const decisions = new Decisions(core, db);
  for (;;) {
    try {
      return await core.storage.queue.write(() => decisions.transact(run));
    } catch (error) {
      await decisions.settle(error, null);
    }
  }
}

/** Top-level fields whose values are not the very same. */
function changedFields(before: Doc, after: Doc): Set<string> {
  const names = new Set<string>();
  for (const name of Object.keys(before)) if (before[name] !== after[name]) names.add(name);
  for (const name of Object.keys(after)) if (!Object.hasOwn(before, name)) names.add(name);
  return names;
}
