import { abandoned, invalid, unavailable } from '../../../errors.js';
import { isTimeExceeded } from '../../../platform/database/database.js';

const BAD_VALUE = 2;
const PARALLEL_ARRAYS = 171;
const MEMORY_EXCEEDED = new Set([146, 292]);
const BAD_PATTERN = new Set([51_091, 51_108]);

/** The error of a failed list for the client: its filter or sort asks too much. Any other error stays as it is. */
export function listError(error: unknown, signal?: AbortSignal): unknown {
  if (signal?.aborted) return abandoned();
  const code = (error as { code?: unknown }).code as number;
  if (isTimeExceeded(error)) {
    return refusal('QUERY_TIMEOUT', 'The query took too long: narrow the filter, or index the fields it uses', error);
  }
  if (MEMORY_EXCEEDED.has(code)) {
    return refusal(
      'QUERY_TOO_LARGE',
      'Sorting takes too much memory: narrow the filter, or index the sorted field',
      error,
    );
  }
  // Of bad values in general only the text says which it was.
  const isParallel = code === PARALLEL_ARRAYS || (code === BAD_VALUE && /parallel arrays/.test(String(error)));
  if (isParallel) {
    return refusal('INVALID_QUERY', 'sort: some document holds arrays in more than one of the sorted fields', error);
  }
  if (OVERLOADED.has(code)) return busy(error);
  if (BAD_PATTERN.has(code)) return refusal('INVALID_QUERY', 'The pattern of a _regex filter cannot be used', error);
  if (code === BAD_VALUE) {
    return refusal(
      'INVALID_QUERY',
      'The database refused the query (error 2): check the operators and values of the filter, and the sort',
      error,
    );
  }
  return error;
}

/** Ends a promise of a list as listError says. */
export function failList(error: unknown): never {
  throw listError(error);
}

/**
 * The error of a failed pipeline for the client. The database's own text stays in the log: it names stored collections.
 */
export function pipelineError(error: unknown, signal?: AbortSignal): unknown {
  if (signal?.aborted) return abandoned();
  const { code, name } = error as { code?: unknown; name?: string };
  if (name !== 'MongoServerError' || typeof code !== 'number') return error;
  if (isTimeExceeded(error)) {
    return refusal(
      'QUERY_TIMEOUT',
      'The pipeline took too long: put $match first, and index the fields it uses',
      error,
    );
  }
  if (MEMORY_EXCEEDED.has(code)) {
    return refusal(
      'QUERY_TOO_LARGE',
      'The pipeline takes too much memory: narrow it by $match or $project first',
      error,
    );
  }
  if (OVERLOADED.has(code)) return busy(error);
  const missing = findMissing(code, (error as Error).message);
  if (missing) {
    return refusal('INVALID_PIPELINE', missing, error);
  }
  if (!isRefusal(code)) return error;
  return refusal(
    'INVALID_PIPELINE',
    `The database refused the pipeline (error ${code}): check the options of its stages and the types that its operators meet`,
    error,
  );
}

/** MongoDB's codes for a `$geoNear` that no index serves: none at all or too many, and none of the named field. */
const NO_GEO_INDEX = 27;
const NO_SUCH_GEO_INDEX = 291;
/** MongoDB's code where no search service is set up. */
const NO_SEARCH = 31_082;

/** The index or ability that the database lacks, as a sentence; null when the pipeline itself is wrong. */
function findMissing(code: number, message: string): string | null {
  if (code === NO_GEO_INDEX) {
    return /more than one/.test(message)
      ? '$geoNear: several fields of the collection have an index of places: name one by "key"'
      : '$geoNear needs an index of places, such as "place:2dsphere": add it to the indexes of the collection';
  }
  if (code === NO_SUCH_GEO_INDEX) {
    return '$geoNear: the field that "key" names has no index of places, such as "place:2dsphere"';
  }
  if (code === NO_SEARCH) return '$search is not available: it belongs to MongoDB Atlas';
  const atlas = /^\$\w+ is not available: it belongs to MongoDB Atlas$/.exec(message)?.[0];
  if (atlas !== undefined) return atlas;
  const name = /^(\$\w+).*(?: not supported by this engine$| is not available: )/.exec(message)?.[1];
  return name === undefined ? null : `${name} is not available here: this database has nothing that serves it`;
}

/** Codes by which the database says that a pipeline is wrong: bad values, options, types, conversions, sizes. */
const ERRORS = new Set([2, 4, 9, 14, 15, 16, 20, 40, 43, 52, 53, 54, 55, 56, 57, 72, 73, 115, 168, 238, 241, 245]);
/** Above the named codes each place of the server's code has its own number; these few are about the server itself. */
const FIRST_PLACE_CODE = 10_000;
const SERVER_FAULTS = new Set([10_107, 11_600, 11_602, 13_388, 13_435, 13_436, 14_031]);

function isRefusal(code: number): boolean {
  return ERRORS.has(code) || (code >= FIRST_PLACE_CODE && !SERVER_FAULTS.has(code));
}

/** Too many reads wait for the engine's threads, or the read was broken off because of another one. */
const OVERLOADED = new Set([365, 11_601]);

const busy = (cause: unknown): Error =>
  unavailable('BUSY', 'Too much heavy work is going on: try again in a moment', { retryAfterSeconds: 1, cause });

const refusal = (code: string, message: string, cause: unknown): Error => invalid(code, message, { cause });
