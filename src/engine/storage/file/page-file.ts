import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

// How LMDB lays out its file, in the version that lmdb carries (data version 2).
export const HEADER_BYTES = 24;
export const MAGIC_AT = 24;
export const MAGIC = 0xbeefc0de;
export const PAGE_BYTES_AT = 48;
const FREE_TREE_AT = 48;
export const MAIN_TREE_AT = 96;
export const LAST_PAGE_AT = 144;
export const TRANSACTION_AT = 152;
export const META_BYTES = 160;
const FLAGS_AT = 18;
const LOWER_AT = 20;
const UPPER_AT = 22;
const OVERFLOW_PAGES_AT = 20;
export const NODE_BYTES = 8;
const BRANCH = 0x01;
const LEAF = 0x02;
const OVERFLOW = 0x04;
/** A node whose value lies in pages of its own, and how many bytes say where. */
export const BIG_VALUE = 0x01;
export const BIG_VALUE_BYTES = 24;
/** Within them: the number of its pages, behind the first one's and a transaction. */
const BIG_VALUE_PAGES_AT = 16;
/** Within what a meta page says of a tree. */
const DEPTH_AT = 6;
export const BRANCH_PAGES_AT = 8;
export const LEAF_PAGES_AT = 16;
const ROOT_AT = 40;
const NO_ROOT = 0xffff_ffff_ffff_ffffn;

/** One of the two trees of the file, as its newest meta page describes it. */
export interface Tree {
  readonly depth: number;
  readonly branchPages: number;
  readonly leafPages: number;
  readonly overflowPages: number;
  readonly entries: number;
  /** Null when it is empty. */
  readonly root: number | null;
}

/** The newest state that is written completely. */
export interface Meta {
  readonly pageBytes: number;
  readonly lastPage: number;
  readonly transaction: number;
  /** The pages that hold nothing, in LMDB's own records. */
  readonly free: Tree;
  readonly main: Tree;
}

type Pages = Pick<PageState, 'pageBytes' | 'lastPage' | 'transaction'>;

/** The part of a state that a walk over the entries uses. */
export interface PageState {
  readonly pageBytes: number;
  readonly lastPage: number;
  readonly transaction: number;
  readonly depth: number;
  /** Null when there are no entries. */
  readonly root: number | null;
}

/** A page of one of the trees, checked for itself. */
export interface Page {
  readonly number: number;
  readonly isLeaf: boolean;
  readonly keys: Buffer[];
  /** Of a branch: the pages below. */
  readonly children: number[];
  /** Of a leaf: where the values lie. */
  readonly values: Value[];
}

interface Value {
  /** The value, or what says where it lies. */
  readonly bytes: Buffer;
  readonly size: number;
  readonly isBig: boolean;
}

/** Thrown for a page that cannot be what LMDB wrote; the message says why, in a few words. */
export class PageError extends Error {}

/**
 * Reads the pages of a data file by itself, so that nothing a damaged page says can end the process, as it can in LMDB.
 */
export class PageFile {
  private readonly file: number;
  /** The two meta pages; empty before the size of pages is known. */
  private metas: Buffer = Buffer.alloc(0);

  constructor(path: string) {
    this.file = openSync(path, 'r');
  }

  close(): void {
    closeSync(this.file);
  }

  /** Throws PageError when neither meta page is one. */
  readMeta(): Meta {
    const first = Buffer.alloc(META_BYTES);
    readSync(this.file, first, 0, META_BYTES, 0);
    const pageBytes = first.readUInt32LE(PAGE_BYTES_AT);
    const second = Buffer.alloc(META_BYTES);
    if (pageBytes >= 512 && pageBytes <= 0x10000) readSync(this.file, second, 0, META_BYTES, pageBytes);
    const metas = [first, second].filter((meta) => meta.readUInt32LE(MAGIC_AT) === MAGIC);
    if (metas.length < 2) throw new PageError('a meta page is damaged');
    const at = (meta: Buffer): number => Number(meta.readBigUInt64LE(TRANSACTION_AT));
    const newest = at(first) >= at(second) ? first : second;
    const meta = {
      pageBytes: newest.readUInt32LE(PAGE_BYTES_AT),
      lastPage: Number(newest.readBigUInt64LE(LAST_PAGE_AT)),
      transaction: at(newest),
      free: readTree(newest, FREE_TREE_AT),
      main: readTree(newest, MAIN_TREE_AT),
    };
    if (meta.pageBytes !== pageBytes) throw new PageError('a meta page is damaged');
    // LMDB writes no pages that were allocated and freed in one transaction, so the file may end a little earlier.
    if ((meta.lastPage - 64) * pageBytes > fstatSync(this.file).size) {
      throw new PageError('a meta page names pages beyond the end');
    }
    return meta;
  }

  /**
   * The part of the newest meta page that a walk uses, but not of a later transaction than `most` if there is another;
   * in one call, as it is read for every count.
   */
  readState(most = Infinity): PageState {
    if (this.metas.length === 0) this.metas = Buffer.allocUnsafeSlow(this.readMeta().pageBytes + META_BYTES);
    const { metas } = this;
    const second = metas.length - META_BYTES;
    if (readSync(this.file, metas, 0, metas.length, 0) !== metas.length) throw new PageError('a meta page is damaged');
    const first = numberAt(metas, TRANSACTION_AT);
    const other = numberAt(metas, second + TRANSACTION_AT);
    const newest = first >= other ? 0 : second;
    const older = Math.min(first, other);
    const at = Math.max(first, other) > most && older <= most ? second - newest : newest;
    if (metas.readUInt32LE(at + MAGIC_AT) !== MAGIC || metas.readUInt32LE(at + PAGE_BYTES_AT) !== second) {
      throw new PageError('a meta page is damaged');
    }
    const root = at + MAIN_TREE_AT + ROOT_AT;
    const isEmpty = metas.readUInt32LE(root) === 0xffff_ffff && metas.readUInt32LE(root + 4) === 0xffff_ffff;
    return {
      pageBytes: second,
      lastPage: numberAt(metas, at + LAST_PAGE_AT),
      transaction: numberAt(metas, at + TRANSACTION_AT),
      depth: metas.readUInt16LE(at + MAIN_TREE_AT + DEPTH_AT),
      root: isEmpty ? null : numberAt(metas, root),
    };
  }

  /**
   * Reads a page of a tree and checks that it is one: its number, its kind, and that its nodes fill it without a gap.
   */
  readPage(number: number, isLeaf: boolean, meta: Meta): Page {
    const bytes = this.read(number, 1, meta);
    checkHeader(bytes, number, isLeaf ? LEAF : BRANCH, meta.transaction);
    const lower = bytes.readUInt16LE(LOWER_AT);
    const upper = bytes.readUInt16LE(UPPER_AT);
    const room = meta.pageBytes - HEADER_BYTES;
    if (lower % 2 !== 0 || lower < (isLeaf ? 2 : 4) || upper > room || lower > upper) {
      throw new PageError('its bounds are wrong');
    }
    const page: Page = { number, isLeaf, keys: [], children: [], values: [] };
    const offsets: number[] = [];
    let filled = 0;
    for (let n = 0; n < lower / 2; n++) {
      const offset = bytes.readUInt16LE(HEADER_BYTES + n * 2);
      if (offset < upper || offset + NODE_BYTES > room) throw new PageError('a node lies outside of it');
      offsets.push(offset);
      const size = readNode(bytes.subarray(HEADER_BYTES + offset), page);
      filled += size + (size % 2);
    }
    if (filled !== room - upper || new Set(offsets).size !== offsets.length) {
      throw new PageError('its nodes do not fill it');
    }
    return page;
  }

  /** The value of a leaf's node, from pages of its own where it is large. */
  readValue({ bytes, size, isBig }: Value, meta: Pages): { value: Buffer; first: number; pages: number } {
    if (!isBig) return { value: bytes, first: 0, pages: 0 };
    const first = numberAt(bytes, 0);
    // A value that shrank within its transaction keeps all of its pages.
    const pages = numberAt(bytes, BIG_VALUE_PAGES_AT);
    const needed = Math.ceil((HEADER_BYTES + size) / meta.pageBytes);
    if (pages < needed || first + pages - 1 > meta.lastPage) throw new PageError('a large value has another size');
    const content = this.read(first, needed, meta);
    checkHeader(content, first, OVERFLOW, meta.transaction);
    if (content.readUInt32LE(OVERFLOW_PAGES_AT) !== pages) throw new PageError('a large value has another size');
    return { value: content.subarray(HEADER_BYTES, HEADER_BYTES + size), first, pages };
  }

  /**
   * Reads the first `length` bytes of a page of a tree, checks by its header that it is the one, and returns how many
   * nodes it has. Their places and sizes are not checked.
   */
  readHead(
    number: number,
    isLeaf: boolean,
    { pageBytes, lastPage, transaction }: Pages,
    into: Buffer,
    length: number,
  ): number {
    if (number < 2 || number > lastPage) throw new PageError('there is no such page');
    if (readSync(this.file, into, 0, length, number * pageBytes) !== length) {
      throw new PageError('the file ends before it');
    }
    checkHeader(into, number, isLeaf ? LEAF : BRANCH, transaction);
    const lower = into.readUInt16LE(LOWER_AT);
    if (lower % 2 !== 0 || lower < (isLeaf ? 2 : 4) || lower > pageBytes - HEADER_BYTES) {
      throw new PageError('its bounds are wrong');
    }
    return lower / 2;
  }

  private read(number: number, pages: number, { pageBytes, lastPage }: Pages): Buffer {
    if (number < 2 || number + pages - 1 > lastPage) throw new PageError('there is no such page');
    const bytes = Buffer.allocUnsafe(pages * pageBytes);
    if (readSync(this.file, bytes, 0, bytes.length, number * pageBytes) !== bytes.length) {
      throw new PageError('the file ends before it');
    }
    return bytes;
  }
}

function readTree(meta: Buffer, at: number): Tree {
  const root = meta.readBigUInt64LE(at + ROOT_AT);
  return {
    depth: meta.readUInt16LE(at + DEPTH_AT),
    branchPages: Number(meta.readBigUInt64LE(at + BRANCH_PAGES_AT)),
    leafPages: Number(meta.readBigUInt64LE(at + LEAF_PAGES_AT)),
    overflowPages: Number(meta.readBigUInt64LE(at + 24)),
    entries: Number(meta.readBigUInt64LE(at + 32)),
    root: root === NO_ROOT ? null : Number(root),
  };
}

/** A number that LMDB wrote in 8 bytes. */
export function numberAt(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32;
}

/** The transaction that wrote a page. */
export function writerOf(page: Buffer): number {
  return numberAt(page, 8);
}

function checkHeader(bytes: Buffer, number: number, kind: number, transaction: number): void {
  if (numberAt(bytes, 0) !== number) throw new PageError('it says that it is another one');
  if (bytes.readUInt16LE(FLAGS_AT) !== kind) throw new PageError('it is of another kind');
  if (writerOf(bytes) > transaction) throw new PageError('it is of a transaction that never was');
}

/** Adds the node to its page; returns how many bytes it takes. */
function readNode(node: Buffer, page: Page): number {
  const low = node.readUInt16LE(0);
  const high = node.readUInt16LE(2);
  const flags = node.readUInt16LE(4);
  const keyEnd = NODE_BYTES + node.readUInt16LE(6);
  if (keyEnd > node.length) throw new PageError('a key runs over its end');
  page.keys.push(node.subarray(NODE_BYTES, keyEnd));
  if (!page.isLeaf) {
    page.children.push(low + high * 0x10000 + flags * 0x100000000);
    return keyEnd;
  }
  if (flags !== 0 && flags !== BIG_VALUE) throw new PageError('a node is of another kind');
  const size = low + high * 0x10000;
  const isBig = flags === BIG_VALUE;
  const end = keyEnd + (isBig ? BIG_VALUE_BYTES : size);
  if (end > node.length) throw new PageError('a value runs over its end');
  page.values.push({ bytes: node.subarray(keyEnd, end), size, isBig });
  return end;
}
