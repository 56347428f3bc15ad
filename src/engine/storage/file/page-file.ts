import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import {
  MAX_READS,
  type Meta,
  type MetaState,
  type PageState,
  describeMeta,
  readFirstPages,
  readMetaState,
  BIG_VALUE,
  BIG_VALUE_BYTES,
  BIG_VALUE_PAGES_AT,
  BRANCH,
  FLAGS_AT,
  HEADER_BYTES,
  LEAF,
  LOWER_AT,
  MAGIC,
  MAGIC_AT,
  META_BYTES,
  NODE_BYTES,
  OVERFLOW,
  OVERFLOW_PAGES_AT,
  PAGE_BYTES_AT,
  PageError,
  UPPER_AT,
  numberAt,
  writerOf,
} from './page-layout.js';

/** Those that LMDB can be made with. */
const PAGE_SIZES = [4096, 8192, 16_384, 32_768, 65_536];

type Pages = Pick<PageState, 'pageBytes' | 'lastPage' | 'transaction'>;

/** A page of one of the trees, checked for itself. */
export interface Page {
  readonly number: number;
  /** The transaction that wrote it. */
  readonly written: number;
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

/**
 * Reads the pages of a data file by itself, so that nothing a damaged page says can end the process, as it can in LMDB.
 */
export class PageFile {
  private readonly file: number;
  /** The first page and the second one's head, empty before the size of pages is known; and room to read them again. */
  private metas: Buffer = Buffer.alloc(0);
  private reread: Buffer = Buffer.alloc(0);
  /** What the two say; null while they have not been read twice alike. */
  private states: readonly [MetaState, MetaState] | null = null;

  constructor(path: string) {
    this.file = openSync(path, 'r');
  }

  close(): void {
    closeSync(this.file);
  }

  /** Throws PageError when neither meta page is one. */
  readMeta(): Meta {
    const { pageBytes, newest } = readFirstPages(this.file);
    const meta = describeMeta(newest);
    if (meta.pageBytes !== pageBytes) throw new PageError('a meta page is damaged');
    // LMDB writes no pages that were allocated and freed in one transaction, so the file may end a little earlier.
    if ((meta.lastPage - 64) * pageBytes > fstatSync(this.file).size) {
      throw new PageError('a meta page names pages beyond the end');
    }
    return meta;
  }

  /**
   * What the meta pages say that are any, the likelier one first, where one of the two may be damaged: that of whose
   * transaction the root is, then the newer. Nothing of it is sure.
   */
  readLikelyMetas(): Meta[] {
    const bytes = fstatSync(this.file).size;
    const metas = new Map<number, Meta>();
    for (const pageBytes of PAGE_SIZES) {
      for (const at of [0, pageBytes]) {
        const meta = Buffer.alloc(META_BYTES);
        readSync(this.file, meta, 0, META_BYTES, at);
        if (meta.readUInt32LE(MAGIC_AT) !== MAGIC || meta.readUInt32LE(PAGE_BYTES_AT) !== pageBytes) continue;
        const described = describeMeta(meta);
        // Some pages behind the last one may be there, and some of the last may be missing.
        if (described.lastPage < 2 || (described.lastPage - 64) * pageBytes > bytes) continue;
        metas.set(at, described);
      }
    }
    const fits = (meta: Meta): number => (this.isRootOf(meta) ? 1 : 0);
    return [...metas.values()].sort((a, b) => fits(b) - fits(a) || b.transaction - a.transaction);
  }

  private isRootOf(meta: Meta): boolean {
    try {
      const { root } = meta.main;
      return root !== null && writerOf(this.read(root, 1, meta)) === meta.transaction;
    } catch {
      return false;
    }
  }

  /**
   * The part of the newest meta page that a walk uses, but not of a later transaction than `most` if there is another.
   * It is read for every count, so it is one call while nobody commits.
   */
  readState(most = Infinity): PageState {
    const [first, second] = this.readMetas();
    const newest = first.transaction >= second.transaction ? first : second;
    const older = newest === first ? second : first;
    const state = newest.transaction > most && older.transaction <= most ? older : newest;
    if (!state.isMeta) throw new PageError('a meta page is damaged');
    return state;
  }

  /** Another process may write one of the pages at this moment: what is read twice alike is whole. */
  private readMetas(): readonly [MetaState, MetaState] {
    if (this.metas.length === 0) {
      const bytes = this.readMeta().pageBytes + META_BYTES;
      this.metas = Buffer.alloc(bytes);
      this.reread = Buffer.allocUnsafeSlow(bytes);
    }
    for (let n = 0; n < MAX_READS; n++) {
      const { metas, reread } = this;
      if (readSync(this.file, reread, 0, reread.length, 0) !== reread.length) {
        throw new PageError('a meta page is damaged');
      }
      if (reread.equals(metas)) {
        this.states ??= [readMetaState(metas, 0), readMetaState(metas, metas.length - META_BYTES)];
        return this.states;
      }
      this.metas = reread;
      this.reread = metas;
      this.states = null;
    }
    throw new PageError('its first two pages change all the time');
  }

  /**
   * Reads a page of a tree and checks that it is one: its number, its kind, and that its nodes fill it without a gap.
   */
  readPage(number: number, isLeaf: boolean, meta: Pages): Page {
    const bytes = this.read(number, 1, meta);
    checkHeader(bytes, number, isLeaf ? LEAF : BRANCH, meta.transaction);
    const lower = bytes.readUInt16LE(LOWER_AT);
    const upper = bytes.readUInt16LE(UPPER_AT);
    const room = meta.pageBytes - HEADER_BYTES;
    if (lower % 2 !== 0 || lower < (isLeaf ? 2 : 4) || upper > room || lower > upper) {
      throw new PageError('its bounds are wrong');
    }
    const page: Page = { number, written: writerOf(bytes), isLeaf, keys: [], children: [], values: [] };
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
  readValue(value: Value, meta: Pages): { value: Buffer; first: number; pages: number } {
    if (!value.isBig) return { value: value.bytes, first: 0, pages: 0 };
    const { first, pages, needed } = placeOf(value, meta);
    const content = this.read(first, needed, meta);
    checkBigHeader(content, first, pages, meta);
    return { value: content.subarray(HEADER_BYTES, HEADER_BYTES + value.size), first, pages };
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

  /** Pages of 4 KiB that the file has room for. */
  countPages(): number {
    return Math.ceil(fstatSync(this.file).size / PAGE_SIZES[0]!);
  }

  /** The bytes of pages that lie side by side, unchecked. Throws PageError where there are none. */
  read(number: number, pages: number, { pageBytes, lastPage }: Pages): Buffer {
    if (number < 2 || number + pages - 1 > lastPage) throw new PageError('there is no such page');
    const bytes = Buffer.allocUnsafe(pages * pageBytes);
    if (readSync(this.file, bytes, 0, bytes.length, number * pageBytes) !== bytes.length) {
      throw new PageError('the file ends before it');
    }
    return bytes;
  }
}

/** The first page of a large value, how many it has, and how many of them its bytes take. */
function placeOf({ bytes, size }: Value, meta: Pages): { first: number; pages: number; needed: number } {
  const first = numberAt(bytes, 0);
  // A value that shrank within its transaction keeps all of its pages.
  const pages = numberAt(bytes, BIG_VALUE_PAGES_AT);
  const needed = Math.ceil((HEADER_BYTES + size) / meta.pageBytes);
  if (pages < needed || first < 2 || first + pages - 1 > meta.lastPage) {
    throw new PageError('a large value has another size');
  }
  return { first, pages, needed };
}

function checkBigHeader(head: Buffer, first: number, pages: number, { transaction }: Pages): void {
  checkHeader(head, first, OVERFLOW, transaction);
  if (head.readUInt32LE(OVERFLOW_PAGES_AT) !== pages) throw new PageError('a large value has another size');
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
