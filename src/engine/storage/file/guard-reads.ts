import { EventEmitter } from 'node:events';
import type { RootDatabase, Transaction } from 'lmdb';
import type { PageGuard } from './page-guard.js';

type Store = RootDatabase<Buffer, Buffer>;

/** A snapshot that is held for as many readers as `use` was called, and for the first one. */
export interface Snapshot extends Transaction {
  // Its types leave it out.
  use(): void;
}

/** What lmdb reads by. */
interface Reads {
  getBinaryFast: (this: unknown, key: unknown, options?: object) => Buffer | undefined;
  /** Its `iterate` gives a number where entries are only counted. */
  getRange: (this: unknown, options?: object) => { iterate(): Iterator<unknown> | number };
  /** Forgets the transaction that was put aside for the sake of those who still use it. */
  _commitReadTxn(): void;
  useReadTransaction(): Snapshot;
  resetReadTxn(): void;
  ensureReadTxn(): void;
  readonly env: { readonly writeTxn: object | null | undefined };
}

/**
 * Makes sure that a read that fails takes no other along. LMDB calls a transaction failed as soon as it has met a
 * damaged page, and lmdb goes on using the failed one for as long as an iterator over it is open, which it leaves open
 * itself when a step throws. So iterators are closed when they throw, and the transaction is given up.
 */
export function guardReads(store: Store, guard: PageGuard): void {
  // Its types know neither `iterate` nor that methods may be overridden.
  const reads = store as unknown as Reads;
  const { getBinaryFast, getRange } = reads;
  // Its own `on` knows other events alone.
  EventEmitter.prototype.on.call(store, 'begin-transaction', () => {
    guard.renew();
  });
  // On the store itself: views of it with other encodings inherit them.
  reads.getBinaryFast = function (key, options) {
    try {
      if (!guard.isOver && key instanceof Buffer) checkKey(store, guard, key);
      return getBinaryFast.call(this, key, options);
    } catch (error) {
      reads.resetReadTxn();
      throw error;
    }
  };
  reads.getRange = function (options) {
    const range = getRange.call(this, options);
    const iterate = range.iterate.bind(range);
    range.iterate = () => {
      if (guard.isOver) return guarded(iterate(), reads);
      const { start, end, limit, reverse = false } = (options ?? {}) as RangeOptions;
      reads.ensureReadTxn();
      const step = guard.openWalk(start instanceof Buffer ? start : undefined, reverse);
      step();
      if (start instanceof Buffer) guard.checkGaps(start);
      let left = limit ?? Infinity;
      // What ends at its limit has all that comes before its last entry.
      const atEnd = (): void => {
        if (left > 0 && end instanceof Buffer) guard.checkGaps(end);
      };
      return guarded(iterate(), reads, { step, took: () => left--, atEnd });
    };
    return range;
  };
}

interface RangeOptions {
  readonly start?: unknown;
  readonly end?: unknown;
  readonly limit?: number;
  readonly reverse?: boolean;
}

/** What is to be checked before each step but the first, with each entry, and at the end of a range. */
interface Checks {
  step(): void;
  took(): void;
  atEnd(): void;
}

/** Checks the pages that a read of the key needs, as of the snapshot that this turn reads. Throws DAMAGED. */
export function checkKey(store: Store, guard: PageGuard, key: Buffer): void {
  // Its types leave out the method.
  (store as unknown as Reads).ensureReadTxn();
  guard.check(key);
  guard.checkGaps(key);
}

function guarded(iterator: Iterator<unknown> | number, reads: Reads, checks?: Checks): Iterator<unknown> | number {
  if (typeof iterator === 'number') return iterator;
  const next = iterator.next.bind(iterator);
  let isFirst = true;
  iterator.next = () => {
    try {
      if (!isFirst) checks?.step();
      isFirst = false;
      const result = next();
      if (result.done === true) checks?.atEnd();
      else checks?.took();
      return result;
    } catch (error) {
      iterator.return?.();
      reads.resetReadTxn();
      throw error;
    }
  };
  return iterator;
}

/**
 * Makes this turn read a snapshot if it does not yet: lmdb takes one with the first entry alone. Returns what ends it.
 */
export function takeSnapshot(store: Store): () => void {
  // Its types leave out what it knows of a transaction that writes: nobody else writes then.
  const reads = store as unknown as Reads;
  if (reads.env.writeTxn) return () => undefined;
  const taken = reads.useReadTransaction();
  return () => {
    taken.done();
  };
}

/**
 * Holds the snapshot that this turn has read so far, for those alone that are given it: lmdb would let later turns read
 * by it as well while nobody commits, and the first of them that meets damage would end it for all. This turn reads
 * another one from here on. To be ended by `done`.
 */
export function holdSnapshot(store: Store): Snapshot {
  // Its types leave out the method that forgets.
  const reads = store as unknown as Reads;
  const held = reads.useReadTransaction();
  // What is in use is put aside by the first of these, and forgotten by the second.
  reads.resetReadTxn();
  reads._commitReadTxn();
  // A process is known by its slot for readers, which went with what is held: it always has one.
  reads.ensureReadTxn();
  return held;
}
