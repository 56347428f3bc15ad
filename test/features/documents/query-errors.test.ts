import { describe, expect, it } from 'vitest';
import { listError, pipelineError } from '../../../src/features/documents/reply/query-errors.js';

/** An error as the driver hands it on; its text is MongoDB's. */
const serverError = (code: number, message: string): Error =>
  Object.assign(new Error(message), { name: 'MongoServerError', code });

describe('errors of the database', () => {
  it.each<[string, Error, RegExp]>([
    [
      'a sort over parallel arrays',
      serverError(
        2,
        'Executor error during find command :: caused by :: cannot sort with keys that are parallel arrays',
      ),
      /^sort: some document holds arrays in more than one/,
    ],
    ['an index over parallel arrays', serverError(171, 'cannot index parallel arrays [a] [b]'), /^sort: some document/],
    ['any other bad value', serverError(2, 'unknown operator: $near'), /^The database refused the query \(error 2\)/],
  ])('of a list tell %s truthfully', (_what, error, message) => {
    const told = listError(error);
    expect(told).toMatchObject({
      code: 'INVALID_QUERY',
      message: expect.stringMatching(message) as string,
      cause: error,
    });
  });

  it('of a list that are about the server stay as they are, for the log', () => {
    const error = serverError(13, 'not authorized on shop to execute command');
    expect(listError(error)).toBe(error);
  });

  it.each<[string, Error, string]>([
    [
      'a search on a MongoDB outside of Atlas',
      serverError(31_082, 'Using $search and $vectorSearch requires additional configuration'),
      '$search is not available: it belongs to MongoDB Atlas',
    ],
    [
      'an operator that only some databases have',
      serverError(2, '$sampleRate is not supported by this engine'),
      '$sampleRate is not available here: this database has nothing that serves it',
    ],
    [
      'a missing index',
      serverError(27, '$geoNear requires a 2d or 2dsphere index, but none were found'),
      '$geoNear needs an index of places, such as "place:2dsphere": add it to the indexes of the collection',
    ],
    [
      'several indexes to choose from',
      serverError(27, 'There is more than one 2dsphere index on a.b; unsure which to use for $geoNear'),
      '$geoNear: several fields of the collection have an index of places: name one by "key"',
    ],
    [
      'a field without one',
      serverError(291, 'unable to find index for $geoNear query'),
      '$geoNear: the field that "key" names has no index of places, such as "place:2dsphere"',
    ],
  ])('of a pipeline tell %s', (_what, error, message) => {
    expect(pipelineError(error)).toMatchObject({ code: 'INVALID_PIPELINE', message });
  });
});
