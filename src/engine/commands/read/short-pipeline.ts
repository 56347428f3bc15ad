import { bsonType, isDocument } from '../../codec/document.js';

/** Stages whose work grows with the documents alone, and that look at the clock after each. */
const SHORT_STAGES = new Set([
  '$match',
  '$group',
  '$project',
  '$set',
  '$addFields',
  '$unset',
  '$sort',
  '$limit',
  '$skip',
  '$count',
  '$geoNear',
]);

/** Operators that take about as long for any values that a document of some kilobytes can hold. */
const SHORT_OPERATORS = new Set([
  ...['$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$in', '$nin', '$exists', '$and', '$or', '$nor', '$not', '$cmp'],
  ...['$geoWithin', '$geoIntersects', '$geometry', '$centerSphere', '$center', '$box', '$polygon'],
  ...['$add', '$subtract', '$multiply', '$divide', '$mod', '$abs', '$ceil', '$floor', '$round', '$trunc'],
  ...['$cond', '$ifNull', '$year', '$month', '$dayOfMonth', '$hour', '$dayOfWeek'],
  ...['$sum', '$avg', '$min', '$max', '$first', '$last', '$count', '$push', '$addToSet'],
]);

/** More values than anybody writes by hand for a quick answer. */
const MAX_VALUES = 200;
const MAX_DEPTH = 16;

/**
 * Whether a pipeline may begin in the main thread: nothing in it works on one document for long, so that the clock is
 * looked at in time. It leaves like every read when its documents are many or large.
 */
export function isShortPipeline(pipeline: unknown): boolean {
  if (!Array.isArray(pipeline)) return false;
  let left = MAX_VALUES;
  const isShort = (value: unknown, depth: number): boolean => {
    if (--left < 0 || depth > MAX_DEPTH) return false;
    if (Array.isArray(value)) return value.every((item) => isShort(item, depth + 1));
    if (!isDocument(value)) return bsonType(value) !== 'BSONRegExp';
    for (const name in value) {
      if (name.startsWith('$') && !SHORT_OPERATORS.has(name)) return false;
      if (!isShort(value[name], depth + 1)) return false;
    }
    return true;
  };
  return pipeline.every((stage: unknown) => {
    if (!isDocument(stage)) return false;
    const [name, ...more] = Object.keys(stage);
    return name !== undefined && more.length === 0 && SHORT_STAGES.has(name) && isShort(stage[name], 0);
  });
}
