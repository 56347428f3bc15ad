import { closeSync, constants, fstatSync, openSync, statfsSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { RootDatabase } from 'lmdb';
import { type CommitState, READER_ROW } from './last-commit.js';
import { PageFile } from './page-file.js';
import { HEADER_BYTES, numberAt } from './page-layout.js';
import { compareFreeKeys, PageSet, walkPages } from './walk-pages.js';
import { StorageError } from '../storage-error.js';
import { noSpace } from './translate-error.js';

/** Together with its key a value of this size may be too large to share a page. */
const ALONE_FROM_BYTES = 1_900;
/** The smallest pages that LMDB uses here, without their header. */
const PAGE_ROOM = 4096 - HEADER_BYTES;

/** What a transaction has put and removed, from which follows how many pages its commit writes at most. */
export interface TransactionSize {
  /** Entries put and removed. */
  entries: number;
  /** The bytes of entries that take less than a page. */
  bytes: number;
  /** The pages of values that take several, which must lie side by side. */
  valuePages: number;
  /** Documents were added: they leave room to those that only change or remove. */
  hasInserts: boolean;
}

/** A transaction that has written nothing yet. */
export function emptySize(): TransactionSize {
  return { entries: 0, bytes: 0, valuePages: 0, hasInserts: false };
}

/** Adds an entry that is put. */
export function addEntry(size: TransactionSize, keyBytes: number, valueBytes: number): void {
  size.entries++;
  if (keyBytes + valueBytes < ALONE_FROM_BYTES) size.bytes += keyBytes + valueBytes;
  else if (valueBytes <= PAGE_ROOM) size.bytes += BYTES_PER_NEW_PAGE;
  else size.valuePages += Math.ceil((valueBytes + HEADER_BYTES) / (PAGE_ROOM + HEADER_BYTES));
}

/** Pages that the list of free pages and the catalog take in each commit. */
const COMMIT_PAGES = 16;
/** Pages that inserts leave to changes and removals. */
const INSERTS_LEAVE_PAGES = 64;
/** A page that is split is half empty afterwards. */
const BYTES_PER_NEW_PAGE = 2_000;
/** Of the branches above the leaves that a transaction changes, most are the same. */
const PAGES_PER_ENTRY = 1.25;
/** The file grows by so much at once, so that hardly any commit has to look; a larger one takes what the disk has. */
const STEP_BYTES = 512 * 1024;
/** More than this is not written ahead on a disk that is nearly full. */
const MAX_WRITTEN_AHEAD = 4 * 1024 * 1024;
/** A disk with less than this is nearly full: nothing is set aside beyond what is needed. */
const PLENTY_BYTES = 2 * 1024 * 1024;
const ZEROS = Buffer.alloc(64 * 1024);
/** btrfs, ZFS, bcachefs: a change of what is stored takes room as well, also one of the mapped lock file. */
const COPY_ON_WRITE: ReadonlySet<number> = new Set([0x9123683e, 0x2fc12fc1, 0xca451a4e]);
/** With less left there, a change of a mapped page may end the process by SIGBUS. */
const LEAST_COPY_BYTES = 16 * 1024 * 1024;

/**
 * Throws NO_SPACE on a copy-on-write file system that is nearly full, which would end the process by a signal. Returns
 * whether the file system is such a one.
 */
export function requireCopyRoom(path: string): boolean {
  const { type, bavail, bsize } = statfsSync(dirname(path));
  if (!COPY_ON_WRITE.has(type)) return false;
  if (bavail * bsize >= LEAST_COPY_BYTES) return true;
  const need = `its copy-on-write file system needs ${LEAST_COPY_BYTES / 2 ** 20} MB free. Free space, then try again.`;
  throw new StorageError('NO_SPACE', `No space left for ${path}: ${need}`);
}

/**
 * Gets the pages that a commit writes from the disk before LMDB needs them, as zeros behind its last page. LMDB must
 * not meet a full disk: it puts its message about that into 100 bytes, of which it may fill more, and the process ends
 * by that sooner or later. Only the holder of the write lock may use it.
 */
export class Preallocation {
  /** Up to where the file has its place on the disk; another process may have got more. */
  private allocated = 0;
  private file: number | undefined;
  /** True when the disk had nothing to spare lately: transactions should be small. */
  isTight = false;

  constructor(
    private readonly path: string,
    private readonly store: RootDatabase<Buffer, Buffer>,
    /** Pages that have their place need room again when they are written: the answer of `requireCopyRoom`. */
    private readonly isCopied: boolean,
  ) {}

  /** Throws NO_SPACE, before anything is written, when there may not be room for such a transaction. */
  ensure(state: CommitState, size: TransactionSize): void {
    if (this.isCopied) requireCopyRoom(this.path);
    const pages = mostPages(state, size);
    const end = (state.lastPage + 1) * state.pageBytes;
    const needed = end + (pages + size.valuePages) * state.pageBytes;
    if (needed <= this.allocated || this.allocate(needed)) return;
    this.isTight = true;
    // Values need pages side by side, which the free ones may not be.
    const room = Math.floor((this.allocated - end) / state.pageBytes) - size.valuePages;
    if (room >= 0 && this.hasFreePages(pages - room)) return;
    throw noSpace(this.path);
  }

  close(): void {
    if (this.file !== undefined) closeSync(this.file);
    this.file = undefined;
  }

  /** False when the disk does not have it. */
  private allocate(needed: number): boolean {
    const file = (this.file ??= openSync(this.path, constants.O_RDWR));
    this.allocated = fstatSync(file).size;
    if (needed <= this.allocated) return true;
    const missing = needed - this.allocated;
    const { bavail, blocks, bsize } = statfsSync(dirname(this.path));
    // A file system of no blocks does not tell what it has.
    const hasPlenty = blocks === 0 || bavail * bsize >= missing + PLENTY_BYTES;
    if (hasPlenty) this.isTight = false;
    if (missing > (hasPlenty ? STEP_BYTES : MAX_WRITTEN_AHEAD)) return hasPlenty;
    this.grow(file, hasPlenty ? needed + STEP_BYTES : needed);
    return needed <= this.allocated;
  }

  /** Whether the file has that number of pages that are empty, in the oldest snapshot of a reader too. */
  private hasFreePages(wanted: number): boolean {
    const file = new PageFile(this.path);
    try {
      const meta = file.readMeta();
      this.store.readerCheck();
      const snapshots = [...this.store.readerList().matchAll(READER_ROW)].map(([, , , snapshot]) => Number(snapshot));
      const oldest = Math.min(meta.transaction, ...snapshots);
      let count = 0;
      const visitor = {
        entry: (freedIn: Buffer, pages: Buffer) => {
          if (numberAt(freedIn, 0) < oldest) count += countListed(pages);
        },
        // What a damaged page lists counts as nothing.
        damage: () => undefined,
      };
      for (const _page of walkPages(file, meta, meta.free, new PageSet(meta.lastPage), compareFreeKeys, visitor)) {
        if (count >= wanted) return true;
      }
      return count >= wanted;
    } finally {
      file.close();
    }
  }

  private grow(file: number, to: number): void {
    try {
      while (this.allocated < to) {
        const length = Math.min(ZEROS.length, to - this.allocated);
        this.allocated += writeSync(file, ZEROS, 0, length, this.allocated);
      }
    } catch {
      // Full, or over a quota: what there is now has to do.
    }
  }
}

function mostPages({ treePages }: CommitState, { entries, bytes, hasInserts }: TransactionSize): number {
  const changed = Math.min(Math.ceil(entries * PAGES_PER_ENTRY), treePages);
  const added = Math.ceil(bytes / BYTES_PER_NEW_PAGE);
  return changed + added + COMMIT_PAGES + (hasInserts ? INSERTS_LEAVE_PAGES : 0);
}

/** How many pages a list names: behind its length follow pages, zeros, and negative counts before their first page. */
function countListed(list: Buffer): number {
  let count = 0;
  const end = (numberAt(list, 0) + 1) * 8;
  for (let at = 8; at < end; at += 8) {
    const number = Number(list.readBigInt64LE(at));
    if (number > 0) {
      count++;
    } else if (number < 0) {
      count -= number;
      at += 8;
    }
  }
  return count;
}
