import type { RootDatabase, Transaction } from 'lmdb';

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
}

/**
 * Makes sure that a read that fails takes no other along. LMDB calls a transaction failed as soon as it has met a
 * damaged page, and lmdb goes on using the failed one for as long as an iterator over it is open, which it leaves open
 * itself when a step throws. So iterators are closed when they throw, and the transaction is given up.
 */
export function guardReads(store: Store): void {
  // Its types know neither `iterate` nor that methods may be overridden.
  const reads = store as unknown as Reads;
  const { getBinaryFast, getRange } = reads;
  // On the store itself: views of it with other encodings inherit them.
  reads.getBinaryFast = function (key, options) {
    try {
      return getBinaryFast.call(this, key, options);
    } catch (error) {
      reads.resetReadTxn();
      throw error;
    }
  };
  reads.getRange = function (options) {
    const range = getRange.call(this, options);
    const iterate = range.iterate.bind(range);
    range.iterate = () => guarded(iterate(), reads);
    return range;
  };
}

function guarded(iterator: Iterator<unknown> | number, reads: Reads): Iterator<unknown> | number {
  if (typeof iterator === 'number') return iterator;
  const next = iterator.next.bind(iterator);
  iterator.next = () => {
    try {
      return next();
    } catch (error) {
      iterator.return?.();
      reads.resetReadTxn();
      throw error;
    }
  };
  return iterator;
}

/**
 * Holds the snapshot that this turn has read so far, for those alone that are given it: lmdb would let later turns read
 * by it as well while nobody commits, and the first of them that meets damage would end it for all. This turn reads
 * another one from here on. To be ended by `done`; until then the caller keeps the object, with which the snapshot is
 * given up when it is garbage.
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
