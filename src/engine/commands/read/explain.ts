import { type Doc, isDocument } from '../../codec/document.js';
import { CODES, EngineError, typeMismatch } from '../../errors.js';
import { compilePipeline } from '../../pipeline/compile.js';
import { planDistinct, DistinctScan } from '../../planner/scans/distinct-scan.js';
import { presentConsidered, presentCountPlan, presentDistinctPlan, presentPlan } from '../../planner/explain.js';
import type { Plan } from '../../planner/plan.js';
import type { Collation } from '../../query/collation/collation.js';
import { EntrySkip, skipsEntries } from '../../planner/scans/entry-skip.js';
import { PlanScan, type ReadingScan } from '../../planner/scans/scan.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import { numberOf } from '../../query/values/value.js';
import { View } from '../../storage/view.js';
import { command, requireNamespace } from '../command.js';
import { anything, countOption } from '../options.js';
import { openPace, type Pace } from '../pace.js';
import { deleteCommand, readDeletes } from '../write/delete.js';
import { findAndModify } from '../write/find-and-modify.js';
import { readUpdates, update } from '../write/update.js';
import { aggregate, pacedBudget } from './aggregate.js';
import { countCommand } from './count.js';
import { distinct } from './distinct.js';
import { find } from './find.js';
import { readNear } from './near-rows.js';
import {
  checkStillThere,
  compileQuery,
  leaveIfLong,
  openScan,
  planQuery,
  planQueryOf,
  plansOf,
  type Query,
} from './query.js';
import { readVariables } from './variables.js';
import type { Budget } from '../../pipeline/budget.js';
import { readGeoNear } from '../../query/geometry/geo-near.js';
import type { ExpressionContext } from '../../query/expression.js';
import { chooseNearestIndex, readNearest } from './read-nearest.js';

/** The parts of a command on which its plan depends. */
interface Explained {
  readonly filter: Doc;
  readonly sort?: Doc;
  readonly hint: unknown;
  readonly collation: Collation | null;
  readonly limit?: number;
  readonly skip?: number;
  /** The field of a `distinct`. */
  readonly key?: string;
  /** The `$geoNear` that a pipeline begins with. */
  readonly near?: unknown;
}

/** Each command that can be explained, read by its own table. */
const READERS: Readonly<Record<string, (body: Doc) => Explained>> = {
  find: (body) => explainFind(find.read(body, 'find')),
  count: (body) => explainQuery(countCommand.read(body, 'count')),
  distinct: (body) => explainQuery(distinct.read(body, 'distinct')),
  findAndModify: (body) => ({ ...explainQuery(findAndModify.read(body, 'findAndModify')), limit: 1, skip: 0 }),
  update: (body) => explainStatement(readUpdates(update.read(body, 'update').updates)),
  delete: (body) => explainStatement(readDeletes(deleteCommand.read(body, 'delete').deletes)),
  aggregate: (body) => leadingStages(aggregate.read(body, 'aggregate')),
};

function explainFind(options: ReturnType<typeof find.read>): Explained {
  const near = readNear(options.filter);
  if (near === null) return options;
  return Object.keys(options.sort).length > 0
    ? { ...options, filter: near.condition }
    : { ...options, filter: {}, near: near.spec };
}

function explainQuery<T extends { query: Doc; hint: unknown; collation: Collation | null }>({
  query,
  ...options
}: T): Explained {
  return { ...options, filter: query };
}

function explainStatement([statement]: readonly { q: Doc; hint: unknown; collation: Collation | null }[]): Explained {
  return { filter: statement!.q, hint: statement!.hint, collation: statement!.collation };
}

export const explain = command({
  options: { verbosity: anything, maxTimeMS: countOption(undefined) },
  leaves: true,
  async run(call, { verbosity, maxTimeMS }, inner) {
    if (!isDocument(inner)) throw typeMismatch("BSON field 'explain' must be an object");
    const name = Object.keys(inner)[0] ?? '';
    if (!Object.hasOwn(READERS, name)) {
      throw new EngineError(CODES.CommandNotFound, `Explain failed due to unknown command: ${name}`);
    }
    const ns = requireNamespace(call, inner[name]);
    const { filter, sort = {}, hint, collation, limit = 0, skip = 0, key, near } = READERS[name]!(inner);
    const environment = readVariables(undefined, collation);
    const query = compileQuery(filter, sort, hint, environment);
    const most = limit === 0 ? 0 : limit + skip;
    const pace = openPace(call, maxTimeMS);
    const { storage } = call.core;
    storage.refresh();
    const collection = storage.catalog.find(ns);
    const reply: Doc = { explainVersion: '1' };
    if (collection === null) {
      return {
        ...reply,
        queryPlanner: { namespace: ns, parsedQuery: filter, winningPlan: { stage: 'EOF' }, rejectedPlans: [] },
      };
    }
    if (near !== undefined) {
      const nearest = explainNearest(storage, collection, near, environment);
      const { winningPlan } = nearest;
      reply['queryPlanner'] = { namespace: ns, parsedQuery: nearest.filter, winningPlan, rejectedPlans: [] };
      if (verbosity === 'queryPlanner') return reply;
      const view = new View(storage);
      try {
        const wanted = most === 0 ? Infinity : most;
        reply['executionStats'] = await nearest.execute(view, pacedBudget(pace, view), wanted);
      } finally {
        view.release();
      }
      return reply;
    }
    const distinct = key === undefined ? null : planDistinct(collection, planQueryOf(collection, query, most), key);
    const plan = distinct?.plan ?? planQuery(storage, collection, query, most);
    if (distinct === null && verbosity !== 'queryPlanner') {
      leaveIfLong(pace, storage, collection, query, most === 0 ? plan : null);
    }
    reply['queryPlanner'] = {
      namespace: ns,
      parsedQuery: filter,
      winningPlan:
        distinct !== null
          ? presentDistinctPlan(plan)
          : name === 'count'
            ? presentCountPlan(plan)
            : presentPlan(plan, { sort, limit, skip }),
      ...plansConsidered(storage, collection, query, plan, most),
    };
    if (verbosity !== 'queryPlanner') {
      const scan =
        distinct === null
          ? openScan(storage, collection, plan, query)
          : new DistinctScan(storage, collection, distinct, new View(storage), name === 'aggregate');
      reply['executionStats'] = await execute(storage, collection, scan, query, { most, skip, pace });
    }
    return reply;
  },
});

/** What every plan was expected to read: of the one that is taken, and of the others. */
function plansConsidered(
  storage: Storage,
  collection: CollectionEntry,
  query: Query,
  plan: Plan,
  most: number,
): { estimate?: unknown; rejectedPlans: Doc[] } {
  const considered = plansOf(storage, collection, query, most);
  const isTaken = (other: Plan): boolean =>
    other.index === plan.index && other.branches?.length === plan.branches?.length && other.merges === plan.merges;
  const taken = considered.find((one) => isTaken(one.plan));
  const others = considered.filter((one) => one !== taken);
  return {
    ...(taken === undefined ? {} : { estimate: presentConsidered(taken)['estimate'] }),
    rejectedPlans: others.map(presentConsidered),
  };
}

/** The stages that the collection answers, as they are joined when they run; or a $geoNear and its $limit. */
function leadingStages({ pipeline, hint, collation, let: variables }: ReturnType<typeof aggregate.read>): Explained {
  const stages = Array.isArray(pipeline) ? (pipeline as Doc[]) : [];
  const near = stages[0]?.['$geoNear'];
  if (near !== undefined) {
    const limit = numberOf(stages[1]?.['$limit']) ?? 0;
    return { filter: {}, hint, collation, limit, near };
  }
  const { leading } = compilePipeline(pipeline, { environment: readVariables(variables, collation) });
  const { filter, sort, skip, limit, distinct } = leading;
  const key = distinct === null || collation !== null ? {} : { key: distinct };
  return { filter: filter ?? {}, sort: sort ?? {}, skip, limit: limit ?? 0, hint, collation, ...key };
}

/** Runs the plan without keeping anything, to tell how much it reads. */
async function execute(
  storage: Storage,
  collection: CollectionEntry,
  scan: ReadingScan,
  query: Query,
  { most, skip, pace }: { most: number; skip: number; pace: Pace },
): Promise<Doc> {
  const { plan } = scan;
  const started = performance.now();
  let found = 0;
  if (scan instanceof PlanScan && skipsEntries(plan, skip)) {
    const entries = new EntrySkip(storage, plan, new View(storage), skip);
    for (let place = entries.readChunk(); ; place = entries.readChunk()) {
      if (place !== null) {
        scan.goTo(place);
        found = skip;
        break;
      }
      if (pace.due(entries.pages)) await pace.rest();
    }
  }
  const enough = query.sort === null || plan.sorted ? (most === 0 ? Infinity : most) : Infinity;
  while (!scan.finished && found < enough) {
    // No more entries than a find would read.
    scan.readChunk(() => ++found >= enough, plan.exact && enough - found < 512 ? enough - found : undefined);
    if (pace.due(scan.lastRead)) {
      await pace.rest();
      checkStillThere(storage, collection, plan);
    }
  }
  return {
    executionSuccess: true,
    nReturned: Math.max(0, Math.min(found, most === 0 ? Infinity : most) - skip),
    executionTimeMillis: Math.round(performance.now() - started),
    totalKeysExamined: plan.index === null && plan.branches === null && !plan.single ? 0 : scan.keysExamined,
    totalDocsExamined: scan.documentsExamined,
  };
}

/** How a pipeline reads that begins with `$geoNear`. */
interface NearestExplained {
  readonly filter: Doc;
  readonly winningPlan: Doc;
  /** Reads until `most` documents are there, and returns what was looked at for them. */
  execute(view: View, budget: Budget, most: number): Promise<Doc>;
}

/** Explains a `$geoNear`; refuses what running it would refuse: 27 and 291 when no index serves it. */
function explainNearest(
  storage: Storage,
  collection: CollectionEntry,
  spec: unknown,
  environment: ExpressionContext | undefined,
): NearestExplained {
  const near = readGeoNear(spec);
  const { definition } = chooseNearestIndex(collection, near, compileQuery(near.query, {}, undefined, environment));
  return {
    filter: near.query,
    winningPlan: { stage: 'GEO_NEAR_2DSPHERE', keyPattern: definition.key, indexName: definition.name },
    async execute(view, budget, most) {
      const started = performance.now();
      const looked = { keys: 0, documents: 0 };
      let found = 0;
      for await (const docs of readNearest(storage, collection, near, null, budget, view, environment, looked)) {
        found += docs.length;
        if (found >= most) break;
      }
      return {
        executionSuccess: true,
        nReturned: Math.min(found, most),
        executionTimeMillis: Math.round(performance.now() - started),
        totalKeysExamined: looked.keys,
        totalDocsExamined: looked.documents,
      };
    },
  };
}
