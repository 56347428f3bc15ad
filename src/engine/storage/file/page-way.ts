import type { Branch } from './branch-pages.js';
import { type PageState, PageError } from './page-layout.js';
import type { Page } from './page-file.js';
import { childOf, nodeKey } from './page-nodes.js';

const NO_KEY = Buffer.alloc(0);

/** The branches on the way to a leaf from the root on, which child of each lies on it, and the leaf. */
export interface Way {
  readonly state: PageState;
  readonly branches: Branch[];
  readonly at: number[];
  leaf: number;
}

/** One bit a page. Later pages have been written since: they count as in it. */
export class PageBits {
  private readonly bits: Uint8Array;

  constructor(private readonly lastPage: number) {
    this.bits = new Uint8Array((lastPage >>> 3) + 1);
  }

  has(page: number): boolean {
    return page > this.lastPage || (this.bits[page >>> 3]! & (1 << (page & 7))) !== 0;
  }

  add(page: number): void {
    if (page <= this.lastPage) this.bits[page >>> 3]! |= 1 << (page & 7);
  }

  remove(page: number): void {
    if (page <= this.lastPage) this.bits[page >>> 3]! &= ~(1 << (page & 7));
  }
}

/** Every key of what is the child of the way's branch before `level` is at least this one. */
export function lowKey({ branches, at }: Way, level: number): Buffer {
  for (let n = level - 1; n >= 0; n--) if (at[n]! > 0) return nodeKey(branches[n]!.bytes, at[n]!);
  return NO_KEY;
}

/** As `lowKey`: every key lies before this one; null: there is no end. */
export function highKey({ branches, at }: Way, level: number): Buffer | null {
  for (let n = level - 1; n >= 0; n--) {
    if (at[n]! + 1 < branches[n]!.nodes) return nodeKey(branches[n]!.bytes, at[n]! + 1);
  }
  return null;
}

/** Throws PageError when the keys of a page are out of order, or do not lie between those of the page above. */
export function checkKeys({ keys, isLeaf }: Page, from: Buffer, to: Buffer | null): void {
  // In a branch the first key is empty.
  const first = isLeaf ? 0 : 1;
  for (let n = first + 1; n < keys.length; n++) {
    if (keys[n - 1]!.compare(keys[n]!) >= 0) throw new PageError('its keys are out of order');
  }
  const [lowest, highest] = [keys[first], keys.at(-1)!];
  if (lowest === undefined) return;
  if (lowest.compare(from) < 0 || (to !== null && highest.compare(to) >= 0)) {
    throw new PageError('its keys are out of order');
  }
}

/** Reads the branch with this number, which lies below the last one of the way. */
type ReadBranch = (way: Way, number: number) => Branch;

/** The way to the leaf before this one, or behind it: the nearest one below a branch that both share. */
export function wayBeside(way: Way, side: -1 | 1, readBranch: ReadBranch): Way | null {
  let level = way.branches.length - 1;
  const isThere = (n: number): boolean => {
    const child = way.at[n]! + side;
    return child >= 0 && child < way.branches[n]!.nodes;
  };
  while (level >= 0 && !isThere(level)) level--;
  return level < 0 ? null : edgeBelow(way, level, way.at[level]! + side, side < 0, readBranch);
}

/** The way through a child of one of its branches, and on by the first children below, or the last ones. */
export function edgeBelow(way: Way, level: number, child: number, isLast: boolean, readBranch: ReadBranch): Way {
  const { state } = way;
  const edge: Way = {
    state,
    branches: way.branches.slice(0, level + 1),
    at: [...way.at.slice(0, level), child],
    leaf: childOf(way.branches[level]!.bytes, child),
  };
  for (let below = level + 2; below < state.depth; below++) {
    const branch = readBranch(edge, edge.leaf);
    const next = isLast ? branch.nodes - 1 : 0;
    edge.branches.push(branch);
    edge.at.push(next);
    edge.leaf = childOf(branch.bytes, next);
  }
  return edge;
}
