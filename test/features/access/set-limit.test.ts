import { expect, it } from 'vitest';
import { exceedsSetLimit } from '../../../src/features/access/rules/access-sets.js';

/** Whoever is in one of the groups. */
const inGroups = (...groups: string[]): string =>
  groups.map((group) => `doc.board in ${group}[user = user.id].board`).join(' or ');
const collection = (read: string[], remove: string[] = ['a']) => ({
  rls: null,
  isPublic: false,
  rules: { read: inGroups(...read), create: 'nobody', update: 'nobody', delete: inGroups(...remove) },
});
const ENDS = { key: { type: 'publishable' } } as Parameters<typeof exceedsSetLimit>[1];
const SECRET = { key: { type: 'secret' } } as typeof ENDS;

it('a request asks about four sets of all collections that it reads, each counted once', () => {
  const four = [collection(['a', 'b']), collection(['b', 'c', 'd'])];
  expect(exceedsSetLimit(four, ENDS, false)).toBe(false);
  expect(exceedsSetLimit([...four, collection(['e'])], ENDS, false)).toBe(true);
  expect(exceedsSetLimit([...four, collection(['e'])], SECRET, false)).toBe(false);
});

it('the rule delete counts where the trash is read', () => {
  const read = [collection(['a', 'b'], ['e']), collection(['c', 'd'])];
  expect(exceedsSetLimit(read, ENDS, false)).toBe(false);
  expect(exceedsSetLimit(read, ENDS, true)).toBe(true);
  expect(exceedsSetLimit([collection(['a', 'b'], ['c', 'd'])], ENDS, true)).toBe(false);
});
