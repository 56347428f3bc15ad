import { decodeDocument } from '../../codec/decode.js';
import { BsonFormatError } from '../../codec/elements.js';
import { decodeDefinition, decodeRecord } from '../catalog/catalog-records.js';
import { checksum } from '../format/checksum.js';
import {
  CHANGE_SPACE,
  COLLECTION_SPACE,
  COUNTER_SPACE,
  DOCUMENT_SPACE,
  DROPPED_SPACE,
  FORMAT_KEY,
  INDEX_SPACE,
} from '../format/key-spaces.js';
import type { CollectionEntry, IndexEntry, KeptCounts } from '../keys/index-definition.js';
import { indexKeysOf } from '../keys/index-keys.js';
import { KeyWriter, MAX_ID_BYTES } from '../encoding/key-encoding.js';
import { CountChanges, countedValue, decodeCounts, noCounts } from '../catalog/kept-counts.js';
import { prepareCollection } from '../catalog/prepare-collection.js';
import { presentIdKey } from '../encoding/key-kinds.js';
import { StorageError } from '../storage-error.js';
import { FORMAT_RECORD } from '../format/format-record.js';
import { bsonLength, contentOf, entrySum, isSealIntact, sealedBson, storedSum } from '../format/stored-form.js';
import type { WalkVisitor } from '../file/walk-pages.js';

const MAX_PROBLEMS = 100;

interface ExaminedIndex {
  readonly index: IndexEntry;
  readonly collection: Examined;
  /** The entries that the documents call for, and those that are there. */
  readonly expected: { entries: number; digest: number };
  readonly found: { entries: number; digest: number };
}

interface Examined {
  readonly entry: CollectionEntry;
  readonly found: CountChanges;
  readonly indexes: ExaminedIndex[];
  kept: KeptCounts;
  hurt: boolean;
  /** Of a hurt collection: the encoded ids of the documents that are whole, and those that entries name besides. */
  readonly whole: Set<string>;
  readonly named: Map<string, string>;
}

/** The damage that a walk over all entries of the data file finds. */
export class Examination {
  readonly problems: string[] = [];
  isHurt = false;
  private left = 0;
  private readonly collections = new Map<number, Examined>();
  private readonly indexes = new Map<number, ExaminedIndex>();
  private readonly logs = new Map<number, Examined>();
  private readonly dropped = new Set<string>();
  private readonly writer = new KeyWriter();
  private readonly idWriter = new KeyWriter();

  report(problem: string): void {
    this.isHurt = true;
    if (this.problems.length < MAX_PROBLEMS) this.problems.push(problem);
    else this.problems[MAX_PROBLEMS] = `… and ${++this.left} more.`;
  }

  firstPass(): WalkVisitor {
    return {
      entry: (key, value) => {
        try {
          this.take(key, value);
        } catch (error) {
          if (!(error instanceof StorageError)) throw error;
          this.report(error.message);
        }
      },
      damage: (page, reason, from) => {
        const place = this.placeOf(from);
        if (place !== null) place.hurt = true;
        this.report(`Page ${page}${place === null ? '' : ` of ${place.entry.ns}`} is damaged: ${reason}.`);
      },
    };
  }

  private placeOf(key: Buffer): Examined | null {
    if (key.length < 5) return null;
    const owner = key.readUInt32BE(1);
    if (key[0] === INDEX_SPACE) return this.indexes.get(owner)?.collection ?? null;
    return (key[0] === CHANGE_SPACE ? this.logs : this.collections).get(owner) ?? null;
  }

  /** The spaces come in an order in which each is known from those before. */
  private take(key: Buffer, value: Buffer): void {
    switch (key[0]) {
      case COLLECTION_SPACE:
        this.takeDefinition(key, value);
        return;
      case DROPPED_SPACE:
        decodeRecord(key, value, 'A note of dropped data');
        this.dropped.add(key.toString('latin1', 1));
        return;
      case COUNTER_SPACE: {
        const collection = this.placeOf(key);
        const what = `The count of ${collection?.entry.ns ?? 'a collection'}`;
        const counts = decodeCounts(decodeRecord(key, value, what));
        if (collection !== null) collection.kept = counts;
        return;
      }
      case DOCUMENT_SPACE:
        if (this.isKnown(key)) this.takeDocument(this.collections.get(key.readUInt32BE(1))!, key, value);
        return;
      case INDEX_SPACE:
        if (this.isKnown(key)) this.takeEntry(this.indexes.get(key.readUInt32BE(1))!, key, value);
        return;
      case CHANGE_SPACE:
        if (this.isKnown(key)) decodeRecord(key, value, `A change in the log of ${this.placeOf(key)!.entry.ns}`);
        return;
      default:
        if (!key.equals(FORMAT_KEY)) decodeRecord(key, value, 'A record about the file');
        else if (!value.equals(FORMAT_RECORD)) this.report('The record of the storage format is damaged.');
    }
  }

  private isKnown(key: Buffer): boolean {
    if (this.placeOf(key) !== null) return true;
    if (!this.dropped.has(key.toString('latin1', 0, 5))) {
      this.report('There is something that belongs to no collection.');
    }
    return false;
  }

  private takeDefinition(key: Buffer, value: Buffer): void {
    const entry = prepareCollection(decodeDefinition(key, value));
    const collection: Examined = {
      entry,
      found: new CountChanges(),
      indexes: [],
      kept: noCounts(),
      hurt: false,
      whole: new Set(),
      named: new Map(),
    };
    for (const index of entry.indexes) {
      const examined = { index, collection, expected: { entries: 0, digest: 0 }, found: { entries: 0, digest: 0 } };
      collection.indexes.push(examined);
      this.indexes.set(index.definition.id, examined);
    }
    if (entry.log !== null) this.logs.set(entry.log.id, collection);
    this.collections.set(entry.id, collection);
  }

  private takeDocument(collection: Examined, key: Buffer, value: Buffer): void {
    const { entry, found } = collection;
    const idBytes = key.subarray(5);
    const problem = this.checkDocument(entry, key, value);
    if (problem !== null) {
      collection.hurt = true;
      this.report(`${entry.ns}: the document ${presentIdKey(idBytes)} ${problem}.`);
      return;
    }
    const bson = value.subarray(0, bsonLength(value));
    const doc = decodeDocument(bson);
    found.sums.documents++;
    found.sums.bytes += bson.length;
    found.addDigest(1, storedSum(value), countedValue(entry, doc));
    for (const { index, expected } of collection.indexes) {
      for (const indexKey of indexKeysOf(index, doc, idBytes, this.writer).keys) {
        expected.entries++;
        expected.digest = (expected.digest + entrySum(indexKey, idBytes)) | 0;
      }
    }
  }

  private checkDocument(entry: CollectionEntry, key: Buffer, value: Buffer): string | null {
    const bson = sealedBson(checksum(0, key, key.length), value);
    if (bson === null) return 'is damaged';
    try {
      const doc = decodeDocument(bson);
      const id = this.idWriter.restart().component(doc['_id'], false, MAX_ID_BYTES).take();
      return id.equals(key.subarray(5)) ? null : 'lies under another _id than its own';
    } catch (error) {
      if (error instanceof BsonFormatError) return 'is damaged';
      throw error;
    }
  }

  private takeEntry({ index, collection, found }: ExaminedIndex, key: Buffer, value: Buffer): void {
    if (!isSealIntact(checksum(0, key, key.length), value)) {
      collection.hurt = true;
      this.report(`${collection.entry.ns}: the index ${index.definition.name} has a damaged entry.`);
      return;
    }
    found.entries++;
    found.digest = (found.digest + entrySum(key, contentOf(value))) | 0;
  }

  /** Compares what is counted, what is there, and what the documents say about the indexes. */
  compareCounts(): void {
    for (const collection of this.collections.values()) {
      const { entry, found, kept, indexes } = collection;
      const problems: string[] = [];
      for (const what of ['documents', 'bytes', 'yes', 'no', 'lists'] as const) {
        if (kept[what] !== found.sums[what]) {
          problems.push(`${entry.ns}: counted ${what}: ${kept[what]}, found ${found.sums[what]}.`);
        }
      }
      if (problems.length === 0 && kept.digest !== found.sums.digest) {
        problems.push(`${entry.ns}: holds other documents than were stored.`);
      }
      for (const examined of indexes) {
        const { name, state, id } = examined.index.definition;
        const counted = kept.indexes.get(id) ?? { entries: 0, digest: 0 };
        if (state !== 'ready') continue;
        if (!areEqual(examined.found, examined.expected)) {
          const { found: there, expected } = examined;
          problems.push(
            `${entry.ns}: the index ${name} has ${there.entries} entries, its documents ${expected.entries}.`,
          );
        } else if (!areEqual(counted, examined.found)) {
          problems.push(
            `${entry.ns}: the index ${name} has ${examined.found.entries} entries, counted ${counted.entries}.`,
          );
        }
      }
      if (problems.length > 0) collection.hurt = true;
      for (const problem of problems) this.report(problem);
    }
  }

  /** Gathers the ids of whole documents, and those that the entries of indexes name. */
  secondPass(): WalkVisitor {
    return {
      entry: (key, value) => {
        const place = this.placeOf(key);
        if (place?.hurt !== true) return;
        if (key[0] === DOCUMENT_SPACE) {
          if (this.checkDocument(place.entry, key, value) === null) place.whole.add(key.toString('latin1', 5));
        } else if (key[0] === INDEX_SPACE && isSealIntact(checksum(0, key, key.length), value)) {
          const id = contentOf(value).toString('latin1');
          if (!place.whole.has(id)) place.named.set(id, this.indexes.get(key.readUInt32BE(1))!.index.definition.name);
        }
      },
      damage: () => undefined,
    };
  }

  /** Names the documents that indexes lead to and that are not there. */
  nameLost(): void {
    for (const { entry, named } of this.collections.values()) {
      for (const [id, index] of named) {
        const shown = presentIdKey(Buffer.from(id, 'latin1'));
        this.report(`${entry.ns}: the document ${shown}, which the index ${index} names, is missing or damaged.`);
      }
    }
  }
}

function areEqual(a: { entries: number; digest: number }, b: { entries: number; digest: number }): boolean {
  return a.entries === b.entries && a.digest === b.digest;
}
