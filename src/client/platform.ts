/** Text by name; `localStorage` is one. Pages that share it share their session. */
export interface SessionStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

interface Locks {
  request<T>(
    name: string,
    options: { signal?: AbortSignal; ifAvailable?: boolean },
    work: (lock: object | null) => Promise<T>,
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

/** The parts of a platform that not every one has. */
export const platform: {
  localStorage?: SessionStorage;
  navigator?: { locks?: Locks; onLine?: boolean };
  XMLHttpRequest?: new () => UploadRequest;
  crypto?: {
    getRandomValues(bytes: Uint8Array): Uint8Array;
    subtle?: { digest(name: string, bytes: Uint8Array): Promise<ArrayBuffer> };
  };
  BroadcastChannel?: new (name: string) => Channel;
  addEventListener?(type: string, listener: (event: { key?: string | null }) => void): void;
  removeEventListener?(type: string, listener: (event: { key?: string | null }) => void): void;
} = globalThis as never;

/** The storage that all tabs of a page share, or a memory where there is none or it is closed to the page. */
export function findStorage(): { storage: SessionStorage; isShared: boolean } {
  try {
    const { localStorage } = platform;
    if (localStorage) {
      localStorage.getItem('bsvc');
      return { storage: localStorage, isShared: true };
    }
  } catch {
    // Closed by the settings of the browser.
  }
  const memory = new Map<string, string>();
  const storage: SessionStorage = {
    getItem: (key) => memory.get(key) ?? null,
    setItem: (key, value) => void memory.set(key, value),
    removeItem: (key) => void memory.delete(key),
  };
  return { storage, isShared: false };
}

const queues = new Map<string, Promise<unknown>>();

/** Runs one piece of work of a name at a time, in all tabs of a browser or in this process. */
export function lock<T>(name: string, work: () => Promise<T>): Promise<T> {
  const { locks } = platform.navigator ?? {};
  if (locks) return locks.request(name, {}, work);
  const turn = (queues.get(name) ?? Promise.resolve()).then(work);
  queues.set(
    name,
    turn.catch(() => undefined),
  );
  return turn;
}

/** As long as what one tab stored may take to reach the others. */
const SPREAD_MS = 5000;

/** Lets all tabs of a browser know for some seconds that a thing is done: locks are seen at once, stored values not. */
export async function markDone(name: string): Promise<void> {
  const { locks } = platform.navigator ?? {};
  if (locks) await new Promise<void>((held) => void locks.request(name, {}, () => (held(), sleep(SPREAD_MS))));
}

/** True if a tab has marked a thing as done. */
export async function isDone(name: string): Promise<boolean> {
  const { locks } = platform.navigator ?? {};
  return locks?.request(name, { ifAvailable: true }, (lock) => Promise.resolve(lock === null)) ?? false;
}

/** Waits, or throws what the signal says. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(signal!.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, ms);
    if (signal?.aborted) end();
    signal?.addEventListener('abort', end, { once: true });
  });
}

/** Calls a listener; what it throws is reported as an uncaught error, as of events, and disturbs nobody else. */
export function tellListener<T>(listener: (value: T) => void, value: T): void {
  try {
    listener(value);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
