import { randomUUID } from 'node:crypto';
import type { App } from '../../app.js';
import { AppError, invalid, unavailable, type ErrorKind } from '../../errors.js';
import { ROLES } from '../collections/users-collection.js';
import type { Caller } from '../access/caller.js';
import { readAttributes } from '../access/rules/caller-attributes.js';
import type { ProjectHook } from '../projects/project.js';
import { sha256Hex } from '../../platform/ids.js';
import { callHandler, HandlerFailure } from './call-handler.js';
import { findHook, openHandler, type HandlerCall } from './hook.js';

/** A document that is about to be written, as own code is shown it. */
export interface AskedDocument {
  id?: string;
  document: Record<string, unknown>;
  before?: Record<string, unknown>;
}

type Fields = Record<string, unknown>;

/** What own code answers: fields to set by document, or that it refuses. */
export type BeforeAnswer = { allow: true; set: (Fields | null)[] } | { allow: false; error: AppError };

/** A caller whose project has own code; absent for most. */
export type HookedCaller = Caller | undefined;

/** The caller, if anything of its project's own code could be called: one look at the project. */
export function hookedCaller(caller: Caller): HookedCaller {
  return caller.project.hooks && caller;
}

const refusals = new WeakSet<AppError>();

function ofHook(error: AppError): AppError {
  refusals.add(error);
  return error;
}

/** True for what own code has refused with, or for its failure. */
export function isOfHook(error: AppError): boolean {
  return refusals.has(error);
}

interface Question<T> {
  event: string;
  asked: readonly AskedDocument[];
  /** Whether the request names one document, and not a list. */
  isOne: boolean;
  /** Of a request that may be repeated: the call has the same id then. */
  idempotencyKey?: string | null;
  /** Makes of what is set in the document at a place what is needed of it; throws HandlerFailure. */
  take: (set: Fields, at: number) => T | null;
}

/**
 * Asks the hook of an event before something happens (hooks.md 2): null where there is none, or where it may fail and
 * did. Throws what it refuses with, 503 HOOK_FAILED for no proper answer, 400 HOOK_DEPTH in a request of a handler.
 */
export async function askBefore<T>(app: App, caller: Caller, question: Question<T>): Promise<(T | null)[] | null> {
  const hook = findHook(caller.project, question.event);
  if (!hook) return null;
  if ((caller.origin?.depth ?? 0) > 0) throw ofHook(tooDeep(question.event));
  try {
    return await ask(app, caller, hook, question);
  } catch (error) {
    if (!(error instanceof HandlerFailure)) throw error instanceof AppError ? ofHook(error) : error;
    app.log.warn(
      { project: caller.project._id.toHexString(), event: hook.event, reason: error.message },
      'a hook failed',
    );
    if (hook.onFailure === 'allow') return null;
    const text = `The project's own code for ${hook.event} gave no proper answer: nothing was changed`;
    throw ofHook(unavailable('HOOK_FAILED', text, { retryAfterSeconds: 1, cause: error }));
  }
}

async function ask<T>(
  app: App,
  caller: Caller,
  hook: ProjectHook,
  { event, asked, isOne, idempotencyKey = null, take }: Question<T>,
): Promise<(T | null)[]> {
  const { project, origin } = caller;
  const told = { ...(await describeCaller(app, caller)), ip: origin?.ip ?? null };
  const documents = asked.map(({ document, before }) => ({ document, ...(before && { before }) }));
  const about = isOne ? documents[0]! : { documents };
  const body = JSON.stringify({ event, caller: told, ...about, idempotencyKey });
  const id = idempotencyKey === null ? `call_${randomUUID()}` : repeatableId(caller, event, idempotencyKey, body);
  const call: HandlerCall = {
    ...{ projectId: project._id, ownerId: hook.id, id, event, body, timeoutMs: hook.timeoutMs, depth: 1 },
    documentId: isOne ? asked[0]!.id : null,
    target: openHandler(app, project._id, hook),
    ...(origin && { credentials: origin.credentials }),
  };
  const answer = await callHandler(app, call, (json) => {
    const read = readAnswer(json, asked.length, isOne);
    return read.allow ? { set: read.set.map((set, at) => set && take(set, at)) } : read;
  });
  if ('error' in answer) throw answer.error;
  return answer.set;
}

/** Equal for all repetitions of a request, and only for them. */
function repeatableId({ project, bearer, key }: Caller, event: string, idempotencyKey: string, body: string): string {
  const user = 'userId' in bearer ? bearer.userId : key.type === 'secret' ? '' : body;
  const words = [project._id.toHexString(), event, user, idempotencyKey];
  return `call_${sha256Hex(words.join('\n')).slice(0, 32)}`;
}

/** The user as own code receives it. */
export async function describeCaller(app: App, caller: Caller): Promise<{ userId: string | null; roles: unknown }> {
  const attributes = await readAttributes(app, caller, [ROLES]);
  const userId = caller.bearer.state === 'user' ? caller.bearer.userId : null;
  return { userId, roles: attributes?.[ROLES] ?? [] };
}

const KINDS: Readonly<Record<number, ErrorKind>> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'missing',
  409: 'conflict',
  410: 'expired',
  412: 'preconditionFailed',
  413: 'tooLarge',
  422: 'unprocessable',
};

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const CODE = /^[A-Z][A-Z0-9_]{1,63}$/;
const MAX_MESSAGE = 500;

/** `{allow: true, set?}` or `{allow: false, status, code, message}`; HandlerFailure for anything else. */
export function readAnswer(json: unknown, count: number, isOne: boolean): BeforeAnswer {
  if (!isObject(json) || typeof json.allow !== 'boolean') throw new HandlerFailure('The answer says no "allow".');
  if (!json.allow) return { allow: false, error: readRefusal(json) };
  const { set } = json;
  if (set === undefined || set === null) return { allow: true, set: Array<null>(count).fill(null) };
  const list: unknown = isOne ? [set] : set;
  const fits = Array.isArray(list) && list.length === count && list.every((each) => each === null || isObject(each));
  if (!fits) {
    const form = isOne ? 'an object of fields' : `a list of ${count}, an object of fields or null for each document`;
    throw new HandlerFailure(`"set" is not ${form}.`);
  }
  return { allow: true, set: list as (Fields | null)[] };
}

function readRefusal({ status = 403, code = 'HOOK_REFUSED', message = 'Refused' }: Fields): AppError {
  const kind = KINDS[status as number];
  const isText = typeof message === 'string' && message.length > 0 && message.length <= MAX_MESSAGE;
  if (!kind || typeof code !== 'string' || !CODE.test(code) || !isText) {
    const statuses = Object.keys(KINDS).join(', ');
    const form = `status ${statuses}, a code in capitals and a message of at most ${MAX_MESSAGE} characters`;
    throw new HandlerFailure(`The answer refuses without ${form}.`);
  }
  return new AppError(kind, code, message, { details: [{ field: '', rule: 'hook', message }] });
}

function tooDeep(event: string): AppError {
  const text = `The request comes from own code and would call more of it (${event}): leave that to the code itself`;
  return invalid('HOOK_DEPTH', text);
}
