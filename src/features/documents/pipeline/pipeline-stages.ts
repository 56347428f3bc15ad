import type { Document } from 'bson';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { guardExpression, guardNamed } from './guard-expression.js';
import { guardGraphLookup, guardLookup, guardUnionWith } from './guard-joins.js';
import { guardMatch } from './guard-match.js';
import {
  readLiteral,
  type PipelineScope,
  type StageGuard,
  badPipeline,
  requireObject,
  requirePath,
  requireText,
} from './pipeline-literals.js';

export const MAX_FACETS = 20;

/** The stages that a client may use, each with what may be run in its place. Everything else is refused. */
export const STAGE_GUARDS: Readonly<Record<string, StageGuard>> = {
  $match: (given, { shape }) => [{ $match: guardMatch(given, shape) }],
  $project: (given, { shape }) => {
    const fields = guardFields(given, '$project', shape);
    for (const [path, value] of Object.entries(fields)) {
      if (isSwitch(value)) shape.requireSeen(path);
      else shape.redefine(path);
    }
    return [{ $project: fields }];
  },
  $addFields: setFields('$addFields'),
  $set: setFields('$set'),
  $unset: (given, { shape }) => {
    const paths = Array.isArray(given) ? given : [given];
    if (paths.length === 0) throw badPipeline('$unset needs at least one field');
    return [{ $unset: paths.map((path) => requireSeenPath(path, '$unset', shape)) }];
  },
  $sort: (given, { shape }) => {
    const fields = guardFields(given, '$sort', shape);
    for (const path of Object.keys(fields)) shape.requireSeen(path);
    return [{ $sort: fields }];
  },
  $limit: (given) => [{ $limit: requireCount(given, '$limit', 1) }],
  $skip: (given) => [{ $skip: requireCount(given, '$skip', 0) }],
  $count: (given, { shape }) => {
    shape.replace();
    const name = requirePath(given, '$count');
    if (name.includes('.')) throw badPipeline('$count needs a name without dots');
    return [{ $count: name }];
  },
  $sample: (given) => {
    const { size, ...rest } = requireObject(given, '$sample');
    if (Object.keys(rest).length > 0) throw badPipeline('$sample has the option size only');
    return [{ $sample: { size: requireCount(size, '$sample: size', 1) } }];
  },
  $group: reshaping('$group', (given, { shape }) => guardFields(given, '$group', shape)),
  $bucket: reshaping('$bucket', (given, { shape }) => guardNamed(requireObject(given, '$bucket'), shape)),
  $bucketAuto: reshaping('$bucketAuto', (given, { shape }) => guardNamed(requireObject(given, '$bucketAuto'), shape)),
  $sortByCount: reshaping('$sortByCount', (given, { shape }) => guardExpression(given, shape)),
  $replaceRoot: reshaping('$replaceRoot', (given, { shape }) =>
    guardNamed(requireObject(given, '$replaceRoot'), shape),
  ),
  $replaceWith: reshaping('$replaceWith', (given, { shape }) => guardExpression(given, shape)),
  $redact: (given, { shape }) => [{ $redact: guardExpression(given, shape) }],
  $unwind: (given, { shape }) => {
    const options = typeof given === 'string' ? { path: given } : requireObject(given, '$unwind');
    const path = requireText(options.path, '$unwind: path');
    if (!path.startsWith('$') || path.startsWith('$$')) {
      throw badPipeline('$unwind: path must be a field such as "$tags"');
    }
    guardExpression(path, shape);
    const { includeArrayIndex } = options;
    if (includeArrayIndex !== undefined) shape.redefine(requirePath(includeArrayIndex, '$unwind: includeArrayIndex'));
    return [{ $unwind: options }];
  },
  $facet: (given, scope) => {
    const facets = Object.entries(requireObject(given, '$facet'));
    if (facets.length > MAX_FACETS) throw badPipeline(`$facet may have at most ${MAX_FACETS} parts`);
    const guarded = facets.map(([name, stages]): [string, Document[]] => {
      if (requirePath(name, '$facet').includes('.')) throw badPipeline('$facet needs names without dots');
      return [name, scope.nested(stages, '$facet')];
    });
    scope.shape.replace();
    return [{ $facet: Object.fromEntries(guarded) }];
  },
  $setWindowFields: (given, { shape }) => {
    const { output, ...options } = requireObject(given, '$setWindowFields');
    const fields = Object.entries(requireObject(output, '$setWindowFields: output')).map(([path, window]) => {
      shape.redefine(requirePath(path, '$setWindowFields'));
      return [path, guardWindow(window, shape)] as const;
    });
    for (const path of Object.keys(Object(options.sortBy) as object)) shape.requireSeen(path);
    return [{ $setWindowFields: { ...guardNamed(options, shape), output: Object.fromEntries(fields) } }];
  },
  $fill: (given, { shape }) => {
    const options = requireObject(given, '$fill');
    // What it fills in depends on what is there.
    for (const path of Object.keys(requireObject(options.output, '$fill: output'))) {
      shape.redefine(requireSeenPath(path, '$fill', shape));
    }
    for (const path of Object.keys(Object(options.sortBy) as object)) shape.requireSeen(path);
    requireSeenParts(options, shape);
    return [{ $fill: guardNamed(options, shape) }];
  },
  $densify: (given, { shape }) => {
    const options = requireObject(given, '$densify');
    if (typeof options.field === 'string') shape.requireSeen(options.field);
    requireSeenParts(options, shape);
    return [{ $densify: readLiteral(options) }];
  },
  $lookup: guardLookup,
  $graphLookup: guardGraphLookup,
  $unionWith: guardUnionWith,
};

function setFields(stage: '$addFields' | '$set'): StageGuard {
  return (given, { shape }) => {
    const fields = guardFields(given, stage, shape);
    for (const path of Object.keys(fields)) shape.redefine(path);
    return [{ [stage]: fields }];
  };
}

/** A stage after which the documents are no longer those of the collection. */
function reshaping(stage: string, guard: (given: unknown, scope: PipelineScope) => unknown): StageGuard {
  return (given, scope) => {
    const guarded = guard(given, scope);
    scope.shape.replace();
    return [{ [stage]: guarded }];
  };
}

function guardFields(given: unknown, stage: string, shape: PipelineScope['shape']): Record<string, unknown> {
  const fields = requireObject(given, stage);
  for (const path of Object.keys(fields)) requirePath(path, stage);
  return guardNamed(fields, shape);
}

function requireSeenPath(given: unknown, stage: string, shape: PipelineScope['shape']): string {
  const path = requirePath(given, stage);
  shape.requireSeen(path);
  return path;
}

/** The fields by whose values a stage parts the documents. */
function requireSeenParts({ partitionByFields }: Record<string, unknown>, shape: PipelineScope['shape']): void {
  for (const path of Array.isArray(partitionByFields) ? partitionByFields : []) {
    if (typeof path === 'string') shape.requireSeen(path);
  }
}

/** True for the values that keep or drop a field of a projection instead of computing it. */
function isSwitch(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'boolean';
}

function guardWindow(given: unknown, shape: PipelineScope['shape']): Document {
  const { window, ...operation } = requireObject(given, '$setWindowFields');
  const guarded = guardExpression(operation, shape);
  if (!isJsonObject(guarded)) throw badPipeline('$setWindowFields: each output needs an operator');
  return window === undefined ? guarded : { ...guarded, window: readLiteral(window) };
}

function requireCount(value: unknown, what: string, least: number): number {
  if (!Number.isSafeInteger(value) || (value as number) < least) {
    throw badPipeline(`${what} must be a whole number of at least ${least}`);
  }
  return value as number;
}
