/**
 * Text by name: `localStorage`, or a storage that answers with promises, such as AsyncStorage of React Native. Pages
 * that share it share their session.
 */
export interface SessionStorage {
  getItem(key: string): string | null | undefined | Promise<string | null | undefined>;
  setItem(key: string, value: string): unknown;
  removeItem(key: string): unknown;
}

interface Locks {
  request<T>(
    name: string,
    options: { signal?: AbortSignal; ifAvailable?: boolean },
    work: (lock: object | null) => Promise<T> | undefined,
  ): Promise<T>;
}

/** The part of an XMLHttpRequest that an upload needs: `fetch` reports no bytes on their way. */
export interface UploadRequest {
  status: number;
  upload: { onprogress: ((event: { loaded: number; total: number }) => void) | null };
  onload: (() => void) | null;
  onerror: (() => void) | null;
  onabort: (() => void) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  send(body: Blob): void;
  abort(): void;
}

/** A way of tabs to each other. */
export interface Channel {
  onmessage: ((event: { data: unknown }) => void) | null;
  postMessage(message: unknown): void;
  close(): void;
}

/** An event of `storage`, `online` or `offline`. */
export interface PlatformEvent {
  type: string;
  key?: string | null;
}

/** The parts of a platform that not every one has. */
export const platform: {
  localStorage?: SessionStorage;
  navigator?: { locks?: Locks; onLine?: boolean };
  console?: { warn(...words: unknown[]): void };
  XMLHttpRequest?: new () => UploadRequest;
  crypto?: {
    getRandomValues(bytes: Uint8Array): Uint8Array;
    subtle?: { digest(name: string, bytes: Uint8Array): Promise<ArrayBuffer> };
  };
  BroadcastChannel?: new (name: string) => Channel;
  addEventListener?(type: string, listener: (event: PlatformEvent) => void): void;
  removeEventListener?(type: string, listener: (event: PlatformEvent) => void): void;
} = globalThis as never;

/** The storage that all tabs of a page share, or a memory where there is none or it is closed to the page. */
export function findStorage(): { storage: SessionStorage | undefined; isShared: boolean } {
  try {
    const { localStorage } = platform;
    if (localStorage) {
      void localStorage.getItem('bsvc');
      return { storage: localStorage, isShared: true };
    }
  } catch {
    // Closed by the settings of the browser.
  }
  return { storage: undefined, isShared: false };
}

/** A storage that never fails. */
export interface Store {
  /** A promise only of a storage that answers with promises. */
  get(key: string): string | null | Promise<string | null>;
  /** Null removes. Resolves when it is stored. */
  set(key: string, value: string | null): Promise<void>;
}

/** Reports once that a storage fails, and goes on in memory from what was read and written until then. */
export function openStore(storage: SessionStorage | undefined): Store {
  const memory = new Map<string, string | null>();
  let isBroken = storage === undefined;
  let saved = Promise.resolve();
  let isAsync = false;
  const fail = (error: unknown): void => {
    warn('no storage', error);
    isBroken = true;
  };
  const known = (key: string): string | null => memory.get(key) ?? null;
  const keep = (key: string, value: string | null | undefined): string | null => {
    memory.set(key, value ?? null);
    return known(key);
  };
  return {
    get(key) {
      try {
        const found = isBroken ? known(key) : storage!.getItem(key);
        isAsync = typeof (found as Promise<unknown> | null)?.then === 'function';
        if (!isAsync) return keep(key, found as string | null);
        return (found as Promise<string | null>).then(
          (value) => keep(key, value),
          (error: unknown) => (fail(error), known(key)),
        );
      } catch (error) {
        fail(error);
        return known(key);
      }
    },
    set(key, value) {
      keep(key, value);
      const put = async (): Promise<void> => {
        try {
          if (!isBroken) await (value === null ? storage!.removeItem(key) : storage!.setItem(key, value));
        } catch (error) {
          fail(error);
        }
      };
      // One after the other, in the order in which they were made.
      return (saved = isAsync ? saved.then(put) : put());
    },
  };
}

const warned = new Set<string>();

/** Reports once that a part of the platform fails and the client goes on without it. */
export function warn(what: string, cause: unknown): void {
  if (!warned.has(what)) platform.console?.warn(`bsvc client: ${what}`, cause);
  warned.add(what);
}

const queues = new Map<string, Promise<unknown>>();

/** A lock that is not given for longer is held by a tab that was suspended, or never answered at all. */
const LOCK_MS = 15_000;

/**
 * Asks for a Web Lock and runs `work` under it; without it where there are none, or where they fail or hang, as in
 * sandboxed frames.
 */
function withLock<T>(
  name: string,
  work: (lock: object | null) => Promise<T>,
  without: () => Promise<T>,
  ifAvailable = false,
): Promise<T> {
  const { locks } = platform.navigator ?? {};
  if (!locks) return without();
  return new Promise<T>((resolve, reject) => {
    let isBegun = false;
    /** Answers what the lock is held for: nothing when it is given too late. */
    const begin = (run: () => Promise<T>): Promise<void> | undefined => {
      if (isBegun) return undefined;
      isBegun = true;
      clearTimeout(timer);
      return run().then(resolve, reject);
    };
    const goWithout = (error?: unknown): void => {
      if (!isBegun) warn('no Web Lock', error);
      void begin(without);
    };
    const timer = setTimeout(goWithout, LOCK_MS);
    void (async () => locks.request(name, { ifAvailable }, (lock) => begin(() => work(lock))))().catch(goWithout);
  });
}

/** Runs one piece of work of a name at a time, in all tabs of a browser or in this process. */
export function lock<T>(name: string, work: () => Promise<T>): Promise<T> {
  return withLock(name, work, () => {
    const turn = (queues.get(name) ?? Promise.resolve()).then(work);
    queues.set(
      name,
      turn.catch(() => undefined),
    );
    return turn;
  });
}

/** As long as what one tab stored may take to reach the others. */
const SPREAD_MS = 5000;

/** Lets all tabs of a browser know for some seconds that a thing is done: locks are seen at once, stored values not. */
export function markDone(name: string): Promise<void> {
  return new Promise((held) => {
    void withLock(
      name,
      () => (held(), sleep(SPREAD_MS)),
      () => Promise.resolve().then(held),
    );
  });
}

/** True if a tab has marked a thing as done. */
export function isDone(name: string): Promise<boolean> {
  return withLock(
    name,
    (lock) => Promise.resolve(lock === null),
    () => Promise.resolve(false),
    true,
  );
}

/** Waits, or throws what the signal says. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(reasonOf(signal!));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, ms);
    if (signal?.aborted) end();
    signal?.addEventListener('abort', end, { once: true });
  });
}

/** Why a signal was aborted; some platforms do not say. */
export const reasonOf = (signal: AbortSignal): Error =>
  (signal.reason as Error | undefined) ?? Object.assign(new Error('Aborted'), { name: 'AbortError' });

/** Calls a listener; what it throws is reported as an uncaught error and does not affect other listeners. */
export function tellListener<A extends unknown[]>(listener: (...values: A) => void, ...values: A): void {
  try {
    listener(...values);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** Listeners that hear of a value, and of what the browser reports while there are any. */
export interface Listeners<A extends unknown[]> {
  add: (listener: (...values: A) => void) => () => void;
  tell: (...values: A) => void;
}

/** `begin` runs before the first listener is added; `events` of the browser are heard while there is one. */
export function openListeners<A extends unknown[]>(
  begin: () => void,
  events: readonly string[],
  onEvent: (event: PlatformEvent) => void,
): Listeners<A> {
  const listeners = new Set<(...values: A) => void>();
  return {
    add(listener) {
      if (listeners.size === 0) {
        begin();
        events.forEach((type) => platform.addEventListener?.(type, onEvent));
      }
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) events.forEach((type) => platform.removeEventListener?.(type, onEvent));
      };
    },
    tell: (...values) => listeners.forEach((listener) => tellListener(listener, ...values)),
  };
}
