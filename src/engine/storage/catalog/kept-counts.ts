import type { Doc } from '../../codec/document.js';
import type { CollectionEntry, EntryCounts, KeptCounts, LogCounts } from '../keys/index-definition.js';

const FIXED_BYTES = 54;
const INDEX_BYTES = 16;
const LOG_BYTES = 28;

/** The counts of an empty collection. */
export function noCounts(): KeptCounts {
  return { documents: 0, bytes: 0, writes: 0, digest: 0, yes: 0, no: 0, lists: 0, indexes: new Map(), log: null };
}

/** The counts of a collection from the content of their record. */
export function decodeCounts(content: Buffer): KeptCounts {
  const counts = noCounts();
  counts.documents = content.readDoubleBE(0);
  counts.bytes = content.readDoubleBE(8);
  counts.writes = content.readDoubleBE(16);
  counts.digest = content.readInt32BE(24);
  counts.yes = content.readDoubleBE(28);
  counts.no = content.readDoubleBE(36);
  counts.lists = content.readDoubleBE(44);
  const indexes = content.readUInt16BE(52);
  let at = FIXED_BYTES;
  for (let n = 0; n < indexes; n++, at += INDEX_BYTES) {
    counts.indexes.set(content.readUInt32BE(at), {
      entries: content.readDoubleBE(at + 4),
      digest: content.readInt32BE(at + 12),
    });
  }
  if (content.length >= at + LOG_BYTES) {
    counts.log = {
      epoch: content.readUInt32BE(at),
      seq: content.readDoubleBE(at + 4),
      bytes: content.readDoubleBE(at + 12),
      erased: content.readDoubleBE(at + 20),
    };
  }
  return counts;
}

/** The content of the counts' record, which `decodeCounts` reads. */
export function encodeCounts(counts: KeptCounts): Buffer {
  const { log } = counts;
  const content = Buffer.alloc(FIXED_BYTES + counts.indexes.size * INDEX_BYTES + (log === null ? 0 : LOG_BYTES));
  content.writeDoubleBE(counts.documents, 0);
  content.writeDoubleBE(counts.bytes, 8);
  content.writeDoubleBE(counts.writes, 16);
  content.writeInt32BE(counts.digest, 24);
  content.writeDoubleBE(counts.yes, 28);
  content.writeDoubleBE(counts.no, 36);
  content.writeDoubleBE(counts.lists, 44);
  content.writeUInt16BE(counts.indexes.size, 52);
  let at = FIXED_BYTES;
  for (const [id, { entries, digest }] of counts.indexes) {
    content.writeUInt32BE(id, at);
    content.writeDoubleBE(entries, at + 4);
    content.writeInt32BE(digest, at + 12);
    at += INDEX_BYTES;
  }
  if (log !== null) {
    content.writeUInt32BE(log.epoch, at);
    content.writeDoubleBE(log.seq, at + 4);
    content.writeDoubleBE(log.bytes, at + 12);
    content.writeDoubleBE(log.erased, at + 20);
  }
  return content;
}

/** Changes of a transaction to the counts of a collection: the differences, and the indexes that went. */
export class CountChanges {
  readonly sums = noCounts();
  /** The stored counts, when the transaction has read them already. */
  stored: KeptCounts | undefined;
  /** The log as it is after the transaction, null when it ends; undefined when the transaction has not touched it. */
  log: LogCounts | null | undefined;
  private readonly gone = new Set<number>();

  /** A document in or out (`sign`), with its size, its checksum, and the value of the counted field. */
  addDocument(sign: 1 | -1, bytes: number, sum: number, counted: unknown): void {
    const { sums } = this;
    sums.documents += sign;
    sums.bytes += sign * bytes;
    this.addDigest(sign, sum, counted);
  }

  addDigest(sign: 1 | -1, sum: number, counted: unknown): void {
    const { sums } = this;
    sums.digest = (sums.digest + sign * sum) | 0;
    if (counted === true) sums.yes += sign;
    else if (counted === false) sums.no += sign;
    else if (Array.isArray(counted)) sums.lists += sign;
  }

  addEntry(index: number, sign: 1 | -1, sum: number): void {
    let counts: EntryCounts | undefined = this.sums.indexes.get(index);
    if (counts === undefined) this.sums.indexes.set(index, (counts = { entries: 0, digest: 0 }));
    counts.entries += sign;
    counts.digest = (counts.digest + sign * sum) | 0;
  }

  dropIndex(index: number): void {
    this.sums.indexes.delete(index);
    this.gone.add(index);
  }

  /** The stored counts with these changes. */
  applyTo(stored: KeptCounts): KeptCounts {
    const { sums, gone } = this;
    const indexes = new Map(stored.indexes);
    for (const index of gone) indexes.delete(index);
    for (const [index, { entries, digest }] of sums.indexes) {
      const before = indexes.get(index) ?? { entries: 0, digest: 0 };
      indexes.set(index, { entries: before.entries + entries, digest: (before.digest + digest) | 0 });
    }
    return {
      documents: stored.documents + sums.documents,
      bytes: stored.bytes + sums.bytes,
      writes: stored.writes + sums.writes,
      digest: (stored.digest + sums.digest) | 0,
      yes: stored.yes + sums.yes,
      no: stored.no + sums.no,
      lists: stored.lists + sums.lists,
      indexes,
      log: this.log === undefined ? stored.log : this.log,
    };
  }
}

/** The value by which a document is counted; anything but `true` and `false` is not. */
export function countedValue({ definition }: CollectionEntry, doc: Doc): unknown {
  return definition.countBy === undefined ? undefined : doc[definition.countBy];
}
