import type { Document } from 'bson';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { guardExpression } from './guard-expression.js';
import { guardArgument } from './guard-match.js';
import {
  DocumentShape,
  endsInId,
  type PipelineScope,
  badPipeline,
  requireObject,
  requirePath,
} from './pipeline-literals.js';

const LOOKUP_KEYS: ReadonlySet<string> = new Set(['from', 'localField', 'foreignField', 'let', 'pipeline', 'as']);
const GRAPH_KEYS: ReadonlySet<string> = new Set([
  'from',
  'startWith',
  'connectFromField',
  'connectToField',
  'as',
  'maxDepth',
  'depthField',
  'restrictSearchWithMatch',
]);

/**
 * Turns every form of `$lookup` into one with a pipeline that begins with the filter of the documents the caller may
 * see.
 */
export function guardLookup(specification: unknown, scope: PipelineScope): Document[] {
  const given = requireKnownKeys(specification, '$lookup', LOOKUP_KEYS);
  const as = requirePath(given.as, '$lookup: as');
  const source = scope.join(given.from, '$lookup');
  const pipeline = scope.joined(given.pipeline ?? [], source, '$lookup');
  const lookup: Document = { from: source.storedName, as };
  if (given.let !== undefined) lookup.let = guardVariables(given.let, scope);
  if (given.localField === undefined && given.foreignField === undefined) {
    if (given.pipeline === undefined) throw badPipeline('$lookup needs localField and foreignField, or a pipeline');
    scope.shape.redefine(as);
    return [{ $lookup: { ...lookup, pipeline } }];
  }
  const localField = requirePath(given.localField, '$lookup: localField');
  const foreignField = requirePath(given.foreignField, '$lookup: foreignField');
  scope.shape.requireSeen(localField);
  new DocumentShape(source).requireSeen(foreignField);
  scope.shape.redefine(as);
  const join = { ...lookup, foreignField, pipeline };
  if (!endsInId(localField) && !endsInId(foreignField)) return [{ $lookup: { ...join, localField } }];
  return [
    { $set: { [HIDDEN_FIELD]: bothForms(`$${localField}`) } },
    { $lookup: { ...join, localField: HIDDEN_FIELD } },
    { $unset: HIDDEN_FIELD },
  ];
}

/** Only what is visible can be walked through, and what the walk yields shows none of the service's notes. */
export function guardGraphLookup(specification: unknown, scope: PipelineScope): Document[] {
  const given = requireKnownKeys(specification, '$graphLookup', GRAPH_KEYS);
  const as = requirePath(given.as, '$graphLookup: as');
  const connectToField = requirePath(given.connectToField, '$graphLookup: connectToField');
  const source = scope.join(given.from, '$graphLookup');
  const shape = new DocumentShape(source);
  const connectFromField = requirePath(given.connectFromField, '$graphLookup: connectFromField');
  for (const path of [connectToField, connectFromField]) shape.requireSeen(path);
  const startWith = guardExpression(given.startWith, scope.shape);
  const stage: Document = {
    from: source.storedName,
    startWith: endsInId(connectToField) ? bothForms(startWith) : startWith,
    connectFromField,
    connectToField,
    as,
    restrictSearchWithMatch: guardArgument(given.restrictSearchWithMatch ?? {}, source, shape),
  };
  if (given.maxDepth !== undefined) stage.maxDepth = given.maxDepth;
  if (given.depthField !== undefined) stage.depthField = requirePath(given.depthField, '$graphLookup: depthField');
  scope.shape.redefine(as);
  const kept = [HIDDEN_FIELD, ...source.unseen].map((name) => `${as}.${name}`);
  return [{ $graphLookup: stage }, { $unset: kept.length === 1 ? kept[0] : kept }];
}

export function guardUnionWith(specification: unknown, scope: PipelineScope): Document[] {
  const given = isJsonObject(specification) ? specification : { coll: specification };
  requireKnownKeys(given, '$unionWith', new Set(['coll', 'pipeline']));
  const source = scope.join(given.coll, '$unionWith');
  return [
    { $unionWith: { coll: source.storedName, pipeline: scope.joined(given.pipeline ?? [], source, '$unionWith') } },
  ];
}

function guardVariables(variables: unknown, scope: PipelineScope): Document {
  if (!isJsonObject(variables)) throw badPipeline('$lookup: let needs an object');
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => {
      if (!/^[a-z]\w*$/.test(name)) throw badPipeline('$lookup: the names in let begin with a small letter');
      return [name, guardExpression(value, scope.shape)];
    }),
  );
}

function requireKnownKeys(specification: unknown, stage: string, known: ReadonlySet<string>): Record<string, unknown> {
  const given = requireObject(specification, stage);
  for (const key of Object.keys(given)) {
    if (!known.has(key)) throw badPipeline(`${stage} has no option ${JSON.stringify(key.slice(0, 60))}`);
  }
  return given;
}

/**
 * An identifier as the `_id` of a document and as the text that a Ref holds, so that the two meet in a join. An array
 * stands for each of its items, as in any join; what is neither stays as it is.
 */
function bothForms(value: unknown): Document {
  const forms = (item: unknown): Document => ({
    $cond: [
      { $eq: [{ $type: item }, 'objectId'] },
      [item, { $toString: item }],
      [item, { $convert: { input: item, to: 'objectId', onError: item, onNull: item } }],
    ],
  });
  return {
    $cond: [
      { $isArray: [value] },
      { $reduce: { input: value, initialValue: [], in: { $concatArrays: ['$$value', forms('$$this')] } } },
      { $cond: [{ $in: [{ $type: value }, ['objectId', 'string']] }, forms(value), value] },
    ],
  };
}
