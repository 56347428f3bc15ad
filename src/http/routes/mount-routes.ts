import Router from '@koa/router';
import type { Context, Middleware, Next } from 'koa';
import type { App } from '../../app.js';
import { publicPath } from '../../config/public-path.js';
import { methodNotAllowed, missing } from '../../errors.js';
import { isOpenedByBrowser, replyPage } from '../replies/plain-page.js';
import { answerRoute } from './answer-route.js';
import type { KeyPlace, RateClass, RouteContext, RouteList } from './route.js';

/**
 * Sends a request to the list with the longest prefix of its path (a prefix may hold parameters:
 * `/api/projects/:projectId/webhooks`); 404 for an unknown path, 405 with `Allow` for a known path and another method.
 */
export function mountRoutes(app: App, lists: readonly RouteList[], limit: RequestLimit | null = null): Middleware {
  const bySpecificity = [...lists]
    .sort((a, b) => b.prefix.length - a.prefix.length)
    .map((list) => ({ prefix: list.prefix, covers: coversPath(list.prefix), handle: answerList(app, list, limit) }));
  const byBeginning = new Map<string, typeof bySpecificity>();
  for (const list of bySpecificity) {
    const key = beginning(list.prefix);
    byBeginning.set(key, [...(byBeginning.get(key) ?? []), list]);
  }
  return (ctx, next) => {
    const { path } = ctx;
    const candidates = byBeginning.get(beginning(path)) ?? bySpecificity;
    const list = candidates.find(({ covers }) => covers(path));
    if (!list) return answerUnknown(app, ctx, limit);
    return list.handle(ctx, next) as Promise<unknown>;
  };
}

/**
 * Counts a request before anything is asked about it, and throws where it is one too many. A promise only when it takes
 * time.
 */
export type RequestLimit = (ctx: Context, rate: RateClass, keyIn: KeyPlace | undefined) => Promise<void> | null;

/** The router of a list behind its limits and guard. Paths are case-sensitive, so that one address has one spelling. */
function answerList(app: App, list: RouteList, limit: RequestLimit | null): Middleware {
  const { prefix, guard, routes } = list;
  const router = new Router({ sensitive: true });
  for (const route of routes) {
    const { path, method } = route;
    if (path !== prefix && !path.startsWith(`${prefix}/`)) throw new Error(`${path} is not below ${prefix}`);
    router.register(path, [method], answerRoute(app, route));
  }
  const find = findMounted(router, list);
  const check = guard?.(app);
  const answer = (ctx: Context, next: Next, found: Found | null): unknown =>
    found ? take(ctx as RoutedContext, next, found) : answerUnmatched(ctx, router);
  const admit = (ctx: Context, next: Next, found: Found | null): unknown => {
    const checking = check?.(ctx as RouteContext);
    return checking ? checking.then(() => answer(ctx, next, found)) : answer(ctx, next, found);
  };
  return (ctx, next) => {
    const found = find(ctx);
    const { rate, keyIn } = found?.route ?? list;
    const limiting = limit?.(ctx, rate, keyIn);
    return limiting ? limiting.then(() => admit(ctx, next, found)) : admit(ctx, next, found);
  };
}

interface MountedRoute {
  pattern: string;
  regexp: RegExp;
  parameters: readonly string[];
  rate: RateClass;
  keyIn: KeyPlace | undefined;
  handle: Middleware;
}

interface Found {
  route: MountedRoute;
  captures: RegExpExecArray;
}

/** Does the same as `router.routes()` for routes that are taken by their first match, at a fraction of its cost. */
function findMounted(router: Router, { rate, routes }: RouteList): (ctx: Context) => Found | null {
  const byMethod = new Map<string, MountedRoute[]>();
  for (const [at, { methods, path, regexp, paramNames, stack }] of router.stack.entries()) {
    const { access, rate: own = rate } = routes[at]!;
    const route = {
      pattern: String(path),
      regexp,
      parameters: paramNames.map(({ name }) => name),
      rate: own,
      keyIn: access.keyIn,
      // A layer's stack holds the very function that was given, whose type the router's own replaces.
      handle: stack[0] as unknown as Middleware,
    };
    for (const method of methods) byMethod.set(method, [...(byMethod.get(method) ?? []), route]);
  }
  return ({ path, req }) => {
    for (const route of byMethod.get(req.method!) ?? []) {
      const captures = route.regexp.exec(path);
      if (captures) return { route, captures };
    }
    return null;
  };
}

type RoutedContext = Context & { params: Record<string, string>; matchedRoute?: string };

function take(ctx: RoutedContext, next: Next, { route: { pattern, parameters, handle }, captures }: Found): unknown {
  const params: Record<string, string> = {};
  for (let at = 0; at < parameters.length; at++) params[parameters[at]!] = decodePart(captures[at + 1] ?? '');
  ctx.params = params;
  ctx.matchedRoute = pattern;
  return handle(ctx, next);
}

/** A part of a path whose percent encoding is broken is taken as it stands. */
export function decodePart(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The pattern of the route that took the request, such as `/api/data/:collectionName`; undefined when none did. */
export function matchedRoute(ctx: Context): string | undefined {
  return (ctx as RoutedContext).matchedRoute;
}

/**
 * The first two parts of a path, such as `/api/data`: enough to tell most groups apart without trying one after the
 * other.
 */
function beginning(path: string): string {
  const first = path.indexOf('/', 1);
  const second = first < 0 ? -1 : path.indexOf('/', first + 1);
  return second < 0 ? path : path.slice(0, second);
}

/** Returns a test for paths that are the prefix itself or below it. */
function coversPath(prefix: string): (path: string) => boolean {
  if (!prefix.includes(':')) {
    const below = `${prefix}/`;
    return (path) => path === prefix || path.startsWith(below);
  }
  const pattern = new RegExp(`^${prefix.replace(/:\w+/g, '[^/]+')}(/|$)`);
  return (path) => pattern.test(path);
}

/** Below `/api` a guess counts as any request; elsewhere browsers ask for icons of their own accord. */
async function answerUnknown(app: App, ctx: Context, limit: RequestLimit | null): Promise<void> {
  if (ctx.path.startsWith('/api/')) {
    await limit?.(ctx, 'plain', undefined);
  } else if (isOpenedByBrowser(ctx)) {
    answerMissingPage(app, ctx);
    return;
  }
  throw unknownRoute(ctx);
}

/** A mistyped address leads a person on; programs and everything below /api get the error of the contract. */
function answerMissingPage(app: App, ctx: Context): void {
  const base = publicPath(app.config);
  ctx.status = 404;
  replyPage(ctx, base, {
    title: 'No such endpoint',
    content: `      <p>Go to <a href="${base}/">the start</a>, or read <a href="${base}/api/docs">every operation and the guides</a>.</p>`,
  });
}

function unknownRoute(ctx: Context): Error {
  return missing('NOT_FOUND', `No such endpoint: ${ctx.method} ${ctx.path}. See /api/docs`);
}

/** 204 with what is allowed for OPTIONS to a known path; throws otherwise. */
function answerUnmatched(ctx: Context, router: Router): void {
  const allowed = new Set(router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods));
  if (allowed.size === 0) throw unknownRoute(ctx);
  const list = [...allowed, 'OPTIONS'].sort().join(', ');
  if (ctx.method !== 'OPTIONS') {
    const text = `${ctx.method} is not allowed here; allowed: ${list}`;
    throw methodNotAllowed('METHOD_NOT_ALLOWED', text, { headers: { Allow: list } });
  }
  ctx.set('Allow', list);
  ctx.status = 204;
}
