import type { App } from '../../app.js';
import { answerRoute } from './answer-route.js';
import type { GroupDescription, RouteDescription } from './route-description.js';
import type { Answer, Route, RouteContext, RouteList } from './route.js';
import { createRouter, type RouteGroup } from './mount-routes.js';

/** The router of a list of routes. */
export function routerOf({ prefix, guard, routes }: RouteList): (app: App) => RouteGroup {
  return (app) => {
    const router = createRouter(prefix);
    for (const route of routes) router.register(below(prefix, route), [route.method], answerRoute(app, route));
    if (!guard) return { prefix, router };
    const check = guard(app);
    return {
      prefix,
      router,
      guards: [
        (ctx, next) => {
          const checking = check(ctx as RouteContext);
          return checking ? checking.then(next) : next();
        },
      ],
    };
  };
}

/** The description of a list of routes, for the API's document. */
export function describeRoutes({ prefix, tag, about, params, routes }: RouteList): GroupDescription {
  const described = routes.map((route) => [`${route.method} ${below(prefix, route)}`, describeRoute(route)] as const);
  return { prefix, tag, about, path: params, routes: Object.fromEntries(described) };
}

function describeRoute(route: Route): RouteDescription {
  const { body, openBody, ownBody, example, bodyIsOptional, params, query, ownQuery, answers, ...rest } = route;
  const schema = body ?? openBody;
  const json = schema && { content: { 'application/json': schema }, example, required: !bodyIsOptional };
  const list = [answers].flat() as readonly Answer[];
  return {
    ...rest,
    path: params,
    query: { ...query, ...ownQuery },
    body: json ?? ownBody,
    answers: Object.fromEntries(list.map(({ status, ...answer }) => [status, answer])),
  };
}

function below(prefix: string, { path }: Route): string {
  if (path !== prefix && !path.startsWith(`${prefix}/`)) throw new Error(`${path} is not below ${prefix}`);
  return path.slice(prefix.length) || '/';
}
