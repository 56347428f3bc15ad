import { type Doc, isDocument } from '../../codec/document.js';
import { CODES, EngineError, typeMismatch } from '../../errors.js';
import { planDistinct } from '../../planner/distinct-plan.js';
import { DistinctScan } from '../../planner/distinct-scan.js';
import { presentCountPlan, presentDistinctPlan, presentPlan } from '../../planner/explain.js';
import { usableIndexes } from '../../planner/plan.js';
import type { ReadingScan } from '../../planner/scan.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import { View } from '../../storage/view.js';
import { type Command, readCount, readDoc, readTextOption, requireNamespace } from '../command.js';
import { openPace, type Pace } from '../pace.js';
import { checkStillThere, compileQuery, leaveIfLong, openScan, planQuery, planQueryOf, type Query } from './query.js';

/** Where each command that can be explained keeps its filter and sort. */
const READERS: Readonly<Record<string, (body: Doc) => { filter: Doc; sort: Doc; options: Doc }>> = {
  find: (body) => ({ filter: readDoc(body, 'filter'), sort: readDoc(body, 'sort'), options: body }),
  count: (body) => ({ filter: readDoc(body, 'query'), sort: {}, options: body }),
  distinct: (body) => ({ filter: readDoc(body, 'query'), sort: {}, options: body }),
  findAndModify: (body) => ({ filter: readDoc(body, 'query'), sort: readDoc(body, 'sort'), options: { limit: 1 } }),
  update: (body) => statementOf(body, 'updates'),
  delete: (body) => statementOf(body, 'deletes'),
  aggregate: (body) => leadingStages(body),
};

export const explain: Command = {
  fields: ['verbosity'],
  leaves: true,
  async run(call, body) {
    const inner = body['explain'];
    if (!isDocument(inner)) throw typeMismatch("BSON field 'explain' must be an object");
    const name = Object.keys(inner)[0] ?? '';
    if (!Object.hasOwn(READERS, name)) {
      throw new EngineError(CODES.CommandNotFound, `Explain failed due to unknown command: ${name}`);
    }
    const ns = requireNamespace(call, inner[name]);
    const { filter, sort, options } = READERS[name]!(inner);
    const query = compileQuery(filter, sort, inner['hint']);
    const limit = readCount(options, 'limit') ?? 0;
    const skip = readCount(options, 'skip') ?? 0;
    const most = limit === 0 ? 0 : limit + skip;
    const pace = openPace(call, body);
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
    const distinct =
      name === 'distinct'
        ? planDistinct(collection, planQueryOf(collection, query, most), readTextOption(inner, 'key'))
        : null;
    const plan = distinct?.plan ?? planQuery(storage, collection, query, most);
    if (distinct === null && body['verbosity'] !== 'queryPlanner') {
      leaveIfLong(pace, storage, collection, query, most === 0 ? plan : null);
    }
    const rejected = usableIndexes(collection, planQueryOf(collection, query, most)).filter(
      (index) => index !== plan.index,
    );
    reply['queryPlanner'] = {
      namespace: ns,
      parsedQuery: filter,
      winningPlan:
        distinct !== null
          ? presentDistinctPlan(plan)
          : name === 'count'
            ? presentCountPlan(plan)
            : presentPlan(plan, { sort, limit, skip }),
      rejectedPlans: rejected.map(({ definition }) => ({ indexName: definition.name, keyPattern: definition.key })),
    };
    if (body['verbosity'] !== 'queryPlanner') {
      const scan =
        distinct === null
          ? openScan(storage, collection, plan, query)
          : new DistinctScan(storage, collection, distinct, new View(storage));
      reply['executionStats'] = await execute(storage, collection, scan, query, { most, skip, pace });
    }
    return reply;
  },
};

function statementOf(body: Doc, list: string): { filter: Doc; sort: Doc; options: Doc } {
  const statements = body[list];
  const statement: unknown = Array.isArray(statements) ? statements[0] : undefined;
  if (!isDocument(statement)) throw typeMismatch(`BSON field '${list}' must contain documents`);
  return { filter: readDoc(statement, 'q'), sort: {}, options: {} };
}

/** What of a pipeline an index can serve: its first $match, and a $sort after it. */
function leadingStages(body: Doc): { filter: Doc; sort: Doc; options: Doc } {
  const pipeline = Array.isArray(body['pipeline']) ? (body['pipeline'] as Doc[]) : [];
  const filter = pipeline[0]?.['$match'];
  const next = filter === undefined ? pipeline[0] : pipeline[1];
  const sort = next?.['$sort'];
  return { filter: isDocument(filter) ? filter : {}, sort: isDocument(sort) ? sort : {}, options: {} };
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
  const enough = query.sort === null || plan.sorted ? (most === 0 ? Infinity : most) : Infinity;
  while (!scan.finished && found < enough) {
    scan.readChunk(() => ++found >= enough);
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
