import type { Environment } from './file/environment.js';
import { failsTransaction, translateStorageError } from './file/translate-error.js';
import { addEntry, emptySize, type TransactionSize } from './file/preallocation.js';

/** How long one write transaction may gather work before it commits and the rest waits for the next turn. */
const TRANSACTION_MS = 4;
const TRANSACTION_PUTS = 1024;
/** The same where the disk is nearly full, so that each needs little room at once. */
const TIGHT_TRANSACTION_PUTS = 64;

interface WriteJob {
  run(): unknown;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** Hooks around the jobs of a write transaction, inside of it. */
export interface TransactionHooks {
  begin(): void;
  beforeCommit(): void;
  aborted(): void;
}

/**
 * Group commit: everything that was asked to write within a turn of the event loop runs in one LMDB transaction and
 * shares its sync. A promise resolves when its work is committed, so an acknowledged write is never lost.
 */
export class CommitQueue {
  private readonly waiting: WriteJob[] = [];
  private scheduled = false;
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
      this.waiting.push({ run: job, resolve: resolve, reject });
      if (!this.scheduled) {
        this.scheduled = true;
        setImmediate(() => {
          this.commit();
        });
      }
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

  /** Commits what is waiting, then refuses further work. */
  close(): void {
    while (this.waiting.length > 0) this.commit();
    this.closed = true;
  }

  private commit(): void {
    this.scheduled = false;
    // What was waiting may have been committed by `close`.
    if (this.waiting.length === 0) return;
    const jobs: WriteJob[] = [];
    const outcomes: (() => void)[] = [];
    try {
      this.transaction(() => {
        // The store may not run the callback twice, but an aborted attempt must not leave outcomes behind.
        while (this.waiting.length > 0 && (jobs.length === 0 || !this.expired())) {
          const job = this.waiting.shift()!;
          jobs.push(job);
          outcomes.push(this.attempt(job));
        }
      });
      for (const settle of outcomes) settle();
    } catch (error) {
      this.hooks.aborted();
      // A transaction that cannot even begin cannot for those that wait either: they must not wait for ever.
      const failed = jobs.length === 0 ? this.waiting.splice(0) : jobs;
      if (jobs.length > 1) for (const job of jobs) this.commitAlone(job);
      else for (const job of failed) job.reject(translateStorageError(error, this.environment.path));
    }
    if (this.waiting.length > 0 && !this.scheduled) {
      this.scheduled = true;
      setImmediate(() => {
        this.commit();
      });
    }
  }

  /** One job's failure undid a shared transaction: each gets its own, so that only the faulty one fails. */
  private commitAlone(job: WriteJob): void {
    try {
      let settle: (() => void) | undefined;
      this.transaction(() => {
        settle = this.attempt(job);
      });
      settle?.();
    } catch (error) {
      this.hooks.aborted();
      job.reject(translateStorageError(error, this.environment.path));
    }
  }

  private transaction(work: () => void): void {
    this.writing = true;
    try {
      this.environment.commit(() => {
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

  private attempt(job: WriteJob): () => void {
    const before = this.size.entries;
    try {
      const value = job.run();
      return () => {
        job.resolve(value);
      };
    } catch (error) {
      // What others have written in this transaction is undone with it: each of them gets one of its own.
      if (this.size.entries !== before || failsTransaction(error)) throw error;
      return () => {
        job.reject(translateStorageError(error, this.environment.path));
      };
    }
  }
}
