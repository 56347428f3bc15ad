import type { Request } from './http-client.js';

/** What the requests need to know of the stored data. */
export interface World {
  secret: string;
  publishable: string;
  /** A token of the one user, where the server has users. */
  bearer: string;
  ids: string[];
  /** Documents that the user may change, by a rule with a set. */
  cards: string[];
  groups: number;
}

export interface Case {
  name: string;
  /** The most processor time that it may take, as a multiple of the server written by hand. */
  goal?: number;
  /** Where one after the other is worked on, those who wait from the first seconds would take the rest. */
  mostConnections?: number;
  /** One request takes as long as thousands of others. */
  isSlow?: boolean;
  requests: (world: World) => Request[];
}

/** How many documents share a value of the filtered field, whatever the size of the collection. */
export const GROUP = 50;
/** Groups of the private collection's one owner. */
export const OWN_GROUPS = 2;
/** Of documents that the bench itself creates, so that the groups of the others stay as small as they are. */
const CREATED = -1;

/** A document of an ordinary app: ten fields of its own, 50 of them in a group. */
export function makeDocument(index: number, group: number) {
  return {
    title: `Post ${index}`,
    body: 'x'.repeat(160),
    author: `author-${index % 100}`,
    status: index % 3 === 0 ? 'open' : 'done',
    group,
    views: index,
    rating: 4.5,
    pinned: index % 10 === 0,
    tags: ['news', 'long read'],
    due: '2026-12-01T09:30:00.000Z',
  };
}
export type BenchDocument = ReturnType<typeof makeDocument>;

/** The fields of `makeDocument`, as the command line takes them. */
export const FIELDS = [
  ...['title:String!', 'body:String', 'author:String', 'status:String', 'group:Number', 'views:Number=0'],
  ...['rating:Number', 'pinned:Boolean', 'tags:Array', 'due:Date'],
];

const json = { 'content-type': 'application/json' };
const upTo = (end: number): number => Math.floor(Math.random() * end);
const pick = <T>(list: readonly T[]): T => list[upTo(list.length)]!;
const many = (make: (index: number) => Request): Request[] => Array.from({ length: 500 }, (_, index) => make(index));

const get = (world: World, path: string, bearer?: string): Request => ({
  method: 'GET',
  path,
  headers: { 'x-api-key': world.publishable, ...(bearer && { authorization: `Bearer ${bearer}` }) },
});
const send = (method: 'POST' | 'PATCH', world: World, path: string, body: object, key = world.secret): Request => ({
  method,
  path,
  headers: { ...json, 'x-api-key': key },
  body: JSON.stringify(body),
});
const changeAsUser = (world: World, path: string, body: object): Request => {
  const request = send('PATCH', world, path, body, world.publishable);
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${world.bearer}` } };
};

const read = (world: World): Request => get(world, `/api/data/posts/${pick(world.ids)}`);
const list = (world: World): Request => get(world, `/api/data/posts?group=${upTo(world.groups)}&sort=-createdAt`);
const create = (world: World): Request => send('POST', world, '/api/data/posts', makeDocument(1, CREATED));
const update = (world: World): Request =>
  send('PATCH', world, `/api/data/posts/${pick(world.ids)}`, { views: upTo(1e6) });

/** What every server answers. */
export const COMMON: readonly Case[] = [
  { name: 'get by id', goal: 1, requests: (world) => many(() => read(world)) },
  { name: 'list of 20', goal: 1.3, requests: (world) => many(() => list(world)) },
  { name: 'create', goal: 0.7, requests: (world) => [create(world)] },
  { name: 'update one field', goal: 1.3, requests: (world) => many(() => update(world)) },
  {
    name: 'mixed 60/20/10/10',
    goal: 1.5,
    requests: (world) =>
      many((index) => (index % 10 < 6 ? read : index % 10 < 8 ? list : index % 10 < 9 ? create : update)(world)),
  },
];

/** What the service alone has. */
export const OWN: readonly Case[] = [
  {
    name: 'list of 20, RLS private',
    requests: (world) =>
      many(() => get(world, `/api/data/own?group=${upTo(OWN_GROUPS)}&sort=-createdAt`, world.bearer)),
  },
  {
    name: 'list of 20, rule with a set',
    requests: (world) => many(() => get(world, `/api/data/cards?group=${upTo(OWN_GROUPS)}`, world.bearer)),
  },
  {
    name: 'update by an operator',
    requests: (world) => many(() => send('PATCH', world, `/api/data/posts/${pick(world.ids)}`, { $inc: { views: 1 } })),
  },
  {
    name: 'update, rule with a set',
    requests: (world) => many(() => changeAsUser(world, `/api/data/cards/${pick(world.cards)}`, { views: upTo(1e6) })),
  },
  {
    name: 'ten inserts in a batch',
    requests: (world) => {
      const insert = { op: 'insert', collection: 'posts', body: makeDocument(1, CREATED) };
      return [send('POST', world, '/api/batch', { operations: Array.from({ length: 10 }, () => insert) })];
    },
  },
  {
    name: 'aggregate $group',
    requests: (world) =>
      many(() =>
        send('POST', world, '/api/data/posts/aggregate', {
          pipeline: [
            { $match: { group: upTo(world.groups) } },
            { $group: { _id: '$group', views: { $sum: '$views' } } },
          ],
        }),
      ),
  },
  {
    name: 'create 10 KB',
    requests: (world) => [
      send('POST', world, '/api/data/posts', { ...makeDocument(1, CREATED), body: 'y'.repeat(10_000) }),
    ],
  },
  {
    name: 'sign-in',
    isSlow: true,
    mostConnections: 2,
    requests: (world) => [
      send(
        'POST',
        world,
        '/api/userAuth/login',
        { email: 'ann@example.com', password: 'correct horse' },
        world.publishable,
      ),
    ],
  },
];
