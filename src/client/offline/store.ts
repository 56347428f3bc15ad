import { isSame } from './change.js';

/** The parts of IndexedDB that are used: the client is compiled for servers too. */
interface Asked<T> {
  result: T;
  error: Error | null;
  onsuccess: unknown;
  onerror: unknown;
}
interface Values {
  get(key: string): Asked<unknown>;
  getAll(): Asked<unknown[]>;
  getAllKeys(): Asked<string[]>;
  put(value: unknown, key: string): unknown;
  delete(key: string): unknown;
}
interface Transaction {
  error: Error | null;
  oncomplete: unknown;
  onabort: unknown;
  objectStore(name: string): Values;
}
interface Database {
  onclose: unknown;
  onversionchange: unknown;
  createObjectStore(name: string): unknown;
  transaction(name: string, mode: string): Transaction;
  close(): void;
}
export interface DatabaseFactory {
  open(name: string, version: number): Asked<Database> & { onupgradeneeded: unknown };
  deleteDatabase(name: string): Asked<unknown>;
}

/** What is to be stored, by key; undefined removes. */
export type Changes = Map<string, unknown>;

/** The values of one user on this device, by key. Tabs have the same, each in memory too. */
export interface LocalStore {
  state: ReadonlyMap<string, unknown>;
  /**
   * Stores what `build` makes of the state, as a whole and after all that was begun before. It is built again if
   * another tab has changed one of these values, other than documents. False if there is nothing to store.
   *
   * A full device throws. With `isCertain` it removes what is to be removed, and has the rest in this tab alone until
   * there is room; items of the queue are removed when no other one is there in this tab alone.
   */
  commit: (build: () => Changes | null, isCertain?: boolean) => Promise<boolean>;
  /** Sends a message to the other tabs. */
  post: (message: object) => void;
  close: () => void;
}

interface Channel {
  onmessage: ((event: { data: unknown }) => void) | null;
  postMessage(message: unknown): void;
  close(): void;
}

/** A database that has said nothing by then is taken for one that never will. */
const SILENCE_MS = 10_000;
const VALUES = 'values';
/** Is there from an empty queue on, as long as no tab has had something of it alone. */
export const STORED = 's';

const ask = <T>(asked: Asked<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error!);
  });

const inTime = <T>(work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('The database does not answer')), SILENCE_MS);
    void work.then(resolve, reject).finally(() => clearTimeout(timer));
  });

export const isFull = (error: unknown): boolean => (error as Error | null)?.name === 'QuotaExceededError';

/** `onChange` hears which values have changed, with what they were before; `onMessage` what other tabs have posted. */
export async function openLocalStore(
  factory: DatabaseFactory,
  name: string,
  channel: Channel | undefined,
  onChange: (before: Changes, state: ReadonlyMap<string, unknown>) => void,
  onMessage: (message: object) => void,
): Promise<LocalStore> {
  const run = openRuns(factory, name);
  const state = new Map<string, unknown>();
  /** What is stored of values that are others in this tab alone. */
  const unstored: Changes = new Map();
  const storedOf = (key: string): unknown => (unstored.has(key) ? unstored : state).get(key);

  const take = (changes: Iterable<[string, unknown]>): void => {
    const before: Changes = new Map();
    for (const [key, value] of changes) {
      before.set(key, state.get(key));
      if (value === undefined) state.delete(key);
      else state.set(key, value);
    }
    onChange(before, state);
  };
  /** Reads everything; a value that has not changed stays the same object. */
  const reload = async (): Promise<void> => {
    const [keys, values] = await run((stored) => Promise.all([ask(stored.getAllKeys()), ask(stored.getAll())]));
    const next = new Map(keys.map((key, at) => [key, values[at]]));
    unstored.clear();
    const all = [...new Set([...state.keys(), ...keys])];
    take(all.filter((key) => !isSame(state.get(key), next.get(key))).map((key) => [key, next.get(key)]));
  };

  let tail: Promise<unknown> = reload();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = tail.then(work);
    tail = done.catch(() => undefined);
    return done;
  };
  if (channel) {
    channel.onmessage = ({ data }) => {
      const { keys, ...message } = data as { keys?: string[] };
      if (!keys) return onMessage(message);
      // Read, since messages of several tabs may overtake each other.
      const read = async (): Promise<void> => {
        const values = await run((stored) => Promise.all(keys.map((key) => ask(stored.get(key)))));
        keys.forEach((key) => unstored.delete(key));
        take(keys.map((key, at) => [key, values[at]]));
      };
      inTurn(read).catch(() => undefined);
    };
  }
  await tail;
  /** False if another tab has changed what is to be changed. */
  const write = (changes: Changes): Promise<boolean> =>
    run(async (stored) => {
      const guarded = [...changes.keys()].filter((key) => !key.startsWith('d/'));
      const found = await Promise.all(guarded.map((key) => ask(stored.get(key))));
      if (found.some((value, at) => !isSame(value, storedOf(guarded[at]!)))) return false;
      for (const [key, value] of changes) {
        if (value === undefined) stored.delete(key);
        else stored.put(value, key);
      }
      return true;
    }, 'readwrite');
  return {
    state,
    commit: (build, isCertain) =>
      inTurn(async () => {
        for (;;) {
          const changes = build();
          if (!changes?.size) return false;
          const all: Changes = new Map(
            [...unstored.keys(), ...changes.keys()].map((key) => {
              return [key, (changes.has(key) ? changes : state).get(key)];
            }),
          );
          const isOurs = await write(all).catch((error: unknown) => {
            if (!isCertain || !isFull(error)) throw error;
            changes.set(STORED, undefined);
            all.set(STORED, undefined);
            const isHeld = [...all].some(([key, value]) => value && key.startsWith('q/'));
            for (const [key, value] of all) {
              if (value === undefined && !(isHeld && key.startsWith('q/'))) continue;
              unstored.set(key, storedOf(key));
              all.delete(key);
            }
            return write(all);
          });
          if (isOurs) {
            for (const key of all.keys()) unstored.delete(key);
            channel?.postMessage({ keys: [...all.keys()] });
            take(changes);
            return true;
          }
          await reload();
        }
      }),
    post: (message) => channel?.postMessage(message),
    close() {
      channel?.close();
      run.close();
    },
  };
}

interface Runs {
  /** One transaction; `work` waits for nothing but its requests. Throws when it cannot be stored or read. */
  <T>(work: (stored: Values) => Promise<T>, mode?: string): Promise<T>;
  close: () => void;
}

function openRuns(factory: DatabaseFactory, name: string): Runs {
  let opened: Promise<Database> | undefined;
  let isClosed = false;
  const leave = (): void => {
    void opened?.then((database) => database.close()).catch(() => undefined);
    opened = undefined;
  };
  const open = async (): Promise<Database> => {
    const request = factory.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(VALUES);
    const database = await ask(request);
    database.onclose = database.onversionchange = leave;
    return database;
  };
  const run = async <T>(work: (stored: Values) => Promise<T>, mode = 'readonly'): Promise<T> => {
    for (let isLast = false; ; isLast = true) {
      try {
        if (isClosed) throw new Error('Closed');
        return await inTime((opened ??= open()).then((database) => transact(database, mode, work)));
      } catch (error) {
        // The connection may be the fault: browsers take it away from pages that sleep.
        leave();
        if (isLast || isFull(error)) throw error;
      }
    }
  };
  return Object.assign(run, {
    close() {
      isClosed = true;
      leave();
    },
  });
}

/** What `work` makes of the values, once it is committed. */
const transact = <T>(database: Database, mode: string, work: (stored: Values) => Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const transaction = database.transaction(VALUES, mode);
    const made = work(transaction.objectStore(VALUES));
    made.catch(reject);
    transaction.oncomplete = () => resolve(made);
    // Some browsers end transactions by themselves.
    transaction.onabort = () => reject(transaction.error ?? new Error('Transaction aborted'));
  });
