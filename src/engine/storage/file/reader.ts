import type { RootDatabase, Transaction } from 'lmdb';
import { checksumOfWords } from '../format/checksum.js';
import type { KeyWriter } from '../encoding/key-encoding.js';

/** The part of lmdb's store that says how keys and values are handed over; looked up on the store for every read. */
interface Handover {
  writeKey(key: unknown, target: Uint8Array, start: number): number;
  readKey(source: Uint8Array, start: number, end: number): unknown;
  decoder: { decode(value: Buffer): Buffer };
  decoderCopies: boolean;
}

export interface ReadRange {
  start: Buffer;
  end: Buffer;
  limit: number;
  reverse?: boolean;
  exclusiveStart?: boolean;
  inclusiveEnd?: boolean;
}

const NO_OPTIONS = { reverse: false, exclusiveStart: false, inclusiveEnd: false };

/** Longer keys are impossible in LMDB, which allows 1978 bytes; whole words. */
const MAX_KEY_BYTES = 1980;

/**
 * Reads without a buffer of its own for every key and value: lmdb copies each value of a range, which costs more than
 * finding it. What comes out is overwritten by the next read, so it has to be used up or copied before.
 */
export class FileReader {
  /** The transaction to read with; undefined: the newest state, as this turn sees it. Set for one chunk only. */
  transaction: Transaction | undefined;
  private readonly byWriter: {
    getBinaryFast(key: KeyWriter, options?: { transaction: Transaction }): Buffer | undefined;
  };
  private readonly shared: RootDatabase<Buffer, Buffer>;
  /** One range for all who want but its first entry: lmdb looks at the options when one begins to read. */
  private readonly seeking: Partial<ReadRange> & { transaction?: Transaction | undefined } = { ...NO_OPTIONS };
  private readonly seeker: Iterable<{ value: Buffer }>;
  private readonly key = Buffer.allocUnsafeSlow(MAX_KEY_BYTES);
  private readonly words = new Int32Array(this.key.buffer);
  private keyLength = 0;
  /** The memory in which lmdb hands keys over, as bytes and as words. */
  private source: Uint8Array | undefined;
  private sourceWords: Int32Array = this.words;
  private sourceStart = 0;

  constructor(store: RootDatabase<Buffer, Buffer>) {
    const handOver: Partial<Handover> = {
      readKey: (source, start, end) => {
        this.takeKey(source, start, end - start);
        return undefined;
      },
      decoder: { decode: (value) => value },
      decoderCopies: true,
    };
    this.shared = Object.assign(Object.create(store) as RootDatabase<Buffer, Buffer>, handOver);
    const byWriter: Partial<Handover> = {
      writeKey: (key, target, start) => (key as KeyWriter).copyTo(target, start),
    };
    this.byWriter = Object.assign(Object.create(store) as typeof this.byWriter, byWriter);
    this.seeker = this.shared.getRange(this.seeking);
  }

  /** Copies the key that lmdb has found: word by word, as the next read uses the same memory. */
  private takeKey(source: Uint8Array, start: number, length: number): void {
    this.keyLength = length;
    if (source !== this.source) {
      this.source = source;
      this.sourceWords = new Int32Array(source.buffer, 0, source.buffer.byteLength >>> 2);
      this.sourceStart = source.byteOffset;
    }
    const from = this.sourceStart + start;
    if ((from & 3) !== 0) {
      for (let n = 0; n < length; n++) this.key[n] = source[start + n]!;
      return;
    }
    const { words, sourceWords } = this;
    for (let n = 0, at = from >>> 2; n << 2 < length; n++) words[n] = sourceWords[at + n]!;
  }

  /** The value under the key that was written, undefined when there is none. */
  get(key: KeyWriter): Buffer | undefined {
    const { transaction } = this;
    const value =
      transaction === undefined ? this.byWriter.getBinaryFast(key) : this.byWriter.getBinaryFast(key, { transaction });
    // Large values come as a plain view into the mapped file.
    if (value === undefined || value instanceof Buffer) return value;
    const { buffer, byteOffset, byteLength } = value as Uint8Array;
    return Buffer.from(buffer, byteOffset, byteLength);
  }

  /** The values of a range, one after the other. */
  range(range: ReadRange): Iterable<{ value: Buffer }> {
    return this.shared.getRange(this.transaction === undefined ? range : { ...range, transaction: this.transaction });
  }

  /**
   * The value of the first key of a range, undefined when there is none: as the first of `range`, without what that
   * makes for going on.
   */
  first(range: ReadRange): Buffer | undefined {
    const { seeking } = this;
    Object.assign(seeking, NO_OPTIONS, range);
    seeking.transaction = this.transaction;
    const entries = this.seeker[Symbol.iterator]();
    const found = entries.next();
    if (found.done === true) return undefined;
    entries.return?.();
    return found.value.value;
  }

  /** How many keys there are from `start` up to, not including, `end`, but not beyond `limit`. */
  count(start: Buffer, end: Buffer, limit: number): number {
    let count = 0;
    for (const _key of this.shared.getKeys({ start, end, limit, ...this.view() })) count++;
    return count;
  }

  /** The checksum of the key under which the last value of a range was found. */
  keySum(): number {
    return checksumOfWords(0, this.words, 0, this.key, this.keyLength);
  }

  /** The bytes of that key from `start` on, each as a character: as text they compare as LMDB compares keys. */
  keyFrom(start: number): string {
    return this.key.latin1Slice(start, this.keyLength);
  }

  private view(): { transaction?: Transaction } {
    return this.transaction === undefined ? {} : { transaction: this.transaction };
  }

  /** A copy of the key under which the last value of a range was found. */
  lastKey(): Buffer {
    return Buffer.from(this.key.subarray(0, this.keyLength));
  }
}
