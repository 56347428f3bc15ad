import { describe, expect, it } from 'vitest';
import type { RateClass } from '../../../world/app.js';
import { CALLERS, updateProject } from '../../../world/projects.js';
import { ADMIN_TOKEN, buildEstate, fire, openStage, type Answer } from '../stage.js';
import { fill, ROUTE_TABLE, routeOf, type Pass, type RouteRow } from '../routes-table.js';
import { use } from '../../../helpers/use.js';

const SERVICE_LIMIT = 1_000_000;
/** What the project's own limits say; of nobody else. */
const OWN_LIMIT = 777_777;
const APP = 'https://app.example.test';
const FOREIGN = 'https://evil.example.test';

const stage = use(await openStage());
const own = await buildEstate(stage);
await updateProject(stage.app, own.project.name, {
  allowedDomains: [APP],
  limits: { requests: OWN_LIMIT, authRequests: OWN_LIMIT },
});
stage.app.cache.forgetAll(CALLERS);

const KEY_PASSES: readonly Pass[] = ['a key', 'the secret key', 'the secret key to write', 'an end user'];
const isOperators = ({ path }: RouteRow): boolean => /^\/(api\/(admin|projects)|metrics)(\/|$)/.test(path);
const titled = (rows: readonly RouteRow[]): [title: string, row: RouteRow][] =>
  rows.map((row) => [`${row.method} ${row.path}`, row]);

function send(row: RouteRow, headers: Record<string, string>, key = ''): Promise<Answer> {
  const filled = fill(row.headers ?? {}, own.names);
  return fire(stage, {
    method: row.method,
    path: fill(row.path, { ...own.names, key }),
    headers: { ...filled, ...headers },
    body: fill(row.body, own.names),
  });
}

const corsOf = ({ headers }: Answer): string[] =>
  Object.keys(headers).filter((name) => name.startsWith('access-control-'));

describe('an origin off the project’s allowlist', () => {
  const rows = ROUTE_TABLE.filter(({ pass }) => KEY_PASSES.includes(pass) || pass === 'a key in the query');

  it.each(titled(rows))('is refused with every key, and told nothing: %s', async (_title, row) => {
    const kinds = row.pass === 'a key in the query' ? ['publishable' as const] : (['publishable', 'secret'] as const);
    for (const kind of kinds) {
      const answer = await send(row, { origin: FOREIGN, 'x-api-key': own[kind] }, own[kind]);
      expect({ kind, status: answer.status, code: answer.code }).toEqual({
        kind,
        status: 403,
        code: 'ORIGIN_NOT_ALLOWED',
      });
      expect(corsOf(answer)).toEqual([]);
    }
  });

  it('is no matter for a request without one, and the origin on the list gets in with a secret key too', async () => {
    const [row] = rows as [RouteRow];
    expect((await send(row, { 'x-api-key': own.secret })).status).toBe(200);
    const answer = await send(row, { 'x-api-key': own.secret, origin: APP });
    expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([200, APP]);
  });
});

describe('pages of other origins', () => {
  const preflight = (row: RouteRow): Promise<Answer> =>
    fire(stage, {
      method: 'OPTIONS',
      path: fill(row.path, own.names),
      headers: { origin: APP, 'access-control-request-method': row.method },
    });

  it.each(titled(ROUTE_TABLE.filter(isOperators)))('are told nothing by the operators’ %s', async (_title, row) => {
    expect(corsOf(await preflight(row))).toEqual([]);
    // Whoever asks: nobody, and an operator who is let in by a route that changes nothing.
    expect(corsOf(await send(row, { origin: APP }))).toEqual([]);
    if (row.method !== 'GET') return;
    expect(corsOf(await send(row, { origin: APP, authorization: `Bearer ${ADMIN_TOKEN}` }))).toEqual([]);
  });

  it.each(titled(ROUTE_TABLE.filter((row) => !isOperators(row))))('may ask for %s first', async (_title, row) => {
    const answer = await preflight(row);
    expect(answer.status).toBe(204);
    expect(answer.headers['access-control-allow-origin']).toBe(APP);
  });
});

describe('a key chooses the limit', () => {
  const rateOf = (row: RouteRow): RateClass => {
    const { list, route } = routeOf(row);
    return route.rate ?? list.rate;
  };
  const limitOf = ({ headers }: Answer): number | null =>
    headers['ratelimit-limit'] === undefined ? null : Number(headers['ratelimit-limit']);

  it.each(titled(ROUTE_TABLE))('only where the route takes it: %s', async (_title, row) => {
    const unknown = limitOf(await send({ ...row, body: undefined }, {}));
    const told: Record<string, number | null> = {};
    for (const kind of ['publishable', 'secret'] as const) {
      told[`${kind} in the header`] = limitOf(await send({ ...row, body: undefined }, { 'x-api-key': own[kind] }));
      const path = `${row.path.split('?')[0]}?key=${own[kind]}`;
      told[`${kind} in the query`] = limitOf(await send({ ...row, path, body: undefined }, {}));
    }
    // Own code is called ten times as often as documents are asked for.
    const mine = unknown && (rateOf(row) === 'run' ? 10 : 1) * OWN_LIMIT;
    const inHeader = KEY_PASSES.includes(row.pass) ? mine : unknown;
    expect(told).toEqual({
      'publishable in the header': inHeader,
      // Requests with the secret key count by project, which has no limit here; sign-ins count by address all the same.
      // A server renews the sessions of many users: three times what it may sign in.
      'secret in the header':
        KEY_PASSES.includes(row.pass) && ['plain', 'run'].includes(rateOf(row))
          ? null
          : inHeader && (row.path.endsWith('/refresh-token') ? 3 : 1) * inHeader,
      'publishable in the query': row.pass === 'a key in the query' ? mine : unknown,
      'secret in the query': unknown,
    });
    // Pages and documents that need no key have ten times that.
    if (unknown !== null) expect([SERVICE_LIMIT, 10 * SERVICE_LIMIT]).toContain(unknown);
  });
});
