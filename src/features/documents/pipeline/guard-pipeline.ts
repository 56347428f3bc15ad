import type { Document } from 'bson';
import { invalid } from '../../../errors.js';
import { HIDDEN_FIELD, UNSAFE_NAMES } from '../../collections/fields/field.js';
import { USERS } from '../../collections/users-collection.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { fieldNotReadable } from '../reply/redact-fields.js';
import { findRead } from '../reply/fields-read.js';
import { guardArgument, hasExpression } from './guard-match.js';
import {
  DocumentShape,
  type PipelineScope,
  type PipelineSource,
  badPipeline,
  refusedName,
  requireObject,
  requirePath,
  requireText,
} from './pipeline-literals.js';
import { MAX_FACETS, STAGE_GUARDS } from './pipeline-stages.js';
import { GEO_CONDITIONS, PATTERN_OPERATORS } from './expression-operators.js';
import { MAX_PIPELINE_LEVELS, WorkBudget } from '../query/work-budget.js';

/** Keys whose lists are branches: each is tried, and most of them are compiled, one by one. */
const BRANCHING: ReadonlySet<string> = new Set(['$and', '$or', '$nor', 'branches']);

/** For each of them the cells that cover it are computed. */
const MAX_REGIONS = 50;

/**
 * One walk over a client's pipeline before anything else looks at it: its values, levels, branches and patterns are
 * counted against the budget of one request, and keys that no document can have, NUL characters and the service's own
 * notes by name are refused. 400.
 */
function measurePipeline(pipeline: readonly unknown[]): void {
  const budget = new WorkBudget();
  const patterns: string[] = [];
  let regions = 0;
  const walk = (value: unknown, key: string, level: number): void => {
    if (typeof value === 'string') {
      if (key === '$regex') patterns.push(value);
      return rejectText(value);
    }
    if (typeof value !== 'object' || value === null) return;
    if (level > MAX_PIPELINE_LEVELS) {
      throw badPipeline(`A pipeline may be nested at most ${MAX_PIPELINE_LEVELS} levels deep`);
    }
    if (Array.isArray(value)) {
      budget.takeValues(value.length);
      if (BRANCHING.has(key)) budget.takeBranches(value.length);
      for (const item of value) walk(item, '', level + 1);
      return;
    }
    const keys = Object.keys(value);
    budget.takeValues(keys.length);
    if (PATTERN_OPERATORS.has(key) && isJsonObject(value) && typeof value.regex === 'string') {
      patterns.push(value.regex);
    }
    for (const inner of keys) {
      rejectKey(inner);
      if (GEO_CONDITIONS.has(inner) && ++regions > MAX_REGIONS) {
        throw badPipeline(`A pipeline may have at most ${MAX_REGIONS} $geoWithin and $geoIntersects`);
      }
      walk((value as Record<string, unknown>)[inner], inner, level + 1);
    }
  };
  walk(pipeline, '', 0);
  budget.takePatterns(patterns, (problem) => badPipeline(`A pattern ${problem}`));
}

function rejectKey(key: string): void {
  if (UNSAFE_NAMES.has(key)) throw badPipeline(`A pipeline must not contain the key ${JSON.stringify(key)}`);
  rejectText(key);
}

/**
 * Refuses the hidden field by name, as `$name` or as part of a path; a path built at run time finds nothing, because
 * the field is removed before.
 */
function rejectText(text: string): void {
  if (text.includes('\0')) throw badPipeline('A pipeline must not contain NUL characters');
  if (text.includes(HIDDEN_FIELD) && text.split(/[.$]/).includes(HIDDEN_FIELD)) {
    throw badPipeline(`A pipeline must not name ${JSON.stringify(text.slice(0, 60))}`);
  }
}

export const MAX_STAGES = 100;
const MAX_JOINS = 10;
const MAX_JOIN_DEPTH = 4;

/** Stages that MongoDB demands at the start; everything else is restricted before it runs. */
const LEADING: ReadonlySet<string> = new Set(['$geoNear', '$search']);
/** Of `$geoNear`, besides those that name fields of the result, and its own filter. */
const NEAR_OPTIONS: ReadonlySet<string> = new Set([
  'near',
  'spherical',
  'key',
  'minDistance',
  'maxDistance',
  'distanceMultiplier',
]);
/** Stages that, as `$match`, only choose documents: as long as they come first, indexes serve them. */
const CHOOSING: ReadonlySet<string> = new Set(['$sort', '$limit', '$skip']);

/**
 * The pipeline that may be run for a client's (rest-api.md 4.2, decisions.md 5). Every stage and operator at every
 * depth is on a list; names of collections become stored names of the same project; whatever is read, here or in a
 * join, is first restricted to what its source shows. 400 BLOCKED_STAGE, INVALID_PIPELINE, USERS_BLOCKED or a bound of
 * the work (`measurePipeline`); what `find` throws for a name passes through.
 */
export function guardPipeline(
  stages: unknown,
  own: PipelineSource,
  find: (name: string) => PipelineSource,
): Document[] {
  if (!Array.isArray(stages)) throw badPipeline('pipeline must be a list of stages');
  if (stages.length === 0) throw badPipeline('pipeline must have at least one stage');
  measurePipeline(stages);
  return new PipelineGuard(find).guardSource(stages, own, 0);
}

/**
 * The names of the collections that a pipeline joins, by a walk over its stages that checks nothing; not more of them
 * than a pipeline may join.
 */
export function joinedNames(pipeline: unknown): Set<string> {
  const names = new Set<string>();
  const open = [pipeline];
  while (open.length > 0) {
    const stages = open.pop();
    if (!Array.isArray(stages)) continue;
    for (const { $lookup, $graphLookup, $unionWith, $facet } of stages.filter(isJsonObject)) {
      for (const join of [$lookup, $graphLookup, $unionWith]) {
        const name = isJsonObject(join) ? (join.from ?? join.coll) : join;
        if (typeof name === 'string' && names.size < MAX_JOINS) names.add(name);
        if (isJsonObject(join)) open.push(join.pipeline);
      }
      if (isJsonObject($facet)) open.push(...Object.values($facet).slice(0, MAX_FACETS));
    }
  }
  return names;
}

class PipelineGuard {
  readonly #find: (name: string) => PipelineSource;
  #stages = 0;
  #joins = 0;

  constructor(find: (name: string) => PipelineSource) {
    this.#find = find;
  }

  /**
   * A pipeline over stored documents: restricted at its start, and rid of the service's notes and of what the caller
   * does not see before anything can read them.
   */
  guardSource(stages: readonly unknown[], source: PipelineSource, depth: number): Document[] {
    const scope = this.#scope(new DocumentShape(source), depth);
    const [first, ...others] = stages;
    const leads = isJsonObject(first) && LEADING.has(Object.keys(first)[0] ?? '');
    const leading = leads ? [this.#guardLeading(first, source, scope.shape)] : [];
    const guarded = (leads ? others : stages).flatMap((stage) => this.#guardStage(stage, scope));
    const rest = source.isRestricted ? keepBehind(guarded) : guarded;
    const chosen = rest.findIndex((stage) => !isChoosing(stage, source));
    const at = chosen < 0 ? rest.length : chosen;
    const unset = source.unseen.size === 0 ? HIDDEN_FIELD : [HIDDEN_FIELD, ...source.unseen];
    return [...leading, { $match: source.visible }, ...rest.slice(0, at), { $unset: unset }, ...rest.slice(at)];
  }

  #scope(shape: DocumentShape, depth: number): PipelineScope {
    return {
      shape,
      join: (name, stage) => this.#join(name, stage),
      joined: (stages, source, stage) => {
        if (depth + 1 > MAX_JOIN_DEPTH) throw badPipeline(`Joins may be nested at most ${MAX_JOIN_DEPTH} deep`);
        return this.guardSource(requireStages(stages, stage), source, depth + 1);
      },
      nested: (stages, stage) => {
        const inner = this.#scope(shape.copy(), depth);
        return requireStages(stages, stage).flatMap((part) => this.#guardStage(part, inner));
      },
    };
  }

  #guardStage(given: unknown, scope: PipelineScope): Document[] {
    const name = this.#stageName(given);
    const guard = Object.hasOwn(STAGE_GUARDS, name) ? STAGE_GUARDS[name] : undefined;
    if (guard) return guard((given as Document)[name], scope);
    if (LEADING.has(name)) throw badPipeline(`${name} can only be the first stage`);
    throw refusedName(name, 'stage');
  }

  #stageName(given: unknown): string {
    if (++this.#stages > MAX_STAGES) throw badPipeline(`A pipeline may have at most ${MAX_STAGES} stages in all`);
    const names = isJsonObject(given) ? Object.keys(given) : [];
    if (names.length !== 1) throw badPipeline('Each stage is an object with one key, such as {"$match": {...}}');
    return names[0]!;
  }

  #guardLeading(given: Document, source: PipelineSource, shape: DocumentShape): Document {
    const name = this.#stageName(given);
    const options = requireObject(given[name], name);
    if (name === '$search') {
      rejectOperators(options);
      // It looks into all fields that its index has.
      for (const unseen of source.unseen) throw fieldNotReadable(unseen);
      return { $search: options };
    }
    const { query = {}, distanceField, includeLocs, ...rest } = options;
    rejectOperators(rest);
    const unknown = Object.keys(rest).find((option) => !NEAR_OPTIONS.has(option));
    if (unknown !== undefined) throw badPipeline(`$geoNear has no option ${JSON.stringify(unknown.slice(0, 60))}`);
    if (rest.near === undefined) {
      throw badPipeline('$geoNear needs near, such as {"type":"Point","coordinates":[lng,lat]}');
    }
    if (distanceField === undefined) throw badPipeline('$geoNear needs distanceField, the name for the distance');
    if (rest.key !== undefined) shape.requireSeen(requirePath(rest.key, '$geoNear: key'));
    const outputs: Document = {};
    for (const [key, path] of Object.entries({ distanceField, includeLocs })) {
      if (path === undefined) continue;
      outputs[key] = requirePath(path, `$geoNear: ${key}`);
      // Within a stored field it would leave the rest of that to be asked for.
      shape.requireSeen(outputs[key] as string);
      shape.redefine(outputs[key] as string);
    }
    return { $geoNear: { ...rest, ...outputs, query: guardArgument(query, source, shape) } };
  }

  #join(name: unknown, stage: string): PipelineSource {
    const text = requireText(name, `${stage}: the collection`);
    if (++this.#joins > MAX_JOINS) throw badPipeline(`A pipeline may join at most ${MAX_JOINS} times`);
    if (text.toLowerCase() === USERS) {
      throw invalid('USERS_BLOCKED', `${stage}: the users collection cannot be joined`);
    }
    return this.#find(text);
  }
}

/**
 * The stages with what can fail kept behind what comes before it: MongoDB makes one filter of neighbouring `$match`es,
 * in an order of its own, and an `$expr` that fails on a document that the caller may not read would tell of it.
 */
function keepBehind(stages: readonly Document[]): Document[] {
  const at = stages.findIndex(({ $match }) => $match !== undefined && hasExpression($match));
  if (at < 0) return [...stages];
  const { $expr, ...plain } = stages[at]!.$match as Record<string, unknown>;
  const behind = hasExpression(plain) ? [stages[at]!] : [{ $match: { $expr } }];
  const before = hasExpression(plain) || Object.keys(plain).length === 0 ? [] : [{ $match: plain }];
  return [...stages.slice(0, at), ...before, { $limit: Number.MAX_SAFE_INTEGER }, ...behind, ...stages.slice(at + 1)];
}

function requireStages(stages: unknown, stage: string): readonly unknown[] {
  if (!Array.isArray(stages)) throw badPipeline(`${stage}: a pipeline must be a list of stages`);
  return stages;
}

/** A stage that may run on stored documents, before what the caller does not see is taken off. */
function isChoosing(stage: Document, { unseen }: PipelineSource): boolean {
  if ('$match' in stage) return findRead(stage.$match as Document, unseen) === null;
  return CHOOSING.has(Object.keys(stage)[0]!);
}

function rejectOperators(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (key.startsWith('$')) throw refusedName(key, 'operator');
    rejectOperators(inner);
  }
}
