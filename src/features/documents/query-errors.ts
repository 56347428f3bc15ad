import { invalid } from '../../errors.js';

const TIME_EXCEEDED = 50;
const PARALLEL_ARRAYS = new Set([2, 171]);
const MEMORY_EXCEEDED = new Set([146, 292]);
const BAD_PATTERN = new Set([51_091, 51_108]);

/** What a failed list means to the client: its filter or sort asks too much. Anything else stays as it is. */
export function listError(error: unknown): unknown {
  const code = (error as { code?: unknown }).code as number;
  if (code === TIME_EXCEEDED) {
    return refusal('QUERY_TIMEOUT', 'The query took too long: narrow the filter, or index the fields it uses', error);
  }
  if (MEMORY_EXCEEDED.has(code)) {
    return refusal(
      'QUERY_TOO_LARGE',
      'Sorting takes too much memory: narrow the filter, or index the sorted field',
      error,
    );
  }
  if (PARALLEL_ARRAYS.has(code)) {
    return refusal('INVALID_QUERY', 'sort: some document holds arrays in more than one of the sorted fields', error);
  }
  if (BAD_PATTERN.has(code)) return refusal('INVALID_QUERY', 'The pattern of a _regex filter cannot be used', error);
  return error;
}

/** What a failed pipeline means to the client. The database's own text stays in the log: it names stored collections. */
export function pipelineError(error: unknown): unknown {
  const { code, name } = error as { code?: unknown; name?: string };
  if (name !== 'MongoServerError' || typeof code !== 'number') return error;
  if (code === TIME_EXCEEDED) {
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
  if (SERVER_FAULTS.has(code)) return error;
  return refusal(
    'INVALID_PIPELINE',
    `The database refused the pipeline (error ${code}): check the options of its stages and the types that its operators meet`,
    error,
  );
}

/** Unreachable hosts, shutdowns, changes of primary, lost authorization: not the client's doing. */
const SERVER_FAULTS = new Set([6, 7, 13, 18, 89, 91, 189, 262, 9001, 10_107, 11_600, 11_602, 13_435, 13_436]);

const refusal = (code: string, message: string, cause: unknown): Error => invalid(code, message, { cause });
