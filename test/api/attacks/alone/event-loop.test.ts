import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { buildCollection, placeDocuments } from '../../../helpers/build-project.js';
import { createApi } from '../../../world/app.js';
import { watchEventLoop } from '../../../helpers/event-loop.js';
import { listen } from '../../../helpers/listen.js';
import { openRandom } from '../../../helpers/random.js';
import { drawSome } from '../../../helpers/runs.js';
import { openSeed } from '../../../helpers/seed.js';
import { use } from '../../../helpers/use.js';
import { KNOWN_EXPENSES, operatorExpenses, type Expense } from '../expensive-requests.js';
import { HOSTILE_JSON, HOSTILE_TEXTS } from '../hostile-values.js';
import { fill, ROUTE_TABLE } from '../routes-table.js';
import { buildEstate, callerWith, fire, openStage, passFor, type Answer } from '../stage.js';

/** Processor time for which nobody else is served. */
const MAX_MS = 100;
const MAX_RESIDENT_BYTES = 1200 * 1024 * 1024;

const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
/** An object whose keys no other has. */
function wide(at: number, keys: number): unknown {
  return Object.fromEntries(many(keys, (key) => [`k${at}x${key}`, 1]));
}

// As users run it: what takes long leaves the event loop.
const stage = use(await openStage({}, undefined, { readerThreads: 1 }));
const estate = await buildEstate(stage);
/** The API by a server of its own, whose replies nobody compares with its description: that takes long, too. */
const unwatched = use(await listen(createServer(createApi(stage.app).callback())));
const visitor = callerWith(unwatched, { 'x-api-key': estate.publishable });
await buildCollection(stage.app, estate.project, { name: 'wide' });
const open = await buildCollection(stage.app, estate.project, { name: 'open' });
await placeDocuments(stage.app, open, [{ a: 'x', n: 1 }]);
// What is compiled and loaded at the first use belongs to no request.
for (const query of ['a_regex=(a|b)%2Bc', 'sort=a&fields=a']) await visitor('GET', `/api/data/open?${query}`);
for (const name of [
  'a million sums',
  'all places of a letter in a long text',
  'a choice of one field five thousand times',
])
  await spend(KNOWN_EXPENSES[name]!);

function spend(expense: Expense): Promise<Answer> {
  return 'query' in expense
    ? visitor('GET', `/api/data/open?${expense.query}`)
    : visitor('POST', '/api/data/open/aggregate', JSON.stringify(expense));
}

type Ask = () => Promise<Answer>;

/** Requests that are sent at once: what none of them does together, none does alone. */
const AT_ONCE = 6;

/** Those of the requests, by name, that keep the event loop too long, each with its time. */
async function findHolding(requests: readonly (readonly [name: string, ask: Ask])[]): Promise<string[]> {
  const holding: string[] = [];
  const left = Array.from({ length: Math.ceil(requests.length / AT_ONCE) }, (_, at) =>
    requests.slice(at * AT_ONCE, (at + 1) * AT_ONCE),
  );
  for (let some = left.pop(); some; some = left.pop()) {
    const [name, ask] = some[0]!;
    const ms = some.length === 1 ? await heldBy(ask) : await heldOnce(some.map(([, each]) => each));
    if (ms < MAX_MS) continue;
    if (some.length === 1) holding.push(`${name}: ${Math.round(ms)} ms`);
    // Which of them it was, if not all of them together.
    else left.push(some.slice(0, some.length / 2), some.slice(some.length / 2));
  }
  return holding;
}

/**
 * How long a request keeps the event loop each time it is sent. What a virtual machine's host takes from it counts as
 * its processor time, so that one slow turn says nothing: a request that is too long is sent twice more.
 */
async function heldBy(ask: Ask): Promise<number> {
  let shortest = Infinity;
  for (let tries = 0; tries < 3 && shortest >= MAX_MS; tries++) shortest = Math.min(shortest, await heldOnce([ask]));
  return shortest;
}

/** Sends requests with a health check and a small read beside them. */
async function heldOnce(requests: readonly Ask[]): Promise<number> {
  const watch = watchEventLoop();
  const [answers, ...others] = await Promise.all([
    Promise.all(requests.map((ask) => ask())),
    fire(unwatched, { method: 'GET', path: '/api/health/live' }),
    visitor('GET', '/api/data/open?limit=1'),
  ]);
  const held = watch.longestMs();
  watch.stop();
  for (const { status, text } of answers) expect(status, text.slice(0, 500)).toBeLessThan(500);
  expect(others.map(({ status }) => status)).toEqual([200, 200]);
  return held;
}

describe('the event loop', () => {
  it.each(Object.entries(KNOWN_EXPENSES))('is not held by %s', async (_name, expense) => {
    expect(await heldBy(() => spend(expense))).toBeLessThan(MAX_MS);
  });

  it.each<[string, string, unknown]>([
    ['a bulk insert', '/api/data/wide/bulk', many(100, (at) => wide(at, 300))],
    ['a bulk insert of one object each', '/api/data/wide/bulk', many(3, (at) => ({ free: wide(at, 9_990) }))],
    ['a document', '/api/data/wide', wide(1, 9_999)],
    ['more than a body may have', '/api/data/wide', wide(1, 90_000)],
  ])('is not held by the keys of %s', async (_name, path, body) => {
    const text = JSON.stringify(body);
    const secret = callerWith(unwatched, { 'x-api-key': estate.secret });
    expect(await heldBy(() => secret('POST', path, text))).toBeLessThan(MAX_MS);
  });

  it('is not held by any operator on large values', async () => {
    const all = [...operatorExpenses()].map(([name, expense]) => [name, () => spend(expense)] as const);
    expect(await findHolding(all)).toEqual([]);
  }, 600_000);

  it('is not held by any route, whatever stands in its body or its query', async () => {
    const draw = openRandom(openSeed('values that hold the event loop'));
    // What is long is what takes long: of the rest each route meets some, with other commits others.
    const some = (values: readonly string[]) => [
      ...values.filter(({ length }) => length > 100),
      ...drawSome(draw, values, 5),
    ];
    const all = ROUTE_TABLE.filter(({ spends }) => !spends).flatMap(({ method, path, pass, body }) => {
      const headers = passFor(pass, estate);
      const own = fill(path, estate.names);
      const ask = (rest: { path?: string; body?: string }) => () =>
        fire(unwatched, { method, path: own, headers, ...rest });
      const queries = method === 'GET' ? some(HOSTILE_TEXTS).map((text) => ask({ path: withQuery(own, text) })) : [];
      const bodies =
        typeof body === 'object' ? some(HOSTILE_JSON).map((json) => ask({ body: spread(body, json) })) : [];
      return [...queries, ...bodies].map((one) => [`${method} ${path}`, one] as const);
    });
    expect(await findHolding(all)).toEqual([]);
  }, 600_000);

  it('runs in a process that stays small', () => {
    expect(process.memoryUsage().rss).toBeLessThan(MAX_RESIDENT_BYTES);
  });
});

function withQuery(path: string, text: string): string {
  const value = encodeURIComponent(text);
  return `${path}${path.includes('?') ? '&' : '?'}a=${value}&sort=${value}&limit=${value}&cursor=${value}&b_regex=${value}`;
}

/** The body with a hostile value in the place of each of its values. */
function spread(body: unknown, json: string): string {
  const names = body === null || Array.isArray(body) ? [] : Object.keys(body as object);
  return names.length === 0 ? json : `{${names.map((name) => `${JSON.stringify(name)}:${json}`).join(',')}}`;
}
