import { claimInTurn, claimJobs, hasDueJobs, type ClaimRequest } from './claim-jobs.js';
import { poolOf, SHARED_POOL, type AnyJobDefinition, type JobRecord } from './job.js';
import type { JobDependencies } from './job-queue.js';
import type { JobRun } from './run-job.js';

/** What runs at once in one process, by pool. */
export interface JobPools {
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

export interface PoolOptions<Deps> {
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
