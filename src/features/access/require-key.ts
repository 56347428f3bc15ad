import type { Context } from 'koa';
import type { App } from '../../app.js';
import { forbidden, unauthenticated } from '../../errors.js';
import { withdrawOrigin } from '../../http/allow-origins.js';
import { clientNetwork } from '../../http/requests/client-address.js';
import { hashOfKey, isLiveKey, KEY_PREFIX, type Project, type ApiKey } from '../projects/project.js';
import { CALLERS, type KeyOwner, projectStore } from '../projects/project-store.js';
import { DEPTH_HEADER, type Bearer, type Caller, type RequestOrigin } from './caller.js';
import { readBearer, takeBearer } from './read-bearer.js';

/** The use of a key is noted at most this often. */
const NOTE_USE_MS = 60_000;

/**
 * Notes that a key is used, at most once a minute, in the background. Called with a key just read from the database:
 * requests that find it in the shared copies cost nothing.
 */
function noteKeyUse(app: App, { _id }: Project, key: ApiKey): void {
  const nowMs = app.clock.now();
  if (!isLiveKey(key, nowMs) || nowMs - (key.lastUsedAt?.getTime() ?? -Infinity) < NOTE_USE_MS) return;
  app.backgroundTasks.add('key-use', { _id, hash: key.hash }, async (used) => {
    for (const { _id, hash } of new Map(used.map((each) => [each.hash, each])).values()) {
      const noted = { $set: { 'keys.$.lastUsedAt': new Date(nowMs) } };
      await projectStore(app).updateOne({ _id, 'keys.hash': hash }, noted);
    }
  });
}

const MALFORMED =
  'This is not a whole API key: it begins with pk_live_ or sk_live_ and has 51 characters. Copy all of it';

/**
 * Settles whose request this is (`callerOf(ctx)`), unless an earlier guard has. 401 without a live key, 403 for an
 * origin off the allowlist (decisions.md 1, 2). A promise only when it takes time.
 */
export function authenticateKey(app: App, ctx: Context): Promise<void> | null {
  return ctx.state.caller === undefined ? authenticateCaller(app, ctx, ctx.get('x-api-key')) : null;
}

/**
 * The same for pages that a browser opens by itself (rest-api.md 5.3): the key comes as `?key=`, publishable only, and
 * is gone from the query afterwards.
 */
export async function authenticateQueryKey(app: App, ctx: Context): Promise<void> {
  const { key, ...query } = ctx.query;
  ctx.query = query;
  const value = typeof key === 'string' ? key : '';
  if (!value.startsWith(KEY_PREFIX.publishable)) {
    throw unauthenticated('API_KEY_MISSING', 'Send the project’s publishable key as the query parameter key');
  }
  await authenticateCaller(app, ctx, value);
}

/**
 * A promise only when something has to be asked of the database: most requests find all they need in the copies that
 * requests share.
 */
function authenticateCaller(app: App, ctx: Context, value: string): Promise<void> | null {
  if (value.trim() === '') {
    throw unauthenticated('API_KEY_MISSING', 'Send the project’s API key in the header x-api-key');
  }
  const hash = hashOfKey(value);
  if (hash === null) throw unauthenticated('API_KEY_INVALID', MALFORMED);
  const known = app.cache.peek(CALLERS, hash);
  if (known) return admit(app, ctx, known);
  return readKeyOwner(app, hash).then((owner) => admit(app, ctx, owner) ?? undefined);
}

function admit(app: App, ctx: Context, owner: KeyOwner | null): Promise<void> | null {
  if (!owner || !isLiveKey(owner.key, app.clock.now())) {
    throw unauthenticated('API_KEY_INVALID', 'The API key is unknown, revoked or expired');
  }
  requireAdmittedOrigin(ctx, owner);
  const settle = (bearer: Bearer): void => {
    ctx.state.caller = callerFrom(ctx, owner, bearer);
  };
  const bearer = takeBearer(app, ctx, owner.project);
  if (bearer === undefined) return readBearer(app, owner.project, ctx.get('authorization')).then(settle);
  settle(bearer);
  return null;
}

/** Whose request it is. */
export function callerFrom(ctx: Context, { project, key }: KeyOwner, bearer: Bearer): Caller {
  const origin = project.hooks && { origin: originOf(ctx) };
  if (key.type === 'secret') return { project, key, bearer, ...origin };
  return { project, key, bearer, network: clientNetwork(ctx.ip), ...origin };
}

/** The origin of a request, for own code. */
export function originOf(ctx: Context): RequestOrigin {
  const depth = Number(ctx.get(DEPTH_HEADER));
  const credentials = { key: ctx.get('x-api-key'), authorization: ctx.get('authorization') };
  return { ip: ctx.ip, depth: Number.isInteger(depth) ? depth : 1, credentials };
}

/** 403 SECRET_KEY_REQUIRED for a publishable key. */
export function rejectPublishable(ctx: Context, otherwise = ''): void {
  if (callerOf(ctx).key.type === 'secret') return;
  throw forbidden(
    'SECRET_KEY_REQUIRED',
    `This needs the secret key (sk_live_…); never use it in a browser or an app${otherwise}`,
  );
}

/** The caller that authenticateKey settled. */
export function callerOf(ctx: Pick<Context, 'state'>): Caller {
  return ctx.state.caller as Caller;
}

/** The project whose live key this is, by the copy that requests share; null for any other text. */
export async function findKeyProject(app: App, value: string): Promise<Project | null> {
  const hash = hashOfKey(value);
  return hash === null ? null : ((await findLiveKey(app, hash))?.project ?? null);
}

/** findKeyProject from this process's copies alone; undefined when they lack the key. */
export function peekKeyProject(app: App, value: string): Project | undefined {
  const hash = hashOfKey(value);
  if (hash === null) return undefined;
  const owner = app.cache.peek(CALLERS, hash);
  return owner && isLiveKey(owner.key, app.clock.now()) ? owner.project : undefined;
}

/** The project and key that a hash names, by the copy that requests share; null when it is not live (any more). */
export async function findLiveKey(app: App, hash: string): Promise<KeyOwner | null> {
  const owner = await readKeyOwner(app, hash);
  return owner && isLiveKey(owner.key, app.clock.now()) ? owner : null;
}

function readKeyOwner(app: App, hash: string): Promise<KeyOwner | null> {
  return app.cache.read(CALLERS, hash, () => findKeyOwner(app, hash));
}

async function findKeyOwner(app: App, hash: string): Promise<KeyOwner | null> {
  const project = await projectStore(app).findOne({ 'keys.hash': hash, state: 'active' }, app.db.confirmedReads);
  const key = project?.keys.find((candidate) => candidate.hash === hash);
  if (!project || !key) return null;
  noteKeyUse(app, project, key);
  return { project, key };
}

/** Whichever key it is: a secret key in a foreign page is the very case that the list is for. */
export function requireAdmittedOrigin(ctx: Context, { project }: Pick<KeyOwner, 'project'>): void {
  const origin = ctx.get('Origin');
  if (!origin || admitsOrigin(project.allowedDomains, origin)) return;
  withdrawOrigin(ctx);
  throw forbidden('ORIGIN_NOT_ALLOWED', `The origin ${origin.slice(0, 200)} is not on the project’s allowlist`);
}

/**
 * True if an allowlist admits the value of an `Origin` header; entries are exact origins, hosts or `*.base` (any
 * scheme, any port unless named), or `*`.
 */
export function admitsOrigin(allowed: readonly string[], origin: string): boolean {
  if (allowed.includes('*')) return true;
  if (!URL.canParse(origin)) return false;
  const url = new URL(origin);
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return allowed.some((entry) => {
    if (entry.includes('://')) return entry === url.origin.toLowerCase();
    const host = /:\d+$/.test(entry) ? `${url.hostname}:${port}` : url.hostname;
    return entry.startsWith('*.') ? host.endsWith(entry.slice(1)) : host === entry;
  });
}
