import { type PageState, HEADER_BYTES, writerOf } from './page-layout.js';
import type { PageFile } from './page-file.js';

/** Branch pages that are remembered, of 4 KB each. */
const MAX_BRANCHES = 1024;

/** Where pages are read, how many were, and how many more may be. */
export interface PageReading {
  readonly state: PageState;
  left: number;
  pages: number;
}

/**
 * A branch page as it was read. LMDB changes no page in place: as long as the number leads to a page of the same
 * transaction, everything below it is the same as well.
 */
export interface Branch {
  /** Another one each time that a page is read. */
  readonly serial: number;
  readonly bytes: Buffer;
  readonly nodes: number;
  /** The transaction that wrote it, and the last one in whose state it was found. */
  readonly written: number;
  seenIn: number;
  /** How many entries there are below each child; -1: not known yet. */
  readonly below: Int32Array;
  /** How many there are of parts of leaves, as lists count them again and again. */
  readonly parts: Map<string, number>;
}

/** Parts that are remembered of each. */
const MAX_PARTS = 128;

/** By what a part of a leaf is remembered: which child it is of, and its bounds. */
export function nameOfPart(child: number, start: Buffer | null, end: Buffer | null): string {
  return `${child} ${start?.length ?? ''} ${start?.latin1Slice() ?? ''}${end?.latin1Slice() ?? ''}`;
}

/** Remembers how many entries a part has; it stays true as long as the branch does. */
export function notePart({ parts }: Branch, name: string, entries: number): void {
  if (parts.size >= MAX_PARTS) parts.clear();
  parts.set(name, entries);
}

/** Remembers branch pages: each is read once, and its header once in each later state. */
export class BranchPages {
  private readonly branches = new Map<number, Branch>();
  private readonly head = Buffer.allocUnsafeSlow(HEADER_BYTES);
  private serials = 0;

  constructor(private readonly file: PageFile) {}

  /** Throws PageError for a page that is no branch. */
  get(reading: PageReading, page: number): Branch {
    const { state } = reading;
    const { branches, head } = this;
    const known = branches.get(page);
    if (known?.seenIn === state.transaction) return known;
    took(reading);
    if (known !== undefined) {
      branches.delete(page);
      this.file.readHead(page, false, state, head, HEADER_BYTES);
      if (writerOf(head) === known.written) {
        known.seenIn = state.transaction;
        branches.set(page, known);
        return known;
      }
    }
    const bytes = Buffer.allocUnsafeSlow(state.pageBytes);
    const nodes = this.file.readHead(page, false, state, bytes, bytes.length);
    const below = new Int32Array(nodes).fill(-1);
    const serial = ++this.serials;
    const written = writerOf(bytes);
    const branch: Branch = { serial, bytes, nodes, written, seenIn: state.transaction, below, parts: new Map() };
    if (branches.size >= MAX_BRANCHES) branches.delete(branches.keys().next().value!);
    branches.set(page, branch);
    return branch;
  }
}

/** A page more was read. */
export function took(reading: PageReading): void {
  reading.left--;
  reading.pages++;
}
