import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import type { RootDatabase } from 'lmdb';
import { fileIdentity, lockOf } from './open-marks.js';
import {
  BRANCH_PAGES_AT,
  LAST_PAGE_AT,
  LEAF_PAGES_AT,
  MAGIC_AT,
  MAIN_TREE_AT,
  META_BYTES,
  numberAt,
  PAGE_BYTES_AT,
  TRANSACTION_AT,
} from './page-layout.js';

/** Where the lock file has the id of the last commit, which transactions begin from. */
const LOCKED_TRANSACTION_AT = 8;
/** Each attempt falls behind only when one more process opens the file at that moment. */
const MAX_ATTEMPTS = 1000;
/** A row of LMDB's reader table that has a snapshot: process, thread, transaction. */
export const READER_ROW = /^\s*(\d+) +([0-9a-f]+) +(\d+)\s*$/gm;

/** The file as the last commit left it. */
export interface CommitState {
  readonly pageBytes: number;
  readonly transaction: number;
  readonly lastPage: number;
  /** The pages that hold the entries, without those of large values. */
  readonly treePages: number;
}

/**
 * Keeps commits from being undone. Each process that opens the file notes in the lock file which commit it saw last,
 * also when others have committed since (LMDB's ITS#9496, mended there, not in the build that we use). The next
 * transaction would begin from the older one: it would undo what was acknowledged, or fail on pages younger than
 * itself. So each compares its id with the file before it does anything, and sets the note right when it is behind.
 */
export class LastCommit {
  readonly file: number;
  readonly pageBytes: number;
  private readonly head: Buffer;
  private lockFile: number | undefined;
  /** The data file and its lock file, as they were opened. */
  private readonly identities: readonly (string | null)[];
  /** Where in `head` the newer of the two pages begins. */
  private newestAt = 0;

  constructor(
    private readonly store: RootDatabase<Buffer, Buffer>,
    private readonly path: string,
  ) {
    this.file = openSync(path, 'r+');
    const first = Buffer.alloc(META_BYTES);
    readSync(this.file, first, 0, META_BYTES, 0);
    this.pageBytes = first.readUInt32LE(PAGE_BYTES_AT);
    this.head = Buffer.alloc(this.pageBytes + META_BYTES);
    this.identities = this.identify();
  }

  /** Commits the work in one transaction that begins from the last commit: its number, and its state when asked for. */
  follow(work: (last: number, state: () => CommitState) => void): void {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      let isBehind = false;
      this.store.transactionSync(() => {
        const last = this.read();
        isBehind = this.store.getWriteTxnId() !== last + 1;
        // Nobody else commits before this transaction ends; one that changes nothing leaves no trace.
        if (isBehind) this.correct(last);
        else work(last, () => this.state());
      });
      if (!isBehind) return;
    }
    throw new Error(`${this.path}: transactions begin behind the last commit again and again`);
  }

  /**
   * Whether the snapshot that this thread has just taken is of the last commit. False also while others commit: the
   * next transaction shows.
   */
  isKnown(): boolean {
    const last = this.read();
    const rows = [...this.store.readerList().matchAll(READER_ROW)].filter(([, pid]) => Number(pid) === process.pid);
    return rows.some(([, , , transaction]) => Number(transaction) >= last);
  }

  /** The last commit that transactions begin from, as the lock file notes it. */
  note(): number {
    const note = Buffer.alloc(8);
    readSync(this.openLockFile(), note, 0, note.length, LOCKED_TRANSACTION_AT);
    return numberAt(note, 0);
  }

  /** Whether readers begin before the last commit; also for a moment in each commit of others. */
  isBehind(): boolean {
    return this.note() < this.read();
  }

  /**
   * Makes the commit before the last one the last again, and returns it; inside a transaction that writes nothing, and
   * before anybody reads. Both first pages then say the same, so it does not matter which one a reader begins from.
   */
  takeBack(): number {
    this.read();
    const { file, head, newestAt, pageBytes } = this;
    const beforeAt = pageBytes - newestAt;
    const before = numberAt(head, beforeAt + TRANSACTION_AT);
    const meta = Buffer.from(head.subarray(beforeAt + MAGIC_AT, beforeAt + META_BYTES));
    meta.writeBigUInt64LE(BigInt(Math.max(before - 1, 0)), TRANSACTION_AT - MAGIC_AT);
    writeSync(file, meta, 0, meta.length, newestAt + MAGIC_AT);
    this.correct(before);
    return before;
  }

  /** Whether this file and its lock file, and no others, lie at their paths. */
  isInPlace(): boolean {
    const [file, lock] = this.identify();
    return file === this.identities[0] && lock === this.identities[1];
  }

  private identify(): readonly (string | null)[] {
    return [fileIdentity(this.path), fileIdentity(lockOf(this.path))];
  }

  /** To be called after LMDB has closed the file. */
  close(): void {
    closeSync(this.file);
    if (this.lockFile !== undefined) closeSync(this.lockFile);
  }

  /** The last commit, as the file has it. */
  read(): number {
    readSync(this.file, this.head, 0, this.head.length, 0);
    const first = numberAt(this.head, TRANSACTION_AT);
    const second = numberAt(this.head, this.pageBytes + TRANSACTION_AT);
    this.newestAt = first > second ? 0 : this.pageBytes;
    return Math.max(first, second);
  }

  /** What `read` has read. */
  private state(): CommitState {
    const { head, newestAt, pageBytes } = this;
    const tree = newestAt + MAIN_TREE_AT;
    return {
      pageBytes,
      transaction: numberAt(head, newestAt + TRANSACTION_AT),
      lastPage: numberAt(head, newestAt + LAST_PAGE_AT),
      treePages: numberAt(head, tree + BRANCH_PAGES_AT) + numberAt(head, tree + LEAF_PAGES_AT),
    };
  }

  /** Stays open while LMDB has the file: closing any descriptor of it ends the locks that LMDB has there. */
  private openLockFile(): number {
    return (this.lockFile ??= openSync(lockOf(this.path), 'r+'));
  }

  private correct(last: number): void {
    const note = Buffer.alloc(8);
    note.writeBigUInt64LE(BigInt(last));
    writeSync(this.openLockFile(), note, 0, note.length, LOCKED_TRANSACTION_AT);
  }
}
