import { HEADER_BYTES, NODE_BYTES, PageError } from './page-layout.js';

// The nodes of a page as it was read, by their numbers. Throws PageError for one that does not lie in its page.

/** Within a node. */
export const FLAGS = 4;
const KEY_LENGTH = 6;

/** Where a node begins. */
export function nodeAt(page: Buffer, n: number): number {
  const place = HEADER_BYTES + n * 2;
  const at = HEADER_BYTES + (page[place]! | (page[place + 1]! << 8));
  if (at + NODE_BYTES > page.length) throw new PageError('a node lies outside of it');
  return at;
}

/** How long the key of the node is that begins at `node`. */
export function keyLength(page: Buffer, node: number): number {
  const place = node + KEY_LENGTH;
  const length = page[place]! | (page[place + 1]! << 8);
  if (node + NODE_BYTES + length > page.length) throw new PageError('a key runs over its end');
  return length;
}

/** A copy of the key of the node `n`. */
export function nodeKey(page: Buffer, n: number): Buffer {
  const node = nodeAt(page, n);
  const from = node + NODE_BYTES;
  return Buffer.from(page.subarray(from, from + keyLength(page, node)));
}

/** The page that the node `n` of a branch leads to. */
export function childOf(page: Buffer, n: number): number {
  const node = nodeAt(page, n);
  return page.readUInt32LE(node) + page.readUInt16LE(node + FLAGS) * 2 ** 32;
}

/** The first node between `from` and `to` whose key is not before the wanted one, or, with `behind`, is after it. */
export function lowerBound(page: Buffer, from: number, to: number, key: Buffer, behind: boolean): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const order = compareKey(page, middle, key);
    if (order < 0 || (behind && order === 0)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** As `lowerBound`, for what is probably near `from`. */
export function firstFrom(page: Buffer, from: number, to: number, key: Buffer): number {
  let low = from;
  for (let step = 1; low < to; step *= 2) {
    const at = Math.min(low + step, to) - 1;
    if (compareKey(page, at, key) >= 0) return lowerBound(page, low, at, key, false);
    low = at + 1;
  }
  return to;
}

/** Compares the key of a node with another as LMDB does: byte by byte, then by length. */
function compareKey(page: Buffer, n: number, key: Buffer): number {
  const node = nodeAt(page, n);
  const length = keyLength(page, node);
  const from = node + NODE_BYTES;
  const shared = Math.min(length, key.length);
  for (let at = 0; at < shared; at++) {
    const difference = page[from + at]! - key[at]!;
    if (difference !== 0) return difference;
  }
  return length - key.length;
}

/** The children of a branch that may have something in the range; null bounds: no bound. */
export function childrenIn(
  bytes: Buffer,
  nodes: number,
  start: Buffer | null,
  end: Buffer | null,
): { first: number; last: number } {
  // The first key of a branch stands for everything before the second.
  const first = start === null ? 0 : lowerBound(bytes, 1, nodes, start, true) - 1;
  const last = end === null ? nodes - 1 : firstFrom(bytes, first + 1, nodes, end) - 1;
  return { first, last };
}
