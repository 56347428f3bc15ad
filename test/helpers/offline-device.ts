import { IDBFactory } from 'fake-indexeddb';
import { createClient, type Client, type UntypedProject } from '../world/client.js';
import { openOfflineStore, type OfflineEvent, type OfflineOptions, type OfflineStore } from '../world/offline.js';

/** How the network of a device is: an answer may be lost when the service has already done what it was asked for. */
export type Network = 'up' | 'down' | 'answers lost';

/** A device with a local database that outlives the application on it. */
export interface Device {
  api: Client<UntypedProject>;
  store: OfflineStore;
  /** An error that whatever is to be stored from now on meets; null for none. */
  storageError: Error | null;
  /** Of this run of the application. */
  events: OfflineEvent[];
  network: Network;
  /** Ends the application between any two of its steps: nothing that it had begun goes on. */
  kill(): void;
  /** Runs the application again, or at last with other options. */
  start(options?: OfflineOptions): void;
}

/** What a run of the application leaves behind it when it ends: nothing that still acts. */
interface Run {
  isDead: boolean;
  ends: AbortController;
  transactions: Set<Transaction>;
}

/** The parts of IndexedDB that are watched. */
interface Transaction {
  abort(): void;
  addEventListener(type: string, listener: () => void): void;
}
interface Database {
  transaction(...words: unknown[]): Transaction;
}

const never = new Promise<never>(() => undefined);

/** The database of a device as one run of its application sees it: from its end on nothing is stored. */
function databaseOf(device: object, run: Run, errorOf: () => Error | null): object {
  const guarded = (database: Database): Database =>
    new Proxy(database, {
      get(target, name) {
        if (name !== 'transaction') {
          const value = Reflect.get(target, name) as unknown;
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        }
        return (...words: unknown[]) => {
          if (run.isDead) throw new Error('The application has ended');
          const error = words[1] === 'readwrite' ? errorOf() : null;
          if (error) throw error;
          const transaction = target.transaction(...words);
          run.transactions.add(transaction);
          transaction.addEventListener('complete', () => run.transactions.delete(transaction));
          return transaction;
        };
      },
      set: (target, name, value) => Reflect.set(target, name, value),
    });
  return new Proxy(device, {
    get(target, name) {
      const value = Reflect.get(target, name) as (...words: unknown[]) => unknown;
      if (name !== 'open') return value.bind(target) as unknown;
      return (...words: unknown[]) => {
        const request = value.apply(target, words) as { result: Database };
        return new Proxy(request, {
          get: (of, part) => (part === 'result' ? guarded(of.result) : (Reflect.get(of, part) as unknown)),
          set: (of, part, given) => Reflect.set(of, part, given),
        });
      };
    },
  });
}

/** A device with an application that is a client of the service at `url`. */
export function openDevice(url: string, key: string, name: string, session: object = {}): Device {
  const database = new IDBFactory();
  let run: Run;
  const device: Device = {
    api: undefined as never,
    store: undefined as never,
    events: [],
    network: 'up',
    storageError: null,
    kill() {
      run.isDead = true;
      run.ends.abort();
      for (const transaction of run.transactions) {
        try {
          transaction.abort();
        } catch {
          // It has just been committed.
        }
      }
    },
    start(options) {
      const own: Run = (run = { isDead: false, ends: new AbortController(), transactions: new Set() });
      const send: typeof fetch = async (address, init) => {
        if (own.isDead) return never;
        if (device.network === 'down') throw new TypeError('fetch failed');
        const signal = AbortSignal.any([own.ends.signal, ...(init?.signal ? [init.signal] : [])]);
        const response = await fetch(address, { ...init, signal }).catch((error: unknown) =>
          own.isDead ? never : Promise.reject(error as Error),
        );
        if (own.isDead) return never;
        if (device.network === 'up' || init?.method === undefined || init.method === 'GET') return response;
        await response.body?.cancel();
        throw new TypeError('fetch failed');
      };
      Object.assign(globalThis, { indexedDB: databaseOf(database, own, () => device.storageError) });
      device.events = [];
      const { events } = device;
      device.store = openOfflineStore(name, options);
      device.store.onEvent((event) => events.push(event));
      device.api = createClient({ url, key, fetch: send, retries: 0, offline: device.store, ...session });
      Reflect.deleteProperty(globalThis, 'indexedDB');
    },
  };
  device.start();
  return device;
}
