import { ApiError, readRefusal } from './api-error.js';
import { platform, sleep } from './platform.js';

/** A request of the client. */
export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/api`. */
  path: string;
  query?: URLSearchParams;
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
}

/** Gives requests the user's token and renews it. */
export interface TokenSource {
  token(): string | undefined;
  /** Resolves to false when nobody is signed in any more. */
  renew(stale: string): Promise<boolean>;
}

export interface Connection {
  url: string;
  key: string;
  /** Distinguishes one account of one project from others that this browser knows. */
  name: string;
  tokens: TokenSource | undefined;
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
}

const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 8000;
/** A service that wants a longer pause is left to the caller. */
const MAX_RETRY_AFTER_S = 30;
/** Answers of a service, or of a proxy before it, that cannot just now. */
const BUSY_STATUSES: readonly number[] = [502, 503, 504];
/** Refusals before anything was done. */
const UNTOUCHED: readonly string[] = ['OVERLOADED', 'BUSY', 'RATE_LIMITED'];

export function openConnection(options: ConnectionOptions): Connection {
  const { key, retries = 6, cookies } = options;
  const url = options.url.replace(/\/+$/, '');
  const send = options.fetch ?? ((...words: Parameters<typeof fetch>) => fetch(...words));

  const attempt = async (
    call: Call,
    token: string | undefined,
    idempotencyKey: string | undefined,
  ): Promise<Response> => {
    const { method = 'GET', path, query, body, headers, signal } = call;
    const text = query?.toString();
    try {
      return await send(`${url}/api${path}${text ? `?${text}` : ''}`, {
        method,
        headers: {
          'x-api-key': key,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
          ...headers,
        },
        ...(cookies && { credentials: 'include' }),
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal && { signal }),
      });
    } catch (cause) {
      if (signal?.aborted) throw cause;
      throw noAnswer('There was no answer from the server', cause);
    }
  };

  /** What is read of the reply; a reply that breaks off during it is none, and asked for again. */
  const request = async <T>(call: Call, read: (response: Response) => T | Promise<T>): Promise<T> => {
    const idempotencyKey = call.repeat === 'key' ? randomKey() : undefined;
    const tokens = call.isAnonymous ? undefined : connection.tokens;
    let isRenewed = false;
    for (let tried = 0; ; tried++) {
      const token = tokens?.token();
      let error: ApiError;
      try {
        const response = await attempt(call, token, idempotencyKey);
        if (response.ok) return await read(response);
        error = await readRefusal(response);
      } catch (thrown) {
        if (!(thrown instanceof ApiError)) throw thrown;
        error = thrown;
      }
      if (error.code === 'TOKEN_EXPIRED' && token !== undefined && !isRenewed) {
        isRenewed = true;
        if (await tokens!.renew(token)) continue;
      }
      if (tried >= retries || !mayRepeat(error, call)) throw error;
      await sleep((error.retryAfter ?? 0) * 1000 + backOff(tried), call.signal);
    }
  };

  const connection: Connection = {
    url,
    key,
    name: `bsvc:${url}:${key.slice(-8)}`,
    tokens: undefined,
    open: (call) => request(call, (response) => response),
    send: (call) => request(call, (response) => readReply(response, call.signal)),
  };
  return connection;
}

const noAnswer = (message: string, cause: unknown): ApiError =>
  new ApiError(message, { status: 0, code: 'NETWORK', cause });

async function readReply<T>(response: Response, signal: AbortSignal | undefined): Promise<T> {
  const text = await response.text().catch((cause: unknown) => {
    throw signal?.aborted ? cause : noAnswer('The answer of the server broke off', cause);
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
  if (repeat === 'never' || retryAfter > MAX_RETRY_AFTER_S) return false;
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
