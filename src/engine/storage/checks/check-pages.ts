import { statSync } from 'node:fs';
import { damagedFile } from '../damage.js';
import { DamagedGaps } from '../file/damaged-gaps.js';
import { holdSnapshot } from '../file/guard-reads.js';
import { type Meta, type Tree, PageError } from '../file/page-layout.js';
import { PageFile } from '../file/page-file.js';
import { compareFreeKeys, PageSet, takeTree, walkPages } from '../file/walk-pages.js';
import { isIntact } from '../format/stored-form.js';
import type { Storage } from '../storage.js';
import { StorageError } from '../storage-error.js';
import { FreeList, REPAIR } from './free-list.js';
import { compareBytes } from './verify.js';

/** Files up to this size are looked through when they are opened. */
const MAX_BYTES_AT_OPENING = 8 * 1024 * 1024;
/** A list of free pages is checked at opening if it takes no more pages than this: some megabytes. */
const MAX_LIST_PAGES = 1_000;
/** Up to so many branches are read to know which pages are in use: 8 MB, of a file of some 700 MB. */
const MAX_BRANCHES = 2_000;

/**
 * Checks, when a file is opened, the list of free pages and, of a small file, all pages. Throws DAMAGED for pages out
 * of order: reading or writing them gives short lists, or ends the process. Damaged entries fail the reads that may
 * need them. A broken list lets reading go on: the store refuses writes, which would overwrite pages in use.
 */
export function checkPages({ environment, damage }: Storage): void {
  const { guard } = environment;
  const { store, path } = environment;
  const isSmall = statSync(path).size <= MAX_BYTES_AT_OPENING;
  store.resetReadTxn();
  const snapshot = holdSnapshot(store);
  const file = new PageFile(path);
  try {
    const meta = file.readMeta();
    const gaps = new DamagedGaps();
    const problem = findBrokenList(file, meta, isSmall ? gaps : null);
    if (isSmall) guard.trust(gaps);
    if (gaps.size > 0) damage.judge(damagedFile(path, 'entries in it are'), null);
    if (problem !== null) {
      const message = `The list of free pages of ${path} is damaged (${problem}), so the store is only read. ${REPAIR}`;
      environment.refuse(new StorageError('READ_ONLY', message));
    }
  } catch (error) {
    if (!(error instanceof PageError)) throw error;
    throw damagedFile(path, error.message);
  } finally {
    file.close();
    snapshot.done();
  }
}

/** Null for a whole list; throws PageError for other pages than those of the list. `gaps`: all pages are checked. */
function findBrokenList(file: PageFile, meta: Meta, gaps: DamagedGaps | null): string | null {
  const { used, others } = gaps === null ? takeBranches(file, meta) : { used: takeAll(file, meta, gaps), others: 0 };
  if (pagesOf(meta.free) > MAX_LIST_PAGES) return null;
  const list = new FreeList(meta, used);
  let broken: string | null = null;
  const visitor = {
    entry: list.add,
    damage: (number: number, reason: string) => {
      broken ??= `page ${number}: ${reason}`;
    },
  };
  for (const _page of walkPages(file, meta, meta.free, used, compareFreeKeys, visitor));
  return broken ?? list.problems(others)[0] ?? null;
}

/** The pages in use, each of them checked. */
function takeAll(file: PageFile, meta: Meta, gaps: DamagedGaps): PageSet {
  const used = new PageSet(meta.lastPage);
  const visitor = {
    entry: (key: Buffer, value: Buffer) => {
      gaps.add(key, isIntact(key, value));
    },
    damage: (number: number, reason: string) => {
      throw new PageError(`page ${number}: ${reason}`);
    },
  };
  for (const _page of walkPages(file, meta, meta.main, used, compareBytes, visitor));
  return used;
}

/**
 * The pages in use that branches tell of, and how many others there are: those of large values, whose checksums tell
 * when they are overwritten. A damaged branch is told by what needs it; then none are known.
 */
function takeBranches(file: PageFile, meta: Meta): { used: PageSet; others: number } {
  const { main, lastPage } = meta;
  const used = new PageSet(lastPage);
  if (main.branchPages <= MAX_BRANCHES) {
    try {
      takeTree(file, meta, main, used);
      return { used, others: pagesOf(main) - used.size };
    } catch (error) {
      if (!(error instanceof PageError)) throw error;
    }
  }
  return { used: new PageSet(lastPage), others: pagesOf(main) };
}

function pagesOf({ branchPages, leafPages, overflowPages }: Tree): number {
  return branchPages + leafPages + overflowPages;
}
