import { type PageState, BIG_VALUE, BIG_VALUE_BYTES, HEADER_BYTES, NODE_BYTES, PageError } from './page-layout.js';
import { PageFile } from './page-file.js';
import { type Branch, BranchPages, nameOfPart, notePart, type PageReading, took } from './branch-pages.js';
import { childOf, childrenIn, firstFrom, FLAGS, keyLength, nodeKey, lowerBound, nodeAt } from './page-nodes.js';

/** The question to a range, and the findings so far. */
interface Walk extends PageReading {
  readonly visit: VisitValue | null;
  entries: number;
  accepted: number;
  next: Buffer | null;
}

/** How far a range was read. */
export interface RangePart {
  /** Entries that were met, and of how many of them `visit` said true. */
  readonly entries: number;
  readonly accepted: number;
  /** The pages that were read. */
  readonly pages: number;
  /** Where to read on, this key included; null at the end. */
  readonly next: Buffer | null;
}

/** Called with the value of each entry, as a place in a buffer that the next page overwrites. */
export type VisitValue = (bytes: Buffer, from: number, to: number) => boolean;

/** Keys from `start` up to, not including, `end`. */
export interface KeyBounds {
  readonly start: Buffer;
  readonly end: Buffer;
}

/** A number about several ranges. */
interface Fact {
  readonly serials: readonly number[];
  readonly value: number;
  /** The last state in which it was found true. */
  transaction: number;
}

/** Leaves, and branches, below a branch that are looked at to estimate the entries of all of them. */
const LEAF_SAMPLES = 4;
/** Branches may be nearly empty beside full ones. */
const LOWEST_BRANCH_SAMPLES = 8;
const BRANCH_SAMPLES = 2;
/** Numbers about several ranges that are remembered, and how many branch pages each may lie under. */
const MAX_FACTS = 500;
const MAX_FACT_BRANCHES = 256;

/**
 * Counts and shows the entries of ranges by the pages of the file: where LMDB steps from entry to entry, a page says
 * how many it holds, and what was counted below a branch stays true until that is written again. A state may be read
 * while a snapshot is held that is not newer: its pages are not used again then.
 */
export class PageRanges {
  private readonly file: PageFile;
  private readonly head = Buffer.allocUnsafeSlow(HEADER_BYTES);
  private leaf = Buffer.alloc(0);
  private readonly branches: BranchPages;
  private readonly facts = new Map<string, Fact>();

  constructor(
    path: string,
    /** The transaction that readers begin from at this moment. */
    private readonly noted: () => number = () => Infinity,
  ) {
    this.file = new PageFile(path);
    this.branches = new BranchPages(this.file);
  }

  close(): void {
    this.file.close();
  }

  /**
   * The newest state that a read would see: a process that is killed while it commits leaves one that is written and
   * not yet noted. Throws PageError when there is none.
   */
  readState(): PageState {
    return this.file.readState(this.noted());
  }

  /**
   * Counts the entries from `start` up to, not including, `end`, or shows them to `visit`, until at least `mostPages`
   * pages were read. Throws PageError for a page that is not what LMDB wrote.
   */
  read(state: PageState, start: Buffer, end: Buffer, mostPages: number, visit: VisitValue | null): RangePart {
    const walk: Walk = { state, visit, left: mostPages, pages: 0, entries: 0, accepted: 0, next: null };
    const { root } = state;
    if (root !== null && start.compare(end) < 0) this.descend(walk, root, 1, start, end);
    return walk;
  }

  /**
   * About how many entries there are from `start` up to, not including, `end`: exactly where they lie in few pages,
   * beyond that as many as a few pages among them let expect. Reads some 100 pages at most.
   */
  estimate(state: PageState, start: Buffer, end: Buffer): number {
    const { root } = state;
    if (root === null || start.compare(end) >= 0) return 0;
    const walk: Walk = { state, visit: null, left: 0, pages: 0, entries: 0, accepted: 0, next: null };
    return this.guess(walk, root, 1, start, end);
  }

  private guess(walk: Walk, page: number, level: number, start: Buffer | null, end: Buffer | null): number {
    const { depth } = walk.state;
    if (level === depth) {
      const before = walk.entries;
      this.readLeaf(walk, page, start, end);
      return walk.entries - before;
    }
    const { bytes, nodes, below } = this.branch(walk, page);
    const { first, last } = childrenIn(bytes, nodes, start, end);
    let sum = 0;
    const unknown: number[] = [];
    for (let n = first; n <= last; n++) {
      const from = n === first ? start : null;
      const to = n === last ? end : null;
      if (from !== null || to !== null) sum += this.guess(walk, childOf(bytes, n), level + 1, from, to);
      else if (below[n]! >= 0) sum += below[n]!;
      else unknown.push(n);
    }
    const most = [LEAF_SAMPLES, LOWEST_BRANCH_SAMPLES][depth - 1 - level] ?? BRANCH_SAMPLES;
    const samples = Math.min(unknown.length, most);
    let sampled = 0;
    for (let n = 0; n < samples; n++) {
      const child = unknown[Math.floor(((n + 0.5) * unknown.length) / samples)]!;
      const entries = this.guess(walk, childOf(bytes, child), level + 1, null, null);
      if (level === depth - 1) below[child] = entries;
      sampled += entries;
    }
    return samples === 0 ? sum : Math.round(sum + (sampled * unknown.length) / samples);
  }

  /** How many bytes the leaves take that have something of the range. Reads the branches above them. */
  bytesOf(state: PageState, start: Buffer, end: Buffer): number {
    const { root, depth, pageBytes } = state;
    const reading: PageReading = { state, left: 0, pages: 0 };
    const leaves = (page: number, level: number, from: Buffer | null, to: Buffer | null): number => {
      if (level === depth) return 1;
      const { bytes, nodes } = this.branch(reading, page);
      const { first, last } = childrenIn(bytes, nodes, from, to);
      if (level === depth - 1) return last - first + 1;
      let sum = 0;
      for (let n = first; n <= last; n++) {
        sum += leaves(childOf(bytes, n), level + 1, n === first ? from : null, n === last ? to : null);
      }
      return sum;
    };
    return root === null ? 0 : leaves(root, 1, start, end) * pageBytes;
  }

  /**
   * The key of the entry with `before` others before it between `start` and `end`; null when there are fewer. What was
   * counted of the range before is not read again. Throws PageError as `read` does.
   */
  keyAt(state: PageState, start: Buffer, end: Buffer, before: number): Buffer | null {
    const { root } = state;
    if (root === null || start.compare(end) >= 0) return null;
    return this.seek({ state, left: 0, pages: 0, before }, root, 1, start, end);
  }

  private seek(
    seeking: PageReading & { before: number },
    page: number,
    level: number,
    start: Buffer | null,
    end: Buffer | null,
  ): Buffer | null {
    if (level === seeking.state.depth) {
      const { from, to } = this.loadLeaf(seeking, page, start, end);
      if (seeking.before < to - from) return nodeKey(this.leaf, from + seeking.before);
      seeking.before -= to - from;
      return null;
    }
    const { bytes, nodes, below } = this.branch(seeking, page);
    const { first, last } = childrenIn(bytes, nodes, start, end);
    for (let n = first; n <= last; n++) {
      const from = n === first ? start : null;
      const to = n === last ? end : null;
      if (from === null && to === null && below[n]! >= 0 && below[n]! <= seeking.before) {
        seeking.before -= below[n]!;
        continue;
      }
      const found = this.seek(seeking, childOf(bytes, n), level + 1, from, to);
      if (found !== null) return found;
    }
    return null;
  }

  /**
   * Reads the leaf in which `key` is, or would be, into `leaf`. Returns how many nodes it has, how many pages were
   * read, and before which key it ends, null for the last one. Throws PageError as `read` does.
   */
  readLeafOf(state: PageState, key: Buffer, leaf: Buffer): { nodes: number; pages: number; upTo: Buffer | null } {
    const reading: PageReading = { state, left: 0, pages: 1 };
    let upTo: Buffer | null = null;
    let page = state.root;
    if (page === null) return { nodes: 0, pages: 0, upTo };
    for (let level = 1; level < state.depth; level++) {
      const { bytes, nodes } = this.branch(reading, page);
      const child = lowerBound(bytes, 1, nodes, key, true) - 1;
      if (child + 1 < nodes) upTo = nodeKey(bytes, child + 1);
      page = childOf(bytes, child);
    }
    return { nodes: this.file.readHead(page, true, state, leaf, state.pageBytes), pages: reading.pages, upTo };
  }

  /** The number that `remember` took for these ranges, undefined when something in them may have changed since. */
  recall(state: PageState, ranges: readonly KeyBounds[]): number | undefined {
    if (ranges.length > MAX_FACT_BRANCHES) return undefined;
    const fact = this.facts.get(nameOf(ranges));
    if (fact === undefined || fact.transaction === state.transaction) return fact?.value;
    const serials = this.serialsOf(state, ranges);
    const isSame = serials?.length === fact.serials.length && serials.every((serial, n) => serial === fact.serials[n]);
    if (!isSame) return undefined;
    fact.transaction = state.transaction;
    return fact.value;
  }

  /**
   * Remembers a number that follows from the entries in the ranges alone, as they are in this state. Does nothing for
   * ranges of very many pages.
   */
  remember(state: PageState, ranges: readonly KeyBounds[], value: number): void {
    const serials = ranges.length > MAX_FACT_BRANCHES ? null : this.serialsOf(state, ranges);
    if (serials === null) return;
    const { facts } = this;
    const name = nameOf(ranges);
    facts.delete(name);
    if (facts.size >= MAX_FACTS) facts.delete(facts.keys().next().value!);
    facts.set(name, { serials, value, transaction: state.transaction });
  }

  /** The lowest branches over the ranges: while they are the same, so is everything below. Null: none, or too many. */
  private serialsOf(state: PageState, ranges: readonly KeyBounds[]): number[] | null {
    const { root, depth } = state;
    if (root === null || depth < 2) return null;
    const serials: number[] = [];
    const reading: PageReading = { state, left: 0, pages: 0 };
    const add = (page: number, level: number, start: Buffer | null, end: Buffer | null): void => {
      const { serial, bytes, nodes } = this.branch(reading, page);
      if (level === depth - 1) {
        serials.push(serial);
        return;
      }
      const { first, last } = childrenIn(bytes, nodes, start, end);
      for (let n = first; n <= last && serials.length <= MAX_FACT_BRANCHES; n++) {
        add(childOf(bytes, n), level + 1, n === first ? start : null, n === last ? end : null);
      }
    };
    for (const { start, end } of ranges) add(root, 1, start, end);
    return serials.length > MAX_FACT_BRANCHES ? null : serials;
  }

  /** Null bounds: everything below the page, which begins with `low`, is in the range. */
  private descend(walk: Walk, page: number, level: number, start: Buffer | null, end: Buffer | null): void {
    if (level === walk.state.depth) {
      this.readLeaf(walk, page, start, end);
      return;
    }
    const branch = this.branch(walk, page);
    const { bytes, nodes, below, parts } = branch;
    const { first, last } = childrenIn(bytes, nodes, start, end);
    const isCount = walk.visit === null;
    for (let n = first; n <= last; n++) {
      const from = n === first ? start : null;
      const to = n === last ? end : null;
      const isWhole = from === null && to === null && isCount;
      const part = isCount && !isWhole && level === walk.state.depth - 1 ? nameOfPart(n, from, to) : null;
      const known = isWhole ? below[n]! : part === null ? -1 : (parts.get(part) ?? -1);
      if (known >= 0) {
        walk.entries += known;
        continue;
      }
      if (walk.left <= 0 && n > first) {
        walk.next = nodeKey(bytes, n);
        return;
      }
      const before = walk.entries;
      this.descend(walk, childOf(bytes, n), level + 1, from, to);
      if (walk.next !== null) return;
      if (isWhole) below[n] = walk.entries - before;
      if (part !== null) notePart(branch, part, walk.entries - before);
    }
  }

  private readLeaf(walk: Walk, page: number, start: Buffer | null, end: Buffer | null): void {
    const { state, visit } = walk;
    took(walk);
    if (start === null && end === null && visit === null) {
      walk.entries += this.file.readHead(page, true, state, this.head, HEADER_BYTES);
      return;
    }
    const { from, to } = this.loadLeaf(walk, page, start, end);
    walk.entries += to - from;
    if (visit === null) return;
    for (let n = from; n < to; n++) if (this.visitNode(state, n, visit)) walk.accepted++;
  }

  /** Reads a page into `leaf`; which of its nodes are in the range. */
  private loadLeaf(
    { state }: PageReading,
    page: number,
    start: Buffer | null,
    end: Buffer | null,
  ): { from: number; to: number } {
    if (this.leaf.length !== state.pageBytes) this.leaf = Buffer.allocUnsafeSlow(state.pageBytes);
    const { leaf } = this;
    const nodes = this.file.readHead(page, true, state, leaf, leaf.length);
    const from = start === null ? 0 : lowerBound(leaf, 0, nodes, start, false);
    return { from, to: end === null ? nodes : firstFrom(leaf, from, nodes, end) };
  }

  private branch(reading: PageReading, page: number): Branch {
    return this.branches.get(reading, page);
  }

  private visitNode(state: PageState, n: number, visit: VisitValue): boolean {
    const { leaf } = this;
    const node = nodeAt(leaf, n);
    const size = leaf.readUInt32LE(node);
    const from = node + NODE_BYTES + keyLength(leaf, node);
    if (leaf[node + FLAGS]! === BIG_VALUE) {
      const { value } = this.file.readValue(
        { bytes: leaf.subarray(from, from + BIG_VALUE_BYTES), size, isBig: true },
        state,
      );
      return visit(value, 0, size);
    }
    if (from + size > leaf.length) throw new PageError('a value runs over its end');
    return visit(leaf, from, from + size);
  }
}

/** Plans are asked about again, and so are their ranges, which nobody changes. */
const names = new WeakMap<readonly KeyBounds[], string>();

function nameOf(ranges: readonly KeyBounds[]): string {
  let name = names.get(ranges);
  if (name === undefined) {
    const text = (key: Buffer): string => `${key.length}:${key.latin1Slice()}`;
    name = ranges.map(({ start, end }) => text(start) + text(end)).join('');
    names.set(ranges, name);
  }
  return name;
}
