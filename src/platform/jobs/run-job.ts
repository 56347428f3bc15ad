import { completeJob, extendLease, failJob, handBackJob } from './complete-job.js';
import type { AnyJobDefinition, JobRecord } from './job.js';
import type { JobDependencies } from './job-queue.js';
import { withSpan, type SpanOptions } from '../observe/telemetry.js';

/** A leased job under way in this process. */
export interface JobRun {
  job: JobRecord;
  /** Resolves, never rejects, when the job is complete or was handed to another process. */
  ended: Promise<void>;
  /**
   * Gives the job back to the queue and lets the run know that what it still does will be refused. Never rejects: a job
   * that cannot be given back is taken back when its lease is over.
   */
  handBack(): Promise<void>;
}

/** Runs a leased job, keeps its lease alive until it ends, and settles it. */
export function startJob<Deps extends JobDependencies>(
  deps: Deps,
  definition: AnyJobDefinition<Deps>,
  job: JobRecord,
  leaseMs: number,
  stopping: AbortSignal,
): JobRun {
  const lost = new AbortController();
  const log = deps.log.child({ job: job.name, jobId: job._id.toHexString(), attempt: job.attempts });

  const renewLease = async (): Promise<void> => {
    try {
      if (await extendLease(deps, job, leaseMs)) return;
      log.warn('the lease was lost while the job was running');
      lost.abort();
    } catch (error) {
      log.warn({ err: error }, 'the lease could not be extended');
    }
  };
  const heartbeat = setInterval(() => void renewLease(), leaseMs / 3);

  const run = async (): Promise<void> => {
    try {
      const context = { jobId: job._id, attempt: job.attempts, fence: job.fence, signal: lost.signal, stopping };
      const result = await withSpan(deps.telemetry, `job ${job.name}`, describeRun(job), () =>
        definition.run(deps, job.payload, context),
      );
      if (!(await completeJob(deps, job, result ?? null)) && !lost.signal.aborted) {
        log.warn('the job ended after its lease was lost: the completion is refused');
      }
    } catch (error) {
      if (lost.signal.aborted) return;
      const outcome = await failJob(deps, definition, job, error);
      if (outcome === 'dead') log.error({ err: error }, 'the job failed for the last time');
      else log.warn({ err: error, outcome }, 'the job failed');
    }
  };
  const ended = run()
    // The database is away: the lease runs out and the job is taken back.
    .catch((error: unknown) => log.error({ err: error }, 'the job could not be settled'))
    .finally(() => clearInterval(heartbeat));

  return {
    job,
    ended,
    async handBack() {
      clearInterval(heartbeat);
      await handBackJob(deps, job).catch((error: unknown) =>
        log.warn({ err: error }, 'the job could not be handed back'),
      );
      lost.abort();
    },
  };
}

function describeRun({ name, _id, attempts }: JobRecord): SpanOptions {
  return {
    kind: 'consumer',
    attributes: { 'bsvc.job.name': name, 'bsvc.job.id': _id.toHexString(), 'bsvc.job.attempt': attempts },
  };
}
