import { isDuplicateKey } from '../database/database.js';
import {
  JOB_PRIORITIES,
  jobStore,
  poolOf,
  SHARED_POOL,
  type JobPriority,
  type JobRecord,
  type AnyJobDefinition,
} from './job.js';
import type { JobDependencies } from './job-queue.js';
import type { JobRun } from './complete-job.js';

export interface ClaimRequest {
  workerId: string;
  pool: string;
  /** Kinds this worker knows: what a newer version enqueued is left to a newer worker. */
  names: readonly string[];
  leaseMs: number;
  limit: number;
  /** Others were faster lately: choose among more than the first few, so that not all workers try for the same jobs. */
  crowded: boolean;
}

/** Reading further than needed lets each of several workers find something that the others did not just take. */
const LOOK_AHEAD = 4;
const MIN_LOOK_AHEAD = 32;

/** True if a job of these pools is due: one look at an index, for workers that mostly find nothing. */
async function hasDueJobs(deps: JobDependencies, pools: readonly string[]): Promise<boolean> {
  if (pools.length === 0) return false;
  const filter = {
    pool: { $in: [...pools] },
    state: 'queued' as const,
    priority: { $in: [...JOB_PRIORITIES] },
    runAt: { $lte: new Date(deps.clock.now()) },
  };
  return (await jobStore(deps).findOne(filter, { projection: { _id: 1 } })) !== null;
}

/**
 * Leases up to `limit` due jobs, most urgent first, each by one conditional update, so that no job is leased twice.
 * `begin` gets each at once: what fails afterwards must not leave a leased job without a runner. Answers whether
 * another process was faster at some of them.
 */
export async function claimJobs(
  deps: JobDependencies,
  request: ClaimRequest,
  begin: (job: JobRecord) => void,
): Promise<boolean> {
  let claimed = 0;
  const busyLanes = new Set<string>();
  let crowded = false;
  for (const priority of JOB_PRIORITIES) {
    while (claimed < request.limit) {
      const wanted = request.limit - claimed;
      const lookAhead = Math.max(wanted * LOOK_AHEAD, MIN_LOOK_AHEAD);
      const candidates = await findCandidates(deps, request, priority, lookAhead, busyLanes);
      if (candidates.length === 0) break;
      const heads = firstOfEachLane(candidates);
      const chosen: JobRecord[] = (request.crowded || crowded ? shuffle(heads) : heads).slice(0, wanted);
      const claims = chosen.map((candidate) => claimOne(deps, request, candidate, busyLanes, begin));
      // When one of them fails the others may still begin something, which the caller has to know of.
      await Promise.allSettled(claims);
      const outcomes = await Promise.all(claims);
      claimed += outcomes.filter((outcome) => outcome === 'leased').length;
      crowded ||= outcomes.includes('taken');
    }
  }
  return crowded;
}

/**
 * Leases one due job of the party that is next after `after`, in the order of their names and round again, passing over
 * those in `full`; within a party the earliest. However many jobs a party has, finding the next one is a few looks at
 * an index. Answers the party, or null if no job is due.
 */
export async function claimInTurn(
  deps: JobDependencies,
  request: ClaimRequest,
  { after, full }: { after: string; full: ReadonlySet<string> },
  begin: (job: JobRecord) => void,
): Promise<string | null> {
  for (const priority of JOB_PRIORITIES) {
    for (const start of [after, '']) {
      let from = start;
      for (;;) {
        const candidate = await findOfNextParty(deps, request, priority, from);
        if (!candidate) break;
        const party = candidate.party!;
        if (full.has(party)) from = party;
        else if ((await claimOne(deps, request, candidate, new Set(), begin)) === 'leased') return party;
      }
    }
  }
  return null;
}

async function findOfNextParty(
  deps: JobDependencies,
  request: ClaimRequest,
  priority: JobPriority,
  from: string,
): Promise<JobRecord | undefined> {
  const filter = { ...dueJobs(deps, request, priority), party: { $gt: from } };
  const [found] = await jobStore(deps).find(filter).sort({ party: 1, runAt: 1, _id: 1 }).limit(1).toArray();
  return found;
}

function dueJobs(deps: JobDependencies, { pool, names }: ClaimRequest, priority: JobPriority) {
  return {
    pool,
    state: 'queued' as const,
    priority,
    runAt: { $lte: new Date(deps.clock.now()) },
    name: { $in: [...names] },
  };
}

function shuffle<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

function findCandidates(
  deps: JobDependencies,
  request: ClaimRequest,
  priority: JobPriority,
  limit: number,
  busyLanes: ReadonlySet<string>,
): Promise<JobRecord[]> {
  const filter = {
    ...dueJobs(deps, request, priority),
    ...(busyLanes.size > 0 && { $or: [{ lane: { $nin: [...busyLanes] } }, { heldLane: { $exists: true } }] }),
  };
  return jobStore(deps).find(filter).sort({ runAt: 1, _id: 1 }).limit(limit).toArray();
}

/** A lane runs in order: the job that holds it, because it waited to be retried, comes first, then the earliest. */
function firstOfEachLane(candidates: JobRecord[]): JobRecord[] {
  const seen = new Set(candidates.flatMap(({ heldLane }) => heldLane ?? []));
  return candidates.filter(
    ({ lane, heldLane }) => lane === undefined || heldLane !== undefined || (!seen.has(lane) && seen.add(lane)),
  );
}

async function claimOne(
  deps: JobDependencies,
  { workerId, leaseMs }: ClaimRequest,
  { _id, fence, lane, heldLane }: JobRecord,
  busyLanes: Set<string>,
  begin: (job: JobRecord) => void,
): Promise<'leased' | 'taken' | 'blocked'> {
  const nowMs = deps.clock.now();
  try {
    const leased = await jobStore(deps).findOneAndUpdate(
      { _id, state: 'queued', fence },
      {
        $set: {
          state: 'running',
          workerId,
          leaseUntil: new Date(nowMs + leaseMs),
          updatedAt: new Date(nowMs),
          ...(lane !== undefined && heldLane === undefined && { heldLane: lane }),
        },
        $inc: { fence: 1, attempts: 1 },
      },
      { returnDocument: 'after' },
    );
    if (lane !== undefined) busyLanes.add(lane);
    if (!leased) return 'taken';
    begin(leased);
    return 'leased';
  } catch (error) {
    // The unique index on heldLane: another job of the lane is under way, or waits to be retried.
    if (lane === undefined || !isDuplicateKey(error)) throw error;
    busyLanes.add(lane);
    return 'blocked';
  }
}

/** What runs at once in one process, by pool. */
interface JobPools {
  /** Claims and starts due jobs where there is room; answers those that were started. */
  fill(): Promise<JobRun[]>;
  underWay(): JobRun[];
}

interface Pool {
  pool: string;
  names: string[];
  most: number;
  perParty: number | undefined;
  running: Set<JobRun>;
  /** The party that was served last. */
  served: string;
}

interface PoolOptions<Deps> {
  definitions: readonly AnyJobDefinition<Deps>[];
  /** The number of jobs of the shared pool that run at once. */
  concurrency: number;
  workerId: string;
  leaseMs: number;
  /** Runs a job that was claimed. */
  begin: (job: JobRecord) => JobRun;
  /** Called when a run ended, whose place is free then. */
  onEnd: () => void;
}

/** The pools of the given kinds of jobs, all of them empty. */
export function openJobPools<Deps extends JobDependencies>(
  deps: Deps,
  { definitions, concurrency, workerId, leaseMs, begin, onEnd }: PoolOptions<Deps>,
): JobPools {
  const pools = listPools(definitions, concurrency);
  let crowded = false;
  const start = ({ running }: Pool, job: JobRecord): JobRun => {
    const run = begin(job);
    running.add(run);
    void run.ended.then(() => {
      running.delete(run);
      onEnd();
    });
    return run;
  };
  return {
    async fill() {
      const started: JobRun[] = [];
      const open = pools.filter(({ running, most }) => running.size < most);
      const isDue = await hasDueJobs(
        deps,
        open.map(({ pool }) => pool),
      );
      if (!isDue) return started;
      for (const each of open) {
        const { pool, names, most, running, perParty } = each;
        const request = { workerId, pool, names, leaseMs, limit: most - running.size, crowded };
        const begun = (job: JobRecord): void => void started.push(start(each, job));
        if (perParty === undefined) crowded = await claimJobs(deps, request, begun);
        else await fillInTurn(deps, each, perParty, request, begun);
      }
      return started;
    },
    underWay: () => pools.flatMap(({ running }) => [...running]),
  };
}

/** One job after the other, each of the next party that has not its share already. */
async function fillInTurn(
  deps: JobDependencies,
  pool: Pool,
  perParty: number,
  request: ClaimRequest,
  begin: (job: JobRecord) => void,
): Promise<void> {
  for (let left = request.limit; left > 0; left--) {
    const counts = new Map<string, number>();
    for (const { job } of pool.running) counts.set(job.party!, (counts.get(job.party!) ?? 0) + 1);
    const full = new Set([...counts].filter(([, count]) => count >= perParty).map(([party]) => party));
    const party = await claimInTurn(deps, request, { after: pool.served, full }, begin);
    if (party === null) return;
    pool.served = party;
  }
}

function listPools(definitions: readonly AnyJobDefinition<never>[], concurrency: number): Pool[] {
  const pools = new Map<string, Pool>();
  for (const definition of definitions) {
    const pool = poolOf(definition);
    const most = pool === SHARED_POOL ? concurrency : definition.concurrency!;
    const fresh = { pool, names: [], most, perParty: definition.perParty, running: new Set<JobRun>(), served: '' };
    const known = pools.get(pool) ?? fresh;
    known.names.push(definition.name);
    pools.set(pool, known);
  }
  return [...pools.values()];
}
