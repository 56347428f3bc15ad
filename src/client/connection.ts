import { ApiError, readRefusal } from './api-error.js';
import { openListeners, platform, reasonOf, sleep } from './platform.js';
import { toPlain } from './query.js';

/** A request of the client. */
export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/api`. */
  path: string;
  query?: string;
  body?: unknown;
  headers?: Record<string, string>;
  /**
   * No: repeated only when the service says that it did nothing. By key: made safe to repeat by an Idempotency-Key.
   * Never: the caller sees to it.
   */
  repeat?: 'no' | 'key' | 'never';
  /** Without the token of the user. */
  isAnonymous?: boolean;
  signal?: AbortSignal | undefined;
  /** Seconds for which the service may hold its answer back, on top of the time limit. */
  wait?: number | undefined;
}

/** Gives requests the user's token and renews it. */
export interface TokenSource {
  token(): Promise<string | undefined>;
  /** Resolves to false when there is no other token. */
  renew(stale: string): Promise<boolean>;
  /** The service does not accept the token, although it was just renewed: the session has ended. Only of sessions. */
  end?(refused: string): void;
}

/**
 * `offline`: the browser has no network, or a request was given up without an answer. `connecting`: there was no
 * answer, and the request is repeated.
 */
export type ConnectionState = 'online' | 'connecting' | 'offline';

/** The connection to the service, as the last request and the browser know it. */
export interface ConnectionStatus {
  readonly state: ConnectionState;
  /** Reports every new state. Ends by the function that it returns. */
  onChange(listener: (state: ConnectionState) => void): () => void;
}

export interface Connection {
  url: string;
  key: string;
  /** Distinguishes one account of one project from others that this browser knows. */
  name: string;
  tokens: TokenSource | undefined;
  status: ConnectionStatus;
  note: (state: ConnectionState) => void;
  /** The parsed reply; throws an ApiError. */
  send<T>(call: Call): Promise<T>;
  /** The reply as it is; throws an ApiError for a refusal. */
  open(call: Call): Promise<Response>;
}

export interface ConnectionOptions {
  url: string;
  key: string;
  fetch?: typeof fetch;
  /** How often a request is repeated that met no answer or an overloaded service; 6 unless said. */
  retries?: number;
  /** Sends the browser's cookies along. */
  cookies?: boolean;
  /**
   * Milliseconds after which a call that has no answer fails with `TIMEOUT`, all its repetitions included; 30,000
   * unless said, 0 for no limit. Streams and uploads have none.
   */
  timeout?: number;
}

const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 8000;
const TIMEOUT_MS = 30_000;
/** A timer can wait no longer. */
const MAX_TIMEOUT_MS = 2 ** 31;
/** A service that wants a longer pause is left to the caller. */
const MAX_RETRY_AFTER_S = 20;
/** Answers of a service, or of a proxy before it, that cannot just now. */
const BUSY_STATUSES: readonly number[] = [502, 503, 504];
/** Refusals before anything was done. */
const UNTOUCHED: readonly string[] = ['OVERLOADED', 'BUSY', 'RATE_LIMITED'];

export function openConnection(options: ConnectionOptions): Connection {
  const { key, retries = 6, cookies, timeout = TIMEOUT_MS } = options;
  const url = options.url.replace(/\/+$/, '');
  const send = options.fetch ?? ((...words: Parameters<typeof fetch>) => fetch(...words));

  let last: ConnectionState = 'online';
  let shown: ConnectionState;
  const current = (): ConnectionState => (isOffline() ? 'offline' : last);
  const listeners = openListeners<[ConnectionState]>(
    () => (shown = current()),
    ['online', 'offline'],
    ({ type }) => note(type as ConnectionState),
  );
  const note = (state: ConnectionState): void => {
    last = state;
    if (shown !== current()) listeners.tell((shown = current()));
  };

  const attempt = async (
    { method = 'GET', path, query, headers, signal }: Call,
    body: string | undefined,
    token: string | undefined,
    idempotencyKey: string | undefined,
  ): Promise<Response> => {
    // A server on this machine needs no network.
    if (isOffline() && !/^https?:\/\/localhost\b/.test(url)) throw noAnswer('No network');
    try {
      const response = await send(`${url}/api${path}${query ? `?${query}` : ''}`, {
        method,
        headers: {
          'x-api-key': key,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
          ...headers,
        },
        ...(cookies && { credentials: 'include' }),
        ...(body !== undefined && { body }),
        ...(signal && { signal }),
      });
      note('online');
      return response;
    } catch (cause) {
      if (signal?.aborted) throw cause;
      throw noAnswer('No answer from the server', cause);
    }
  };

  /** What is read of the reply; a reply that breaks off during it is none, and asked for again. */
  const request = async <T>(call: Call, read: (response: Response) => T | Promise<T>): Promise<T> => {
    const body = call.body === undefined ? undefined : JSON.stringify(toPlain(call.body, ''));
    const idempotencyKey = call.repeat === 'key' ? randomKey() : undefined;
    const tokens = call.isAnonymous ? undefined : connection.tokens;
    let isRenewed = false;
    for (let tried = 0; ; tried++) {
      const token = await tokens?.token();
      let error: ApiError;
      try {
        const response = await attempt(call, body, token, idempotencyKey);
        if (response.ok) return await read(response);
        error = await readRefusal(response);
      } catch (thrown) {
        if (!(thrown instanceof ApiError)) throw thrown;
        error = thrown;
      }
      // A session that was ended elsewhere is over for the service too: the renewal finds out and signs out.
      if (/^TOKEN_(EXPIRED|INVALID)$/.test(error.code) && token !== undefined) {
        if (!isRenewed) {
          isRenewed = true;
          if (await tokens!.renew(token)) continue;
        } else if (error.code === 'TOKEN_INVALID') {
          tokens!.end?.(token);
        }
      }
      const isLast = tried >= retries || !mayRepeat(error, call);
      if (error.status === 0) note(isLast && call.repeat !== 'never' ? 'offline' : 'connecting');
      if (isLast) throw error;
      await sleep((error.retryAfter ?? 0) * 1000 + backOff(tried), call.signal);
    }
  };

  const connection: Connection = {
    url,
    key,
    name: `bsvc:${url}:${key.slice(-8)}`,
    tokens: undefined,
    status: {
      get state() {
        return current();
      },
      onChange: listeners.add,
    },
    note,
    open: (call) => request(call, (response) => response),
    send: (given) => limited(timeout, given, (call) => request(call, (response) => readReply(response, call.signal))),
  };
  return connection;
}

/** Fails when the time is over or the caller's signal says so, whatever the platform makes of signals. */
const limited = <T>(timeout: number, call: Call, work: (call: Call) => Promise<T>): Promise<T> =>
  new Promise<T>((resolve, reject) => {
    const ends = new AbortController();
    const { signal, wait = 0 } = call;
    const fail = (error: Error): void => {
      reject(error);
      ends.abort(error);
    };
    const end = (): void => fail(reasonOf(signal!));
    const limitMs = timeout + wait * 1000;
    const timer =
      timeout && limitMs < MAX_TIMEOUT_MS
        ? setTimeout(
            () => fail(new ApiError(`No answer within ${limitMs} ms`, { status: 0, code: 'TIMEOUT' })),
            limitMs,
          )
        : undefined;
    signal?.addEventListener('abort', end, { once: true });
    if (signal?.aborted) return end();
    void work({ ...call, signal: ends.signal })
      .then(resolve, reject)
      .finally(() => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', end);
      });
  });

const isOffline = (): boolean => platform.navigator?.onLine === false;

const noAnswer = (message: string, cause?: unknown): ApiError =>
  new ApiError(message, { status: 0, code: isOffline() ? 'OFFLINE' : 'NETWORK', cause });

async function readReply<T>(response: Response, signal: AbortSignal | undefined): Promise<T> {
  const text = await response.text().catch((cause: unknown) => {
    throw signal?.aborted ? cause : noAnswer('The answer broke off', cause);
  });
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    const { status } = response;
    // The page of a portal or of another server.
    throw new ApiError('The answer is not of the service', { status, code: `HTTP_${status}`, cause });
  }
}

function mayRepeat({ status, code, retryAfter = 0 }: ApiError, { repeat }: Call): boolean {
  if (repeat === 'never' || code === 'OFFLINE' || retryAfter > MAX_RETRY_AFTER_S) return false;
  if (UNTOUCHED.includes(code)) return true;
  if (repeat === 'no') return false;
  return status === 0 || BUSY_STATUSES.includes(status) || ((status === 409 || status === 429) && retryAfter > 0);
}

/** A quarter of a second, then twice as long each time, and by chance up to half of it less. */
export function backOff(tried: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** tried, MAX_WAIT_MS) * (1 - Math.random() / 2);
}

/**
 * 128 random bits, for keys that need only differ. `crypto.randomUUID` is missing in pages without TLS, and all of
 * `crypto` on some platforms, such as a bare React Native.
 */
export function randomKey(): string {
  const bytes = new Uint8Array(16);
  const random = (): number => Math.random() * 256;
  const filled = platform.crypto?.getRandomValues(bytes) ?? bytes.map(random);
  return Array.from(filled, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
