import type { Context } from 'koa';
import { describe, expect, it } from 'vitest';
import { ROUTE_LISTS } from '../../../src/api.js';
import { mountRoutes } from '../../../src/http/routes/mount-routes.js';
import type { KeyPlace, RateClass, Route } from '../../../src/http/routes/route.js';
import { useTestApp } from '../../helpers/use.js';

/** Thrown instead of counting, so that nothing of the route runs. */
class Counted extends Error {
  constructor(
    readonly rate: RateClass,
    readonly keyIn: KeyPlace | undefined,
  ) {
    super('counted');
  }
}

const t = await useTestApp();
const mounted = mountRoutes(t.app, ROUTE_LISTS, (_ctx, rate, keyIn) => {
  throw new Counted(rate, keyIn);
});

/** How a request is counted; null where it is not. */
async function countOf(method: string, path: string): Promise<Counted | null> {
  try {
    await mounted({ method, path, req: { method } } as Context, () => Promise.resolve());
  } catch (error) {
    return error instanceof Counted ? error : null;
  }
  throw new Error('it was neither counted nor refused');
}

describe('which limits a request counts against', () => {
  it.each([
    ['POST', '/api/userAuth/login', 'sign-in', 'header'],
    ['POST', '/api/userAuth/login/', 'sign-in', 'header'],
    ['POST', '/api/userAuth/l%6fgin', 'sign-in', 'header'],
    ['PUT', '/api/userAuth/login', 'sign-in', 'header'],
    ['POST', '/api/userAuth/change-password', 'sign-in', 'header'],
    ['POST', '/api/userAuth/social/exchange', 'sign-in', 'header'],
    ['GET', '/api/userAuth/social/google/start', 'sign-in', 'query'],
    ['GET', '/api/userAuth/social/google/callback', 'sign-in', undefined],
    ['POST', '/api/admin/login', 'sign-in', undefined],
    ['POST', '/api/admin/login/', 'sign-in', undefined],
    ['GET', '/api/admin/me', 'operator', undefined],
    ['GET', '/api/projects', 'operator', undefined],
    ['PATCH', '/api/projects/0/keys', 'operator', undefined],
    ['GET', '/api/projects/0/nothing', 'operator', undefined],
    ['GET', '/api/projectsx', 'plain', undefined],
    ['POST', '/api/userAuth/refresh-token', 'refresh', 'header'],
    ['POST', '/api/userAuth/refresh-token/', 'refresh', 'header'],
    ['GET', '/api/userAuth/me', 'plain', 'header'],
    ['POST', '/api/userAuth/logout', 'plain', 'header'],
    ['PUT', '/api/userAuth/update-profile', 'plain', 'header'],
    ['GET', '/api/userAuth/public/ann', 'plain', 'header'],
    ['DELETE', '/api/userAuth/identities/google', 'plain', 'header'],
    ['GET', '/api/userAuth/public/../login', 'sign-in', 'header'],
    ['GET', '/api/data/posts', 'plain', 'header'],
    ['GET', '/api/data', 'plain', 'header'],
    ['GET', '/api/data/posts/changes', 'plain', 'header'],
    ['GET', '/api/schemas/openapi.json', 'plain', 'header'],
    ['POST', '/api/realtime', 'plain', 'header'],
    ['POST', '/api/run/quote', 'run', 'header'],
    ['POST', '/api/runs', 'plain', undefined],
    ['POST', '/api/storage/upload', 'plain', 'header'],
    ['POST', '/api/mail/send', 'plain', 'header'],
    ['POST', '/api/mail/webhook', 'free', undefined],
    ['POST', '/api/mail/webhook/x', 'plain', 'header'],
    ['GET', '/api/healthy', 'plain', undefined],
    ['GET', '/api/health/ready', 'free', undefined],
    ['GET', '/api/docs', 'page', undefined],
    ['GET', '/api/docs/guides/email', 'page', undefined],
    ['GET', '/api/openapi.json', 'page', undefined],
    ['GET', '/api/docsx', 'plain', undefined],
    ['GET', '/files/a/b.png', 'free', undefined],
    ['GET', '/console', 'page', undefined],
  ])('takes %s %s for %s, with a key in %s', async (method, path, rate, keyIn) => {
    expect(await countOf(method, path)).toMatchObject({ rate, keyIn });
  });

  it('counts nothing outside /api that is no route: browsers ask for icons', async () => {
    expect(await countOf('GET', '/favicon.ico')).toBeNull();
  });
});

const ROUTES = ROUTE_LISTS.flatMap(({ rate, routes }) =>
  routes.map((route) => [`${route.method} ${route.path}`, route, route.rate ?? rate] as const),
);

const PLACES = new Map<string, KeyPlace>([
  ['publishableKey', 'header'],
  ['secretKey', 'header'],
  ['publishableKeyInQuery', 'query'],
]);

/** Where the API's document says that a key stands. */
function documentedKey({ access }: Route): KeyPlace | undefined {
  const places = access.security.flat().map(({ name }) => PLACES.get(name));
  return places.find((place) => place !== undefined);
}

describe('every route', () => {
  it.each(ROUTES)('%s counts as it says, with the key where its document says', async (_line, route, rate) => {
    const counted = await countOf(route.method, route.path);
    expect(counted).toMatchObject({ rate });
    expect(counted!.keyIn).toBe(documentedKey(route));
  });

  it('for operators has their limit, and no other has it but to sign in', () => {
    const takesOperators = ({ access }: Route): boolean =>
      access.security.flat().some(({ name }) => name === 'operatorToken');
    const wrong = ROUTES.filter(([, route, rate]) => takesOperators(route) !== (rate === 'operator'));
    expect(wrong.map(([line]) => line)).toEqual(['POST /api/admin/login/link', 'GET /metrics']);
  });
});
