import type { Doc, Row } from '../codec/document.js';
import type { Call, Readers } from '../commands/command.js';
import type { RowSource } from '../commands/read/cursors.js';
import { CODES, EngineError } from '../errors.js';
import { numberOf } from '../query/values/value.js';
import type { LongRead } from '../storage/long-read.js';
import { partyOf } from '../scheduler.js';
import { packBody, type ReaderAnswer, type ReaderOptions, unpackBody, unpackError, unpackRows } from './messages.js';
import { ReaderThread } from './reader.js';

/** Commands that take turns in one thread, and those of one tenant, or of one client address, for each thread. */
const AT_ONCE = 4;
const AT_ONCE_OF_ONE = 2;
const MAX_WAITING = 1000;
const MAX_WAITING_OF_ONE = 500;
/**
 * A command ends itself at its time limit, or when its client leaves; a thread in which it then goes on for so long is
 * stuck.
 */
const GRACE_MS = 500;

/** Somebody who waits longer is refused: clients and proxies close a connection that says nothing for a minute. */
const MAX_WAIT_MS = 50_000;

interface Request {
  readonly db: string;
  readonly ns: string;
  readonly body: Doc;
  /** 0: no limit. */
  readonly maxTimeMs: number;
  readonly signal: AbortSignal | undefined;
  /** The only thread that can do it: its cursor is there. */
  readonly pinned: Thread | null;
}

interface Job extends Request {
  /** Of the client, whatever tenant it reads of; empty for the service itself and for servers. */
  readonly address: string;
  /** Its thread ended under it: it may be what ended it, so it begins again beside no other suspect. */
  suspect: boolean;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
  timer: NodeJS.Timeout | undefined;
  onAbort: (() => void) | undefined;
}

interface Thread {
  readonly reader: ReaderThread;
  readonly running: Map<number, Job>;
}

type Answer = { readonly from: Thread } & Exclude<ReaderAnswer, { refusal: unknown }>;
type RowsAnswer = Extract<Answer, { rows: unknown }>;

/**
 * Threads that run reads over the same data file, each started when it is first needed. A command sees every write that
 * was acknowledged before it began. The commands of a thread take turns as they do in the main one. A thread that is
 * stuck in a command beyond its time limit, or after its client has left, is ended; what else ran there begins again in
 * another.
 */
export class ReaderPool implements Readers {
  private readonly threads = new Set<Thread>();
  /** By tenant, each in the order of coming; the first tenant is next. */
  private readonly waiting = new Map<string, Job[]>();
  private waitingCount = 0;
  /** By client address. */
  private readonly waitingOf = new Map<string, number>();
  private lastId = 0;
  private suspectRuns = false;
  private closed = false;

  /** How many threads were started so far. */
  started = 0;
  /** Told of long reads of the threads. */
  onLongRead: ((read: LongRead) => void) | null = null;

  constructor(
    private readonly options: ReaderOptions,
    private readonly most: number,
    private readonly graceMs = GRACE_MS,
  ) {}

  async run({ core, db, signal }: Call, body: Doc): Promise<Doc> {
    const ns = `${db}.${String(Object.values(body)[0])}`;
    const maxTimeMs = numberOf(body['maxTimeMS']) ?? 0;
    const answer = await this.ask({ db, ns, body, maxTimeMs, signal, pinned: null });
    if ('reply' in answer) return unpackBody(answer.reply);
    const rows = new ThreadRows(this, answer, { db, ns: answer.ns, maxTimeMs, signal });
    return { cursor: await core.cursors.begin(answer.ns, rows, undefined) };
  }

  /** Ends all threads; what runs or waits is refused. */
  async close(): Promise<void> {
    this.closed = true;
    const reason = new Error('the engine is closed');
    for (const job of [...this.waiting.values()].flat()) this.refuse(job, reason);
    this.waiting.clear();
    this.waitingCount = 0;
    this.waitingOf.clear();
    await Promise.all([...this.threads].map((thread) => this.end(thread, () => reason)));
  }

  /** The answer of a thread to one command; rejects with what refused it. */
  ask(request: Request): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const address = partyOf(request.signal);
      const job: Job = { ...request, address, suspect: false, resolve, reject, timer: undefined, onAbort: undefined };
      if (request.signal?.aborted === true) {
        reject(interrupted());
      } else if (this.closed) {
        reject(new Error('the engine is closed'));
      } else if (request.pinned !== null) {
        this.start(request.pinned, job);
      } else if (this.isFull(tenantOf(request.ns), address)) {
        reject(tooManyWait());
      } else {
        this.enqueue(job);
      }
    });
  }

  /** Has a thread forget a cursor. */
  forget(thread: Thread, db: string, ns: string, cursor: bigint): void {
    if (thread.reader.isOver) return;
    const body = { killCursors: ns.slice(db.length + 1), cursors: [cursor] };
    this.ask({ db, ns, body, maxTimeMs: 0, signal: undefined, pinned: thread }).catch(() => undefined);
  }

  private enqueue(job: Job): void {
    const tenant = tenantOf(job.ns);
    const own = this.waiting.get(tenant);
    if (own === undefined) this.waiting.set(tenant, [job]);
    else own.push(job);
    this.waitingCount++;
    add(this.waitingOf, job.address, 1);
    job.onAbort = () => {
      this.leaveLine(job);
      this.refuse(job, interrupted());
    };
    job.signal?.addEventListener('abort', job.onAbort, { once: true });
    job.timer = setTimeout(() => {
      this.leaveLine(job);
      this.refuse(job, tooManyWait());
    }, MAX_WAIT_MS);
    this.startNext();
  }

  private startNext(): void {
    while (!this.closed) {
      const job = this.findNext();
      const thread = job === null ? null : this.freeThread();
      if (job === null || thread === null) return;
      this.leaveLine(job);
      release(job);
      try {
        this.start(thread, job);
      } catch (error) {
        this.refuse(job, error);
      }
    }
  }

  private isFull(tenant: string, address: string): boolean {
    if (this.waitingCount >= MAX_WAITING || (this.waiting.get(tenant)?.length ?? 0) >= MAX_WAITING_OF_ONE) return true;
    return address !== '' && (this.waitingOf.get(address) ?? 0) >= MAX_WAITING_OF_ONE;
  }

  /**
   * Tenants take turns, each with half of all places at most, as has each client address of however many tenants;
   * suspects come one after the other.
   */
  private findNext(): Job | null {
    const running = new Map<string, number>();
    const runningOf = new Map<string, number>();
    for (const thread of this.threads) {
      for (const { ns, address } of thread.running.values()) {
        add(running, tenantOf(ns), 1);
        add(runningOf, address, 1);
      }
    }
    const most = AT_ONCE_OF_ONE * this.most;
    const hasShare = ({ address }: Job): boolean => address !== '' && (runningOf.get(address) ?? 0) >= most;
    for (const [tenant, jobs] of this.waiting) {
      const hasAll = (running.get(tenant) ?? 0) >= most;
      const job = jobs.find((one) => (one.suspect ? !this.suspectRuns : !hasAll && !hasShare(one)));
      if (job !== undefined) return job;
    }
    return null;
  }

  /** Its tenant goes to the end of the line. */
  private leaveLine(job: Job): void {
    const tenant = tenantOf(job.ns);
    const others = this.waiting.get(tenant)!.filter((other) => other !== job);
    this.waiting.delete(tenant);
    if (others.length > 0) this.waiting.set(tenant, others);
    this.waitingCount--;
    add(this.waitingOf, job.address, -1);
  }

  /** The one with the least to do, a new one rather than one that has anything; null when all have enough. */
  private freeThread(): Thread | null {
    let best: Thread | null = null;
    for (const thread of this.threads) {
      if (best === null || thread.running.size < best.running.size) best = thread;
    }
    if (best === null || (best.running.size > 0 && this.threads.size < this.most)) return this.startThread();
    return best.running.size < AT_ONCE ? best : null;
  }

  private startThread(): Thread {
    const thread: Thread = {
      running: new Map(),
      reader: new ReaderThread(this.options, {
        ready: () => {
          for (const job of thread.running.values()) this.watch(thread, job);
        },
        answer: (answer) => {
          this.take(thread, answer);
        },
        longRead: (read) => this.onLongRead?.(read),
        ended: (error) => {
          void this.end(thread, (job, alone) => explainEnd(error, thread.reader.isReady, alone || job.suspect));
        },
      }),
    };
    this.threads.add(thread);
    this.started++;
    return thread;
  }

  private start(thread: Thread, job: Job): void {
    if (thread.reader.isOver) {
      this.refuse(job, interrupted());
      return;
    }
    const id = ++this.lastId;
    thread.reader.send({ id, db: job.db, body: packBody(job.body) });
    thread.running.set(id, job);
    if (job.suspect) this.suspectRuns = true;
    thread.reader.hold(true);
    job.onAbort = () => {
      job.reject(interrupted());
      if (thread.reader.isReady) thread.reader.send({ abort: id });
      clearTimeout(job.timer);
      job.timer = setTimeout(() => void this.endStuck(thread, job), this.graceMs);
    };
    job.signal?.addEventListener('abort', job.onAbort, { once: true });
    if (thread.reader.isReady) this.watch(thread, job);
  }

  /** From now on, when its thread has begun with it, the job's time runs. */
  private watch(thread: Thread, job: Job): void {
    if (job.maxTimeMs === 0 || job.timer !== undefined) return;
    job.timer = setTimeout(() => void this.endStuck(thread, job), job.maxTimeMs + this.graceMs);
  }

  private take(thread: Thread, answer: ReaderAnswer): void {
    const job = thread.running.get(answer.id);
    if (job === undefined) return;
    thread.running.delete(answer.id);
    this.settle(job);
    if (thread.running.size === 0) thread.reader.hold(false);
    if ('refusal' in answer) job.reject(unpackError(answer.refusal));
    else if (job.signal?.aborted !== true) job.resolve({ ...answer, from: thread });
    else if ('rows' in answer && answer.cursor !== 0n) this.forget(thread, job.db, answer.ns, answer.cursor);
    this.startNext();
  }

  private endStuck(thread: Thread, stuck: Job): Promise<void> {
    return this.end(thread, (job) =>
      job === stuck
        ? new EngineError(CODES.MaxTimeMSExpired, 'operation exceeded time limit')
        : job.suspect
          ? interrupted()
          : null,
    );
  }

  /** Ends a thread. What ran there is refused with `reason`, or begins again where that is null. */
  private async end(thread: Thread, reason: (job: Job, alone: boolean) => Error | null): Promise<void> {
    this.threads.delete(thread);
    const jobs = [...thread.running.values()];
    thread.running.clear();
    const ending = thread.reader.end();
    for (const job of jobs) {
      this.settle(job);
      const error = reason(job, jobs.length === 1);
      if (error !== null) job.reject(error);
      else if (job.pinned !== null || job.signal?.aborted === true) job.reject(interrupted());
      else this.enqueue(Object.assign(job, { suspect: true }));
    }
    this.startNext();
    await ending;
  }

  private refuse(job: Job, error: unknown): void {
    this.settle(job);
    job.reject(error);
  }

  private settle(job: Job): void {
    release(job);
    if (job.suspect) this.suspectRuns = false;
  }
}

/** The rest of a cursor whose first batch has come from a thread. */
class ThreadRows implements RowSource {
  finished: boolean;
  private first: Row[] | null;
  private readonly thread: Thread;
  private readonly cursor: bigint;

  constructor(
    private readonly pool: ReaderPool,
    { from, rows, cursor }: RowsAnswer,
    private readonly origin: Pick<Request, 'db' | 'ns' | 'maxTimeMs' | 'signal'>,
  ) {
    this.first = unpackRows(rows);
    this.thread = from;
    this.cursor = cursor;
    this.finished = cursor === 0n;
  }

  async next(most: number, signal = this.origin.signal): Promise<Row[]> {
    if (this.first !== null) {
      const rows = this.first;
      this.first = null;
      return rows;
    }
    const { db, ns } = this.origin;
    const body = { getMore: this.cursor, collection: ns.slice(db.length + 1), batchSize: most };
    const answer = await this.pool.ask({ ...this.origin, body, signal, pinned: this.thread });
    if (!('rows' in answer)) throw new Error('a reader thread answered no rows');
    this.finished = answer.cursor === 0n;
    return unpackRows(answer.rows);
  }

  close(): void {
    this.first = null;
    if (this.finished) return;
    this.finished = true;
    this.pool.forget(this.thread, this.origin.db, this.origin.ns, this.cursor);
  }
}

/** Collections whose names are the same up to the last `_` share their places and turns: they are of one owner. */
function tenantOf(ns: string): string {
  return ns.slice(0, ns.lastIndexOf('_') + 1) || ns;
}

function add(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

function tooManyWait(): EngineError {
  return new EngineError(CODES.TemporarilyUnavailable, 'too many reads are waiting');
}

function release(job: Job): void {
  clearTimeout(job.timer);
  job.timer = undefined;
  if (job.onAbort !== undefined) job.signal?.removeEventListener('abort', job.onAbort);
  job.onAbort = undefined;
}

function interrupted(): EngineError {
  return new EngineError(CODES.Interrupted, 'operation was interrupted');
}

/** Why a command has to be given up whose thread ended by itself; null where it may begin again. */
function explainEnd(error: Error, wasReady: boolean, isToBlame: boolean): Error | null {
  if (!wasReady) return new Error('a reader thread could not be started', { cause: error });
  if (!isToBlame) return null;
  if ((error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return new EngineError(CODES.ExceededMemoryLimit, 'the operation needs more memory than a reader thread has');
  }
  return new Error('a reader thread ended under a command', { cause: error });
}
