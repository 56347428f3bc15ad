import { ROUTE_LISTS } from '../../../src/api.js';
import { growAt, OPERATORS, placesOf, PIPELINES, QUERIES, SUBSCRIPTIONS } from './grow.js';
import type { Shot } from './send.js';
import { PASSWORD, type AttackedProject } from './target.js';

/** A request that was grown by an operator to a size. */
export interface GrownShot extends Omit<Shot, 'body'> {
  /** Made when it is sent: all of them together are gigabytes. */
  body: () => string;
  /** Route and caller. */
  route: string;
  caller: Caller;
  /** What made it large, and the bound of bodies of its route. */
  operator: string;
  bodySize: string;
  /** Route, caller, operator and place: what differs in size alone has the same. */
  family: string;
  size: number;
  /** Asks to store something, so that what is kept of it is looked at. */
  stores: boolean;
  hasBody?: boolean;
  /** It may be opened and never read. */
  isStream?: boolean;
}

/** Without a key, with a publishable one, and with that and a user's token. */
export type Caller = 'nobody' | 'visitor' | 'user';

/** The operator that grows nothing. */
export const AS_IT_IS = 'as it is';

/** Bodies may have a megabyte, queries what headers may have. */
const BODY_SIZES = [2_000, 15_000, 40_000, 75_000, 140_000, 1_000_000];
/** More is refused to a stream. */
const STREAM_SIZE = 40_000;
const QUERY_SIZES = [200, 1_000, 4_000, 12_000];

/** The requests that grow what strangers may send, by every operator and size. */
export function listShots(project: AttackedProject): GrownShot[] {
  const { publishable } = project;
  const callers: Record<Caller, Record<string, string>> = {
    nobody: {},
    visitor: { 'x-api-key': publishable },
    user: { 'x-api-key': publishable, authorization: 'Bearer {token}' },
  };
  const routes = ROUTE_LISTS.flatMap((list) => list.routes).filter(({ path }) => !path.startsWith('/api/projects'));
  const shots: GrownShot[] = [];
  for (const [caller, headers] of Object.entries(callers) as [Caller, Record<string, string>][]) {
    const heads = GROWN_HEADERS.map((grown) => ({ ...grown, headers: { ...headers, ...grown.more } }));
    for (const { method, path, example, bodySize = 'document' } of routes) {
      const route = `${method} ${path} ${caller}`;
      const filled = path.replace(':collectionName', 'posts').replace(/:\w+/g, '{document}');
      const plain = { route, caller, bodySize, method, path: filled, headers, body: () => '', stores: false };
      if (method === 'GET') {
        shots.push({ ...plain, family: `${route} ${AS_IT_IS}`, operator: AS_IT_IS, size: 0 });
        for (const { query, operator, size } of GROWN_QUERIES) {
          shots.push({ ...plain, path: `${filled}?${query}`, family: `${route} ${operator}`, operator, size });
        }
      } else if (method !== 'DELETE') {
        for (const grown of growBodies(path, example ?? {})) {
          shots.push({ ...plain, ...grown, hasBody: true, family: `${route} ${grown.family}` });
        }
      }
      for (const { headers: own, operator, size } of heads) {
        shots.push({ ...plain, headers: own, family: `${route} ${operator}`, operator, size });
      }
    }
  }
  return shots;
}

type GrownBody = Pick<GrownShot, 'body' | 'operator' | 'family' | 'size' | 'stores' | 'isStream'>;

function growBodies(path: string, example: unknown): GrownBody[] {
  const stores = !path.endsWith('/aggregate');
  const found: GrownBody[] = [];
  const own = withOwnValues(path, example);
  const add = (operator: string, size: number, body: () => string, more: Partial<GrownBody> = {}): void =>
    void found.push({ body, operator, family: operator, size, stores, ...more });
  add(AS_IT_IS, 0, () => JSON.stringify(own));
  for (const size of BODY_SIZES) {
    for (const [operator, grow] of Object.entries(OPERATORS)) {
      for (const place of placesOf(own)) {
        const family = `${operator} ${place}`;
        add(operator, size, () => growAt(own, place, grow(size)), { family });
      }
    }
    if (path.endsWith('/aggregate')) {
      for (const [operator, grow] of Object.entries(PIPELINES)) {
        add(operator, size, () => JSON.stringify({ pipeline: grow(size) }));
      }
    }
    if (path === '/api/realtime' && size <= STREAM_SIZE) {
      for (const [operator, grow] of Object.entries(SUBSCRIPTIONS)) {
        add(operator, size, () => JSON.stringify({ subscriptions: grow(size) }), { stores: false, isStream: true });
      }
    }
  }
  return found;
}

/** What the routes of accounts ask for beside an example: addresses that are new each time, the right password. */
function withOwnValues(path: string, example: unknown): unknown {
  if (typeof example !== 'object' || example === null || Array.isArray(example)) return example;
  const values = Object.fromEntries(
    Object.entries(example).map(([name, value]) => [name, /password/i.test(name) ? PASSWORD : value] as const),
  );
  if (!path.startsWith('/api/userAuth')) return values;
  return { ...values, email: 'stranger{n}@else.example', currentPassword: PASSWORD };
}

function growQueries(): { query: string; operator: string; size: number }[] {
  return QUERY_SIZES.flatMap((size) =>
    Object.entries(QUERIES).map(([operator, grow]) => ({ query: grow(size), operator, size })),
  );
}

function growHeaders(): { more: Record<string, string>; operator: string; size: number }[] {
  return QUERY_SIZES.flatMap((size) => [
    { more: { cookie: `a=${'b'.repeat(size)}` }, operator: 'long cookie', size },
    { more: { cookie: 'a=b;'.repeat(size / 4) }, operator: 'many cookies', size },
    { more: { accept: 'a/b;q=0.1,'.repeat(size / 10) }, operator: 'many types', size },
    { more: { 'if-match': '"a",'.repeat(size / 4) }, operator: 'many tags', size },
    {
      more: Object.fromEntries(Array.from({ length: size / 20 }, (_, at) => [`x-many-${at}`, '1'])),
      operator: 'many headers',
      size,
    },
  ]);
}

/** Made once: each route gets the same. */
const GROWN_QUERIES = growQueries();
const GROWN_HEADERS = growHeaders();
