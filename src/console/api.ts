import { signal } from '@preact/signals';
import {
  queryOf,
  type Address,
  type ApiPath,
  type AskedOf,
  type DataOf,
  type Method,
  type RouteOf,
} from './api-paths.js';
import type { ApiSchemas } from './api-routes.js';

/** One broken rule of a field, by the field's path. */
type FieldProblem = NonNullable<ApiSchemas['Error']['details']>[number];

/** Why a request was refused, in the server's words; `requestId` finds it in the server's log. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId: string,
    readonly retryAfterSeconds: number | null,
    /** Every broken rule, where fields were at fault. */
    readonly details: readonly FieldProblem[] = [],
  ) {
    super(message);
  }
}

/** Converts any thrown value to a refusal. */
export function refusalOf(error: unknown): Refusal {
  return error instanceof Refusal ? error : new Refusal(0, 'FAILED', String(error), '', null);
}

/** The server is away, or says that it is for now; null while all is well. */
export const trouble = signal<string | null>(null);

/** Resolves after the next sign-in; set while the page waits for it. */
export const signInAgain = signal<{ done(): void } | null>(null);

/** A request that wants the own password once more; true to send it again, now that it was given. */
export const passwordAgain = signal<{ done: (isGiven: boolean) => void } | null>(null);

function untilConfirmed(): Promise<boolean> {
  return new Promise((resolve) => {
    passwordAgain.value = {
      done(isGiven) {
        passwordAgain.value = null;
        resolve(isGiven);
      },
    };
  });
}

let waiting: Promise<void> | null = null;

/** Asks to sign in over the page as it is, so that nothing typed is lost; all requests wait for it together. */
function untilSignedIn(): Promise<void> {
  return (waiting ??= new Promise<void>((resolve) => {
    signInAgain.value = {
      done() {
        signInAgain.value = null;
        waiting = null;
        resolve();
      },
    };
  }));
}

/** Addresses are relative to the page, whatever a proxy in front has taken away of the path. */
export const addressOf = (path: string): string => new URL(`..${path}`, document.baseURI).href;

interface Options {
  signal?: AbortSignal;
  /** Refused without a session, it does not wait for one. */
  isSignIn?: boolean;
  headers?: Readonly<Record<string, string>>;
}

interface Sendable extends Options {
  query?: object;
  body?: unknown;
  form?: FormData;
}

/** What a route takes beside its path; nothing has to be given where nothing has to be sent. */
type Asked<M extends Method, P extends ApiPath> =
  RouteOf<M, P> extends { body: unknown } | { form: unknown }
    ? [asked: AskedOf<M, P> & Options]
    : [asked?: AskedOf<M, P> & Options];

/** A request as a value: forms send it, and show it as a command. */
export interface Prepared<Data = unknown> extends Sendable {
  readonly method: Method;
  readonly path: Address<ApiPath>;
  /** Of the answer; never there. */
  readonly data?: Data;
}

/** Makes a request without sending it, typed by the API document. */
export function prepare<M extends Method, P extends ApiPath<M>>(
  method: M,
  path: Address<P>,
  ...[asked]: Asked<M, P>
): Prepared<DataOf<M, P>> {
  return { ...asked, method, path };
}

export function send<Data>({ method, path, ...asked }: Prepared<Data>): Promise<Data> {
  return request(method, path, asked) as Promise<Data>;
}

/**
 * Sends a request to the operators' API and answers its `data`, both typed by the API document. Throws `Refusal`, and
 * with `AbortError` when `signal` ends it. Without a session it waits for the next sign-in.
 */
export function call<M extends Method, P extends ApiPath<M>>(
  method: M,
  address: Address<P>,
  ...[asked]: Asked<M, P>
): Promise<DataOf<M, P>> {
  return request(method, address, asked ?? {});
}

/** The same for code that reads any address. */
export function get<P extends ApiPath<'GET'>>(address: Address<P>, signal: AbortSignal): Promise<DataOf<'GET', P>> {
  return request('GET', address, { signal });
}

async function request(method: Method, address: string, asked: Sendable): Promise<unknown> {
  // Options that were not given are none, whatever else objects have by their prototype.
  const options = Object.assign(Object.create(null) as Sendable, asked);
  for (;;) {
    const response = await fetchAnswer(method, address, options);
    const json = (await response.json().catch(() => ({}))) as { data?: unknown } & Partial<ApiSchemas['Error']>;
    if (response.ok) {
      if (trouble.value !== null) trouble.value = null;
      return json.data;
    }
    if (response.status === 401 && !options.isSignIn && json.code !== 'INVALID_CREDENTIALS') {
      await untilSignedIn();
      continue;
    }
    if (json.code === 'PASSWORD_REQUIRED' && (await untilConfirmed())) continue;
    const retryAfter = Number(response.headers.get('retry-after'));
    const refusal = new Refusal(
      response.status,
      text(json.code) || `HTTP ${response.status}`,
      text(json.message) || 'The server answered something that is not for this console.',
      text(json.requestId) || (response.headers.get('x-request-id') ?? ''),
      retryAfter > 0 ? retryAfter : null,
      Array.isArray(json.details) ? json.details : [],
    );
    if (response.status === 503 && json.code !== 'BUSY') {
      trouble.value = `The server cannot answer now: ${refusal.message}`;
    }
    throw refusal;
  }
}

async function fetchAnswer(
  method: Method,
  address: string,
  { query = {}, body, form, headers, signal }: Sendable,
): Promise<Response> {
  try {
    return await fetch(addressOf(address + queryOf(query)), {
      method,
      credentials: 'same-origin',
      // A form says its type itself.
      headers: {
        'x-bsvc-console': '1',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(form && { body: form }),
      ...(signal && { signal }),
    });
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error;
    trouble.value =
      'The server does not respond. You see the last data, and your input is kept. The console retries automatically.';
    throw new Refusal(0, 'OFFLINE', 'The server does not answer: try again.', '', null);
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
