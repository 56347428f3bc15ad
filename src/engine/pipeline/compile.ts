import { type Doc, isDocument } from '../codec/document.js';
import { CODES, refusal, typeMismatch, unsupported } from '../errors.js';
import { type ExpressionContext, openExpressionContext } from '../query/expression.js';
import { openScope } from '../query/operators/operator.js';
import { type GeoNear, readGeoNear } from '../query/geometry/geo-near.js';
import type { Sort } from '../query/sort.js';
import { type LeadingFilter, splitLeadingFilter } from './leading-filter.js';
import { moveMatches } from './move-matches.js';
import type { InnerPipeline, Run, RunEnvironment, Source, Stage, StageCompiler, StageTools } from './stage.js';
import {
  count,
  documentStages,
  geoNear,
  limit,
  match,
  redact,
  requireLimit,
  requireSkip,
  sample,
  skip,
  unwind,
} from './stages/basic.js';
import { bucket, bucketAuto } from './stages/bucket.js';
import { documents, facet, unionWith } from './stages/combine.js';
import { densify } from './stages/densify.js';
import { fill } from './stages/fill.js';
import { graphLookup } from './stages/graph-lookup.js';
import { group, sortByCount } from './stages/group.js';
import { lookup } from './stages/lookup.js';
import { requireSort, sort, sortStage } from './stages/sort.js';
import { setWindowFields } from './stages/window.js';

const STAGES: Readonly<Record<string, StageCompiler>> = {
  ...documentStages,
  $match: match,
  $sort: sort,
  $limit: limit,
  $skip: skip,
  $count: count,
  $group: group,
  $unwind: unwind,
  $lookup: lookup,
  $graphLookup: graphLookup,
  $unionWith: unionWith,
  $facet: facet,
  $bucket: bucket,
  $bucketAuto: bucketAuto,
  $sortByCount: sortByCount,
  $sample: sample,
  $setWindowFields: setWindowFields,
  $redact: redact,
  $densify: densify,
  $fill: fill,
  $geoNear: geoNear,
  $documents: documents,
};

export const supportedStages: readonly string[] = Object.keys(STAGES).sort();

/** Stages that follow a collation, or never compare text. */
const COLLATED_STAGES: ReadonlySet<string> = new Set([
  ...['$match', '$sort', '$limit', '$skip', '$count', '$group', '$sample', '$geoNear', '$documents'],
  ...['$project', '$addFields', '$set', '$unset', '$unwind', '$replaceRoot', '$replaceWith'],
]);

const ATLAS = 'it belongs to MongoDB Atlas';
const EMBEDDED = 'the embedded engine has nothing that serves it';
const NO_WRITING = 'a pipeline of the embedded engine only reads';
const OPENS = 'it is there at the beginning of a pipeline only';

/** Stages of MongoDB that are refused, with the reason. */
const UNAVAILABLE_STAGES: Readonly<Record<string, string>> = {
  $out: NO_WRITING,
  $merge: NO_WRITING,
  $search: ATLAS,
  $searchMeta: ATLAS,
  $vectorSearch: ATLAS,
  $listSearchIndexes: ATLAS,
  $changeStream: EMBEDDED,
  $changeStreamSplitLargeEvent: EMBEDDED,
  $collStats: OPENS,
  $currentOp: OPENS,
  $indexStats: OPENS,
  $planCacheStats: EMBEDDED,
  $listSessions: EMBEDDED,
  $listLocalSessions: EMBEDDED,
};

/** The query with which the caller reads the collection before it hands documents to `run`. */
export interface Leading {
  /** Not null: nearest first, and nothing of the rest. */
  readonly near: GeoNear | null;
  /** Null = every document. */
  readonly filter: Doc | null;
  readonly sort: Doc | null;
  readonly skip: number;
  readonly limit: number | null;
  /** One document of each value of this path is enough; the others may come as well. Null: all are needed. */
  readonly distinct: string | null;
}

/** A compiled pipeline. */
export interface Pipeline {
  /** Stages at the start that the caller answers, with indexes where there are any; `run` does not repeat them. */
  readonly leading: Leading;
  /** Top-level fields that `run` needs of the documents, beyond what filter and sort need; null = all. */
  readonly fields: ReadonlySet<string> | null;
  /** True when the pipeline makes its own documents (`$documents`): nothing is to be read. */
  readonly startsAlone: boolean;
  /** The other collections it will open. */
  readonly collections: ReadonlySet<string>;
  run(source: Source, environment: RunEnvironment): Source;
}

export interface PipelineOptions {
  /** The variables of the command (`let`). */
  readonly environment?: ExpressionContext;
}

const MAX_STAGES = 1000;
const MAX_NESTING = 20;

/** Compiles a pipeline once; everything malformed or unsupported is refused here, before anything runs. */
export function compilePipeline(stages: unknown, options: PipelineOptions = {}): Pipeline {
  const environment = options.environment ?? openExpressionContext();
  const collections = new Set<string>();
  const compiled = compileStages(stages, environment, collections, 0);
  const { leading } = compiled;
  return {
    leading: { ...leading, filter: leading.filter?.pushed ?? null },
    fields: compiled.rest.fields,
    startsAlone: compiled.startsAlone,
    collections,
    run: (source, runEnvironment) =>
      runStages(compiled.rest.stages, source, {
        ...runEnvironment,
        scope: openScope(environment, () => runEnvironment.budget.check()),
      }),
  };
}

interface Chain {
  readonly stages: readonly Stage[];
  readonly fields: ReadonlySet<string> | null;
}

interface CompiledStages {
  readonly leading: Omit<Leading, 'filter'> & { readonly filter: LeadingFilter | null };
  /** The stages after the leading ones. */
  readonly rest: Chain;
  /** All stages. */
  readonly whole: Chain;
  readonly startsAlone: boolean;
  readonly names: readonly string[];
}

interface Named {
  readonly name: string;
  readonly spec: unknown;
}

function readStages(stages: unknown): Named[] {
  if (!Array.isArray(stages)) throw typeMismatch("'pipeline' must be an array of stages");
  if (stages.length > MAX_STAGES) throw refusal(7749501, `a pipeline may have at most ${String(MAX_STAGES)} stages`);
  return stages.map((stage: unknown): Named => {
    if (!isDocument(stage)) throw typeMismatch("Each element of the 'pipeline' array must be an object");
    const names = Object.keys(stage);
    if (names.length !== 1) {
      throw refusal(40323, 'A pipeline stage specification object must contain exactly one field.');
    }
    const [name] = names as [string];
    const reason = Object.hasOwn(UNAVAILABLE_STAGES, name) ? UNAVAILABLE_STAGES[name] : undefined;
    if (reason !== undefined) throw unsupported(`${name} is not available: ${reason}`);
    if (!Object.hasOwn(STAGES, name)) throw refusal(40324, `Unrecognized pipeline stage name: '${name}'`);
    return { name, spec: stage[name] };
  });
}

function compileStages(
  stages: unknown,
  environment: ExpressionContext,
  collections: Set<string>,
  depth: number,
): CompiledStages {
  if (depth > MAX_NESTING) throw refusal(CODES.MaxSubPipelineDepthExceeded, 'pipelines are nested too deeply');
  const list = readStages(stages);
  const tools: StageTools = {
    environment,
    joins: (collection) => collections.add(collection),
    compileInner(inner, names = []) {
      const { environment: extended, slots } = extendEnvironment(environment, names);
      const compiled = compileStages(inner, extended, collections, depth + 1);
      return { pipeline: presentInner(compiled), slots };
    },
  };
  list.forEach(({ name }, i) => {
    if (name === '$geoNear' && i > 0) throw refusal(40603, '$geoNear was not the first stage in the pipeline');
    if (name === '$documents' && i > 0) {
      throw refusal(40602, '$documents is only valid as the first stage in a pipeline.');
    }
  });
  const refused = environment.collation === null ? undefined : list.find(({ name }) => !COLLATED_STAGES.has(name));
  if (refused !== undefined) {
    throw unsupported(`${refused.name} is not available together with a collation in this engine`);
  }
  const compiled = moveMatches(list.map(({ name, spec }) => ({ name, spec, stage: STAGES[name]!(spec, tools) })));
  const { leading, used } = readLeading(compiled, environment);
  return {
    leading,
    rest: chain(compiled.slice(used), environment),
    whole: chain(compiled, environment),
    startsAlone: list[0]?.name === '$documents',
    names: list.map(({ name }) => name),
  };
}

function extendEnvironment(environment: ExpressionContext, names: readonly string[]) {
  if (names.length === 0) return { environment, slots: [] };
  const variables = new Map(environment.variables);
  const slots = names.map((name) => {
    if (!/^[a-z\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*$/.test(name)) {
      throw refusal(16867, `'${name}' starts with an invalid character for a user variable name`);
    }
    const slot = environment.slots.count++;
    variables.set(name, slot);
    return slot;
  });
  return { environment: { ...environment, variables }, slots };
}

interface CompiledStage extends Named {
  readonly stage: Stage;
}

/** Joins sorts with the limits that follow them and finds what the whole needs of its input. */
function chain(list: readonly CompiledStage[], environment: ExpressionContext): Chain {
  const stages = list.map(({ name, spec, stage }, i) =>
    name === '$sort' ? sortStage(requireSort(spec, environment), mostAfter(list, i + 1)) : stage,
  );
  const fields = new Set<string>();
  for (const [at, stage] of stages.entries()) {
    if (stage.reads === null) return { stages, fields: null };
    for (const name of stage.reads) fields.add(name);
    if (stage.replaces) return { stages: stages.filter((each, i) => i >= at || !isIdle(each, fields)), fields };
  }
  return { stages, fields: null };
}

/** True for a stage that removes what nobody behind it looks at, and what is therefore not decoded. */
function isIdle({ removes }: Stage, fields: ReadonlySet<string>): boolean {
  return removes !== undefined && ![...removes].some((name) => fields.has(name));
}

/** How many documents of a sort are needed at all, by the `$limit` and `$skip` stages right after it. */
function mostAfter(list: readonly Named[], from: number): number {
  let skipped = 0;
  for (let i = from; i < list.length; i++) {
    const { name, spec } = list[i]!;
    if (name === '$skip') skipped += requireSkip(spec);
    else return name === '$limit' ? skipped + requireLimit(spec) : Infinity;
  }
  return Infinity;
}

const NO_LEADING = { near: null, filter: null, sort: null, skip: 0, limit: null, distinct: null };

/** The stages at the start that a collection can answer itself: filters, then a sort, then skip and limit. */
function readLeading(
  list: readonly CompiledStage[],
  environment: ExpressionContext,
): { leading: CompiledStages['leading']; used: number } {
  if (list[0]?.name === '$geoNear') {
    return { leading: { ...NO_LEADING, near: readGeoNear(list[0].spec) }, used: 1 };
  }
  const filters: Doc[] = [];
  let used = 0;
  while (list[used]?.name === '$match') filters.push(list[used++]!.spec as Doc);
  const filter =
    filters.length === 0
      ? null
      : splitLeadingFilter(filters.length === 1 ? filters[0]! : { $and: filters }, environment);
  // What cannot be pushed down completely is filtered again, before anything else.
  if (filter?.isPartial === true) return { leading: { ...NO_LEADING, filter }, used: 0 };
  let sorted: Sort | null = null;
  let sortSpec: Doc | null = null;
  if (list[used]?.name === '$sort') {
    sorted = requireSort(list[used]!.spec, environment);
    sortSpec = list[used]!.spec as Doc;
    used++;
  }
  let skipped = 0;
  let limited: number | null = null;
  for (; ; used++) {
    const next = list[used];
    if (next?.name === '$skip' && limited === null) {
      skipped += requireSkip(next.spec);
    } else if (next?.name === '$limit') {
      const wanted = requireLimit(next.spec);
      limited = limited === null ? wanted : Math.min(limited, wanted);
    } else {
      break;
    }
  }
  const sort = sorted === null ? null : sortSpec;
  const distinct = used === filters.length ? groupedPath(list, used) : null;
  return { leading: { near: null, filter, sort, skip: skipped, limit: limited, distinct }, used };
}

/**
 * The path by whose values a `$group` groups, when it asks for nothing but them, and nothing before it changes them;
 * null for any other stage.
 */
function groupedPath(list: readonly CompiledStage[], from: number): string | null {
  const at = list.findIndex(({ stage }, n) => n >= from && stage.removes === undefined);
  const grouping = list[at];
  if (grouping?.name !== '$group') return null;
  const spec = grouping.spec as Doc;
  const id = spec['_id'];
  if (typeof id !== 'string' || !/^\$[^$]/.test(id) || Object.keys(spec).length !== 1) return null;
  const path = id.slice(1);
  const root = path.split('.')[0]!;
  return list.slice(from, at).some(({ stage }) => stage.removes!.has(root)) ? null : path;
}

function runStages(stages: readonly Stage[], source: Source, run: Run): Source {
  return stages.reduce((current, stage) => stage.run(current, run), source);
}

function presentInner({ leading, rest, whole, startsAlone, names }: CompiledStages): InnerPipeline {
  return {
    read(collection, run) {
      if (collection === null || startsAlone) return runStages(whole.stages, nothing(), run);
      const filter = leading.filter?.forRun(run.scope) ?? null;
      const source = run.open(collection, {
        ...(leading.near === null ? {} : { near: leading.near }),
        ...(filter === null ? {} : { filter }),
        ...(leading.sort === null ? {} : { sort: leading.sort }),
        ...(leading.skip === 0 ? {} : { skip: leading.skip }),
        ...(leading.limit === null ? {} : { limit: leading.limit }),
      });
      return runStages(rest.stages, source, run);
    },
    over: (source, run) => runStages(whole.stages, source, run),
    fields: whole.fields,
    startsAlone,
    names,
  };
}

async function* nothing(): AsyncGenerator<Doc[]> {
  // No documents: the pipeline makes its own.
}
