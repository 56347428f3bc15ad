import { DOCUMENT_SPACE, INDEX_SPACE } from '../storage/format/key-spaces.js';
import type { IndexEntry } from '../storage/keys/index-definition.js';
import { comparableKind } from '../storage/encoding/comparable-kind.js';
import { KeyWriter, MAX_ID_BYTES } from '../storage/encoding/key-encoding.js';
import { BSONRegExp } from '../codec/bson.js';
import type { PrefixOperand } from '../query/match/regex-predicate.js';
import type { Bound, FieldBounds } from './bounds.js';

/** Keys from `start` up to, not including, `end`. */
export interface KeyRange {
  start: Buffer;
  end: Buffer;
  /** Number of bytes of `start` with which all its keys begin: those of the fields that are bound to one value. */
  shared: number;
}

/** One field of a key space: an index's fields, or `_id` for the documents themselves. */
export interface RangeField {
  path: string;
  descending: boolean;
}

/** The source of a plan's entries: an index, or the documents in the order of `_id`. */
export interface KeySpace {
  kind: number;
  owner: number;
  fields: readonly RangeField[];
  limit: number;
}

/** Above every byte with which a component or an `_id` can begin. */
const AFTER = Uint8Array.of(0xff);
/** Most ranges made from the combinations of `$in` lists; further fields are then left to the filter. */
const MAX_RANGES = 10_000;

const NUMBERS = comparableKind(0)!;
const writer = new KeyWriter();

/** The key space of an index, its fields in the order of the index. */
export function indexSpace(index: IndexEntry): KeySpace {
  return { kind: INDEX_SPACE, owner: index.definition.id, fields: index.fields, limit: index.limit };
}

/** The key space of a collection's documents, in the order of `_id`. */
export function documentSpace(collectionId: number): KeySpace {
  return {
    kind: DOCUMENT_SPACE,
    owner: collectionId,
    fields: [{ path: '_id', descending: false }],
    limit: MAX_ID_BYTES,
  };
}

/** How the fields of a key space are bounded: `points` for the leading equalities, then possibly one range. */
export interface SpaceBounds {
  points: (readonly unknown[])[];
  range: RangeUse | null;
}

/** One of the conditions that `bounds` has on a field: the beginning of its text, or its limits. */
export interface RangeUse {
  bounds: FieldBounds;
  byPrefix: boolean;
  oneSided: boolean;
}

/** The ranges in ascending order, and whether a long value made them wider than asked. */
export function keyRanges(space: KeySpace, bounds: SpaceBounds): { ranges: KeyRange[]; widened: boolean } {
  const ranges: KeyRange[] = [];
  let widened = false;
  const build = (depth: number, prefix: Buffer): void => {
    const values = bounds.points[depth];
    if (values === undefined) {
      if (bounds.range === null) {
        ranges.push({ start: prefix, end: Buffer.concat([prefix, AFTER]), shared: prefix.length });
      } else {
        const within = bounds.range.byPrefix
          ? prefixRanges(space, depth, prefix, bounds.range.bounds.prefix!)
          : [rangeWithin(space, depth, prefix, bounds.range)];
        widened ||= within.some((range) => range.widened);
        ranges.push(...within);
      }
      return;
    }
    for (const value of values) {
      writer.restart().raw(prefix).component(value, space.fields[depth]!.descending, space.limit);
      widened ||= writer.cut;
      build(depth + 1, writer.take());
    }
  };
  build(0, writer.reset(space.kind, space.owner).take());
  return { ranges: sortedWithoutDuplicates(ranges), widened };
}

/** The texts that begin so, and the pattern itself, which finds its like. */
function prefixRanges(
  space: KeySpace,
  depth: number,
  prefix: Buffer,
  { text, pattern, options }: PrefixOperand,
): (KeyRange & { widened: boolean })[] {
  const { descending } = space.fields[depth]!;
  writer.restart().raw(prefix).bound(text, descending, space.limit);
  const widened = writer.cut;
  const whole = writer.take();
  // The last byte ends the text, unless it was cut before.
  const start = widened ? whole : whole.subarray(0, -1);
  const shared = prefix.length;
  const texts = { start, end: successor(start), shared, widened };
  writer.restart().raw(prefix).component(new BSONRegExp(pattern, options), descending, space.limit);
  const like = writer.take();
  return [texts, { start: like, end: Buffer.concat([like, AFTER]), shared, widened: writer.cut }];
}

function sortedWithoutDuplicates(ranges: KeyRange[]): KeyRange[] {
  if (ranges.length < 2) return ranges;
  ranges.sort((a, b) => a.start.compare(b.start));
  return ranges.filter((range, n) => n === 0 || !range.start.equals(ranges[n - 1]!.start));
}

function rangeWithin(
  space: KeySpace,
  depth: number,
  prefix: Buffer,
  { bounds, oneSided }: RangeUse,
): KeyRange & { widened: boolean } {
  const { descending } = space.fields[depth]!;
  const { lower } = bounds;
  const upper = oneSided && lower !== null ? null : bounds.upper;
  const sample = (lower ?? upper)!.value;
  const [first, after] = comparableKind(sample)!;
  // Without a lower bound numbers begin at -Infinity, which leaves NaN out.
  const least = first === NUMBERS[0] ? { value: -Infinity, inclusive: true } : null;
  const low = edge(space, prefix, lower ?? least, descending);
  const high = edge(space, prefix, upper, descending);
  const widened = low?.cut === true || high?.cut === true;
  const kindStart = Buffer.concat([prefix, Uint8Array.of(descending ? 0xff - (after - 1) : first)]);
  const kindEnd = Buffer.concat([prefix, Uint8Array.of(descending ? 0xff - first + 1 : after)]);
  const [start, end] = descending ? [high, low] : [low, high];
  return {
    start: start === null ? kindStart : start.inclusive ? start.bytes : successor(start.bytes),
    end: end === null ? kindEnd : end.inclusive ? successor(end.bytes) : end.bytes,
    shared: prefix.length,
    widened,
  };
}

interface Edge {
  bytes: Buffer;
  /** Keys that begin with `bytes` belong to the range; always so when the value was cut. */
  inclusive: boolean;
  cut: boolean;
}

function edge(space: KeySpace, prefix: Buffer, bound: Bound | null, descending: boolean): Edge | null {
  if (bound === null) return null;
  writer.restart().raw(prefix).bound(bound.value, descending, space.limit);
  return { bytes: writer.take(), inclusive: bound.inclusive || writer.cut, cut: writer.cut };
}

/** The ranges in ascending order, those that overlap or touch as one. */
export function joinRanges(ranges: readonly KeyRange[]): KeyRange[] {
  const joined: KeyRange[] = [];
  for (const { start, end, shared } of [...ranges].sort((a, b) => a.start.compare(b.start))) {
    const last = joined.at(-1);
    if (last === undefined || last.end.compare(start) < 0) joined.push({ start, end, shared });
    else if (last.end.compare(end) < 0) last.end = end;
  }
  return joined;
}

/** The first key behind all that begin with `bytes`. */
export function successor(bytes: Buffer): Buffer {
  let last = bytes.length - 1;
  while (bytes[last] === 0xff) last--;
  const next = Buffer.from(bytes.subarray(0, last + 1));
  next[last] = next[last]! + 1;
  return next;
}

/**
 * True when the combinations of the lists, with one more of `length` values, stay within what is worth separate ranges.
 */
export function fitsRanges(points: readonly (readonly unknown[])[], length: number): boolean {
  return points.reduce((product, values) => product * values.length, length) <= MAX_RANGES;
}
