import { docFromApp } from '../../codec/app-values.js';
import { decodeDocument } from '../../codec/decode.js';
import type { Doc } from '../../codec/document.js';
import { encodeDocument } from '../../codec/encode.js';
import { spliceDocument } from '../../codec/splice.js';
import type { Core } from '../../commands/command.js';
import { compileQuery } from '../../commands/read/query.js';
import { carryOutTurn, existsInside, readInside, transform, type Turn } from '../../commands/write/transform.js';
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

/**
 * The decisions of one transaction, and what they were answered outside of it where they asked about too many
 * documents.
 */
class Decisions {
  private readonly known = new Map<string, boolean>();

  constructor(
    private readonly core: Core,
    private readonly db: string,
  ) {}

  /** A turn of the transaction; `tell` is given what it came to, each time that it runs. */
  turnOf({ collection, id, run }: AppTurn, tell: (written: AppModified) => void): Turn {
    return {
      ns: `${this.db}.${collection}`,
      id,
      decide: (stored) => {
        const before = stored && decodeDocument(stored, 'app');
        const after = refusing((noting) => run(before, noting(this.exists), noting(this.read)));
        tell({ before, after });
        if (after === before) return null;
        if (before === null || after === null) {
          return { after: after && encodeDocument(after, after['_id']), touched: null };
        }
        return { after: spliceDocument(stored!, before, after), touched: changedFields(before, after) };
      },
    };
  }

  /** Runs a transaction inside the one that is under way. */
  carryOut<T>(run: (tx: Transaction) => T): T {
    const { storage } = this.core;
    const write = (collection: string, id: unknown, after: Buffer | null): void => {
      carryOutTurn(storage, { ns: `${this.db}.${collection}`, id, decide: () => ({ after, touched: null }) });
    };
    const get = (collection: string, id: unknown): Doc | null => {
      const bytes = readInside(storage, `${this.db}.${collection}`, id);
      return bytes && decodeDocument(bytes, 'app');
    };
    return refusing((noting) =>
      run({
        get: noting(get) as Transaction['get'],
        exists: noting(this.exists),
        put: noting((collection, document: Doc) => {
          write(collection, document['_id'], encodeDocument(document, document['_id']));
        }),
        remove: noting((collection, id) => {
          write(collection, id, null);
        }),
      }),
    );
  }

  /** Looks for what a decision asked too much for, so that all can be carried out again; else what the caller gets. */
  async settle(error: unknown, ns: string | null): Promise<void> {
    if (error instanceof Refused) throw error.cause;
    if (!(error instanceof AskedTooMuch)) throw toDriverError(this.core.storage.damage.judge(error, ns));
    const { key, collection, filter } = error;
    const asked = openDataDb(this.core, this.db, { ignoreUndefined: false }).collection(collection);
    this.known.set(key, (await asked.findOne(filter, { projection: { _id: 1 } })) !== null);
  }

  private readonly exists: Exists = (collection, filter) => {
    const inside = existsInside(this.core.storage, `${this.db}.${collection}`, compileQuery(docFromApp(filter)));
    if (inside !== undefined) return inside;
    const key = `${collection} ${JSON.stringify(filter)}`;
    const outside = this.known.get(key);
    if (outside === undefined) throw new AskedTooMuch(key, collection, filter);
    return outside;
  };

  private readonly read: ReadFields = (collection, id, fields) => {
    const bytes = readInside(this.core.storage, `${this.db}.${collection}`, id);
    return bytes && decodeDocument(bytes, 'app', fields);
  };
}

/** Carries changes out in one transaction, each decided from what is stored at that very moment: all or none. */
export async function transformInProcess(core: Core, db: string, turns: readonly AppTurn[]): Promise<AppModified[]> {
  const decisions = new Decisions(core, db);
  const results: AppModified[] = [];
  const decided = turns.map((turn, at) => decisions.turnOf(turn, (written) => (results[at] = written)));
  for (;;) {
    try {
      await transform(core.storage, decided);
      return results;
    } catch (error) {
      await decisions.settle(error, decided[0]!.ns);
    }
  }
}

type Noting = <A extends unknown[], T>(ask: (...asked: A) => T) => (...asked: A) => T;

/**
 * Runs a decision. What it throws refuses the write; what is thrown inside of what it asks by `noting` is the engine's
 * own, and may have failed the transaction.
 */
function refusing<T>(decide: (noting: Noting) => T): T {
  const faults: unknown[] = [];
  const noting: Noting =
    (ask) =>
    (...asked) => {
      try {
        return ask(...asked);
      } catch (error) {
        faults.push(error);
        throw error;
      }
    };
  let decided: T;
  try {
    decided = decide(noting);
  } catch (error) {
    throw faults.includes(error) ? error : new Refused(error);
  }
  if (faults.length > 0) throw faults[0];
  return decided;
}

/** Runs `run` in one transaction; what it throws is thrown, and nothing is stored. */
export async function transactInProcess<T>(core: Core, db: string, run: (tx: Transaction) => T): Promise<T> {
  const decisions = new Decisions(core, db);
  for (;;) {
    try {
      return await core.storage.queue.write(() => decisions.carryOut(run));
    } catch (error) {
      await decisions.settle(error, null);
    }
  }
}

/** Top-level fields whose values are not the very same. */
function changedFields(before: Doc, after: Doc): Set<string> {
  const names = Object.keys(before).filter((name) => before[name] !== after[name]);
  for (const name of Object.keys(after)) if (!Object.hasOwn(before, name)) names.push(name);
  return new Set(names);
}
