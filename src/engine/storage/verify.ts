import { decodeDocument } from '../codec/decode.js';
import { ownerKey } from './catalog.js';
import { DOCUMENT, INDEX_ENTRY } from './environment.js';
import { type CollectionEntry } from './index-definition.js';
import { indexKeysOf } from './index-keys.js';
import { KeyWriter } from './key-encoding.js';
import { type Storage } from './storage.js';

const CHUNK = 256;
const AFTER = Buffer.from([0xff]);

/**
 * Reads everything and compares: each document decodes and lies under its `_id`, each index holds exactly the entries of
 * the documents, counters agree. Returns what is wrong, in words. Only meaningful while nobody writes.
 */
export async function verifyStorage(storage: Storage): Promise<string[]> {
  const problems: string[] = [];
  storage.refresh();
  for (const collection of storage.catalog.list('')) await verifyCollection(storage, collection, problems);
  return problems;
}

async function verifyCollection(storage: Storage, collection: CollectionEntry, problems: string[]): Promise<void> {
  const { ns } = collection;
  const writer = new KeyWriter();
  const expected = collection.indexes.map(() => 0);
  const { store } = storage.environment;
  const seen = { documents: 0, bytes: 0 };
  await eachEntry(storage, ownerKey(DOCUMENT, collection.id), (key, bytes) => {
    seen.documents++;
    seen.bytes += bytes.length;
    const doc = decodeDocument(bytes);
    const idBytes = storage.documents.encodeId(doc['_id']);
    if (!idBytes.equals(key.subarray(5))) problems.push(`${ns}: a document lies under another _id than its own`);
    collection.indexes.forEach((index, n) => {
      if (index.definition.state !== 'ready') return;
      const { keys } = indexKeysOf(index, doc, idBytes, writer);
      expected[n]! += keys.length;
      for (const entry of keys) {
        const owner = store.getBinary(entry);
        if (owner === undefined || !idBytes.equals(owner)) {
          problems.push(`${ns}: index ${index.definition.name} lacks an entry of ${String(doc['_id'])}`);
        }
      }
    });
  });
  const size = storage.catalog.size(collection.id);
  if (size.documents !== seen.documents || size.bytes !== seen.bytes) {
    problems.push(
      `${ns}: counted ${size.documents} documents of ${size.bytes} bytes, found ${seen.documents} of ${seen.bytes}`,
    );
  }
  for (const [n, index] of collection.indexes.entries()) {
    if (index.definition.state !== 'ready') continue;
    let entries = 0;
    await eachEntry(storage, ownerKey(INDEX_ENTRY, index.definition.id), () => {
      entries++;
    });
    if (entries !== expected[n]) {
      problems.push(`${ns}: index ${index.definition.name} has ${entries} entries instead of ${expected[n]!}`);
    }
  }
}

async function eachEntry(storage: Storage, prefix: Buffer, visit: (key: Buffer, value: Buffer) => void): Promise<void> {
  const end = Buffer.concat([prefix, AFTER]);
  let last: Buffer | null = null;
  for (;;) {
    storage.refresh();
    const range: Iterable<{ key: Buffer; value: Buffer }> = storage.environment.store.getRange({
      start: last ?? prefix,
      end,
      limit: CHUNK,
      exclusiveStart: last !== null,
    });
    let read = 0;
    for (const { key, value } of range) {
      visit(key, value);
      last = key;
      read++;
    }
    if (read < CHUNK) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
