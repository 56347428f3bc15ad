import type { ObjectId } from 'bson';
import { storeOf } from '../database/database.js';

/** Delays between attempts as data: one entry per retry, milliseconds. */
export interface RetrySchedule {
  delaysMs: readonly number[];
  /** Work that must not be given up goes on with the last delay for ever. */
  endless?: boolean;
}

/** Up to this part is added to a delay at random, so that what failed together does not come back together. */
const JITTER = 0.1;

/**
 * Milliseconds until the next try after `failures` failed ones (1 = the first has failed), or null when it is given up.
 * `random` is in [0, 1).
 */
export function retryDelay(schedule: RetrySchedule, failures: number, random: number): number | null {
  const { delaysMs, endless } = schedule;
  const delay = delaysMs[failures - 1] ?? (endless ? delaysMs.at(-1) : undefined);
  return delay === undefined ? null : Math.round(delay * (1 + JITTER * random));
}

/**
 * A job as stored.
 *
 * | state | means |
 * |---|---|
 * | queued | waits for `runAt` |
 * | running | leased by one worker until `leaseUntil`; a worker that finds it later takes it back |
 * | dead | used up its attempts; kept for people until `expireAt` |
 * | done | kept until `expireAt` only because its key must not be used again so soon |
 */
export interface JobRecord {
  _id: ObjectId;
  name: string;
  /** Which share of a worker's concurrency it uses. */
  pool: string;
  payload: Record<string, unknown>;
  state: 'queued' | 'running' | 'dead' | 'done';
  priority: JobPriority;
  runAt: Date;
  /** Counted when leased, so that a job that kills its process is counted too. */
  attempts: number;
  /** Grows with every lease: what carries an older number comes too late. */
  fence: number;
  /** Among jobs that are queued, running or done there is one with this key. */
  uniqueKey?: string;
  /** Jobs of one lane run one after the other. */
  lane?: string;
  /** Whose job it is, where a kind's parties take turns. */
  party?: string;
  /**
   * The lane while this job occupies it: from its first lease until it is settled, pauses between attempts included.
   */
  heldLane?: string;
  workerId?: string;
  leaseUntil?: Date;
  /** Asked for again while running: it runs once more at this moment. */
  againAt?: Date;
  /** The latest moment for which it was asked with `rerun`: only a run that begins then or later is the last one. */
  lastAt?: Date;
  /** The time for which a finished job is kept; absent = not at all. */
  keepMs?: number;
  error?: string;
  createdAt: Date;
  updatedAt: Date;
  expireAt?: Date;
}

/** Lower runs first. */
export const JOB_PRIORITIES = [0, 1, 2] as const;
export type JobPriority = (typeof JOB_PRIORITIES)[number];
export const NORMAL_PRIORITY: JobPriority = 1;

export interface JobContext {
  jobId: ObjectId;
  /** 1 at the first try. */
  attempt: number;
  /** Grows with every lease of this job: a conditional write that compares it refuses a worker that lost the lease. */
  fence: number;
  /** Aborted when the lease is lost or the process cannot wait any longer: what follows would be refused. */
  signal: AbortSignal;
  /** Aborted when the worker is asked to stop: long work ends at its next good place. */
  stopping: AbortSignal;
}

/** Asks for one more run at that moment instead of finishing; its attempts are counted from zero. */
export interface RunAgain {
  again: Date;
  /** The run was none: it only put the work off, and the attempts so far count on. */
  putOff?: boolean;
}

/** A kind of background work. Its name is stored with waiting jobs: renaming one strands them. */
export interface JobDefinition<Deps, Payload extends object = Record<string, never>> {
  name: string;
  retry: RetrySchedule;
  /** True for an error that no repetition mends: the job is dead at once. */
  isFinal?: (error: unknown) => boolean;
  /**
   * The number of this kind that one worker runs at once, beside its other work; absent = they share the worker's
   * concurrency.
   */
  concurrency?: number;
  /**
   * The number of one party's jobs that a worker runs at once, the parties taking turns; every job of the kind then
   * names its party, and `concurrency` is given.
   */
  perParty?: number;
  /**
   * Must be harmless to repeat: it can run again after a crash at any line. An error it throws is logged and counts as
   * a failure.
   */
  run(deps: Deps, payload: Payload, context: JobContext): Promise<RunAgain | void>;
}

/** A definition whose payload type no longer matters, as the list in worker.ts holds it. */
// Payloads are checked where they are enqueued; a list of all definitions has no common payload type.
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyJobDefinition<Deps> = JobDefinition<Deps, any>;

/** The share of a worker's concurrency that all kinds without their own use. */
export const SHARED_POOL = 'shared';

export function poolOf(definition: { name: string; concurrency?: number }): string {
  return definition.concurrency === undefined ? SHARED_POOL : definition.name;
}

export const JOBS = 'jobs';

export const jobStore = storeOf<JobRecord>(JOBS);
