import { expect, it } from 'vitest';
import { ROUTE_LISTS } from '../../src/api.js';
import { listUnmet } from './demand-refusals.js';

const everything = ROUTE_LISTS.flatMap(({ params, routes }) =>
  routes.flatMap(({ id, access, refuses, params: own }) =>
    [access.refuses, refuses ?? {}, ...Object.values({ ...params, ...own }).map((each) => each.refuses ?? {})]
      .flatMap((each) => Object.values(each).flat())
      .map((code) => `${id} ${code}`),
  ),
);

it('demands what an operation can refuse with itself of that operation, and what guards many of any', () => {
  const without = (...lines: string[]) => listUnmet(new Set(everything.filter((line) => !lines.includes(line))));
  expect(without()).toEqual([]);
  expect(without('confirmUpload UPLOAD_NOT_READY')).toEqual(['confirmUpload UPLOAD_NOT_READY']);
  // One of two operations that share their description is enough.
  expect(without('putDocument OWNER_IMMUTABLE')).toEqual([]);
  expect(without('putDocument OWNER_IMMUTABLE', 'updateDocument OWNER_IMMUTABLE')).toEqual([
    'putDocument, updateDocument OWNER_IMMUTABLE',
  ]);
  expect(without('getDocument API_KEY_INVALID')).toEqual([]);
  expect(without(...everything.filter((line) => line.endsWith(' API_KEY_INVALID')))).toEqual([
    'any operation API_KEY_INVALID',
  ]);
});
