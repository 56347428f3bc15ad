import { LRUCache } from 'lru-cache';
import type { Context } from 'koa';
import type { App } from '../../app.js';
import type { Rate } from '../../config/setting-readers.js';
import { overLimit } from '../../errors.js';
import { clientNetwork } from '../../http/requests/client-address.js';
import type { RequestLimit } from '../../http/routes/mount-routes.js';
import type { KeyPlace, RateClass } from '../../http/routes/route.js';
import { addHeaders } from '../../http/replies/reply.js';
import type { Verdict } from '../../platform/rate-limit/rate-limiter.js';
import type { RateLimitName } from '../plans/plan-limits.js';
import { KEY_PREFIX, type Project } from '../projects/project.js';
import { presentsOperatorToken } from './operator-token.js';
import { findKeyProject, peekKeyProject } from './require-key.js';

/** One limit that a request counts against. */
interface AppliedLimit {
  /** Keeps the counts of different limits apart. */
  name: string;
  /** The setting that it comes from. */
  setting: string;
  rate: Rate;
  /** Which of a project's limits overrides the count. */
  override: RateLimitName;
  /** The override is for so many times as much. */
  times: number;
}

const REFRESHES_PER_SIGN_IN = 3;
/**
 * Whoever has signed in as an operator may send so many times as many: a screen that is looked at asks all the time.
 */
const OPERATORS_TIMES = 30;
const REMEMBERED_KEYS = 10_000;
const REMEMBERED_ADDRESSES = 10_000;

/**
 * Counts requests of each client address (rest-api.md 8, decisions.md 9): 429 RATE_LIMITED beyond the limit. Null when
 * both limits are off.
 */
export function limitRequests(app: App): RequestLimit | null {
  const { rateLimit, authRateLimit } = app.config;
  if (!rateLimit && !authRateLimit) return null;
  const limitsFor = listLimits(rateLimit, authRateLimit);
  const findProject = openProjectFinder(app);
  /** Addresses that are beyond the limit, with the moment until which. */
  const refused = new LRUCache<string, number>({ max: REMEMBERED_ADDRESSES });
  const told = new Set<string>();
  const count = async (ctx: Context, limits: readonly AppliedLimit[], keyIn: KeyPlace | undefined): Promise<void> => {
    const client = clientNetwork(ctx.ip);
    const key = keyOf(ctx, keyIn);
    const known = key === '' ? null : findProject(key, () => (refused.get(client) ?? 0) > app.clock.now());
    const project = known instanceof Promise ? await known : known;
    let tightest: Verdict | null = null;
    for (const limit of limits) {
      const consumed = consume(app, limit, client, project);
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
    tell(ctx, tightest!, app.clock.now());
  };
  return (ctx, rate, keyIn) => {
    // A browser cannot keep from sending preflights.
    if (ctx.method === 'OPTIONS') return null;
    // Guesses at the one secret of the installation, and whoever has none, get no more than anybody.
    const limits = limitsFor[rate === 'operator' && !presentsOperatorToken(ctx) ? 'plain' : rate];
    return limits.length === 0 ? null : count(ctx, limits, keyIn);
  };
}

/** Counts a request that turns out to be as much as a sign-in: 429 RATE_LIMITED beyond that limit. */
export async function countSignIn(app: App, ctx: Context, project: Project): Promise<void> {
  for (const limit of listLimits(null, app.config.authRateLimit)['sign-in']) {
    const verdict = await consume(app, limit, clientNetwork(ctx.ip), project);
    if (!verdict.allowed) throw refuse(ctx, limit, verdict, app.clock.now());
  }
}

/** The key that the request's route goes by; empty for none. */
function keyOf(ctx: Context, keyIn: KeyPlace | undefined): string {
  if (keyIn === undefined) return '';
  if (keyIn === 'header') return ctx.get('x-api-key');
  const { key } = ctx.query;
  return typeof key === 'string' && key.startsWith(KEY_PREFIX.publishable) ? key : '';
}

function listLimits(rateLimit: Rate | null, authRateLimit: Rate | null): Record<RateClass, AppliedLimit[]> {
  const plain: AppliedLimit[] = rateLimit
    ? [{ name: 'requests', setting: 'BSVC_RATE_LIMIT', rate: rateLimit, override: 'requests', times: 1 }]
    : [];
  const auth = (name: string, times: number): AppliedLimit[] =>
    authRateLimit
      ? [
          {
            name,
            setting: 'BSVC_AUTH_RATE_LIMIT',
            rate: { ...authRateLimit, count: authRateLimit.count * times },
            override: 'authRequests',
            times,
          },
        ]
      : [];
  return {
    free: [],
    plain,
    'sign-in': [...plain, ...auth('auth', 1)],
    refresh: [...plain, ...auth('refresh', REFRESHES_PER_SIGN_IN)],
    operator: plain.map((limit) => ({
      ...limit,
      name: 'operators',
      rate: { ...limit.rate, count: limit.rate.count * OPERATORS_TIMES },
    })),
  };
}

/** Requests of a project with a limit of its own are counted for themselves; all others of an address together. */
function consume(
  app: App,
  { name, rate, override, times }: AppliedLimit,
  client: string,
  project: Project | null,
): Verdict | Promise<Verdict> {
  if (!project || !Object.hasOwn(project.limits, override)) return app.limits.consume(`${name} ${client}`, rate);
  const own = { count: project.limits[override]! * times, windowMs: rate.windowMs };
  return app.limits.consume(`${name} ${project._id.toHexString()} ${client}`, own);
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

function refuse(ctx: Context, { setting, override, rate }: AppliedLimit, verdict: Verdict, nowMs: number): Error {
  tell(ctx, verdict, nowMs);
  const minutes = Math.round(rate.windowMs / 60_000);
  const message = `${verdict.limit} requests of one address in ${minutes} minutes: the server’s ${setting}, or the project’s limit ${override}`;
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
