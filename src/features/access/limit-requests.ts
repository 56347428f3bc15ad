import { hexOf } from '../../platform/ids.js';
import { LRUCache } from 'lru-cache';
import type { Context } from 'koa';
import type { App } from '../../app.js';
import type { Config } from '../../config/config.js';
import { formatDuration, type Rate } from '../../config/setting-readers.js';
import { overLimit } from '../../errors.js';
import { clientNetwork, WIDER_TIMES, widerNetwork } from '../../http/requests/client-address.js';
import type { RequestLimit } from '../../http/routes/mount-routes.js';
import type { KeyPlace, RateClass } from '../../http/routes/route.js';
import { addHeaders } from '../../http/replies/reply.js';
import type { Verdict } from '../../platform/rate-limit/rate-limiter.js';
import type { RateLimitName } from '../plans/plan-limits.js';
import { KEY_PREFIX, type Project } from '../projects/project.js';
import type { Bearer } from './caller.js';
import { findSignedIn } from './operator.js';
import { presentedOperatorToken, presentsAdminToken, presentsOperatorToken } from './operator-token.js';
import { isVerifiedAlready, keepBearer, peekBearer, readBearer } from './read-bearer.js';
import { findKeyProject, peekKeyProject } from './require-key.js';

/** One limit that a request counts against. */
interface AppliedLimit {
  /** The window: keeps the counts of different limits apart, and stands in `RateLimit-Policy`. */
  name: string;
  /** What it counts, as its refusal says. */
  counted: string;
  /** Whose requests are counted together. */
  of: 'address' | 'user' | 'project';
  /** The setting that it comes from. */
  setting: string;
  rate: Rate;
  /** Which of a project's limits replaces the count; null where none does. */
  override: RateLimitName | null;
  /** The limit is this many times the setting or the project's own limit. */
  times: number;
}

/** Who sends a request, as far as limits go (decision 45). */
type Sender = 'anyone' | 'user' | 'secret' | 'operator';

type Limits = Readonly<Record<Sender, Readonly<Record<RateClass, readonly AppliedLimit[]>>>>;

const REFRESHES_PER_SIGN_IN = 3;
/** A screen that an operator looks at asks all the time. */
const OPERATORS_TIMES = 30;
/** A page of the guides or of the console is several files. */
const PAGES_TIMES = 10;
/** A payment service calls from few addresses, and what a page asks of own code is no guess at documents. */
const RUNS_TIMES = 10;
const REMEMBERED_KEYS = 10_000;
const REMEMBERED_ADDRESSES = 10_000;

/**
 * Counts requests of each client address without a user (rest-api.md 8, decisions.md 9), of each signed-in user, and of
 * each project with its secret key: 429 RATE_LIMITED beyond the limit. Null when all limits are off.
 */
export function limitRequests(app: App): RequestLimit | null {
  const { rateLimit, authRateLimit, secretRateLimit } = app.config;
  if (!rateLimit && !authRateLimit && !secretRateLimit) return null;
  const limits = listLimits(app.config);
  const isOperator = openOperatorFinder(app);
  const tokens = openTokenGuard(app);
  /** Keys that were good lately. */
  const lately = new LRUCache<string, true>({ max: REMEMBERED_KEYS });
  /** Addresses that are beyond the limit, with the moment until which. */
  const refused = new LRUCache<string, number>({ max: REMEMBERED_ADDRESSES });
  const told = new Set<string>();
  /** Who sends a request with a good key; without a bearer where its token is not read. */
  const sentBy = (ctx: Context, key: string, client: string, project: Project, bearer: Bearer | null): Sent => {
    if (key.startsWith(KEY_PREFIX.secret)) return { client, project, sender: 'secret', userId: '' };
    if (bearer) tokens.note(ctx, project, client, bearer);
    if (bearer?.state !== 'user') return { client, project, sender: 'anyone', userId: '' };
    return { client, project, sender: 'user', userId: bearer.userId };
  };
  const readsToken = (ctx: Context, key: string, client: string): boolean =>
    !key.startsWith(KEY_PREFIX.secret) && tokens.isRead(ctx, client);
  /** From copies alone; null where something has to be asked for it. */
  const peekSent = (ctx: Context, key: string, client: string): Sent | null => {
    const project = peekKeyProject(app, key);
    if (!project) return null;
    lately.set(key, true);
    const bearer = readsToken(ctx, key, client) ? peekBearer(app, project, ctx.get('authorization')) : null;
    return bearer === undefined ? null : sentBy(ctx, key, client, project, bearer);
  };
  const findSent = async (ctx: Context, rate: RateClass, key: string, client: string): Promise<Sent> => {
    const isRefused = (refused.get(client) ?? 0) > app.clock.now();
    // A flood of invented keys is not to become a flood of queries.
    const isAsked = key !== '' && (!isRefused || lately.has(key));
    const project = isAsked ? await findKeyProject(app, key) : null;
    if (rate === 'operator') {
      const sender = (await isOperator(ctx, isRefused)) ? 'operator' : 'anyone';
      return { client, project, sender, userId: '' };
    }
    if (!project) return { client, project, sender: 'anyone', userId: '' };
    lately.set(key, true);
    const isRead = readsToken(ctx, key, client);
    const bearer = isRead ? await readBearer(app, project, ctx.get('authorization')) : null;
    return sentBy(ctx, key, client, project, bearer);
  };
  const judge = (ctx: Context, { client, project }: Sent, limit: AppliedLimit, verdict: Verdict): void => {
    if (verdict.allowed) return;
    if (!project) refused.set(client, verdict.resetMs);
    if (!told.has(limit.setting)) {
      told.add(limit.setting);
      app.log.warn({ setting: limit.setting, limit: verdict.limit }, BEYOND_LIMIT);
    }
    throw refuse(ctx, limit, verdict, app.clock.now());
  };
  /** Counts against the limits, those before `from` are counted already; the reply says which one is nearest. */
  const count = (
    ctx: Context,
    rate: RateClass,
    sent: Sent,
    from = 0,
    tightest: Tightest | null = null,
  ): Promise<void> | null => {
    const applied = limits[sent.sender][rate];
    let told = tightest;
    for (let at = from; at < applied.length; at++) {
      const limit = applied[at]!;
      const counts = limit.of === 'user' ? sent.userId : sent.client;
      if (ctx.method === 'POST') countsOf(ctx).push({ limit, counts, project: sent.project });
      const verdict = consumeNow(app, limit, counts, sent.project);
      if (!verdict) {
        return consume(app, limit, counts, sent.project).then((late) => {
          judge(ctx, sent, limit, late);
          return count(ctx, rate, sent, at + 1, tighter(told, limit, late)) ?? undefined;
        });
      }
      judge(ctx, sent, limit, verdict);
      told = tighter(told, limit, verdict);
    }
    if (told) tell(ctx, told.limit, told.verdict, app.clock.now());
    return null;
  };
  return (ctx, given, keyIn) => {
    // A browser cannot keep from sending preflights.
    if (given === 'free' || ctx.method === 'OPTIONS') return null;
    // Guesses at the one secret of the installation, and requests without it, get no higher limit.
    const presents = given !== 'operator' || presentsOperatorToken(ctx) || presentsAdminToken(app, ctx);
    const rate = presents ? given : 'plain';
    const client = clientNetwork(ctx.ip);
    const key = keyOf(ctx, keyIn);
    const sent = key === '' || rate === 'operator' ? null : peekSent(ctx, key, client);
    if (sent) return count(ctx, rate, sent);
    return findSent(ctx, rate, key, client).then((found) => count(ctx, rate, found) ?? undefined);
  };
}

/** Who sends a request, as far as limits go. */
interface Sent {
  client: string;
  project: Project | null;
  sender: Sender;
  /** Empty for none. */
  userId: string;
}

interface Tightest {
  limit: AppliedLimit;
  verdict: Verdict;
}

function tighter(known: Tightest | null, limit: AppliedLimit, verdict: Verdict): Tightest {
  return known && known.verdict.left < verdict.left ? known : { limit, verdict };
}

/** The signatures that an address may have checked in vain, in the time of the address's limit. */
const MAX_VAIN_TOKENS = 1_000;
const VAIN_TOKENS_MS = 15 * 60_000;

/**
 * Checking a signature costs more than refusing a request, so of an address that has sent many tokens that are not
 * good, only those are read whose signature was checked a moment ago.
 */
function openTokenGuard(app: App) {
  const vain = new LRUCache<string, { count: number; untilMs: number }>({ max: REMEMBERED_ADDRESSES });
  return {
    isRead(ctx: Context, client: string): boolean {
      if (ctx.get('authorization') === '') return false;
      const noted = vain.get(client);
      const isVain = noted && noted.count >= MAX_VAIN_TOKENS && noted.untilMs > app.clock.now();
      return !isVain || isVerifiedAlready(app, ctx);
    },
    /** Keeps the bearer for the guard, and counts one that is not good. */
    note(ctx: Context, project: Project, client: string, bearer: Bearer): void {
      keepBearer(ctx, project, bearer);
      // That of a user who still has to set up a second factor is good as well.
      if ('userId' in bearer) return;
      const now = app.clock.now();
      const noted = vain.get(client);
      if (noted && noted.untilMs > now) noted.count++;
      else vain.set(client, { count: 1, untilMs: now + VAIN_TOKENS_MS });
    },
  };
}

/** A limit that a request was counted against, and as whose. */
interface Counted {
  limit: AppliedLimit;
  counts: string;
  project: Project | null;
}

const COUNTED = Symbol('counted');

function countsOf(ctx: Context): Counted[] {
  return ((ctx as Context & { [COUNTED]?: Counted[] })[COUNTED] ??= []);
}

/** Counts a POST request as `more` requests besides: 429 RATE_LIMITED beyond a limit that it was counted against. */
export async function countAsMore(app: App, ctx: Context, more: number): Promise<void> {
  for (const { limit, counts, project } of countsOf(ctx)) {
    const asked = Array.from({ length: more }, async () => await consume(app, limit, counts, project));
    const verdicts = await Promise.all(asked);
    const last = verdicts.at(-1);
    if (last && !last.allowed) throw beyondLimit(limit, last, app.clock.now());
  }
}

/** Counts a request that turns out to be as much as a sign-in: 429 RATE_LIMITED beyond that limit. */
export async function countSignIn(app: App, ctx: Context, project: Project): Promise<void> {
  const { authRateLimit: rate } = app.config;
  if (!rate) return;
  const limit = { ...SIGN_INS, rate };
  const verdict = await consume(app, limit, clientNetwork(ctx.ip), project);
  if (!verdict.allowed) throw refuse(ctx, limit, verdict, app.clock.now());
}

/** Counts an anonymous sign-up; 429 RATE_LIMITED beyond the limit of its address. */
export async function countAnonymousSignUp(app: App, ctx: Context, project: Project): Promise<void> {
  const rate = app.config.anonymousRateLimit;
  if (!rate) return;
  const limit = { ...ANONYMOUS_SIGN_UPS, rate };
  const verdict = await consume(app, limit, clientNetwork(ctx.ip), project);
  if (!verdict.allowed) throw refuse(ctx, limit, verdict, app.clock.now());
}

/** A token that is none is a guess, and of an address that is refused for them none is looked up any more. */
function openOperatorFinder(app: App): (ctx: Context, isRefused: boolean) => Promise<boolean> {
  const lately = new LRUCache<string, true>({ max: REMEMBERED_KEYS });
  return async (ctx, isRefused) => {
    if (presentsAdminToken(app, ctx)) return true;
    const token = presentedOperatorToken(ctx);
    if ((isRefused && !lately.has(token)) || !(await findSignedIn(app, token))) return false;
    lately.set(token, true);
    return true;
  };
}

const ANONYMOUS_SIGN_UPS: Omit<AppliedLimit, 'rate'> = {
  name: 'anonymous',
  counted: 'anonymous callers of one address',
  of: 'address',
  setting: 'BSVC_ANONYMOUS_RATE_LIMIT',
  override: null,
  times: 1,
};

const REQUESTS: Omit<AppliedLimit, 'rate'> = {
  name: 'address',
  counted: 'requests of one address',
  of: 'address',
  setting: 'BSVC_RATE_LIMIT',
  override: 'requests',
  times: 1,
};

const SIGN_INS: Omit<AppliedLimit, 'rate'> = {
  name: 'sign-in',
  counted: 'sign-ins of one address',
  of: 'address',
  setting: 'BSVC_AUTH_RATE_LIMIT',
  override: 'authRequests',
  times: 1,
};

/** The key that the request's route goes by; empty for none. */
function keyOf(ctx: Context, keyIn: KeyPlace | undefined): string {
  if (keyIn === undefined) return '';
  if (keyIn === 'header') return ctx.get('x-api-key');
  const { key } = ctx.query;
  return typeof key === 'string' && key.startsWith(KEY_PREFIX.publishable) ? key : '';
}

function listLimits({
  rateLimit,
  userRateLimit,
  authRateLimit,
  secretRateLimit,
}: Pick<Config, 'rateLimit' | 'userRateLimit' | 'authRateLimit' | 'secretRateLimit'>): Limits {
  const each = (rate: Rate | null, limit: Omit<AppliedLimit, 'rate'>): readonly AppliedLimit[] =>
    rate ? [{ ...limit, rate: { ...rate, count: rate.count * limit.times } }] : [];
  const signIns = each(authRateLimit, SIGN_INS);
  const refreshes = each(authRateLimit, {
    ...SIGN_INS,
    name: 'refresh',
    counted: 'refreshed sessions of one address',
    times: REFRESHES_PER_SIGN_IN,
  });
  const pages = each(rateLimit, {
    ...REQUESTS,
    name: 'pages',
    counted: 'pages and files of the documentation for one address',
    override: null,
    times: PAGES_TIMES,
  });
  const ofRuns = (limits: readonly AppliedLimit[]): AppliedLimit[] =>
    limits.map(({ rate, times, ...limit }) => ({
      ...{ ...limit, name: `run-${limit.name}`, counted: `calls of own code among the ${limit.counted}` },
      ...{ times: times * RUNS_TIMES, rate: { ...rate, count: rate.count * RUNS_TIMES } },
    }));
  const byClass = (own: readonly AppliedLimit[]): Limits[Sender] => ({
    free: [],
    page: pages,
    plain: own,
    run: ofRuns(own),
    operator: own,
    'sign-in': [...own, ...signIns],
    refresh: [...own, ...refreshes],
  });
  return {
    anyone: byClass(each(rateLimit, REQUESTS)),
    user: byClass(
      each(userRateLimit, {
        name: 'user',
        counted: 'requests of one user',
        of: 'user',
        setting: 'BSVC_RATE_LIMIT',
        override: 'userRequests',
        times: 1,
      }),
    ),
    secret: byClass(
      each(secretRateLimit, {
        name: 'project',
        counted: 'requests with the project’s secret key',
        of: 'project',
        setting: 'BSVC_SECRET_RATE_LIMIT',
        override: null,
        times: 1,
      }),
    ),
    operator: byClass(
      each(rateLimit, {
        ...REQUESTS,
        name: 'operator',
        counted: 'requests of operators at one address',
        times: OPERATORS_TIMES,
      }),
    ),
  };
}

/**
 * Requests of a project with a limit of its own are counted apart from all others of the address. Those of an IPv6
 * client are counted by its /64, and those of all of a /48 together by a wider limit.
 */
async function consume(app: App, limit: AppliedLimit, party: string, project: Project | null): Promise<Verdict> {
  const { key, rate, wider } = countedAs(limit, party, project);
  const verdict = await app.limits.consume(key, rate);
  if (wider === null || !verdict.allowed) return verdict;
  const ofAll = await app.limits.consume(wider, { ...rate, count: rate.count * WIDER_TIMES });
  return ofAll.left < verdict.left || !ofAll.allowed ? ofAll : verdict;
}

/** The same at once; null, and nothing is counted, where another counter has to be asked or is counted by two. */
function consumeNow(app: App, limit: AppliedLimit, party: string, project: Project | null): Verdict | null {
  const { key, rate, wider } = countedAs(limit, party, project);
  return wider === null ? app.limits.consumeNow(key, rate) : null;
}

function countedAs({ name, of, rate, override, times }: AppliedLimit, party: string, project: Project | null) {
  const own = project && override && Object.hasOwn(project.limits, override) ? project.limits[override]! : null;
  const ofProject = project && (of !== 'address' || own !== null) ? `${name} ${hexOf(project._id)}` : name;
  const wider = of === 'address' ? widerNetwork(party) : null;
  return {
    key: of === 'project' ? ofProject : `${ofProject} ${party}`,
    rate: own === null ? rate : { count: own * times, windowMs: rate.windowMs },
    wider: wider && `${ofProject} ${wider}`,
  };
}

const BEYOND_LIMIT =
  'A client address is beyond a rate limit and gets 429: the setting raises it for all, a limit of a project for that project. Told once';

function refuse(ctx: Context, limit: AppliedLimit, verdict: Verdict, nowMs: number): Error {
  tell(ctx, limit, verdict, nowMs);
  return beyondLimit(limit, verdict, nowMs);
}

function beyondLimit(limit: AppliedLimit, verdict: Verdict, nowMs: number): Error {
  const { counted, setting, override, rate } = limit;
  const orOwn = override ? `, or the project’s limit ${override}` : '';
  const message = `${verdict.limit} ${counted} in ${formatDuration(rate.windowMs)}: the server’s ${setting}${orOwn}`;
  return overLimit('RATE_LIMITED', 'Too many requests: please try again later', {
    retryAfterSeconds: secondsUntil(verdict.resetMs, nowMs),
    details: [{ field: setting, rule: 'limit', message }],
  });
}

/** Which window it is says `RateLimit-Policy`, in the words of the IETF's draft. */
function tell(ctx: Context, { name, rate }: AppliedLimit, { limit, left, resetMs }: Verdict, nowMs: number): void {
  const reset = secondsUntil(resetMs, nowMs);
  addHeaders(ctx, `RateLimit-Limit: ${limit}\r\nRateLimit-Remaining: ${left}\r\nRateLimit-Reset: ${reset}\r\n`);
  addHeaders(ctx, `RateLimit-Policy: "${name}";q=${limit};w=${Math.ceil(rate.windowMs / 1000)}\r\n`);
}

function secondsUntil(ms: number, nowMs: number): number {
  return Math.max(1, Math.ceil((ms - nowMs) / 1000));
}
