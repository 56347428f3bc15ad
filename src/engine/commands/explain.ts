import { type Doc, isDocument } from '../codec/document.js';
import { EngineError, typeMismatch } from '../errors.js';
import { presentCountPlan, presentPlan } from '../planner/explain.js';
import { type Plan, usableIndexes } from '../planner/plan.js';
import { type CollectionEntry } from '../storage/index-definition.js';
import { type Call, type Command, readCount, readDoc, requireNamespace } from './command.js';
import { Pace } from './pace.js';
import { checkStillThere, compileQuery, openScan, planQuery, planQueryOf, type Query } from './query.js';

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
  async run(call, body) {
    const inner = body['explain'];
    if (!isDocument(inner)) throw typeMismatch("BSON field 'explain' must be an object");
    const name = Object.keys(inner)[0] ?? '';
    const reader = READERS[name];
    if (reader === undefined) throw new EngineError(59, `Explain failed due to unknown command: ${name}`);
    const ns = requireNamespace(call, inner[name]);
    const { filter, sort, options } = reader(inner);
    const query = compileQuery(filter, sort, inner['hint']);
    const limit = readCount(options, 'limit') ?? 0;
    const skip = readCount(options, 'skip') ?? 0;
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
    const plan = planQuery(storage, collection, query, limit === 0 ? 0 : limit + skip);
    const rejected = usableIndexes(collection, planQueryOf(collection, query, limit)).filter(
      (index) => index !== plan.index,
    );
    reply['queryPlanner'] = {
      namespace: ns,
      parsedQuery: filter,
      winningPlan: name === 'count' ? presentCountPlan(plan) : presentPlan(plan, { sort, limit, skip }),
      rejectedPlans: rejected.map(({ definition }) => ({ indexName: definition.name, keyPattern: definition.key })),
    };
    if (body['verbosity'] !== 'queryPlanner') {
      reply['executionStats'] = await execute(call, collection, plan, query, limit + skip);
    }
    return reply;
  },
};

function statementOf(body: Doc, list: string): { filter: Doc; sort: Doc; options: Doc } {
  const [statement] = (body[list] as Doc[] | undefined) ?? [];
  if (statement === undefined) throw typeMismatch(`BSON field '${list}' must not be empty`);
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
async function execute(call: Call, collection: CollectionEntry, plan: Plan, query: Query, most: number): Promise<Doc> {
  const { storage } = call.core;
  const started = performance.now();
  const pace = new Pace(undefined, call.signal);
  const scan = openScan(storage, collection, plan, query);
  let nReturned = 0;
  const enough = query.sort === null || plan.sorted ? (most === 0 ? Infinity : most) : Infinity;
  while (!scan.finished && nReturned < enough) {
    scan.readChunk(() => ++nReturned >= enough);
    if (pace.due(scan.lastRead)) {
      await pace.rest();
      checkStillThere(storage, collection, plan.index);
    }
  }
  return {
    executionSuccess: true,
    nReturned: most === 0 ? nReturned : Math.min(nReturned, most),
    executionTimeMillis: Math.round(performance.now() - started),
    totalKeysExamined: plan.index === null && !plan.single ? 0 : scan.keysExamined,
    totalDocsExamined: scan.documentsExamined,
  };
}
