import { expect, it } from 'vitest';
import { ROUTE_LISTS } from '../../src/api.js';
import { listUnmet } from './demand-refusals.js';

const everything = ROUTE_LISTS.flatMap(({ params, routes }) =>
  routes.flatMap(({ id, access, errors, params: own }) =>
    [access.errors, errors ?? {}, ...Object.values({ ...params, ...own }).map((each) => each.errors ?? {})]
      .flatMap((each) => Object.values(each).flat())
      .map((code) => `${id} ${code}`),
  ),
);

it('demands every code of some operation, and counts those that an operation lists itself', () => {
  const without = (isGone: (line: string) => boolean) => listUnmet(new Set(everything.filter((line) => !isGone(line))));
  expect(without(() => false)).toEqual({ codes: [], operations: [] });
  expect(without((line) => line === 'confirmUpload UPLOAD_NOT_READY')).toEqual({
    codes: ['UPLOAD_NOT_READY'],
    operations: ['confirmUpload UPLOAD_NOT_READY'],
  });
  expect(without((line) => line === 'putDocument OWNER_IMMUTABLE')).toEqual({
    codes: [],
    operations: ['putDocument OWNER_IMMUTABLE'],
  });
  expect(without((line) => line.endsWith(' API_KEY_INVALID'))).toEqual({ codes: ['API_KEY_INVALID'], operations: [] });
});
