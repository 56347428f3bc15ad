import { DOCUMENT, INDEX_ENTRY } from '../storage/environment.js';
import { type IndexEntry } from '../storage/index-definition.js';
import { comparableKind, KeyWriter, MAX_ID_BYTES } from '../storage/key-encoding.js';
import { type FieldBounds } from './bounds.js';

/** Keys from `start` up to, not including, `end`. */
export interface KeyRange {
  start: Buffer;
  end: Buffer;
}

/** One field of a key space: an index's fields, or `_id` for the documents themselves. */
export interface RangeField {
  path: string;
  descending: boolean;
}

/** What the planner reads from: an index, or the documents in the order of `_id`. */
export interface KeySpace {
  kind: number;
  owner: number;
  fields: readonly RangeField[];
  limit: number;
}

/** Above every byte with which a component or an `_id` can begin. */
const AFTER = Uint8Array.of(0xff);
/** So many ranges at most are made from the combinations of `$in` lists; further fields are then left to the filter. */
const MAX_RANGES = 1000;

const writer = new KeyWriter();

export function indexSpace(index: IndexEntry): KeySpace {
  return { kind: INDEX_ENTRY, owner: index.definition.id, fields: index.fields, limit: index.limit };
}

export function documentSpace(collectionId: number): KeySpace {
  return { kind: DOCUMENT, owner: collectionId, fields: [{ path: '_id', descending: false }], limit: MAX_ID_BYTES };
}

/** How the fields of a key space are bounded: `points` for the leading equalities, then possibly one range. */
export interface SpaceBounds {
  points: (readonly unknown[])[];
  range: { bounds: FieldBounds; oneSided: boolean } | null;
}

/** The ranges in ascending order, and whether a long value made them wider than asked. */
export function keyRanges(space: KeySpace, bounds: SpaceBounds): { ranges: KeyRange[]; widened: boolean } {
  const ranges: KeyRange[] = [];
  let widened = false;
  const build = (depth: number, prefix: Buffer): void => {
    const values = bounds.points[depth];
    if (values === undefined) {
      if (bounds.range === null) {
        ranges.push({ start: prefix, end: Buffer.concat([prefix, AFTER]) });
      } else {
        const range = rangeWithin(space, depth, prefix, bounds.range);
        widened ||= range.widened;
        ranges.push(range);
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

function sortedWithoutDuplicates(ranges: KeyRange[]): KeyRange[] {
  if (ranges.length < 2) return ranges;
  ranges.sort((a, b) => a.start.compare(b.start));
  return ranges.filter((range, n) => n === 0 || !range.start.equals(ranges[n - 1]!.start));
}

function rangeWithin(
  space: KeySpace,
  depth: number,
  prefix: Buffer,
  { bounds, oneSided }: { bounds: FieldBounds; oneSided: boolean },
): KeyRange & { widened: boolean } {
  const { descending } = space.fields[depth]!;
  const lower = bounds.lower;
  const upper = oneSided && lower !== null ? null : bounds.upper;
  const low = lower === null ? null : edge(space, prefix, lower.value, descending);
  const high = upper === null ? null : edge(space, prefix, upper.value, descending);
  const [first, after] = comparableKind((lower ?? upper)!.value)!;
  // Without a lower bound numbers begin at -Infinity, which leaves NaN out.
  const least = typeof lowestOf((lower ?? upper)!.value) === 'number' ? -Infinity : undefined;
  const widened = (low?.cut ?? false) || (high?.cut ?? false);
  if (!descending) {
    const begin =
      low === null
        ? least === undefined
          ? Buffer.concat([prefix, Uint8Array.of(first)])
          : edge(space, prefix, least, false).bytes
        : lower!.inclusive || low.cut
          ? low.bytes
          : Buffer.concat([low.bytes, AFTER]);
    const end =
      high === null
        ? Buffer.concat([prefix, Uint8Array.of(after)])
        : upper!.inclusive || high.cut
          ? Buffer.concat([high.bytes, AFTER])
          : high.bytes;
    return { start: begin, end, widened };
  }
  const begin =
    high === null
      ? Buffer.concat([prefix, Uint8Array.of(0xff - (after - 1))])
      : upper!.inclusive || high.cut
        ? high.bytes
        : Buffer.concat([high.bytes, AFTER]);
  const end =
    low === null
      ? least === undefined
        ? Buffer.concat([prefix, Uint8Array.of(0xff - first + 1)])
        : Buffer.concat([edge(space, prefix, least, true).bytes, AFTER])
      : lower!.inclusive || low.cut
        ? Buffer.concat([low.bytes, AFTER])
        : low.bytes;
  return { start: begin, end, widened };
}

/** -Infinity for values that compare with numbers, undefined for all others. */
function lowestOf(value: unknown): number | undefined {
  return comparableKind(value)![0] === comparableKind(0)![0] ? -Infinity : undefined;
}

function edge(space: KeySpace, prefix: Buffer, value: unknown, descending: boolean): { bytes: Buffer; cut: boolean } {
  writer.restart().raw(prefix).bound(value, descending, space.limit);
  return { bytes: writer.take(), cut: writer.cut };
}

/** True when the combinations of the lists, with one more of `length` values, stay within what is worth separate ranges. */
export function fitsRanges(points: readonly (readonly unknown[])[], length: number): boolean {
  return points.reduce((product, values) => product * values.length, length) <= MAX_RANGES;
}
