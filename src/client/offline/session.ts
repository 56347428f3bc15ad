import type { ApiError } from '../api-error.js';
import type { Client } from '../client.js';
import type { Connection } from '../connection.js';
import type { platform as parts } from '../platform.js';
import type { UntypedProject } from '../project.js';
import { keepCopy, type FollowService } from './copier.js';
import { entriesOf, newestOf, openView, placeOf, type Doc, type Held, type Kept, type Operation } from './replica.js';
import { openSender, sendBatch, type Conflict, type OfflineEvent } from './sender.js';
import { isFull, openLocalStore, STORED, type Changes, type DatabaseFactory, type LocalStore } from './store.js';

/** What the client hands to this module, which imports nothing of the rest. */
export interface Tools {
  connection: Connection;
  ApiError: typeof ApiError;
  randomKey: () => string;
  inOrder: <T extends object>(documents: readonly T[], sort: readonly string[]) => T[];
  toPlain: (value: unknown, path: string, isQuery?: boolean) => unknown;
}

/** The parts of a browser that not every platform has. */
export const browser: Pick<typeof parts, 'BroadcastChannel'> & {
  navigator?: typeof parts.navigator & { storage?: { persist?: () => Promise<boolean> } };
} = globalThis as never;

/** The client without a local database. */
export type Plain = Client<UntypedProject>;

/** What one user has on this device, and how it comes there and goes from there. */
export interface LocalSession {
  pending: () => number;
  /** Documents of a collection as they are shown. */
  shown: (collection: string) => ReadonlyMap<string, Doc>;
  /** True when the service answers for a collection, since this device cannot. */
  isOnline: (collection: string) => boolean;
  /** True when there is something to show: a copy that was complete once, or writes that wait. */
  isShown: (collection: string) => boolean;
  /** Has a collection copied, and waits until something can be shown or no copy is to be had. */
  want: (collection: string) => Promise<void>;
  /** Stores writes in the queue. Throws when this device cannot. */
  add: (operations: Operation[]) => Promise<unknown>;
  /** Sends what is in the queue, as far as that goes now. */
  send: () => Promise<void>;
  close: () => void;
}

export interface SessionParts {
  factory: DatabaseFactory;
  plain: Plain;
  tools: Tools;
  /** Documents of the collection have changed. */
  show: (collection: string) => void;
  tell: (event: OfflineEvent) => void;
  fault: (error: unknown) => void;
  onConflict: ((conflict: Conflict) => unknown) | undefined;
  /** True as long as the user of this session is the client's. */
  isOwn: () => boolean;
}

/** A first copy that takes longer is not waited for, nor a tab that does not do what all wait for. */
const PATIENCE_MS = 10_000;
/** Between tries to send what could not be sent; doubled each time, up to half a minute. */
const FIRST_WAIT_MS = 500;
const MAX_DOUBLED = 6;

export async function openLocalSession(name: string, given: SessionParts): Promise<LocalSession> {
  const { tools, show, tell } = given;
  const { BroadcastChannel } = browser;
  const channel = BroadcastChannel && new BroadcastChannel(name);
  const ends = new AbortController();
  const { signal } = ends;
  const view = openView();
  const gone = new Set<string>();
  const waits = openWaits(() => lead());
  let isLeading = false;
  let isOpen = false;
  /** It is watched whether another tab sends what this one has queued. */
  let isArmed = false;

  const fault = (error: unknown): void => {
    if (!signal.aborted) given.fault(error);
  };
  /** Those who show it look again: it may be the service that answers now. */
  const tellAll = (collections: Iterable<string>): void => {
    for (const each of collections) show(each);
    waits.look();
  };
  const onChange = (before: Changes, state: LocalStore['state']): void => {
    const changed = view.update(state, before);
    if (!isOpen) return;
    if (isLeading) collectionsOf(before).forEach(copies.keep);
    if ([...before.keys()].some((key) => key.startsWith('q/'))) {
      tell({ type: 'queue', pending: pending() });
      void send();
    }
    tellAll(changed);
  };
  const store = await openLocalStore(given.factory, name, channel, onChange, (event) => tell(event as OfflineEvent));
  isOpen = true;
  const { state } = store;
  const operations = (): Operation[] => entriesOf(store).flatMap(([, entry]) => entry.operations);
  const pending = (): number => operations().length;
  const isShown = (collection: string): boolean =>
    !!(state.get(`c/${collection}`) as Kept | undefined)?.isReady ||
    operations().some((each) => each.collection === collection);

  const copies = openCopies(given, store, gone, fault, tellAll);
  const send = openSending(given, store, gone, signal, fault, () => isLeading);
  const lead = (): void => {
    if (isLeading || signal.aborted) return;
    isLeading = true;
    collectionsOf(state).forEach(copies.keep);
    void send();
  };
  /** Waits until something is so, or cannot be without a network. */
  const reached = async (isSo: () => boolean): Promise<void> => {
    const { status } = tools.connection;
    const unwatch = status.onChange(() => waits.look());
    await waits.until(() => signal.aborted || isSo() || status.state === 'offline');
    unwatch();
  };
  // It also takes the lead of a tab that does not do what all wait for: two that lead do no harm.
  leadAlone(`${name}:leader`, signal, lead, fault);
  return {
    pending,
    shown: view.of,
    isOnline: copies.isOnline,
    isShown,
    async want(collection) {
      const about = `c/${collection}`;
      const asked = store.commit(() => (state.has(about) ? null : new Map([[about, {}]])));
      await asked.catch((error: unknown) => copies.lose(collection, error));
      await reached(() => copies.isOnline(collection) || isShown(collection));
    },
    async add(added) {
      const key = tools.randomKey();
      const at = new Date().toISOString();
      const isStored = (): boolean => entriesOf(store).some(([, entry]) => entry.key === key);
      const build = (): Changes | null => {
        if (isStored()) return null;
        const last = Number(state.get('n') ?? 0) + 1;
        const based = added.map((each) => ({ base: newestOf(state.get(placeOf(each)) as Held), ...each }));
        return new Map<string, unknown>([
          [STORED, pending() > 0 ? state.get(STORED) : true],
          ['n', last],
          [`q/${String(last).padStart(12, '0')}`, { key, at, operations: based }],
        ]);
      };
      await store.commit(build).catch(async (error: unknown) => {
        if (!isFull(error)) throw error;
        fault(error);
        await copies.makeRoom();
        // What cannot be stored is sent after the queue.
        await reached(() => pending() === 0);
        await store.commit(build);
      });
      if (isLeading || isArmed) return;
      isArmed = true;
      void waits.until(() => !isStored()).then(() => (isArmed = false));
    },
    send,
    close() {
      ends.abort();
      copies.stop();
      waits.look();
      store.close();
    },
  };
}

/** The collections that some values are about. */
const collectionsOf = (values: LocalStore['state']): string[] =>
  [...values.keys()].filter((key) => key.startsWith('c/')).map((key) => key.slice(2));

/** Copies of collections, as this tab keeps them. */
interface Copies {
  keep: (collection: string) => void;
  isOnline: (collection: string) => boolean;
  /** The service answers for a collection from now on. */
  lose: (collection: string, error: unknown) => void;
  /** Gives up all of them: they can be had again, and what is in the queue cannot. */
  makeRoom: () => Promise<void>;
  stop: () => void;
}

function openCopies(
  { plain, tools, isOwn }: SessionParts,
  store: LocalStore,
  gone: Set<string>,
  fault: (error: unknown) => void,
  tellAll: (collections: Iterable<string>) => void,
): Copies {
  const copiers = new Map<string, () => void>();
  const failed = new Set<string>();
  let isFailed = false;
  const stop = (): void => copiers.forEach((end) => end());

  const copies: Copies = {
    isOnline: (collection) => isFailed || failed.has(collection),
    stop,
    lose(collection, error) {
      // A refusal of the service is told to those who follow.
      if (!(error instanceof tools.ApiError)) fault(error);
      if (isFull(error)) void copies.makeRoom();
      copiers.get(collection)?.();
      failed.add(collection);
      tellAll([collection]);
    },
    keep(collection) {
      if (copiers.has(collection) || copies.isOnline(collection)) return;
      const fail = (error: unknown): void => {
        if (error !== null) return copies.lose(collection, error);
        copiers.get(collection)!();
        copiers.delete(collection);
        copies.keep(collection);
      };
      const follow: FollowService = (since, listener) =>
        plain.collection(collection).follow(since === undefined ? {} : { since }, ((event: never, cursor?: string) => {
          if (isOwn()) listener(event, cursor);
        }) as never);
      copiers.set(collection, keepCopy(store, collection, follow, gone, fail));
    },
    async makeRoom() {
      isFailed = true;
      stop();
      tellAll(collectionsOf(store.state));
      const keys = [...store.state.keys()].filter((key) => /^[cd]/.test(key));
      await store.commit(() => new Map(keys.map((key) => [key, undefined])), true).catch(fault);
    },
  };
  return copies;
}

/** What waits for changes; `late` is called by what has waited for long. */
function openWaits(late: () => void): { look: () => void; until: (isSo: () => boolean) => Promise<void> } {
  const waiting = new Set<() => void>();
  return {
    look() {
      for (const each of waiting) each();
    },
    until: (isSo) =>
      new Promise((resolve) => {
        const end = (): void => {
          clearTimeout(timer);
          waiting.delete(check);
          resolve();
        };
        const check = (): void => {
          if (isSo()) end();
        };
        const timer = setTimeout(() => {
          late();
          end();
        }, PATIENCE_MS);
        waiting.add(check);
        check();
      }),
  };
}

/** Runs `lead` in one tab at a time, or at once where tabs cannot know of each other. */
function leadAlone(name: string, signal: AbortSignal, lead: () => void, fault: (error: unknown) => void): void {
  const hold = (): Promise<void> =>
    new Promise((resolve) => {
      lead();
      signal.addEventListener('abort', () => resolve());
    });
  const { locks } = browser.navigator ?? {};
  if (!locks) return lead();
  void (async () => locks.request(name, { signal }, hold))().catch((error: unknown) => {
    fault(error);
    lead();
  });
}

/** Sends the queue whenever it is asked to, again after a while where it could not. */
function openSending(
  { plain, tools, tell, onConflict, isOwn }: SessionParts,
  store: LocalStore,
  gone: Set<string>,
  signal: AbortSignal,
  fault: (error: unknown) => void,
  isLeading: () => boolean,
): () => Promise<void> {
  const { connection } = tools;
  const sendAll = openSender({
    ...{ store, gone, onConflict },
    tell(event) {
      store.post(event);
      tell(event);
    },
    get: (collection, id) => plain.collection(collection).get(id) as Promise<never>,
    async post(key, operations) {
      const token = await plain.auth.token();
      // With this token and no other: another user has a queue of their own.
      if (signal.aborted || !isOwn()) return null;
      const headers = { 'idempotency-key': key, ...(token !== null && { authorization: `Bearer ${token}` }) };
      try {
        return (await sendBatch(connection, operations, { isAnonymous: true, headers, signal })) as never;
      } catch (error) {
        // It is sent again with a new one.
        if (token !== null && /^TOKEN_/.test((error as ApiError).code)) await connection.tokens!.renew(token);
        throw error;
      }
    },
  });
  let sending: Promise<void> | undefined;
  let isAsked = false;
  let tried = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const run = async (): Promise<void> => {
    try {
      while (isAsked && !signal.aborted) {
        isAsked = false;
        await sendAll();
      }
      tried = 0;
    } catch (error) {
      if (!(error instanceof tools.ApiError)) fault(error);
      if (!signal.aborted) timer = setTimeout(() => void send(), FIRST_WAIT_MS * 2 ** Math.min(tried++, MAX_DOUBLED));
    }
    sending = undefined;
  };
  const send = async (): Promise<void> => {
    isAsked = true;
    clearTimeout(timer);
    if (isLeading()) await (sending ??= run());
  };
  const unwatch = connection.status.onChange((state) => state === 'online' && void send());
  signal.addEventListener('abort', unwatch);
  return send;
}
