import { compareBytes } from '../checks/verify.js';
import { FreeList } from '../checks/free-list.js';
import { DOCUMENT_SPACE } from '../format/key-spaces.js';
import {
  type Meta,
  BIG_VALUE,
  BIG_VALUE_BYTES,
  HEADER_BYTES,
  LOWER_AT,
  NODE_BYTES,
  numberAt,
  PageError,
  UPPER_AT,
  writerOf,
} from '../file/page-layout.js';
import type { PageFile } from '../file/page-file.js';
import { compareFreeKeys, PageSet, walkPages, type WalkVisitor } from '../file/walk-pages.js';
import { checksum } from '../format/checksum.js';
import { isSealIntact, sealedBson } from '../format/stored-form.js';

/** Keys that a damaged page stood for: from `from` up to `to`, null: up to the end. */
interface LostRange {
  readonly page: number;
  readonly from: Buffer;
  readonly to: Buffer | null;
}

/** Where the entries of a damaged file go. */
export interface EntryTaker {
  /** An entry that its page holds in its place; it may be damaged itself. */
  take(key: Buffer, value: Buffer): void;
  /**
   * A whole entry from a page that is damaged or cannot be reached any more: what was taken before is newer. `isSure`:
   * the page belongs to the newest state, although it is damaged. Others may hold what was changed or deleted since.
   */
  takeRescued(key: Buffer, value: Buffer, isSure: boolean): void;
}

/**
 * Gives out everything that can be read of a damaged file, pausing after each page: first what the tree leads to, then
 * single entries of damaged pages, and of the pages to which only damaged ones led. Which these are is known as long as
 * the list of free pages is whole: the others that are in use nowhere hold what was stored earlier.
 */
export function* rescueEntries(file: PageFile, meta: Meta, taker: EntryTaker): Generator<void> {
  const free = readFreePages(file, meta);
  // A damaged number may lead to a page that is free: an earlier state of what belongs there.
  const used = free?.copy() ?? new PageSet(meta.lastPage);
  const lost: LostRange[] = [];
  const visitor: WalkVisitor = {
    entry: (key, value) => {
      taker.take(key, value);
    },
    damage: (page, _reason, from, to) => lost.push({ page, from, to }),
  };
  yield* walkPages(file, meta, meta.main, used, compareBytes, visitor);
  if (lost.length === 0) return;
  const pages = new Map<number, LostRange[]>();
  for (const range of lost) pages.set(range.page, [...(pages.get(range.page) ?? []), range]);
  // What is in use and reached from nowhere belongs to what was lost.
  if (free !== null) {
    for (let page = 2; page <= meta.lastPage; page++) if (!used.has(page)) pages.set(page, lost);
  }
  // Otherwise LMDB has lost track of some pages, and what they hold may be of any time.
  const { branchPages, leafPages, overflowPages } = meta.main;
  const isEachKnown = free !== null && meta.lastPage - 1 === free.size + branchPages + leafPages + overflowPages;
  const hasDoubtful = free !== null && lost.some(({ page }) => free.has(page));
  /** Keys of what is in use, of pages that were written after those that follow. */
  const newer: Buffer[] = [];
  for (const [page, ranges] of newestFirst(file, meta, pages)) {
    // One that may be free, and then holds what was stored earlier, is believed within its place alone.
    const isDoubtful = free?.has(page) !== false;
    const isReplaced = isDoubtful && newer.some((key) => ranges.some((range) => isWithin(range, key)));
    if (isReplaced) continue;
    const isSure = !isDoubtful && (used.has(page) ? isInPlace(file, page, meta, ranges) : isEachKnown);
    for (const { key, value } of readNodes(file, page, meta)) {
      const isPlaced = !isDoubtful || ranges.some((range) => isWithin(range, key));
      if (!isPlaced || !isWhole(key, value)) continue;
      taker.takeRescued(key, value, isSure);
      if (hasDoubtful && !used.has(page)) newer.push(Buffer.from(key));
    }
    yield;
  }
}

/**
 * False for a page that does not fit its place, because a write went to the wrong one. Its intact entries decide: one
 * with a flipped bit in its key may be anywhere.
 */
function isInPlace(file: PageFile, number: number, meta: Meta, ranges: readonly LostRange[]): boolean {
  if (hasOtherNumber(file.read(number, 1, meta), number)) return false;
  for (const { key, value } of readNodes(file, number, meta)) {
    if (isWhole(key, value) && !ranges.some((range) => isWithin(range, key))) return false;
  }
  return true;
}

/** True for a page that says, by more than a flipped bit, that it is another one. */
function hasOtherNumber(page: Buffer, number: number): boolean {
  let different = page.readBigUInt64LE(0) ^ BigInt(number);
  let bits = 0;
  for (; different > 0n; different &= different - 1n) bits++;
  return bits > 1;
}

function isWithin({ from, to }: LostRange, key: Buffer): boolean {
  return key.compare(from) >= 0 && (to === null || key.compare(to) < 0);
}

/** The pages that hold nothing, with those of the list of them; null where the list does not say. */
function readFreePages(file: PageFile, meta: Meta): PageSet | null {
  const free = new PageSet(meta.lastPage);
  const list = new FreeList(meta, free);
  let isKnown = true;
  const visitor: WalkVisitor = {
    entry: list.add,
    damage: () => {
      isKnown = false;
    },
  };
  for (const _page of walkPages(file, meta, meta.free, free, compareFreeKeys, visitor));
  return isKnown && list.problems().length === 0 ? free : null;
}

function newestFirst(file: PageFile, meta: Meta, pages: Map<number, LostRange[]>): [number, LostRange[]][] {
  const writers = new Map<number, number>();
  for (const page of pages.keys()) {
    try {
      writers.set(page, writerOf(file.read(page, 1, meta)));
    } catch (error) {
      // It names a page that the file does not have.
      if (!(error instanceof PageError)) throw error;
    }
  }
  return [...pages].filter(([page]) => writers.has(page)).sort(([a], [b]) => writers.get(b)! - writers.get(a)!);
}

/** The entries of what may be a leaf, as far as each can be read by itself. */
function* readNodes(file: PageFile, number: number, meta: Meta): Generator<{ key: Buffer; value: Buffer }> {
  const page = file.read(number, 1, meta);
  const places = placesOf(page);
  for (const node of places.slice(0, countNodes(page, places))) {
    if (node === null) continue;
    const { keyFrom, keyTo, end, size, isBig } = node;
    const key = page.subarray(keyFrom, keyTo);
    const value = isBig ? readLarge(file, page.subarray(keyTo, end), size, meta) : page.subarray(keyTo, end);
    if (value !== null) yield { key, value };
  }
}

interface NodePlace {
  readonly keyFrom: number;
  readonly keyTo: number;
  readonly end: number;
  readonly size: number;
  readonly isBig: boolean;
}

/** Where all nodes may lie that a page has room for; null for what cannot be one. */
function placesOf(page: Buffer): (NodePlace | null)[] {
  const places: (NodePlace | null)[] = [];
  for (let at = HEADER_BYTES; at + 2 <= page.length; at += 2) {
    const node = HEADER_BYTES + page.readUInt16LE(at);
    const keyFrom = node + NODE_BYTES;
    if (keyFrom > page.length) {
      places.push(null);
      continue;
    }
    const keyTo = keyFrom + page.readUInt16LE(node + 6);
    const size = page.readUInt16LE(node) + page.readUInt16LE(node + 2) * 0x10000;
    const isBig = page.readUInt16LE(node + 4) === BIG_VALUE;
    const end = keyTo + (isBig ? BIG_VALUE_BYTES : size);
    places.push(end > page.length ? null : { keyFrom, keyTo, end, size, isBig });
  }
  return places;
}

/**
 * How many nodes a page has by its header, or, where its nodes would not end where the header says, as many as do:
 * behind the last one are left those that were removed.
 */
function countNodes(page: Buffer, places: readonly (NodePlace | null)[]): number {
  const room = page.length - HEADER_BYTES - page.readUInt16LE(UPPER_AT);
  const said = Math.min(page.readUInt16LE(LOWER_AT) >>> 1, places.length);
  let filled = 0;
  let fitting: number | null = null;
  for (const [n, node] of places.entries()) {
    if (node === null) break;
    const bytes = node.end - node.keyFrom + NODE_BYTES;
    filled += bytes + (bytes % 2);
    if (filled === room) fitting = n + 1;
    if (filled >= room) break;
  }
  return fitting ?? said;
}

/** A value in pages of its own, whatever their header says. */
function readLarge(file: PageFile, place: Buffer, size: number, meta: Meta): Buffer | null {
  const pages = Math.ceil((HEADER_BYTES + size) / meta.pageBytes);
  try {
    return file.read(numberAt(place, 0), pages, meta).subarray(HEADER_BYTES, HEADER_BYTES + size);
  } catch (error) {
    if (error instanceof PageError) return null;
    throw error;
  }
}

/** Whether an entry is what was stored, by its checksum; records about the file itself that have none are not. */
export function isWhole(key: Buffer, value: Buffer): boolean {
  if (key.length === 0 || value.length <= 4) return false;
  const keySum = checksum(0, key, key.length);
  if (key[0] === DOCUMENT_SPACE) return sealedBson(keySum, value) !== null;
  return isSealIntact(keySum, value);
}
