import { expect, it } from 'vitest';
import {
  admitsNothing,
  compileRule,
  filterOf,
  type CallerAttributes,
} from '../../../src/features/access/rules/compile-rule.js';
import { parseRule } from '../../../src/features/collections/rules/rule-text.js';

/** rules.md 3: what is absent, null, empty or of another type is equal to nothing, not even to itself. */
const NO_VALUES = [undefined, null, '', NaN, Infinity, new Date(0), {}, ['a']];
const VALUES = ['a', 0, 2.5, false];

const leftOf = (rule: string, attributes: CallerAttributes): unknown => {
  const compiled = compileRule(parseRule(rule), { attributes });
  return admitsNothing(compiled) ? 'nothing' : (filterOf(compiled) ?? 'everything');
};

it.each(NO_VALUES)('an attribute that is %o meets no condition', (team) => {
  const attributes = { id: '0'.repeat(24), team, other: team, teams: [team] };
  for (const rule of ['doc.team = user.team', 'user.team = user.other', 'user.team in user.teams']) {
    expect(leftOf(rule, attributes)).toBe('nothing');
  }
  expect(leftOf('doc.team in user.teams', attributes)).toBe('nothing');
  expect(leftOf('doc.team in user.teams', { ...attributes, teams: ['b', team, 1] })).toEqual({
    team: { $in: ['b', 1] },
  });
});

it.each(VALUES)('an attribute that is %o is compared', (team) => {
  const attributes = { id: '0'.repeat(24), team, other: team, teams: ['b', team] };
  expect(leftOf('doc.team = user.team', attributes)).toEqual({ team });
  expect(leftOf('doc.team in user.teams', attributes)).toEqual({ team: { $in: ['b', team] } });
  expect(leftOf('user.team = user.other', attributes)).toBe('everything');
  expect(leftOf('user.team in user.teams', attributes)).toBe('everything');
  expect(leftOf('user.team = user.other', { ...attributes, other: 'b' })).toBe('nothing');
  expect(leftOf('user.team in user.teams', { ...attributes, teams: ['b'] })).toBe('nothing');
});

it('an attribute is the account’s own, and nobody has any who is not signed in', () => {
  expect(leftOf('doc.team = user.constructor', { id: '0'.repeat(24) })).toBe('nothing');
  for (const rule of ['doc.team = user.team', 'doc.team in user.teams', 'user', 'user.id in doc.people']) {
    expect(leftOf(rule, null)).toBe('nothing');
  }
});

it('an id of a document is compared only with what can be one', () => {
  const id = 'a'.repeat(24);
  expect(leftOf('doc.id = user.own', { id, own: 'no id' })).toBe('nothing');
  expect(leftOf('doc.id = user.own', { id, own: 5 })).toBe('nothing');
  expect(JSON.stringify(leftOf('doc.id in user.all', { id, all: ['no id', id] }))).toBe(`{"_id":"${id}"}`);
});
