import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { methodNotAllowed, missing } from '../errors.js';

/** A feature's routes under one prefix such as `/api/data`. */
export interface RouteGroup {
  prefix: string;
  router: Router;
  /** What every request below the prefix meets first, in order, even one for a path or method that does not exist. */
  guards?: readonly Middleware[];
}

/** A router for `prefix`; paths are case-sensitive, so that one address has one spelling. */
export function createRouter(prefix: string): Router {
  return new Router({ prefix, sensitive: true });
}

/** Sends a request to the group with the longest prefix of its path (a prefix may hold parameters: `/api/projects/:projectId/webhooks`); 404 for an unknown path, 405 with `Allow` for a known path and another method. */
export function dispatch(groups: readonly RouteGroup[]): Middleware {
  const bySpecificity = [...groups]
    .sort((a, b) => b.prefix.length - a.prefix.length)
    .map(({ prefix, router, guards = [] }) => ({
      covers: coversPath(prefix),
      handle: behind(guards, router.routes() as unknown as Middleware),
      router,
    }));
  return async (ctx, next) => {
    const group = bySpecificity.find(({ covers }) => covers(ctx.path));
    if (!group) throw unknownRoute(ctx);
    let matched = true;
    await group.handle(ctx, () => {
      matched = false;
      return next();
    });
    if (!matched) throw unmatched(ctx, group.router);
  };
}

/** Whether a path is the prefix itself or below it. */
function coversPath(prefix: string): (path: string) => boolean {
  if (!prefix.includes(':')) {
    const below = `${prefix}/`;
    return (path) => path === prefix || path.startsWith(below);
  }
  const pattern = new RegExp(`^${prefix.replace(/:\w+/g, '[^/]+')}(/|$)`);
  return (path) => pattern.test(path);
}

function behind(guards: readonly Middleware[], handle: Middleware): Middleware {
  return guards.reduceRight((inner, guard) => (ctx, next) => guard(ctx, () => inner(ctx, next)), handle);
}

function unknownRoute(ctx: Context): Error {
  return missing('NOT_FOUND', `There is nothing at ${ctx.method} ${ctx.path}`);
}

function unmatched(ctx: Context, router: Router): Error {
  const allowed = new Set(router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods));
  if (allowed.size === 0) return unknownRoute(ctx);
  const list = [...allowed, 'OPTIONS'].sort().join(', ');
  return methodNotAllowed('METHOD_NOT_ALLOWED', `${ctx.method} is not allowed here; allowed: ${list}`, {
    headers: { Allow: list },
  });
}
