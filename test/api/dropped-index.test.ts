import { ObjectId } from 'bson';
import { expect, it } from 'vitest';
import type { App } from '../world/app.js';
import { documentsName } from '../world/collections.js';
import {
  type StoredDocument,
  aggregateDocuments,
  encodeList,
  operatorCaller,
  readEncoded,
  readFeed,
} from '../world/documents.js';
import { buildCollection, buildProject, storedDocuments } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

type EncodedReply = Parameters<typeof readEncoded>[0];

const DOCUMENTS = 20;
/** So often a read is begun. */
const ATTEMPTS = 3;

const test = await useTestApp();
const owner = await buildProject(test.app);
const collection = await buildCollection(test.app, owner.project, {
  name: 'things',
  mode: 'flexible',
  rls: { mode: 'public-read', ownerField: 'userId' },
  changes: { on: true },
});
const at = new Date();
const times = { isDeleted: false, deletedAt: null, createdAt: at, updatedAt: at };
await storedDocuments(test.app, collection).insertMany(
  Array.from({ length: DOCUMENTS }, (_, n) => ({ _id: new ObjectId(), kind: 'a', n, ...times }) as StoredDocument),
);

/** The app, where so many reads of the documents are broken off as MongoDB does when their index was dropped. */
function appThatDrops(times: number): { app: App; dropped: () => number } {
  let dropped = 0;
  const store = test.app.db.collection(documentsName(collection));
  const watched =
    (name: 'find' | 'aggregate') =>
    (...given: never[]): unknown => {
      if (dropped === times) return (store[name] as (...all: never[]) => unknown).apply(store, given);
      dropped++;
      throw Object.assign(new Error("index 'kind' dropped"), { name: 'MongoServerError', code: 175 });
    };
  const own = Object.assign(Object.create(store) as object, { find: watched('find'), aggregate: watched('aggregate') });
  const collectionOf = (name: string) => (name === documentsName(collection) ? own : test.app.db.collection(name));
  const app = { ...test.app, db: { ...test.app.db, collection: collectionOf } } as unknown as App;
  return { app, dropped: () => dropped };
}

const caller = () => operatorCaller(owner.project);
const { signal } = new AbortController();
const QUERY = `kind=a&limit=${DOCUMENTS}`;
const aside = (): Promise<void> => Promise.resolve();

const READS: [string, (app: App) => Promise<EncodedReply>][] = [
  ['a list', async (app) => (await encodeList(app, caller(), 'things', `${QUERY}&sort=n`, signal)).json],
  ['changes', (app) => readFeed(app, 'things', QUERY, { signal, settle: () => Promise.resolve(caller()), aside })],
  [
    'a pipeline',
    (app) =>
      aggregateDocuments(app, caller(), 'things', [{ $match: { kind: 'a' } }, { $sort: { n: 1 } }], {
        includeDeleted: false,
        signal,
      }),
  ],
];

const documentsIn = (reply: EncodedReply): number => {
  const text = typeof reply === 'string' ? reply : JSON.stringify(readEncoded(reply));
  return text.split('"kind":"a"').length - 1;
};

it.each(READS)('%s whose index goes away under it is read again', async (_, read) => {
  const { app, dropped } = appThatDrops(ATTEMPTS - 1);
  expect(documentsIn(await read(app))).toBe(DOCUMENTS);
  expect(dropped()).toBe(ATTEMPTS - 1);
});

it('is refused as busy where that goes on', async () => {
  const [, list] = READS[0]!;
  const { app } = appThatDrops(ATTEMPTS);
  await expect(list(app)).rejects.toThrow('are changing');
});
