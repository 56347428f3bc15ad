import { readSync } from 'node:fs';
import { isDoubtful, readNote } from './durable-note.js';

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
export const FLAGS_AT = 18;
export const LOWER_AT = 20;
export const UPPER_AT = 22;
export const OVERFLOW_PAGES_AT = 20;
export const NODE_BYTES = 8;
export const BRANCH = 0x01;
export const LEAF = 0x02;
export const OVERFLOW = 0x04;
const META = 0x08;
/** A node whose value lies in pages of its own, and how many bytes say where. */
export const BIG_VALUE = 0x01;
export const BIG_VALUE_BYTES = 24;
/** Within them: the number of its pages, behind the first one's and a transaction. */
export const BIG_VALUE_PAGES_AT = 16;
/** Within what a meta page says of a tree. */
const DEPTH_AT = 6;
export const BRANCH_PAGES_AT = 8;
export const LEAF_PAGES_AT = 16;
const ROOT_AT = 40;

/** Thrown for a page that cannot be what LMDB wrote; the message says why, in a few words. */
export class PageError extends Error {}

/** A number that LMDB wrote in 8 bytes. */
export function numberAt(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32;
}

/** The transaction that wrote a page. */
export function writerOf(page: Buffer): number {
  return numberAt(page, 8);
}

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

/** The part of a state that a walk over the entries uses. */
export interface PageState {
  readonly pageBytes: number;
  readonly lastPage: number;
  readonly transaction: number;
  readonly depth: number;
  /** Null when there are no entries. */
  readonly root: number | null;
}

/** A state with what else its page says: whether it is a meta page at all. */
export interface MetaState extends PageState {
  readonly isMeta: boolean;
}

/** `metas`: the first page and the second one's head; `at`: where the meta page begins. */
export function readMetaState(metas: Buffer, at: number): MetaState {
  const pageBytes = metas.length - META_BYTES;
  const root = at + MAIN_TREE_AT + ROOT_AT;
  const isEmpty = metas.readUInt32LE(root) === 0xffff_ffff && metas.readUInt32LE(root + 4) === 0xffff_ffff;
  return {
    pageBytes,
    lastPage: numberAt(metas, at + LAST_PAGE_AT),
    transaction: numberAt(metas, at + TRANSACTION_AT),
    depth: metas.readUInt16LE(at + MAIN_TREE_AT + DEPTH_AT),
    root: isEmpty ? null : numberAt(metas, root),
    isMeta: metas.readUInt32LE(at + MAGIC_AT) === MAGIC && metas.readUInt32LE(at + PAGE_BYTES_AT) === pageBytes,
  };
}

/** Others may commit between two reads of the first pages. */
export const MAX_READS = 100;

/**
 * The meta page of the newest commit that was written to the end: of two meta pages that with the later transaction, by
 * which LMDB begins, or the other one where opening the file takes that back (`LastCommit.recover`). Throws PageError
 * when one of them is none.
 */
export function readFirstPages(file: number): { pageBytes: number; newest: Buffer } {
  const first = Buffer.alloc(META_BYTES);
  const second = Buffer.alloc(META_BYTES);
  readSync(file, first, 0, META_BYTES, 0);
  const pageBytes = first.readUInt32LE(PAGE_BYTES_AT);
  const hasPages = pageBytes >= 512 && pageBytes <= 0x10000;
  // Before the pages: a process that opens the file now takes the commit back first, then writes a new note.
  const note = hasPages ? readNote(file, pageBytes) : null;
  readSync(file, first, 0, META_BYTES, 0);
  if (hasPages) readSync(file, second, 0, META_BYTES, pageBytes);
  if (!isMeta(first) || !isMeta(second)) throw new PageError('its first two pages are not those of a data file');
  const isSecond = numberAt(second, TRANSACTION_AT) > numberAt(first, TRANSACTION_AT);
  const [newest, before] = isSecond ? [second, first] : [first, second];
  return { pageBytes, newest: isDoubtful(note, numberAt(newest, TRANSACTION_AT)) ? before : newest };
}

function isMeta(page: Buffer): boolean {
  return (page.readUInt16LE(FLAGS_AT) & META) !== 0 && page.readUInt32LE(MAGIC_AT) === MAGIC;
}

/** What a meta page says, whole or damaged. */
export function describeMeta(meta: Buffer): Meta {
  return {
    pageBytes: meta.readUInt32LE(PAGE_BYTES_AT),
    lastPage: numberAt(meta, LAST_PAGE_AT),
    transaction: numberAt(meta, TRANSACTION_AT),
    free: readTree(meta, FREE_TREE_AT),
    main: readTree(meta, MAIN_TREE_AT),
  };
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
