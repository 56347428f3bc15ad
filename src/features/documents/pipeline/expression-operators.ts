/**
 * Expression operators and accumulators that a client's pipeline may use; all of them read nothing but the document in
 * hand.
 */
const ALLOWED = `
  abs add ceil divide exp floor ln log log10 mod multiply pow round sqrt subtract trunc
  sin cos tan asin acos atan atan2 asinh acosh atanh sinh cosh tanh degreesToRadians radiansToDegrees
  bitAnd bitOr bitXor bitNot rand
  and or not eq ne gt gte lt lte cmp cond ifNull switch
  arrayElemAt arrayToObject concatArrays filter first firstN in indexOfArray isArray last lastN map maxN minN objectToArray range reduce
  reverseArray size slice sortArray zip
  allElementsTrue anyElementTrue setDifference setEquals setIntersection setIsSubset setUnion
  concat indexOfBytes indexOfCP ltrim regexFind regexFindAll regexMatch replaceOne replaceAll rtrim split strcasecmp
  strLenBytes strLenCP substr substrBytes substrCP toLower toUpper trim
  dateAdd dateDiff dateFromParts dateFromString dateSubtract dateToParts dateToString dateTrunc dayOfMonth dayOfWeek dayOfYear hour
  isoDayOfWeek isoWeek isoWeekYear millisecond minute month second week year
  convert isNumber toBool toDate toDecimal toDouble toInt toLong toObjectId toString type
  binarySize bsonSize getField setField unsetField mergeObjects let literal meta
  sum avg min max push addToSet count stdDevPop stdDevSamp bottom bottomN top topN median percentile
  covariancePop covarianceSamp denseRank derivative documentNumber expMovingAvg integral linearFill locf rank shift
`;

export const EXPRESSION_OPERATORS: ReadonlySet<string> = new Set(
  ALLOWED.trim()
    .split(/\s+/)
    .map((name) => `$${name}`),
);

/** Operators that look for the pattern `regex` in the text `input`. */
export const PATTERN_OPERATORS: ReadonlySet<string> = new Set(['$regexMatch', '$regexFind', '$regexFindAll']);

/** Conditions on a field in a `$match` whose operand is a value, a list of values, or neither. */
export const VALUE_CONDITIONS: ReadonlySet<string> = new Set(['$eq', '$ne', '$gt', '$gte', '$lt', '$lte']);
export const LIST_CONDITIONS: ReadonlySet<string> = new Set(['$in', '$nin', '$all']);
export const PLAIN_CONDITIONS: ReadonlySet<string> = new Set([
  '$exists',
  '$type',
  '$size',
  '$mod',
  '$bitsAllClear',
  '$bitsAllSet',
  '$bitsAnyClear',
  '$bitsAnySet',
]);
export const GEO_CONDITIONS: ReadonlySet<string> = new Set(['$geoWithin', '$geoIntersects']);

/** Refused by name wherever they stand: they write, run code, or tell of other data than the caller's documents. */
export const BLOCKED: ReadonlySet<string> = new Set([
  '$out',
  '$merge',
  '$where',
  '$function',
  '$accumulator',
  '$currentOp',
  '$collStats',
  '$indexStats',
  '$planCacheStats',
  '$queryStats',
  '$operationMetrics',
  '$listSessions',
  '$listLocalSessions',
  '$listSampledQueries',
  '$listSearchIndexes',
  '$listCatalog',
  '$listClusterCatalog',
  '$listMqlEntities',
  '$changeStream',
  '$changeStreamSplitLargeEvent',
  '$shardedDataDistribution',
  '$searchMeta',
  '$vectorSearch',
  '$backupCursor',
  '$backupCursorExtend',
  '$mergeCursors',
  '$documents',
  '$queue',
]);

/**
 * System variables that stand for the document in hand, the time, or what `$redact` decides. The others tell of the
 * database.
 */
export const SYSTEM_VARIABLES: ReadonlySet<string> = new Set([
  'ROOT',
  'CURRENT',
  'NOW',
  'REMOVE',
  'DESCEND',
  'PRUNE',
  'KEEP',
]);

export const META_KINDS: ReadonlySet<string> = new Set([
  'searchScore',
  'searchHighlights',
  'geoNearDistance',
  'geoNearPoint',
]);
