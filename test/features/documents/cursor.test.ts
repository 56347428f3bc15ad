import { ObjectId } from 'bson';
import { describe, expect, it } from 'vitest';
import {
  openCursor,
  signCursor,
  type CursorScope,
  type CursorState,
} from '../../../src/features/documents/query/cursor.js';
import { RANK, type SortKey } from '../../../src/features/documents/query/sort-key.js';
import { openSecretBox } from '../../../src/platform/secrets/secret-box.js';
import { buildCollection } from './build-collection.js';

const secrets = openSecretBox('first');
const collection = buildCollection();
const scope: CursorScope = {
  collection,
  sort: [
    { path: 'title', direction: 1 },
    { path: '_id', direction: 1 },
  ],
  conditions: [{ views: { $gt: 1 } }, { live: { $eq: true } }],
  includeDeleted: false,
  readable: null,
};
const position: SortKey[] = [
  { rank: RANK.string, value: 'é' },
  { rank: RANK.id, value: new ObjectId() },
];
const state: CursorState = { position, total: 7 };
const refused = expect.objectContaining({ kind: 'invalid', code: 'INVALID_CURSOR' });
const caught = (run: () => unknown): unknown => {
  try {
    return run();
  } catch (error) {
    return error;
  }
};

describe('a cursor', () => {
  it.each<SortKey[]>([
    [{ rank: RANK.empty }],
    [{ rank: RANK.null, value: null }],
    [{ rank: RANK.number, value: 1.5 }],
    [{ rank: RANK.date, value: new Date('2026-11-21T00:00:00Z') }],
    [{ rank: RANK.object, value: { a: [1, { b: null }] } }],
    [{ rank: RANK.array, value: [1, 'x'] }],
    position,
  ])('gives back the position it was made of: %j', (...keys) => {
    const given = { position: keys, total: 1_000_000 };
    expect(openCursor(secrets, scope, signCursor(secrets, scope, given))).toEqual(given);
  });

  it('of an earlier version, which carried no total, stays good', () => {
    const old = { position, total: null };
    expect(openCursor(secrets, scope, signCursor(secrets, scope, old))).toEqual(old);
  });

  it('does not mind the order of the filter', () => {
    const cursor = signCursor(secrets, scope, state);
    expect(openCursor(secrets, { ...scope, conditions: [...scope.conditions].reverse() }, cursor)).toEqual(state);
  });

  it('of one user is refused by the list of another, and of everybody', () => {
    const mine = { ...scope, readable: { userId: 'a' } };
    const cursor = signCursor(secrets, mine, state);
    expect(openCursor(secrets, mine, cursor)).toEqual(state);
    for (const readable of [{ userId: 'b' }, { ownerId: 'a' }, null]) {
      expect(caught(() => openCursor(secrets, { ...mine, readable }, cursor))).toEqual(refused);
    }
  });

  it.each<[string, Partial<CursorScope>]>([
    ['another collection', { collection: buildCollection({ projectId: collection.projectId }) }],
    ['another project', { collection: { ...collection, projectId: new ObjectId() } }],
    ['another sort', { sort: [{ path: '_id', direction: 1 }] }],
    ['another direction', { sort: scope.sort.map(({ path }) => ({ path, direction: -1 as const })) }],
    ['another filter', { conditions: [] }],
    ['a list with the trash', { includeDeleted: true }],
    ['a list of one user', { readable: { userId: 'a' } }],
  ])('is refused by %s', (_, other) => {
    const cursor = signCursor(secrets, scope, state);
    expect(caught(() => openCursor(secrets, { ...scope, ...other }, cursor))).toEqual(refused);
  });

  it('is refused when any character of it was changed', () => {
    const cursor = signCursor(secrets, scope, state);
    for (let at = 0; at < cursor.length; at++) {
      const other = cursor[at] === 'A' ? 'B' : 'A';
      const forged = cursor.slice(0, at) + other + cursor.slice(at + 1);
      expect(caught(() => openCursor(secrets, scope, forged))).toEqual(refused);
    }
  });

  it.each(['x', '.', 'a.b', 'a.b.c', '..', 'W10.', `${'A'.repeat(5000)}.A`])('is refused when it is %s', (text) => {
    expect(caught(() => openCursor(secrets, scope, text))).toEqual(refused);
  });

  it('stays good when a newer master key is put in front', () => {
    const cursor = signCursor(secrets, scope, state);
    expect(openCursor(openSecretBox('second,first'), scope, cursor)).toEqual(state);
    expect(caught(() => openCursor(openSecretBox('second'), scope, cursor))).toEqual(refused);
  });

  it('cannot be made of values too long for a request line', () => {
    const long: SortKey[] = [{ rank: RANK.string, value: 'a'.repeat(4000) }];
    expect(caught(() => signCursor(secrets, scope, { position: long, total: 1 }))).toMatchObject({
      code: 'INVALID_QUERY',
    });
  });
});
