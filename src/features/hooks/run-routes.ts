import type { App } from '../../app.js';
import {
  JSON_TYPE,
  own,
  route,
  type Access,
  type RequestLine,
  type RouteContext,
  type RouteList,
} from '../../http/routes/route.js';
import { text } from '../../platform/schema/schema.js';
import type { Caller } from '../access/caller.js';
import { ANY_KEY_DESCRIPTION } from '../access/describe-access.js';
import { callerOf, requireAdmittedOrigin, authenticateKey, originOf } from '../access/require-key.js';
import { cacheRegion } from '../../platform/cache.js';
import type { Project } from '../projects/project.js';
import { findProject } from '../projects/project-store.js';
import { invalid, methodNotAllowed, missing, unauthenticated, unavailable, type AppError } from '../../errors.js';
import { HandlerFailure } from './call-handler.js';
import { randomUUID } from 'node:crypto';
import { admission, waitAside } from '../../http/admission/admission.js';
import { OwnCodeBusy, OwnCodeError, type OwnAddress, type OwnCall } from '../../platform/processes/own-code.js';
import { hasOwnCode, ownCodeSettings } from '../projects/own-code.js';
import { describeCaller } from './before-calls.js';
import { noteCall } from './call-log.js';

/** What an address answers, checked. */
interface AddressReply {
  status: number;
  headers: [name: string, value: string][];
  body: Buffer;
}

const MAX_BODY_BYTES = 1024 * 1024;
const MAX_HEADERS = 30;
const MAX_VALUE_CHARACTERS = 2_048;
/** Visible Latin letters: neither a line's end nor anything else that begins another header. */
const VALUE = /^[\x20-\x7e\xa0-\xff]*$/;
const ALLOWED = new Set([
  ...['cache-control', 'content-disposition', 'content-language', 'content-type', 'etag', 'expires'],
  ...['last-modified', 'location', 'retry-after'],
]);
/** Headers of its own, but none that browsers, proxies or the service's own clients act upon. */
const OWN =
  /^x-(?!accel-|api-key|content-|dns-|download-|forwarded|frame-|permitted-|powered|refresh-|request-id|ua-|xss-)[a-z0-9-]{1,60}$/;
/**
 * The address is at the origin of the console and of the public folder, whose policies load scripts and styles from
 * there; any other type does no harm there, sandboxed and never sniffed.
 */
const RUNS_ELSEWHERE = /(java|ecma|j|live)script|css|wasm/i;

/**
 * What a child says that a handler has returned. It may be anything: throws HandlerFailure for what may not be sent,
 * 400 INVALID_JSON where the handler wanted JSON of the request.
 */
function readReply(answer: unknown): AddressReply {
  const { status, headers, body, invalidJson } = (answer ?? {}) as Record<string, unknown>;
  if (typeof invalidJson === 'string') throw invalid('INVALID_JSON', invalidJson.slice(0, 200));
  // 205 has neither a body nor, as it is sent, an end: its client would wait for more.
  if (!Number.isInteger(status) || (status as number) < 200 || (status as number) > 599 || status === 205) {
    throw new HandlerFailure('The status of an answer is 200 to 599, and not 205.');
  }
  if (!Array.isArray(headers) || headers.length > MAX_HEADERS) {
    throw new HandlerFailure(`An answer has at most ${MAX_HEADERS} headers.`);
  }
  const bytes = Buffer.from(typeof body === 'string' ? body : '', 'base64');
  if (bytes.length > MAX_BODY_BYTES) throw new HandlerFailure(`An answer has at most ${MAX_BODY_BYTES / 1024} KiB.`);
  return { status: status as number, headers: headers.map(readHeader), body: bytes };
}

function readHeader(header: unknown): [string, string] {
  const [given, value] = Array.isArray(header) ? (header as unknown[]) : [];
  const name = String(given).toLowerCase();
  if (!ALLOWED.has(name) && !OWN.test(name)) {
    throw new HandlerFailure(`An address may not send the header ${JSON.stringify(name.slice(0, 64))}.`);
  }
  if (typeof value !== 'string' || value.length > MAX_VALUE_CHARACTERS || !VALUE.test(value)) {
    throw new HandlerFailure(`The value of the header ${name} cannot be sent.`);
  }
  if (name === 'content-type' && RUNS_ELSEWHERE.test(value)) {
    throw new HandlerFailure(
      `An address serves no ${value.slice(0, 64)}: scripts and styles belong to the public folder.`,
    );
  }
  return [name, value];
}

const ADDRESS_BODY_BYTES = 1024 * 1024;
const TIMEOUT_MS = 10_000;

/**
 * Answers a request with what the handler of its method and path in the project's files returns (hooks.md 3); `caller`
 * is null for one without a key. 404 RUN_NOT_FOUND, 405, 401 API_KEY_MISSING, 503 HOOK_FAILED.
 */
async function runAddress(
  app: App,
  ctx: RouteContext,
  { project, caller, name }: { project: Project; caller: Caller | null; name: string },
): Promise<AddressReply> {
  const address = await requireAddress(app, project, ctx.method === 'HEAD' ? 'GET' : ctx.method, name);
  if (!caller && !address.isPublic) {
    const text = `${ctx.method} /${name} needs the project’s API key in the header x-api-key: its file says no public: true`;
    throw unauthenticated('API_KEY_MISSING', text);
  }
  const origin = originOf(ctx);
  if (origin.depth > 0) {
    throw invalid(
      'HOOK_DEPTH',
      'The request comes from a hook, which may call no more own code: import the function instead',
    );
  }
  const body = BODILESS.has(ctx.method) ? await begin(app, ctx) : await read(app, ctx);
  const about = caller ? await describeCaller(app, caller) : { userId: null, roles: [] };
  const payload = JSON.stringify({
    request: { method: ctx.method, path: `/${name}`, query: ctx.query, headers: shownHeaders(ctx), body },
    caller: { ...about, ip: origin.ip },
  });
  const { handler } = address;
  const call: OwnCall = {
    handler,
    payload,
    timeoutMs: TIMEOUT_MS,
    depth: 0,
    ...(caller && { credentials: origin.credentials }),
  };
  return waitAside(app, ctx, () => run(app, project, call));
}

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

async function begin(app: App, ctx: RouteContext): Promise<string> {
  await admission(app).begin(ctx);
  return '';
}

/** As text that a line of JSON can hold: receivers verify signatures of the very bytes. */
async function read(app: App, ctx: RouteContext): Promise<string> {
  return (await admission(app).read(ctx, ADDRESS_BODY_BYTES, 'INVALID_BODY')).toString('base64');
}

/** Not for own code: the cookies are of the console and of other projects, the others a secret or the service's. */
const HIDDEN: ReadonlySet<string> = new Set(['cookie', 'x-api-key', 'x-refresh-token', 'connection']);

function shownHeaders({ req }: RouteContext): Record<string, string> {
  const shown = Object.entries(req.headers).filter(([name]) => !HIDDEN.has(name));
  return Object.fromEntries(shown.map(([name, value]) => [name, String(value)]));
}

async function requireAddress(app: App, project: Project, method: string, name: string): Promise<OwnAddress> {
  const found = hasOwnCode(app, project) ? await listAddresses(app, project) : new Map<string, OwnAddress>();
  const address = found.get(`${method} /${name}`);
  if (address) return address;
  const others = [...found.keys()].filter((known) => known.endsWith(` /${name}`)).map((known) => known.split(' ')[0]!);
  if (others.length === 0) throw noAddress(name);
  const Allow = [...others, 'OPTIONS'].sort().join(', ');
  throw methodNotAllowed('METHOD_NOT_ALLOWED', `${method} is not allowed here; allowed: ${Allow}`, {
    headers: { Allow },
  });
}

const noAddress = (name: string): AppError =>
  missing('RUN_NOT_FOUND', `The project’s files have no handler for the address /${name.slice(0, 100)}`);

async function listAddresses(app: App, { _id }: Project): Promise<ReadonlyMap<string, OwnAddress>> {
  try {
    return await app.ownCode.addresses(_id.toHexString(), ownCodeSettings(app, _id));
  } catch (error) {
    throw error instanceof OwnCodeError ? failed(error) : error;
  }
}

async function run(app: App, { _id }: Project, call: OwnCall): Promise<AddressReply> {
  const at = new Date(app.clock.now());
  const begun = performance.now();
  // Answers are for the caller, and nothing of them is kept.
  const log = (status: number | null, error: string | null): void =>
    noteCall(
      app,
      { projectId: _id, ownerId: _id, id: `call_${randomUUID()}`, event: call.handler.split('#')[1]! },
      { at, durationMs: Math.round(performance.now() - begun), status, response: '', error },
    );
  try {
    const answer = await app.ownCode.call(_id.toHexString(), ownCodeSettings(app, _id), call);
    const reply = readReply(answer);
    log(reply.status, null);
    app.metrics.event('hook_calls', 'answered');
    return reply;
  } catch (error) {
    if (error instanceof OwnCodeBusy) throw unavailable('OVERLOADED', error.message, { retryAfterSeconds: 1 });
    if (!(error instanceof OwnCodeError || error instanceof HandlerFailure)) throw error;
    log(null, error.message);
    app.metrics.event('hook_calls', 'failed');
    throw failed(error);
  }
}

function failed(cause: Error): AppError {
  return unavailable('HOOK_FAILED', 'The project’s own code gave no proper answer', { retryAfterSeconds: 1, cause });
}

const PREFIX = '/api/run';
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const NAMED = cacheRegion<Project>('run-projects');
const ANYTHING = { [JSON_TYPE]: {}, '*/*': text({ contentMediaType: 'application/octet-stream' }) };
const BYTES = { '*/*': text({ contentMediaType: 'application/octet-stream' }) };

/** Of files, too: never sniffed, never a document with rights at the console's origin. */
const HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
};

/** A caller with a key, or without one if the query names the project: the project's file decides what suffices. */
const KEY_OR_PROJECT: Access<{ project: Project; caller: Caller | null }> = {
  ...ANY_KEY_DESCRIPTION,
  note: 'Any live key of the project; none where the file says `public: true` and the query names the `project`.',
  admit: (app, ctx) =>
    ctx.get('x-api-key') === '' && typeof ctx.query.project === 'string'
      ? authenticateProject(app, ctx, ctx.query.project)
      : authenticateKey(app, ctx),
  give: (_app, ctx) => {
    const caller = callerOf(ctx) as Caller | undefined;
    return { caller: caller ?? null, project: caller?.project ?? (ctx.state.project as Project) };
  },
};

async function authenticateProject(app: App, ctx: RouteContext, named: string): Promise<void> {
  const project = named.length > 64 ? null : await app.cache.read(NAMED, named, () => findProject(app, named));
  if (!project) throw noAddress(pathOf(ctx));
  requireAdmittedOrigin(ctx, { project });
  const { project: _named, ...query } = ctx.query;
  ctx.query = query;
  ctx.state.project = project;
}

/** Addresses of a project's files (hooks.md 3). */
export const RUN_ROUTES: RouteList = {
  prefix: PREFIX,
  tag: 'Own code',
  rate: 'run',
  keyIn: 'header',
  about:
    'Addresses that a project’s own files answer, and single calls of your code at a moment, which are there until they succeed or have failed five times.',
  params: {
    address: {
      description: 'As a file of the project names it',
      schema: text({ minLength: 1 }),
      errors: { 404: ['RUN_NOT_FOUND'] },
    },
  },
  routes: METHODS.map((method) =>
    route(`${method} ${PREFIX}/*address` as RequestLine, {
      id: `run${method[0]}${method.slice(1).toLowerCase()}`,
      summary: `Have a handler of the project’s files answer ${method}`,
      description: 'Status, headers and body are what the handler returns.',
      access: KEY_OR_PROJECT,
      ...(method !== 'GET' && { ownBody: { content: BYTES, required: false, isRead: true } }),
      answers: { ...own(200, 'What the handler returns, with its status', ANYTHING), isAny: true },
      errors: { 400: ['INVALID_JSON', 'INVALID_BODY', 'HOOK_DEPTH'], 413: ['BODY_TOO_LARGE'], 503: ['HOOK_FAILED'] },
      async handle({ app, ctx, project, caller }) {
        const { status, headers, body } = await runAddress(app, ctx, { project, caller, name: pathOf(ctx) });
        ctx.set(HEADERS);
        for (const [name, value] of headers) ctx.set(name, value);
        ctx.status = status;
        ctx.body = status === 204 || status === 304 ? null : body;
      },
    }),
  ),
};

const pathOf = ({ path }: RouteContext): string => path.slice(PREFIX.length + 1);
