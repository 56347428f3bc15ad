import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Environment } from './file/environment.js';
import { failsTransaction, translateStorageError } from './file/translate-error.js';
import { addEntry, emptySize, type TransactionSize } from './file/preallocation.js';

/** How long one write transaction may gather work before it commits and the rest waits for the next turn. */
const TRANSACTION_MS = 4;
const TRANSACTION_PUTS = 1024;
/** The same where the disk is nearly full, so that each needs little room at once. */
const TIGHT_TRANSACTION_PUTS = 64;

/** A piece of work; how it went is told when the commit that it made, or met, is safe. */
class WriteJob {
  /** Set when it failed a transaction together with others: it gets one of its own. */
  isAlone = false;
  isRefused = false;
  /** What it came to, or the error with which it was refused. */
  result: unknown = undefined;
  commit = -1;

  constructor(
    readonly run: () => unknown,
    readonly resolve: (value: unknown) => void,
    readonly reject: (error: unknown) => void,
  ) {}
}

/** Hooks around the jobs of a write transaction, inside of it. */
export interface TransactionHooks {
  begin(): void;
  beforeCommit(): void;
  aborted(): void;
}

/**
 * Group commit: everything that was asked to write within a turn of the event loop, or while the disk takes the commit
 * before, runs in one LMDB transaction and shares its syncs. A promise resolves when the disk has its work, so an
 * acknowledged write is never lost. Until then reading goes on, and sees it already.
 */
export class CommitQueue {
  private readonly waiting: WriteJob[] = [];
  /** Committed, or found to be so, and not yet known to be safe; the oldest first. */
  private readonly unsafe: WriteJob[] = [];
  private working: Promise<void> | null = null;
  /** The last commit that this process has made. */
  private last = -1;
  private startedAt = 0;
  /** What the current transaction has written so far. */
  private size: TransactionSize = emptySize();
  private closed = false;
  /** True inside a transaction, whose own changes are not counted yet. */
  writing = false;
  /** Where a job has its writes noted, by key: null for what is removed. */
  noted: Map<string, Buffer | null> | null = null;

  constructor(
    private readonly environment: Environment,
    private readonly hooks: TransactionHooks,
  ) {}

  /**
   * Runs `job` inside the next write transaction. It must do all its checks before its first put: a throw before that
   * refuses only this job. Large work looks at `expired` and comes back with another call for the rest; it must not
   * change anything outside the transaction, because it runs again when its neighbour's failure undid it.
   */
  write<T>(job: () => T): Promise<T> {
    if (this.closed) return Promise.reject(new Error('the engine is closed'));
    return new Promise<T>((resolve, reject) => {
      this.waiting.push(new WriteJob(job, resolve as (value: unknown) => void, reject));
      this.working ??= this.work();
    });
  }

  /** True when the current transaction has gathered enough and a long job should stop after its current document. */
  expired(): boolean {
    const most = this.environment.isTight() ? TIGHT_TRANSACTION_PUTS : TRANSACTION_PUTS;
    return this.size.entries >= most || performance.now() - this.startedAt > TRANSACTION_MS;
  }

  put(key: Buffer, value: Buffer): void {
    addEntry(this.size, key.length, value.length);
    this.environment.store.putSync(key, value);
    this.noted?.set(key.toString('latin1'), Buffer.from(value));
  }

  /** Puts a document that was not there. */
  insert(key: Buffer, value: Buffer): void {
    this.size.hasInserts = true;
    this.put(key, value);
  }

  remove(key: Buffer): void {
    this.size.entries++;
    this.environment.store.removeSync(key);
    this.noted?.set(key.toString('latin1'), null);
  }

  /** Writes again what was noted. */
  repeat(noted: ReadonlyMap<string, Buffer | null>): void {
    for (const [name, value] of noted) {
      const key = Buffer.from(name, 'latin1');
      if (value === null) this.remove(key);
      else this.insert(key, value);
    }
  }

  /** True as long as the current transaction has written nothing. */
  isUntouched(): boolean {
    return this.size.entries === 0;
  }

  /** Refuses further work; resolves when what is waiting is committed and safe. */
  async close(): Promise<void> {
    this.closed = true;
    await this.working;
  }

  /** Goes on until nothing waits. It begins in the next turn: what this one asks for comes together. */
  private async work(): Promise<void> {
    const { commits } = this.environment;
    await nextTurn();
    try {
      do {
        const isDone = this.waiting.length > 0 ? this.commit() : this.note();
        if (!isDone || commits.needsSync(this.last)) await this.environment.sync();
        else if (this.waiting.length > 0) await nextTurn();
        this.tellSafe();
      } while (this.waiting.length > 0 || this.unsafe.length > 0 || commits.needsNote(this.last));
    } catch (error) {
      this.fail(error);
    }
    this.working = null;
  }

  /** Notes that the disk has the last commit, which a commit of more does by itself. False: it may not have it. */
  private note(): boolean {
    return !this.environment.commits.needsNote(this.last) || this.environment.tryCommit(() => undefined) !== null;
  }

  /** Commits some of what waits. False, with nothing done: the disk may not have the commit before. */
  private commit(): boolean {
    const jobs: WriteJob[] = [];
    try {
      const last = this.transaction(() => {
        do {
          const job = this.waiting.shift()!;
          jobs.push(job);
          this.attempt(job);
          if (job.isAlone) return;
        } while (this.waiting[0]?.isAlone === false && !this.expired());
      });
      if (last === null) return false;
      this.last = last;
      for (const job of jobs) {
        job.commit = last;
        this.unsafe.push(job);
      }
    } catch (error) {
      this.hooks.aborted();
      if (jobs.length > 1) {
        // One job's failure undid a shared transaction: each gets its own, so that only the faulty one fails.
        for (const job of jobs) job.isAlone = true;
        this.waiting.unshift(...jobs);
      } else {
        // A transaction that cannot even begin cannot for those that wait either: they must not wait for ever.
        this.refuse(jobs.length === 0 ? this.waiting.splice(0) : jobs, error);
      }
    }
    return true;
  }

  private tellSafe(): void {
    const { safe } = this.environment.commits;
    const next = this.unsafe.findIndex(({ commit }) => commit > safe);
    for (const job of this.unsafe.splice(0, next < 0 ? Infinity : next)) {
      if (job.isRefused) this.refuse([job], job.result);
      else job.resolve(job.result);
    }
  }

  private fail(error: unknown): void {
    this.refuse([...this.unsafe.splice(0), ...this.waiting.splice(0)], error);
  }

  private refuse(jobs: readonly WriteJob[], error: unknown): void {
    for (const job of jobs) job.reject(translateStorageError(error, this.environment.path));
  }

  private transaction(work: () => void): number | null {
    this.writing = true;
    try {
      return this.environment.tryCommit(() => {
        this.startedAt = performance.now();
        this.size = emptySize();
        this.hooks.begin();
        work();
        this.hooks.beforeCommit();
        return this.size;
      });
    } finally {
      this.writing = false;
    }
  }

  private attempt(job: WriteJob): void {
    const before = this.size.entries;
    job.isRefused = false;
    try {
      job.result = job.run();
    } catch (error) {
      // What others have written in this transaction is undone with it: each of them gets one of its own.
      if (this.size.entries !== before || failsTransaction(error)) throw error;
      job.isRefused = true;
      job.result = error;
    }
  }
}
