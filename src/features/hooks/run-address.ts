import { randomUUID } from 'node:crypto';
import type { App } from '../../app.js';
import { type AppError, invalid, methodNotAllowed, missing, unauthenticated, unavailable } from '../../errors.js';
import { admission, waitAside } from '../../http/admission/admission.js';
import type { RouteContext } from '../../http/routes/route.js';
import { OwnCodeBusy, OwnCodeError, type OwnAddress, type OwnCall } from '../../platform/processes/own-code.js';
import type { Caller } from '../access/caller.js';
import { originOf } from '../access/require-key.js';
import { hasOwnCode, ownCodeSettings } from '../projects/own-code.js';
import type { Project } from '../projects/project.js';
import { readReply, type AddressReply } from './address-reply.js';
import { describeCaller } from './before-calls.js';
import { HandlerFailure } from './call-handler.js';
import { noteCall } from './call-log.js';

const ADDRESS_BODY_BYTES = 1024 * 1024;
const TIMEOUT_MS = 10_000;

/**
 * Answers a request with what the handler of its method and path in the project's files returns (hooks.md 3); `caller`
 * is null for one without a key. 404 RUN_NOT_FOUND, 405, 401 API_KEY_MISSING, 503 HOOK_FAILED.
 */
export async function runAddress(
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

export const noAddress = (name: string): AppError =>
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
