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
  /** Asked for each transaction that stores something: true when it has no room. One that only removes fits. */
  isFull: () => boolean;
  /** Of this run of the application. */
  events: OfflineEvent[];
  network: Network;
  /** Asked for each answer to a request that is not a read. */
  losesAnswer: (address: string) => boolean;
  /** Ends the application between any two of its steps, in all its tabs: nothing that it had begun goes on. */
  kill(): void;
  /** Runs the application again, with other options if they are given; in another tab where one runs. */
  start(options?: OfflineOptions): void;
  /** The names of its databases. */
  databases(): Promise<(string | undefined)[]>;
}

/** What a run of the application leaves behind it when it ends: nothing that still acts. */
interface Run {
  isDead: boolean;
  ends: AbortController;
  transactions: Set<Transaction>;
  databases: Set<Database>;
}

/** The parts of IndexedDB that are watched. */
interface Transaction {
  error: Error | null;
  objectStore(name: string): Values;
  abort(): void;
  addEventListener(type: string, listener: () => void): void;
}
interface Values {
  get(key: string): object;
  put(value: unknown, key: string): object;
}
interface Database {
  transaction(...words: unknown[]): Transaction;
  close(): void;
}

/** A transaction that a device without room for its values ends when it is to be committed, as browsers do. */
function withoutRoom(transaction: Transaction): Transaction {
  let isOver = false;
  const put = (values: Values, key: string): object => {
    isOver = true;
    return Object.assign(values.get(key), { onsuccess: () => transaction.abort() });
  };
  const guardValues = (values: Values): Values =>
    guard(values, (name) => (name === 'put' ? (_: unknown, key: string) => put(values, key) : undefined));
  return guard(transaction, (name) => {
    if (name === 'objectStore') return (of: string) => guardValues(transaction.objectStore(of));
    return name === 'error' && isOver ? Object.assign(new Error('full'), { name: 'QuotaExceededError' }) : undefined;
  });
}

/** An object with members of which some are others. */
const guard = <T extends object>(of: T, memberOf: (name: string | symbol) => unknown): T =>
  new Proxy(of, {
    get(target, name) {
      const own = memberOf(name);
      if (own !== undefined) return own;
      const value = Reflect.get(target, name) as unknown;
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
    set: (target, name, value) => Reflect.set(target, name, value),
  });

const never = new Promise<never>(() => undefined);

/** The database of a device as one run of its application sees it: from its end on nothing is stored. */
function databaseOf(factory: InstanceType<typeof IDBFactory>, run: Run, device: Device): object {
  const transactionOf = (database: Database, words: unknown[]): Transaction => {
    if (run.isDead) throw new Error('The application has ended');
    const isWriting = words[1] === 'readwrite';
    if (isWriting && device.storageError) throw device.storageError;
    const transaction = database.transaction(...words);
    run.transactions.add(transaction);
    transaction.addEventListener('complete', () => run.transactions.delete(transaction));
    return isWriting && device.isFull() ? withoutRoom(transaction) : transaction;
  };
  const guardDatabase = (database: Database): Database => {
    if (run.isDead) database.close();
    else run.databases.add(database);
    return guard(database, (name) =>
      name === 'transaction' ? (...words: unknown[]) => transactionOf(database, words) : undefined,
    );
  };
  const open = (name: string, version: number): object => {
    const request = factory.open(name, version) as unknown as { result: Database };
    return guard(request, (part) => (part === 'result' ? guardDatabase(request.result) : undefined));
  };
  return guard(factory, (name) => {
    if (name === 'deleteDatabase' && run.isDead) return () => ({});
    return name === 'open' ? open : undefined;
  });
}

/** A device with an application that is a client of the service at `url`. */
export function openDevice(url: string, key: string, name: string, session: object = {}): Device {
  const database = new IDBFactory();
  const runs: Run[] = [];
  const device: Device = {
    api: undefined as never,
    store: undefined as never,
    events: [],
    network: 'up',
    storageError: null,
    isFull: () => false,
    losesAnswer: () => device.network === 'answers lost',
    kill() {
      for (const run of runs.splice(0)) {
        run.isDead = true;
        run.ends.abort();
        for (const transaction of run.transactions) {
          try {
            transaction.abort();
          } catch {
            // It has just been committed.
          }
        }
        for (const each of run.databases) each.close();
      }
    },
    databases: async () => (await database.databases()).map(({ name: of }: { name?: string }) => of),
    start(options) {
      const own: Run = {
        ...{ isDead: false, ends: new AbortController() },
        ...{ transactions: new Set(), databases: new Set() },
      };
      runs.push(own);
      const send: typeof fetch = async (address, init) => {
        if (own.isDead) return never;
        if (device.network === 'down') throw new TypeError('fetch failed');
        const signal = AbortSignal.any([own.ends.signal, ...(init?.signal ? [init.signal] : [])]);
        const response = await fetch(address, { ...init, signal }).catch((error: unknown) =>
          own.isDead ? never : Promise.reject(error as Error),
        );
        if (own.isDead) return never;
        if (init?.method === undefined || init.method === 'GET' || !device.losesAnswer(String(address)))
          return response;
        await response.body?.cancel();
        throw new TypeError('fetch failed');
      };
      Object.assign(globalThis, { indexedDB: databaseOf(database, own, device) });
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
