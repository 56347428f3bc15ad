import { decodeValue } from './decode.js';
import type { Doc } from './document.js';
import { BsonFormatError, int32At, skipValue } from './elements.js';

const MAX_FIELDS = 24;

/**
 * Top-level fields of stored documents, found in one walk over each: `walk` says where they lie, then they are compared
 * there or decoded. Much of the time of a scan over many documents goes into such walks. Made for each query, so that
 * it has to cost little; plain arrays do.
 */
export class FieldWalk {
  /** Of each field its type in the document that was walked last, 0 when it has none. */
  readonly types: number[];
  /** Where its value begins. */
  readonly starts: number[];
  readonly ends: number[];
  private readonly order: number[];
  /** Of each name its length and first character: nearly all other names differ in one of the two. */
  private readonly marks: number[];
  private found = 0;

  private constructor(private readonly names: readonly string[]) {
    // Of their length from the start: an array that grows takes room for 17 numbers at its first.
    this.types = new Array<number>(names.length).fill(0);
    this.starts = this.types.slice();
    this.ends = this.types.slice();
    this.order = this.types.slice();
    this.marks = names.map((name) => (name.length << 8) | name.charCodeAt(0));
  }

  /** Null when there are too many, or one whose name does not stand in a document as it is. */
  static of(names: readonly string[]): FieldWalk | null {
    return names.length <= MAX_FIELDS && names.every(isPlain) ? new FieldWalk(names) : null;
  }

  /** Of two fields of the same name the last one counts. Throws BsonFormatError. */
  walk(bytes: Buffer): void {
    const { types, names, marks } = this;
    const count = names.length;
    const last = int32At(bytes, 0) - 1;
    if (last < 4 || last >= bytes.length || bytes[last] !== 0) throw new BsonFormatError('document length is wrong');
    for (let slot = 0; slot < count; slot++) types[slot] = 0;
    let found = 0;
    let at = 4;
    for (let type = bytes[at]!; type !== 0; type = bytes[at]!) {
      const from = ++at;
      // Ends at the document's last byte, if not before.
      while (bytes[at] !== 0) at++;
      const mark = ((at - from) << 8) | bytes[from]!;
      const start = ++at;
      at = skipValue(bytes, type, start);
      if (at > last) throw new BsonFormatError('value runs over');
      for (let slot = 0; slot < count; slot++) {
        if (marks[slot] !== mark || !isText(bytes, from, names[slot]!)) continue;
        if (types[slot] === 0) this.order[found++] = slot;
        types[slot] = type;
        this.starts[slot] = start;
        this.ends[slot] = at;
        break;
      }
    }
    if (at !== last) throw new BsonFormatError('document ends too early');
    this.found = found;
  }

  /** Those of the first `count` fields that the document has, in its order. */
  decode(bytes: Buffer, count: number): Doc {
    const doc: Doc = {};
    for (let n = 0; n < this.found; n++) {
      const slot = this.order[n]!;
      if (slot < count) doc[this.names[slot]!] = this.value(bytes, slot);
    }
    return doc;
  }

  private value(bytes: Buffer, slot: number): unknown {
    const type = this.types[slot]!;
    const start = this.starts[slot]!;
    return type === INT32 ? int32At(bytes, start) : decodeValue(bytes, type, start, this.ends[slot]!);
  }
}

const INT32 = 0x10;

function isPlain(name: string): boolean {
  for (let n = 0; n < name.length; n++) {
    const code = name.charCodeAt(n);
    if (code === 0 || code > 0x7f) return false;
  }
  // As a key of an object it would be more than data.
  return name !== '__proto__';
}

function isText(bytes: Buffer, from: number, text: string): boolean {
  for (let n = 0; n < text.length; n++) if (bytes[from + n] !== text.charCodeAt(n)) return false;
  return true;
}
