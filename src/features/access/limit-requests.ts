import { LRUCache } from 'lru-cache';
import type { Context } from 'koa';
import type { App } from '../../app.js';
import type { Config } from '../../config/config.js';
import { sayDuration, type Rate } from '../../config/setting-readers.js';
import { overLimit } from '../../errors.js';
import { clientNetwork } from '../../http/requests/client-address.js';
import type { RequestLimit } from '../../http/routes/mount-routes.js';
import type { KeyPlace, RateClass } from '../../http/routes/route.js';
import { addHeaders } from '../../http/replies/reply.js';
import type { Verdict } from '../../platform/rate-limit/rate-limiter.js';
import type { RateLimitName } from '../plans/plan-limits.js';
import { KEY_PREFIX, type Project } from '../projects/project.js';
import { findSignedIn } from './operator.js';
import { presentedOperatorToken, presentsAdminToken, presentsOperatorToken } from './operator-token.js';
import { readBearerAhead } from './read-bearer.js';
import { findKeyProject, peekKeyProject } from './require-key.js';

/** One limit that a request counts against. */
interface AppliedLimit {
  /** Keeps the counts of different limits apart. */
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

/** Requests with a key of the project's have limits that say who sent them (decision 1011). */
type LimitClass = RateClass | 'user' | 'secret';

const REFRESHES_PER_SIGN_IN = 3;
/** A screen that an operator looks at asks all the time. */
const OPERATORS_TIMES = 30;
/** Signed-in users behind one address, such as an office. */
const USERS_PER_ADDRESS = 10;
const REMEMBERED_KEYS = 10_000;
const REMEMBERED_ADDRESSES = 10_000;

/**
 * Counts requests of each client address (rest-api.md 8, decisions.md 9), of each signed-in user, and of each project
 * with its secret key: 429 RATE_LIMITED beyond the limit. Null when all limits are off.
 */
export function limitRequests(app: App): RequestLimit | null {
  const { rateLimit, authRateLimit, secretRateLimit } = app.config;
  if (!rateLimit && !authRateLimit && !secretRateLimit) return null;
  const limitsFor = listLimits(app.config);
  const findProject = openProjectFinder(app);
  const isOperator = openOperatorFinder(app);
  /** Addresses that are beyond the limit, with the moment until which. */
  const refused = new LRUCache<string, number>({ max: REMEMBERED_ADDRESSES });
  const told = new Set<string>();
  const count = async (ctx: Context, rate: RateClass, keyIn: KeyPlace | undefined): Promise<void> => {
    const client = clientNetwork(ctx.ip);
    const key = keyOf(ctx, keyIn);
    const known = key === '' ? null : findProject(key, () => (refused.get(client) ?? 0) > app.clock.now());
    const project = known instanceof Promise ? await known : known;
    let counted: LimitClass = rate;
    let userId = '';
    if (rate === 'operator' && !(await isOperator(ctx, (refused.get(client) ?? 0) > app.clock.now()))) {
      counted = 'plain';
    }
    if (project && rate === 'plain') {
      if (key.startsWith(KEY_PREFIX.secret)) {
        counted = 'secret';
      } else {
        const reading = readBearerAhead(app, ctx, project);
        const bearer = reading instanceof Promise ? await reading : reading;
        if (bearer.state === 'user') [counted, userId] = ['user', bearer.userId];
      }
    }
    let tightest: Verdict | null = null;
    for (const limit of limitsFor[counted]) {
      const counts = limit.of === 'user' ? userId : client;
      if (ctx.method === 'POST') countsOf(ctx).push({ limit, counts, project });
      const consumed = consume(app, limit, counts, project);
      const verdict = consumed instanceof Promise ? await consumed : consumed;
      if (!tightest || verdict.left <= tightest.left) tightest = verdict;
      if (verdict.allowed) continue;
      if (!project) refused.set(client, verdict.resetMs);
      if (!told.has(limit.setting)) {
        told.add(limit.setting);
        app.log.warn({ setting: limit.setting, limit: verdict.limit }, BEYOND_LIMIT);
      }
      throw refuse(ctx, limit, verdict, app.clock.now());
    }
    if (tightest) tell(ctx, tightest, app.clock.now());
  };
  return (ctx, rate, keyIn) => {
    // A browser cannot keep from sending preflights.
    if (ctx.method === 'OPTIONS') return null;
    // Guesses at the one secret of the installation, and requests without it, get no more than anybody.
    const presents = rate !== 'operator' || presentsOperatorToken(ctx) || presentsAdminToken(app, ctx);
    const counted = presents ? rate : 'plain';
    const hasLimits = limitsFor[counted].length > 0 || (counted === 'plain' && limitsFor.secret.length > 0);
    return hasLimits ? count(ctx, counted, keyIn) : null;
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
  for (const limit of listLimits({ ...app.config, rateLimit: null })['sign-in']) {
    const verdict = await consume(app, limit, clientNetwork(ctx.ip), project);
    if (!verdict.allowed) throw refuse(ctx, limit, verdict, app.clock.now());
  }
}

/** Counts a request that makes a guest: 429 RATE_LIMITED beyond the limit of its address. */
export async function countGuest(app: App, ctx: Context, project: Project): Promise<void> {
  const rate = app.config.anonymousRateLimit;
  if (!rate) return;
  const limit = { ...GUESTS, rate };
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

const GUESTS: Omit<AppliedLimit, 'rate'> = {
  name: 'guests',
  counted: 'guests of one address',
  of: 'address',
  setting: 'BSVC_ANONYMOUS_RATE_LIMIT',
  override: null,
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
  authRateLimit,
  secretRateLimit,
}: Pick<Config, 'rateLimit' | 'authRateLimit' | 'secretRateLimit'>): Record<LimitClass, AppliedLimit[]> {
  const each = (rate: Rate | null, limit: Omit<AppliedLimit, 'rate'>): AppliedLimit[] =>
    rate ? [{ ...limit, rate: { ...rate, count: rate.count * limit.times } }] : [];
  const requests = (limit: Pick<AppliedLimit, 'name' | 'counted' | 'of' | 'times'>): AppliedLimit[] =>
    each(rateLimit, { ...limit, setting: 'BSVC_RATE_LIMIT', override: 'requests' });
  const auth = (limit: Pick<AppliedLimit, 'name' | 'counted' | 'times'>): AppliedLimit[] =>
    each(authRateLimit, { ...limit, of: 'address', setting: 'BSVC_AUTH_RATE_LIMIT', override: 'authRequests' });
  const secret: Omit<AppliedLimit, 'rate'> = {
    name: 'secret',
    counted: 'requests with the project’s secret key',
    of: 'project',
    setting: 'BSVC_SECRET_RATE_LIMIT',
    override: null,
    times: 1,
  };
  const plain = requests({ name: 'requests', counted: 'requests of one address', of: 'address', times: 1 });
  return {
    free: [],
    plain,
    'sign-in': [...plain, ...auth({ name: 'auth', counted: 'sign-ins of one address', times: 1 })],
    refresh: [
      ...plain,
      ...auth({ name: 'refresh', counted: 'refreshed sessions of one address', times: REFRESHES_PER_SIGN_IN }),
    ],
    operator: requests({
      name: 'operators',
      counted: 'requests of operators at one address',
      of: 'address',
      times: OPERATORS_TIMES,
    }),
    user: [
      ...requests({ name: 'user', counted: 'requests of one user', of: 'user', times: 1 }),
      ...requests({
        name: 'users',
        counted: 'requests of users at one address',
        of: 'address',
        times: USERS_PER_ADDRESS,
      }),
    ],
    secret: each(secretRateLimit, secret),
  };
}

/** Requests of a project with a limit of its own are counted apart from all others of the address. */
function consume(
  app: App,
  { name, of, rate, override, times }: AppliedLimit,
  party: string,
  project: Project | null,
): Verdict | Promise<Verdict> {
  const own = project && override && Object.hasOwn(project.limits, override) ? project.limits[override]! : null;
  const counted = own === null ? rate : { count: own * times, windowMs: rate.windowMs };
  if (!project || (of === 'address' && own === null)) return app.limits.consume(`${name} ${party}`, counted);
  const ofProject = `${name} ${project._id.toHexString()}`;
  return app.limits.consume(of === 'project' ? ofProject : `${ofProject} ${party}`, counted);
}

/** Finds the project of a request's key, from the copy that all requests share whenever it is there. */
function openProjectFinder(
  app: App,
): (key: string, isRefused: () => boolean) => Project | null | Promise<Project | null> {
  const lately = new LRUCache<string, true>({ max: REMEMBERED_KEYS });
  const remember = (key: string, project: Project | null): Project | null => {
    if (project) lately.set(key, true);
    return project;
  };
  return (key, isRefused) => {
    const project = peekKeyProject(app, key);
    if (project) return remember(key, project);
    // A flood of invented keys is not to become a flood of queries.
    if (!lately.has(key) && isRefused()) return null;
    return findKeyProject(app, key).then((found) => remember(key, found));
  };
}

const BEYOND_LIMIT =
  'A client address is beyond a rate limit and gets 429: the setting raises it for all, a limit of a project for that project. Told once';

function refuse(ctx: Context, limit: AppliedLimit, verdict: Verdict, nowMs: number): Error {
  tell(ctx, verdict, nowMs);
  return beyondLimit(limit, verdict, nowMs);
}

function beyondLimit(limit: AppliedLimit, verdict: Verdict, nowMs: number): Error {
  const { counted, setting, override, rate } = limit;
  const orOwn = override ? `, or the project’s limit ${override}` : '';
  const message = `${verdict.limit} ${counted} in ${sayDuration(rate.windowMs)}: the server’s ${setting}${orOwn}`;
  return overLimit('RATE_LIMITED', 'Too many requests: please try again later', {
    retryAfterSeconds: secondsUntil(verdict.resetMs, nowMs),
    details: [{ field: setting, rule: 'limit', message }],
  });
}

function tell(ctx: Context, { limit, left, resetMs }: Verdict, nowMs: number): void {
  const reset = secondsUntil(resetMs, nowMs);
  addHeaders(ctx, 'RateLimit-Limit', `${limit}`, 'RateLimit-Remaining', `${left}`, 'RateLimit-Reset', `${reset}`);
}

function secondsUntil(ms: number, nowMs: number): number {
  return Math.max(1, Math.ceil((ms - nowMs) / 1000));
}
