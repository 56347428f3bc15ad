import { nextTurn } from '../../scheduler.js';
import { FreeList, REPAIR } from './free-list.js';
import { holdSnapshot } from '../file/guard-reads.js';
import { type Meta, PageError } from '../file/page-layout.js';
import { PageFile } from '../file/page-file.js';
import { compareFreeKeys, PageSet, walkPages } from '../file/walk-pages.js';
import { Examination } from './examination.js';
import type { Storage } from '../storage.js';

export interface VerifyOptions {
  /** Pages looked at, and how many there are. */
  onProgress?: (done: number, all: number) => void;
  signal?: AbortSignal;
  /** Told how many pages are neither in use nor free: no damage, they only take room. */
  onLostPages?: (pages: number) => void;
  /** False: what is free, which matters to writers only, is not compared. */
  freePages?: boolean;
}

/** How long is looked at pages before others get their turn. */
const TURN_MS = 4;

/**
 * Reads every page of the data file as of one moment, while reading and writing go on, and compares: pages and their
 * order, checksums, documents with index entries, kept counts with what is there. Returns what is wrong, in words that
 * name collection and `_id`.
 */
export async function verifyStorage(storage: Storage, options: VerifyOptions = {}): Promise<string[]> {
  storage.refresh();
  // While this snapshot is held, no page of it or of a newer one is used again.
  const snapshot = holdSnapshot(storage.environment.store);
  try {
    const problems = await verifyFile(storage.environment.path, options);
    if (problems.length === 0) storage.damage.forget();
    return problems;
  } finally {
    snapshot.done();
  }
}

/** As `verifyStorage`, for a file that cannot be opened, or that nobody writes to. */
export async function verifyFile(path: string, options: VerifyOptions = {}): Promise<string[]> {
  const file = new PageFile(path);
  try {
    return await verifyPages(file, file.readMeta(), options);
  } catch (error) {
    if (!(error instanceof PageError)) throw error;
    return [`The data file is damaged: ${error.message}.`];
  } finally {
    file.close();
  }
}

async function verifyPages(file: PageFile, meta: Meta, options: VerifyOptions): Promise<string[]> {
  const { onProgress, signal, onLostPages, freePages = true } = options;
  const all = [meta.main, meta.free].reduce((sum, tree) => sum + tree.branchPages + tree.leafPages, 0);
  let done = 0;
  let turnEnds = performance.now() + TURN_MS;
  const walk = async (pages: Generator<void>): Promise<void> => {
    for (const _page of pages) {
      done++;
      if (performance.now() < turnEnds) continue;
      onProgress?.(Math.min(done, all), all);
      await nextTurn();
      signal?.throwIfAborted();
      turnEnds = performance.now() + TURN_MS;
    }
  };
  const examination = new Examination();
  if (file.readLikelyMetas()[0]!.transaction < meta.transaction) {
    examination.report('The first two pages name another commit as the last one than wrote the entries.');
  }
  const used = new PageSet(meta.lastPage);
  const list = new FreeList(meta, used);
  const freeVisitor = {
    entry: list.add,
    damage: (number: number, reason: string) => {
      examination.report(`Page ${number}, which lists free pages, is damaged: ${reason}. ${REPAIR}`);
    },
  };
  if (freePages) await walk(walkPages(file, meta, meta.free, used, compareFreeKeys, freeVisitor));
  await walk(walkPages(file, meta, meta.main, used, compareBytes, examination.firstPass()));
  for (const problem of freePages ? list.problems() : []) {
    examination.report(`The list of free pages is damaged: ${problem}. ${REPAIR}`);
  }
  // Which pages lie below a damaged one is not known.
  if (freePages && !examination.isHurt && list.lostPages > 0) onLostPages?.(list.lostPages);
  examination.compareCounts();
  // Only what is hurt is looked at twice: to name the documents.
  if (examination.isHurt) {
    await walk(walkPages(file, meta, meta.main, new PageSet(meta.lastPage), compareBytes, examination.secondPass()));
    examination.nameLost();
  }
  onProgress?.(all, all);
  return examination.problems;
}

/** The order of the entries, which is that of their bytes. */
export function compareBytes(a: Buffer, b: Buffer): number {
  return a.compare(b);
}
