import { ObjectId } from 'bson';
import type { Clock, ServiceClock } from '../time/clock.js';
import { isDuplicateKey, type Database, type Exists, type Transaction, type WriteTurn } from '../database/database.js';
import type { Logger } from '../observe/logger.js';
import type { PubSub } from '../processes/hints.js';
import type { Telemetry } from '../observe/telemetry.js';
import { JOBS, jobStore, NORMAL_PRIORITY, poolOf, type JobPriority, type JobRecord } from './job.js';

export interface EnqueueOptions {
  /** One job with this key at a time; see `whenPresent`. */
  uniqueKey?: string;
  /**
   * The effect of a second job with the same key. `keep` (the default): none, the first one stands for both. `rerun`:
   * the waiting one runs at the earlier of the two moments, a running one once more afterwards, and neither is done
   * before a run that begins at the later one, so that nothing is missed that is noticed late or about to happen.
   */
  whenPresent?: 'keep' | 'rerun';
  /**
   * Jobs of one lane run one after the other, also across workers; while one waits to be retried the others wait too.
   */
  lane?: string;
  /** Whose job it is; see `JobDefinition.perParty`. */
  party?: string;
  priority?: JobPriority;
  runAt?: Date;
  /** Keeps the finished job, and with it its key, this long. */
  keepMs?: number;
}

/**
 * The part of a definition that enqueueing needs; ties the payload to what `run` takes. Without `run` where the job
 * itself is above the code that asks for it.
 */
export interface Enqueueable<Payload extends object> {
  name: string;
  concurrency?: number;
  run?(deps: never, payload: Payload, context: never): unknown;
}

/** The side of the queue that hands in work. */
export interface JobQueue {
  /** Stores one job by a single write; true when it is a new one, false when its key was taken. */
  enqueue<Payload extends object>(
    definition: Enqueueable<Payload>,
    payload: Payload,
    options?: EnqueueOptions,
  ): Promise<boolean>;
  /** Wakes the workers: there may be something to do. */
  wake(): void;
  /** Calls `listener` at every wake-up; returns how to stop that. */
  onWake(listener: () => void): () => void;
}

/** The dependencies of every part of the queue; the App has them. */
export interface JobDependencies {
  readonly db: Database;
  readonly clock: ServiceClock;
  readonly log: Logger;
  readonly jobs: JobQueue;
  readonly telemetry?: Telemetry | null;
}

const WAKE = 'wake';
const TOGETHER_MS = 10;

/**
 * Opens the queue on the database; the same collection serves every process. Workers elsewhere are woken by `signals`.
 */
export function openJobQueue(db: Database, clock: Clock, signals: PubSub | null): JobQueue {
  const listeners = new Set<() => void>();
  const wakeHere = (): void => {
    for (const listener of listeners) listener();
  };
  let telling = false;
  /** Workers elsewhere look by themselves every second; many jobs in a row need one word. */
  const wakeOthers = (to: PubSub): void => {
    if (telling) return;
    telling = true;
    setTimeout(() => {
      telling = false;
      to.send(WAKE);
    }, TOGETHER_MS).unref();
  };
  const wake = (): void => {
    wakeHere();
    if (signals) wakeOthers(signals);
  };
  signals?.on((text) => {
    if (text === WAKE) wakeHere();
  });
  return {
    async enqueue(definition, payload, options = {}) {
      const isNew = await insertOrMerge(db, buildRecord(definition, payload, options, clock.now()), options);
      wake();
      return isNew;
    },
    wake,
    onWake(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function buildRecord(
  definition: { name: string; concurrency?: number },
  payload: object,
  options: EnqueueOptions,
  nowMs: number,
): JobRecord {
  const now = new Date(nowMs);
  return {
    _id: new ObjectId(),
    name: definition.name,
    pool: poolOf(definition),
    payload: payload as Record<string, unknown>,
    state: 'queued',
    priority: options.priority ?? NORMAL_PRIORITY,
    runAt: options.runAt ?? now,
    attempts: 0,
    fence: 0,
    ...(options.uniqueKey !== undefined && { uniqueKey: options.uniqueKey }),
    ...(options.lane !== undefined && { lane: options.lane }),
    ...(options.party !== undefined && { party: options.party }),
    ...(options.keepMs !== undefined && { keepMs: options.keepMs }),
    ...(options.whenPresent === 'rerun' && { lastAt: options.runAt ?? now }),
    createdAt: now,
    updatedAt: now,
  };
}

/**
 * The job with the same key can be settled, leased or handed back between any two statements: whichever one no longer
 * fits is tried again.
 */
async function insertOrMerge(db: Database, record: JobRecord, options: EnqueueOptions): Promise<boolean> {
  const jobs = jobStore({ db });
  const { uniqueKey, runAt } = record;
  for (;;) {
    if (uniqueKey !== undefined && options.whenPresent === 'rerun') {
      const last = { $max: { lastAt: runAt } };
      const waiting = await jobs.updateOne({ uniqueKey, state: 'queued' }, { $min: { runAt }, ...last });
      if (waiting.matchedCount > 0) return false;
      const running = await jobs.updateOne({ uniqueKey, state: 'running' }, { $min: { againAt: runAt }, ...last });
      if (running.matchedCount > 0) return false;
    }
    try {
      await jobs.insertOne(record);
      return true;
    } catch (error) {
      if (uniqueKey === undefined || !isDuplicateKey(error)) throw error;
      if (options.whenPresent !== 'rerun' || (await jobs.findOne({ uniqueKey, state: 'done' }))) return false;
    }
  }
}

/** A job that the transaction stores which causes it: to be called in there. Workers are to be woken afterwards. */
export function putJob<Payload extends object>(
  { clock }: { readonly clock: Clock },
  definition: Enqueueable<Payload>,
  payload: Payload,
  options: EnqueueOptions,
): (tx: Transaction) => void {
  const record = buildRecord(definition, payload, options, clock.now());
  return (tx) => tx.put(JOBS, record);
}

/**
 * A job as a turn of the transaction that causes it, so that it comes in any case and never without its cause; stored
 * where `isWanted` says so then. Workers are to be woken afterwards.
 */
export function jobTurn<Payload extends object>(
  { clock }: { readonly clock: Clock },
  definition: Enqueueable<Payload>,
  payload: Payload,
  isWanted: (exists: Exists) => boolean = () => true,
): WriteTurn {
  const record = buildRecord(definition, payload, {}, clock.now());
  return {
    collection: JOBS,
    id: record._id,
    run: (stored, exists) => stored ?? (isWanted(exists) ? { ...record } : null),
  };
}
