import { describe, expect, it } from 'vitest';
import { CALLERS, PASSES, fill, patternOf, ROUTE_TABLE, type CallerName, type RouteRow } from '../routes-table.js';
import { ADMIN_TOKEN, buildEstate, fire, listRoutes, openStage, outcomeOf, type Estate } from '../stage.js';
import { use } from '../../../helpers/use.js';

const stage = use(await openStage());
const estate = await buildEstate(stage);

function credentialsOf(caller: CallerName, own: Estate): { key?: string; token?: string } {
  switch (caller) {
    case 'nobody':
      return {};
    case 'publishable':
      return { key: own.publishable };
    case 'secret':
      return { key: own.secret };
    case 'revoked':
      return { key: own.revoked };
    case 'rotated':
      return { key: own.rotated };
    case 'user':
      return { key: own.publishable, token: own.user.accessToken };
    case 'disabled user':
      return { key: own.publishable, token: own.disabledToken };
    case 'operator':
      return { token: own.operator };
    case 'viewer':
      return { token: own.viewer };
    case 'admin':
      return { token: ADMIN_TOKEN };
  }
}

async function knock(row: RouteRow, caller: CallerName, own: Estate): Promise<string> {
  const { key, token } = credentialsOf(caller, own);
  const answer = await fire(stage, {
    method: row.method,
    path: fill(row.path, { ...own.names, key: key ?? '' }),
    headers: {
      ...fill(row.headers ?? {}, own.names),
      // Where the key comes in the query, it comes there alone.
      ...(key !== undefined && row.pass !== 'a key in the query' && { 'x-api-key': key }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: fill(row.body, own.names),
  });
  return outcomeOf(answer);
}

describe('every route', () => {
  it('has a row in the table, and every row a route', () => {
    const mounted = listRoutes().map((route) => route.replace(/:\w+/g, ':'));
    expect(ROUTE_TABLE.map(patternOf).sort()).toEqual(mounted.sort());
  });

  it.each(ROUTE_TABLE.map((row) => [`${row.method} ${row.path}`, row.pass, row] as const))(
    '%s is for %s',
    async (_title, pass, row) => {
      const told: Partial<Record<CallerName, string>> = {};
      for (const caller of CALLERS) {
        const own = row.spends && PASSES[pass][caller] === 'in' ? await buildEstate(stage) : estate;
        told[caller] = await knock(row, caller, own);
      }
      const expected = Object.entries(PASSES[pass]).map(([caller, outcome]) => {
        return [caller, outcome === 'in' ? row.allowed : outcome];
      });
      expect(told).toEqual(Object.fromEntries(expected));
    },
  );
});
