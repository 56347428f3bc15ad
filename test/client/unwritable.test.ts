import { describe, expect, it } from 'vitest';
import { ApiError, createClient } from '../world/client.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

let sent: string[] = [];

const test = await useTestApp();
const shop = await buildProject(test.app);
await buildCollection(test.app, shop.project, { name: 'things', mode: 'flexible' });
const api = createClient({
  url: test.url,
  key: shop.secret,
  fetch: (address, init) => {
    sent.push(String(address));
    return fetch(address, init);
  },
});

const ring: Record<string, unknown> = {};
ring.self = ring;
/** What JSON would drop, turn into null or into an empty object. */
const UNWRITABLE: Record<string, unknown> = {
  NaN: NaN,
  Infinity: Infinity,
  '-Infinity': -Infinity,
  'an invalid date': new Date(NaN),
  'an invalid date of a library': { toJSON: () => null },
  BigInt: 1n,
  'a function': () => 1,
  'a symbol': Symbol('x'),
  'undefined in a list': [1, undefined],
  'a hole in a list': Array(2),
  'a circle': ring,
  'a Map': new Map([['a', 1]]),
  'a Set': new Set([1]),
  'a promise that nobody awaited': Promise.resolve(1),
  'a regular expression': /x/,
  'an error': new Error('x'),
  bytes: new Uint8Array([1]),
  'a Blob': new Blob(['x']),
  'a throwing toJSON': {
    toJSON() {
      throw new Error('of its own');
    },
  },
};

const ID = 'a'.repeat(24);
type Write = (value: object) => Promise<unknown>;
const WRITES: Record<string, [path: string, write: Write]> = {
  insert: ['n', (value) => api.collection('things').insert(value)],
  insertMany: ['1.n', (value) => api.collection('things').insertMany([{}, value])],
  update: ['n', (value) => api.collection('things').update(ID, value)],
  'update with an operator': [
    '$push.n',
    ({ n }: { n?: unknown }) => api.collection('things').update(ID, { $push: { n } } as never),
  ],
  updateMatching: ['n', (value) => api.collection('things').updateMatching({ of: 1 }, value, { confirm: 1 })],
  batch: ['operations.0.body.n', (value) => api.batch((batch) => batch.collection('things').insert(value))],
  aggregate: ['pipeline.0.$match.n', (value) => api.collection('things').aggregate([{ $match: value }])],
  signUp: ['n', (value) => api.auth.signUp(value)],
  updateProfile: ['n', (value) => api.auth.updateProfile(value as never)],
  'mail.send': ['variables.n', (variables) => api.mail.send({ to: 'a@example.test', variables } as never)],
};

const refusal = (work: Promise<unknown>): Promise<ApiError> =>
  work.then(
    () => Promise.reject(new Error('it was sent')),
    (error: unknown) => error as ApiError,
  );

describe.each(Object.keys(WRITES))('%s', (name) => {
  const [path, write] = WRITES[name]!;

  it.each(Object.keys(UNWRITABLE))('refuses %s before it is sent, naming the path', async (what) => {
    sent = [];
    const error = await refusal(write({ n: UNWRITABLE[what] }));
    expect(error).toBeInstanceOf(ApiError);
    expect([error.status, sent]).toEqual([400, []]);
    // One that throws is called before anybody knows where.
    if (what !== 'a throwing toJSON') {
      expect(error.details[0]!.field.startsWith(path)).toBe(true);
      expect(error.message).toContain(path);
    }
  });
});

it('sends what JSON can say, whatever it is made of', async () => {
  const shared = { a: 1 };
  class Point {
    x = 1;
  }
  const value = {
    ...{ text: 'x', zero: -0, yes: true, nothing: null, date: new Date(0), list: [1, [2]], both: [shared, shared] },
    ...{ point: new Point(), bare: Object.assign(Object.create(null) as object, { a: 1 }), missing: undefined },
    own: { toJSON: () => ({ a: [1] }) },
  };
  const { _id } = await api.collection('things').insert(value);
  const read = await api.collection('things').get(_id);
  expect(read).toMatchObject(JSON.parse(JSON.stringify(value)) as object);
  expect(read).not.toHaveProperty('missing');
});

it('inserts a document under the id that it brings', async () => {
  const _id = 'b'.repeat(24);
  expect(await api.collection('things').insert({ _id, n: 1 })).toMatchObject({ _id, n: 1 });
  await expect(api.collection('things').insert({ _id, n: 2 })).rejects.toMatchObject({ status: 409 });
});

const READS: Record<string, (filter: never) => unknown> = {
  list: (filter) => api.collection('things').list({ filter }),
  iterate: (filter) => api.collection('things').iterate({ filter }).next(),
  count: (filter) => api.collection('things').count(filter),
  changes: (filter) => api.collection('things').changes({ filter }),
  follow: (filter) => api.collection('things').follow({ filter }, () => undefined),
  'follow.set': (filter) => api.collection('things').follow.set({ filter }, () => undefined),
  updateMatching: (filter) => api.collection('things').updateMatching(filter, { n: 1 }, { confirm: 1 }),
  removeMatching: (filter) => api.collection('things').removeMatching(filter, { confirm: 1 }),
  aggregate: (filter) => api.collection('things').aggregate([{ $match: filter }]),
};
const OPEN: Record<string, unknown> = {
  ...Object.fromEntries(Object.entries(UNWRITABLE).map(([what, value]) => [what, { n: value }])),
  'undefined as a value': { n: undefined },
  'a Map as the filter': new Map([['n', 1]]),
};
/** What a pipeline may hold, and a filter may not. */
const NO_FILTER: Record<string, unknown> = {
  'null as a value': { n: null },
  'an object as a value': { n: { a: 1 } },
  'an empty list': { n_in: [] },
  'null in a list': { n_in: [null] },
  'half a character': { n: '\ud800' },
  'null as the filter': null,
  'a text as the filter': 'n=1',
  'a list as the filter': ['n'],
};

describe.each(Object.keys(READS))('a filter of %s', (name) => {
  const cases = name === 'aggregate' ? OPEN : { ...OPEN, ...NO_FILTER };

  it.each(Object.keys(cases))('is never dropped: %s is refused', async (what) => {
    sent = [];
    const error = await refusal((async () => READS[name]!(cases[what] as never))());
    expect(error.message).not.toBe('it was sent');
    expect(sent).toEqual([]);
    expect(error).toMatchObject({ status: 400, code: 'INVALID_QUERY' });
  });
});

it('sends alternatives, to lists, counts and streams alike', async () => {
  const things = api.collection('things');
  await things.insertMany([
    { of: 'or', at: 1 },
    { of: 'or', at: 2 },
    { of: 'or', at: 3 },
  ]);
  const filter = { of: 'or', or: [{ at: 1 }, { at_gt: 2 }] };
  expect((await things.list({ filter })).total).toBe(2);
  expect(await things.count(filter)).toBe(2);
  const shown = await new Promise<unknown[]>((resolve, reject) => {
    const stop = things.follow.set({ filter, onError: reject }, (list) => {
      stop();
      resolve(list);
    });
  });
  expect(shown).toHaveLength(2);
});
