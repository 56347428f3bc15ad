import { decodeDocument } from '../codec/decode.js';
import { ownerKey } from './catalog.js';
import { checksum } from './checksum.js';
import { countedValue } from './documents.js';
import { DOCUMENT, INDEX_ENTRY } from './environment.js';
import { type CollectionEntry } from './index-definition.js';
import { indexKeysOf } from './index-keys.js';
import { KeyWriter } from './key-encoding.js';
import { noCounts } from './kept-counts.js';
import { type Storage } from './storage.js';
import { contentOf, isSealed, isSealIntact, storedSum } from './stored-form.js';

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
  const seen = noCounts();
  await eachEntry(storage, ownerKey(DOCUMENT, collection.id), (key, value) => {
    const bytes = storage.documents.open(collection, checksum(0, key, key.length), value, () => key.subarray(5));
    const doc = decodeDocument(bytes);
    seen.documents++;
    seen.bytes += bytes.length;
    if (bytes.length !== value.length) {
      seen.digest = (seen.digest + storedSum(value)) | 0;
      const counted = countedValue(collection, doc);
      if (counted === true) seen.yes++;
      if (counted === false) seen.no++;
      if (Array.isArray(counted)) seen.lists++;
    }
    const idBytes = storage.documents.encodeId(doc['_id']);
    if (!idBytes.equals(key.subarray(5))) problems.push(`${ns}: a document lies under another _id than its own`);
    collection.indexes.forEach((index, n) => {
      if (index.definition.state !== 'ready') return;
      const { keys } = indexKeysOf(index, doc, idBytes, writer);
      expected[n]! += keys.length;
      for (const entry of keys) {
        const owner = store.getBinary(entry);
        if (owner === undefined || !idBytes.equals(contentOf(Buffer.from(owner)))) {
          problems.push(`${ns}: index ${index.definition.name} lacks an entry of ${String(doc['_id'])}`);
        }
      }
    });
  });
  const size = storage.catalog.counts(collection.id);
  for (const what of ['documents', 'bytes', 'yes', 'no', 'lists', 'digest'] as const) {
    if (size[what] !== seen[what]) problems.push(`${ns}: counted ${what}: ${size[what]}, found ${seen[what]}`);
  }
  for (const [n, index] of collection.indexes.entries()) {
    if (index.definition.state !== 'ready') continue;
    const { id, name } = index.definition;
    let entries = 0;
    const sealed = { entries: 0, digest: 0 };
    await eachEntry(storage, ownerKey(INDEX_ENTRY, id), (key, value) => {
      entries++;
      if (!isSealed(value)) return;
      if (!isSealIntact(checksum(0, key, key.length), value)) problems.push(`${ns}: index ${name}: damaged entry`);
      sealed.entries++;
      sealed.digest = (sealed.digest + storedSum(value)) | 0;
    });
    const kept = size.indexes.get(id) ?? { entries: 0, digest: 0 };
    if (kept.entries !== sealed.entries || kept.digest !== sealed.digest) {
      problems.push(
        `${ns}: index ${name}: counted ${kept.entries} (${kept.digest}), found ${sealed.entries} (${sealed.digest})`,
      );
    }
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
