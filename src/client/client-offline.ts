import { openCollections } from './offline/collections.js';
import type { Conflict, OfflineEvent } from './offline/sender.js';
import { browser, openLocalSession, type Plain, type LocalSession, type Tools } from './offline/session.js';
import type { DatabaseFactory } from './offline/store.js';
import { openWatches } from './offline/watches.js';

export type { Conflict, OfflineEvent } from './offline/sender.js';
export type { Doc, Operation } from './offline/replica.js';

/** How a local database is kept. */
export interface OfflineOptions {
  /** Collections that are kept on the device, each as far as its user reads it; all that are read unless said. */
  collections?: readonly string[];
  /**
   * Decides a change of fields that were changed elsewhere too: the change to make now, or nothing for the fields as
   * they are there.
   */
  onConflict?: (conflict: Conflict) => object | void | Promise<object | void>;
}

/** A local database: give it to `createClient` as `offline`. */
export interface OfflineStore {
  /** Writes that have not been sent. */
  readonly pending: number;
  /** Reports conflicts, refused writes, faults of the device and the queue's length until the function is called. */
  onEvent(listener: (event: OfflineEvent) => void): () => void;
  /** Sends what is in the queue now, as far as that goes; it is sent without it too. */
  send(): Promise<void>;
  /** For `createClient`. */
  readonly open: (client: never, tools: never) => unknown;
}

/**
 * A local database in IndexedDB, of the user who is signed in. Collections are read from it at once and follow the
 * service; writes are stored in it and sent in their order when the service answers.
 */
export function openOfflineStore(name: string, { collections, onConflict }: OfflineOptions = {}): OfflineStore {
  // Neither on servers nor in every private window.
  const { indexedDB: factory } = globalThis as { indexedDB?: DatabaseFactory };
  const listeners = new Set<(event: OfflineEvent) => void>();
  let session: LocalSession | null = null;
  const tell = (event: OfflineEvent): void => {
    for (const listener of listeners) void Promise.resolve(event).then(listener);
  };
  const fault = (error: unknown): null => (tell({ type: 'fault', message: String(error) }), null);

  const open = (plain: Plain, tools: Tools): Plain => {
    const { auth } = plain;
    const prefix = `bsvc:${name}:${tools.connection.name}:`;
    const wipe = (left: string): void => {
      const request: { onsuccess?: unknown } = factory?.deleteDatabase(left) ?? {};
      request.onsuccess = () => withMarks((marks) => delete marks[left]);
    };
    // Of users who have signed out, in a page that was gone before they were deleted.
    withMarks((marks) => Object.keys(marks).forEach((each) => each.startsWith(prefix) && wipe(each)));
    /** The database of the user. */
    const databaseOf = (): string => prefix + ((auth.user as { _id?: string } | null)?._id ?? '');
    let database: string | undefined;
    let opening: Promise<LocalSession | null> = Promise.resolve(null);

    const enter = (isWiped = false): Promise<LocalSession | null> => {
      const next = databaseOf();
      if (next === database) return opening;
      const before = opening;
      const left = isWiped && database;
      if (left) withMarks((marks) => (marks[left] = 1));
      database = next;
      session = null;
      const isOwn = (): boolean => databaseOf() === next;
      const open = async (): Promise<LocalSession> => {
        (await before)?.close();
        if (left) wipe(left);
        if (!factory) throw new Error('No IndexedDB');
        const parts = { factory, plain, tools, tell, fault, onConflict, isOwn, show: watches.show };
        return (session = await openLocalSession(next, parts));
      };
      opening = open().catch(fault);
      watches.startOver();
      return opening;
    };
    /** The session of the user; null where this device keeps nothing. */
    const current = async (): Promise<LocalSession | null> => {
      await auth.ready;
      return enter();
    };
    const watches = openWatches(plain, tools, current);
    auth.onChange((_, reason) => void enter(reason === 'signed-out'));
    void enter();
    // Browsers that are short of room spare what was asked for.
    void browser.navigator?.storage?.persist?.().catch(() => undefined);
    return { ...plain, ...openCollections({ plain, tools, watches, current, fault, collections }) };
  };

  return {
    get pending() {
      return session?.pending() ?? 0;
    },
    onEvent(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    send: async () => session?.send(),
    open,
  };
}

/** What outlives the page says which databases are to be deleted, where there is such a storage and it has room. */
function withMarks(use: (marks: Record<string, unknown>) => unknown): void {
  try {
    use((globalThis as { localStorage?: Record<string, unknown> }).localStorage!);
  } catch {
    // They are deleted if the page is there for as long as that takes.
  }
}
