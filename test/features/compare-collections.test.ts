import type { Document } from 'bson';
import { describe, expect, it } from 'vitest';
import { openEngine } from '../../src/engine/index.js';
import { compareCollections } from '../../src/features/store-copies/move-store.js';
import type { Store } from '../../src/platform/database/database.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const dir = use(await openTempDir());
const engine = use(openEngine({ dataDir: dir.path, durability: 'relaxed' }));

let made = 0;
async function build(indexes: { key: Document; name: string; [option: string]: unknown }[]): Promise<Store<Document>> {
  const store: Store<Document> = engine.db('compared').collection(`c${++made}`);
  await store.insertMany([{ _id: 1 as never, a: 1 }]);
  if (indexes.length > 0) await store.createIndexes(indexes as never);
  return store;
}

/** A server that tells more of an index than was asked for. */
function telling(store: Store<Document>, more: Document): Store<Document> {
  const indexes = async (): Promise<Document[]> =>
    ((await store.indexes()) as Document[]).map((index) => ({ ...index, ...more }));
  return Object.create(store, { indexes: { value: indexes } }) as Store<Document>;
}

const compare = (from: Store<Document>, to: Store<Document>): Promise<{ difference: string | null }> =>
  compareCollections(from, to, { filter: {}, nowMs: Date.now(), stop: new AbortController().signal });

describe('a comparison of two collections', () => {
  const index = { key: { a: 1, b: -1 }, name: 'a_b', unique: true };

  it('does not mind what a server tells of indexes beyond what is copied', async () => {
    const from = await build([index]);
    const to = telling(await build([index]), { storageEngine: { enableOrderedIndex: true } });
    expect((await compare(from, to)).difference).toBeNull();
  });

  it.each([
    ['the index a_b, which is missing there,', []],
    ['the key of the index a_b', [{ ...index, key: { b: -1, a: 1 } }]],
    ['unique of the index a_b', [{ key: index.key, name: index.name }]],
    ['sparse of the index a_b', [{ ...index, sparse: true }]],
    ['partialFilterExpression of the index a_b', [{ ...index, partialFilterExpression: { a: 1 } }]],
    ['the index more, which is only there,', [index, { key: { c: 1 }, name: 'more' }]],
  ])('names what differs: %s', async (difference, there) => {
    expect((await compare(await build([index]), await build(there))).difference).toBe(difference);
  });
});
