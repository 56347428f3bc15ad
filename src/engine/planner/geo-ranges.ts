import { type Cell, codesWithin, type Region } from '../query/geometry/cell.js';
import { coverRegion } from '../query/geometry/region.js';
import { KeyWriter } from '../storage/encoding/key-encoding.js';
import { INDEX_SPACE } from '../storage/format/key-spaces.js';
import type { IndexEntry } from '../storage/keys/index-definition.js';
import type { KeyRange } from './key-ranges.js';

const AFTER = Uint8Array.of(0xff);
const writer = new KeyWriter();

/** The entries of all cells that cover a region, in ascending order. */
export function regionRanges(index: IndexEntry, region: Region): KeyRange[] {
  return coverRegion(region).map((codes) => rangeOf(index, codes));
}

/** The entries of one cell. */
export function cellRange(index: IndexEntry, cell: Cell): KeyRange {
  return rangeOf(index, codesWithin(cell));
}

function rangeOf({ definition, limit }: IndexEntry, [first, last]: readonly [number, number]): KeyRange {
  const start = writer.reset(INDEX_SPACE, definition.id).component(first, false, limit).take();
  const end = writer.reset(INDEX_SPACE, definition.id).component(last, false, limit).raw(AFTER).take();
  return { start, end, shared: 0 };
}
