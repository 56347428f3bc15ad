import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DATA_FILE } from '../storage/file/environment.js';
import { type Meta, type Tree, HEADER_BYTES, LOWER_AT } from '../storage/file/page-layout.js';
import { type Page, PageFile } from '../storage/file/page-file.js';

/** What a page of a data file is for. `key`: the first key on it, of a branch that of its second child. */
export interface MappedPage {
  readonly number: number;
  readonly kind: 'meta' | 'branch' | 'leaf' | 'large' | 'free' | 'unused';
  readonly key: Buffer;
  readonly isLeaf: boolean;
}

export const PAGE_BYTES = 4096;

/** All pages of a whole data file, in their order. */
export function mapPages(dataDir: string): MappedPage[] {
  const file = new PageFile(join(dataDir, DATA_FILE));
  const meta = file.readMeta();
  const pages: MappedPage[] = Array.from({ length: meta.lastPage + 1 }, (_, number) => ({
    number,
    kind: number < 2 ? 'meta' : 'unused',
    key: Buffer.alloc(0),
    isLeaf: false,
  }));
  for (const page of pagesOf(file, meta, meta.free)) {
    pages[page.number] = { number: page.number, kind: 'free', key: page.keys[0]!, isLeaf: page.isLeaf };
    for (const value of page.values) addLarge(page, value, 'free');
  }
  for (const page of pagesOf(file, meta, meta.main)) {
    const key = page.keys[page.isLeaf ? 0 : 1]!;
    pages[page.number] = { number: page.number, kind: page.isLeaf ? 'leaf' : 'branch', key, isLeaf: page.isLeaf };
    for (const value of page.values) addLarge(page, value, 'large');
  }
  file.close();
  return pages;

  function addLarge(page: Page, value: Page['values'][number], kind: 'large' | 'free'): void {
    const { first, pages: count } = file.readValue(value, meta);
    for (let number = first; number < first + count; number++)
      pages[number] = { number, kind, key: page.keys[0]!, isLeaf: false };
  }
}

function* pagesOf(file: PageFile, meta: Meta, tree: Tree, root = tree.root, level = 1): Generator<Page> {
  if (root === null) return;
  const page = file.readPage(root, level === tree.depth, meta);
  yield page;
  for (const child of page.children) yield* pagesOf(file, meta, tree, child, level + 1);
}

/** Changes one bit of the data file. */
export function flipBit(dataDir: string, position: number, bit: number): void {
  const file = openSync(join(dataDir, DATA_FILE), 'r+');
  const byte = Buffer.alloc(1);
  readSync(file, byte, 0, 1, position);
  byte[0]! ^= 1 << bit;
  writeSync(file, byte, 0, 1, position);
  closeSync(file);
}

/** Where in the data file the nodes of a page begin. */
export function nodesOf(dataDir: string, page: number): number[] {
  const bytes = Buffer.alloc(PAGE_BYTES);
  const file = openSync(join(dataDir, DATA_FILE), 'r');
  readSync(file, bytes, 0, PAGE_BYTES, page * PAGE_BYTES);
  closeSync(file);
  const count = bytes.readUInt16LE(LOWER_AT) / 2;
  return Array.from(
    { length: count },
    (_, n) => page * PAGE_BYTES + HEADER_BYTES + bytes.readUInt16LE(HEADER_BYTES + n * 2),
  );
}

/** Where in the data file the first entry of a page begins. */
export function firstEntryAt(dataDir: string, page: number): number {
  return nodesOf(dataDir, page)[0]!;
}

/** Where in the data file the values of its entries lie. */
export function valuesIn(dataDir: string): { at: number; bytes: number; space: number }[] {
  const file = new PageFile(join(dataDir, DATA_FILE));
  const meta = file.readMeta();
  const places: { at: number; bytes: number; space: number }[] = [];
  for (const page of pagesOf(file, meta, meta.main)) {
    for (const [n, value] of page.values.entries()) {
      const { first } = file.readValue(value, meta);
      // A page that was read has a buffer of its own.
      const at = value.isBig ? first * PAGE_BYTES + HEADER_BYTES : page.number * PAGE_BYTES + value.bytes.byteOffset;
      places.push({ at, bytes: value.size, space: page.keys[n]![0]! });
    }
  }
  file.close();
  return places;
}

/** Where in the file the records of free pages name single pages. */
export function freeNumbersAt(dataDir: string): number[] {
  const file = new PageFile(join(dataDir, DATA_FILE));
  const meta = file.readMeta();
  const places: number[] = [];
  for (const { number } of mapPages(dataDir).filter(({ kind, isLeaf }) => kind === 'free' && isLeaf)) {
    for (const value of file.readPage(number, true, meta).values) {
      const { value: record, first } = file.readValue(value, meta);
      // A page that was read has a buffer of its own.
      const from = value.isBig ? first * PAGE_BYTES + HEADER_BYTES : number * PAGE_BYTES + value.bytes.byteOffset;
      const count = Number(record.readBigInt64LE(0));
      const isRow = (n: number): boolean => n > 0 && record.readBigInt64LE(n * 8) < 0n;
      for (let n = 1; n <= count; n++) {
        if (record.readBigInt64LE(n * 8) > 0n && !isRow(n - 1)) places.push(from + n * 8);
      }
    }
  }
  file.close();
  return places;
}

/** Puts another number into a record of free pages; 0 stands for a place that was used up. */
export function putIntoList(dataDir: string, at: number, number: bigint): void {
  const file = openSync(join(dataDir, DATA_FILE), 'r+');
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(number);
  writeSync(file, bytes, 0, 8, at);
  closeSync(file);
}

/** Takes so many pages from the list of free pages of a closed store, as LMDB loses some now and then. */
export function loseFreePages(dataDir: string, count: number): void {
  const places = freeNumbersAt(dataDir).slice(0, count);
  if (places.length < count) throw new Error(`only ${places.length} pages are free one by one`);
  for (const at of places) putIntoList(dataDir, at, 0n);
}
