import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/errors.js';
import type { Field } from '../../../src/features/collections/fields/field.js';
import { checkRules, completeRules } from '../../../src/features/collections/rules/check-rules.js';
import { listLoosenedAccess } from '../../../src/features/collections/rules/compare-rules.js';
import { parseRule, RuleProblem } from '../../../src/features/collections/rules/rule-text.js';
import { compileRule, filterOf } from '../../../src/features/access/rules/compile-rule.js';
import { openRandom } from '../../helpers/random.js';

const ID = '0123456789abcdef01234567';
const ADA = { id: ID, team: 'red', teams: ['red', 'green'], staff: true };

const filterFor = (text: string, caller: Record<string, unknown> | null): unknown =>
  filterOf(compileRule(parseRule(text), { attributes: caller }));

describe('a rule', () => {
  it.each<[string, unknown, unknown]>([
    ['anyone', null, null],
    ['nobody', { _id: { $in: [] } }, { _id: { $in: [] } }],
    ['user', null, { _id: { $in: [] } }],
    ['doc.owner = user.id', { owner: ID }, { _id: { $in: [] } }],
    ['user.id in doc.members', { members: ID }, { _id: { $in: [] } }],
    ['doc.open', { open: true }, { open: true }],
    ['doc.open or doc.owner = user.id', { $or: [{ open: true }, { owner: ID }] }, { open: true }],
    ['doc.open and doc.n = 2', { $and: [{ open: true }, { n: 2 }] }, { $and: [{ open: true }, { n: 2 }] }],
    ['doc.open or user.staff', null, { open: true }],
    ['doc.team in user.teams', { team: { $in: ['red', 'green'] } }, { _id: { $in: [] } }],
    ['doc.team in ["a", "b"] and user', { team: { $in: ['a', 'b'] } }, { _id: { $in: [] } }],
    ['"red" in user.teams and (doc.a = 1 or doc.a = 2)', { $or: [{ a: 1 }, { a: 2 }] }, { _id: { $in: [] } }],
    ['doc.name = "a \\"quoted\\" text"', { name: 'a "quoted" text' }, { name: 'a "quoted" text' }],
  ])('%s becomes a filter', (text, forAda, forNobody) => {
    expect(filterFor(text, ADA)).toEqual(forAda);
    expect(filterFor(text, null)).toEqual(forNobody);
  });

  it.each([
    ['user.team = "red"', { id: ID, team: null }],
    ['user.team = "red"', { id: ID }],
    ['doc.team = user.team', { id: ID, team: '' }],
    ['doc.team = user.team', { id: ID, team: ['red'] }],
    ['doc.team = user.team', { id: ID, team: { $gt: '' } }],
    ['doc.team = user.toString', { id: ID }],
    ['doc.team in user.teams', { id: ID, teams: 'red' }],
    ['doc.team in user.teams', { id: ID, teams: [null, '', { $ne: 1 }] }],
    ['user.team = user.other', { id: ID }],
    ['user.staff', { id: ID, staff: 'true' }],
  ])('%s admits nothing to %j', (text, caller) => {
    expect(filterFor(text, caller)).toEqual({ _id: { $in: [] } });
  });

  it.each<[string, number, string]>([
    ['', 0, 'expected a name'],
    ['owner = user.id', 0, 'doc.owner'],
    ['doc.owner == user.id', 10, 'one "="'],
    ['doc.owner != user.id', 10, 'no negation'],
    ['doc.owner <> user.id', 10, 'no negation'],
    ['!doc.open', 0, 'no negation'],
    ['doc.a >= 3', 6, 'no order'],
    ['doc.a < 3', 6, 'no order'],
    ['user && doc.open', 5, 'write "and"'],
    ['user || doc.open', 5, 'write "or"'],
    ["doc.a = 'open'", 8, 'double quotes'],
    ['not doc.open', 0, 'there is no "not"'],
    ['doc.owner = user.id and', 23, 'expected a name'],
    ['(doc.open', 9, 'expected ")"'],
    ['doc.open )', 9, 'the end'],
    ['doc.a = doc.b', 8, 'cannot be compared'],
    ['doc.a = ["x"]', 8, '"in"'],
    ['doc.a in "x"', 9, 'a list'],
    ['["x"] in doc.a', 0, 'the right'],
    ['"a" = "a"', 0, 'always the same'],
    ['doc.a = "open', 8, 'unexpected'],
    ['anyone or user', 0, '"anyone" stands alone'],
    ['user and nobody', 9, '"nobody" stands alone'],
    ['doc.a = "😀\ud800"', 11, 'surrogate'],
    [`doc.a in [${Array.from({ length: 21 }, (_, n) => n).join(',')}]`, 9, 'at most 20'],
    [`doc.a = "${'x'.repeat(2_000)}"`, 2_000, 'at most 2000'],
    [Array.from({ length: 17 }, () => 'user').join(' or '), 0, 'more than 16'],
    [Array.from({ length: 9 }, () => 'user').join(' and '), 0, 'more than 8'],
    [`${'('.repeat(60)}user${')'.repeat(60)}`, 50, '50 deep'],
  ])('%s is refused at its place', (text, at, message) => {
    const problem = catchProblem(() => parseRule(text));
    expect([problem.at, problem.message]).toEqual([at, expect.stringContaining(message)]);
  });

  it('costs little to read, whatever it is', () => {
    const random = openRandom(36);
    const words = [
      'user',
      'doc.a',
      'user.b',
      '(',
      ')',
      ' and ',
      ' or ',
      '=',
      ' in ',
      '"x"',
      '[',
      ']',
      ',',
      '1',
      '.',
      '"',
    ];
    const hostile = Array.from({ length: 2_000 }, () => Array.from({ length: 60 }, () => random.pick(words)).join(' '));
    const grouped = `(${Array.from({ length: 4 }, () => '(user or doc.a = 1)').join(' and ')})`;
    for (const text of [...hostile, '('.repeat(2_000), `${grouped} and ${grouped}`, '"'.repeat(2_000)]) {
      try {
        parseRule(text);
      } catch (error) {
        expect(error).toBeInstanceOf(RuleProblem);
      }
    }
  });
});

const FIELDS: Field[] = [
  { name: 'owner', type: 'String' },
  { name: 'board', type: 'Ref', ref: 'boards' },
  { name: 'n', type: 'Number' },
  { name: 'open', type: 'Boolean' },
  { name: 'when', type: 'Date' },
  { name: 'members', type: 'Array', items: { type: 'Ref' } },
  { name: 'anything', type: 'Array' },
  { name: 'o', type: 'Object', fields: [{ name: 'x', type: 'String' }] },
  { name: 'rows', type: 'Array', items: { type: 'Object', fields: [{ name: 'who', type: 'Ref' }] } },
];
const USERS = {
  fields: [
    { name: 'team', type: 'String', protected: true },
    { name: 'teams', type: 'Array', items: { type: 'String' }, protected: true },
    { name: 'staff', type: 'Boolean', protected: true },
    { name: 'nick', type: 'String' },
  ] as Field[],
};

const MEMBER_FIELDS = [
  { name: 'board', type: 'Ref', ref: 'boards' },
  { name: 'boards', type: 'Array', items: { type: 'String' } },
  { name: 'user', type: 'Ref', ref: 'users' },
  { name: 'users', type: 'Array', items: { type: 'String' } },
  { name: 'role', type: 'String' },
  { name: 'level', type: 'Number' },
  { name: 'active', type: 'Boolean' },
] as Field[];

const check = (text: string): void =>
  checkRules(
    { name: 'cards', fields: FIELDS, rls: null, rules: completeRules({ read: text }) },
    { users: USERS, others: new Map([['members', { name: 'members', fields: MEMBER_FIELDS }]]) },
  );

describe('a rule of a collection', () => {
  it.each([
    ['user and ', 'doc.missing', ' = user.id'],
    ['user.id in ', 'doc.missing', ''],
    ['doc.owner = ', 'user.missing', ''],
    ['user.id = ', 'user.missing', ''],
    ['', 'user.missing', ' in doc.members'],
    ['doc.board in ', 'missing', '[user = user.id].board'],
    ['doc.board in members[user = user.id].', 'missing', ''],
    ['doc.board in members[', 'missing', ' = user.id].board'],
    ['doc.board in members[user.id in ', 'missing', '].board'],
    ['doc.board in members[user = user.id and role = ', 'user.missing', '].board'],
    ['doc.board in members[user = user.id and role in ', 'user.missing', '].board'],
    ['doc.board in members[user = user.id and ', 'user.missing', ' in users].board'],
    ['doc.board in members[user = user.id and ', 'missing', '].board'],
  ])('has the place of a name that is unknown: %s%s%s', (before, name, after) => {
    const refusal = catchError(() => check(before + name + after)) as AppError;
    expect(refusal.mistake).toEqual({ text: before + name + after, at: before.length });
    expect(refusal.details).toMatchObject([{ rule: String(before.length) }]);
  });

  // The part at fault stands between bars.
  it.each([
    'user and doc.n = |"1"|',
    'user and doc.n in [1, |"2"|, 3]',
    'user and |"x"| = doc.n',
    'user and |""| in doc.members',
    'user and user.staff = |"yes"|',
    'user and |1| in user.teams',
    'user and user.team in ["red", |2|]',
    'user and |1| in members[user = user.id].role',
    'user and doc.board = |"not an id"|',
    'user and doc.open |=| user.team',
    'user and user.team |=| doc.open',
    'user and user.team |=| user.staff',
    'user and doc.n |in| user.teams',
    'user and doc.n |in| members[user = user.id].board',
    'user and user.staff |in| members[user = user.id].board',
    'user and doc.owner |=| user.teams',
    'user and doc.owner |in| user.team',
    'user and user.id |in| doc.owner',
    'user and |user.teams| in doc.members',
    'user and |user.teams| = "red"',
    'user and |doc.members| = user.id',
    'user and |doc.members| in user.teams',
    'user and |doc.n|',
    'user and |doc.when| = "2026-01-01"',
    'user and "2026-01-01" = |doc.when|',
    'user and doc.board in members[user = user.id and role = |2|].board',
    'user and doc.board in members[user = user.id and role in ["a", |2|]].board',
    'user and doc.board in members[user = user.id and |users| = "x"].board',
    'user and doc.board in members[user = user.id and level |=| user.team].board',
    'user and doc.board in members[user = user.id and level |in| user.teams].board',
    'user and doc.board in members[user.id |in| user].board',
    'user and doc.board in members[user = user.id and |level|].board',
    'user and doc.board in |members|[role = "x"].board',
    'user and doc.board in |others|[user = user.id].board',
    'user and doc.board in |users|[id = user.id].team',
    'user and doc.owner = |doc.o.x|',
  ])('has the place of the part that cannot hold: %s', (marked) => {
    const [before, part, after] = marked.split('|') as [string, string, string];
    const refusal = catchError(() => check(before + part + after)) as AppError;
    expect(refusal.mistake).toEqual({ text: before + part + after, at: before.length });
  });

  it.each([
    'doc.owner = user.id',
    'doc.board = user.id',
    'user.id in doc.members',
    'user.id in doc.rows.who',
    'doc.o.x = user.team',
    'doc.owner in user.teams',
    'user.team in user.teams',
    'doc.open and user.emailVerified',
    'doc.n in [1, 2.5, -3]',
    `doc.id = "${ID}"`,
    `doc.board in ["${ID}"]`,
    'doc.board in members[user = user.id].board',
    'doc.board in members[user = user.id and role in ["editor", "owner"]].board',
    'doc.owner in members[user.id in users and active and level = 2].boards',
    'doc.board in members[user = user.id and role = user.team].board',
    'doc.board in members[user = user.id and role in user.teams].board',
    'doc.id in members[user = user.id].board',
    'doc.board in members[user = user.id].id',
    '"owner" in members[user = user.id].role',
    'user.team in members[user = user.id].role',
    'doc.o.x in cards[owner = user.id].o.x',
  ])('%s names what is declared', (text) => {
    expect(() => check(text)).not.toThrow();
  });

  it.each<[string, string]>([
    ['doc.missing = user.id', 'declares no field missing'],
    ['doc.createdAt = user.id', 'declares no field createdAt'],
    ['doc.isDeleted', 'declares no field isDeleted'],
    ['doc._bsvc.at = 1', 'declares no field _bsvc.at'],
    ['doc.o = "x"', 'of type Object'],
    ['doc.when = "2026-01-01"', 'of type Date'],
    ['"x" in doc.anything', 'of type Array'],
    ['doc.members = user.id', 'is a list'],
    ['user.id in doc.owner', 'is not a list'],
    ['doc.rows.who = user.id', 'is a list'],
    ['doc.owner = user.teams', 'is a list'],
    ['doc.owner in user.team', 'is one value'],
    ['doc.n = "1"', 'no value that this can have'],
    ['doc.owner = ""', 'an empty text'],
    ['doc.board = "not an id"', 'no value that this can have'],
    ['doc.open = user.team', 'never equal'],
    ['doc.n', 'no value that this can have'],
    ['doc.board in members.board', 'what is members'],
    ['doc.board in others[user = user.id].board', 'there is no collection others'],
    ['doc.board in users[id = user.id].team', 'cannot be of users'],
    ['doc.board in members[role = "x"].board', 'asks once for user.id'],
    ['doc.board in members[user = user.id and role = user.id].board', 'asks once for user.id'],
    ['doc.board in members[user in user.id].board', 'asks once for user.id'],
    ['doc.board in members[user = user.id].boardd', 'declares no field boardd'],
    ['doc.board in members[usr = user.id].board', 'declares no field usr'],
    ['doc.board in members[user = user.id and role = 2].board', 'no value that this can have'],
    ['doc.board in members[user = user.id and users = "x"].board', 'users is a list'],
    ['doc.board in members[user.id in user].board', 'user is not a list'],
    ['doc.n in members[user = user.id].board', 'never equal'],
    ['doc.members in members[user = user.id].board', 'are both lists'],
    ['doc.members in user.teams', 'doc.members and user.teams are both lists'],
    ['doc.board = members[user = user.id].board', 'write "in" before a set'],
    ['doc.board in members[user = user.id', 'expected "and" or "]"'],
    ['doc.board in members[user = user.id].', 'expected a name'],
    ['1 in members[user = user.id].role', 'no value that this can have'],
    ['user.nick = "root"', 'users can set nick on themselves'],
    ['user.password = "x"', 'there is no user.password'],
    ['user.constructor = "x"', 'there is no user.constructor'],
  ])('%s can never hold, or names nothing', (text, message) => {
    const error = catchError(() => check(text)) as AppError;
    expect(error).toBeInstanceOf(AppError);
    expect([error.code, error.message]).toEqual(['INVALID_RULE', expect.stringContaining(message)]);
    expect(error.message).toContain('at character');
  });
});

describe('a rule that takes the place of another', () => {
  const changes = (from: string, to: string): number =>
    listLoosenedAccess(
      { rls: null, isPublic: false, rules: completeRules({ read: from }) },
      { rls: null, isPublic: false, rules: completeRules({ read: to }) },
    ).length;

  it.each([
    ['anyone', 'user'],
    ['user', 'nobody'],
    ['doc.open', 'doc.open and user'],
    ['doc.open or user', 'user'],
    ['doc.open', 'user and doc.open'],
    ['doc.board in members[user = user.id].board', 'doc.board in members[user = user.id].board and doc.open'],
    ['user', '(user and doc.open) or (user and doc.n = 1)'],
  ])('%s → %s lets nobody do more', (from, to) => {
    expect(changes(from, to)).toBe(0);
    expect(changes(to, from)).toBe(1);
  });
});

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was refused');
}

function catchProblem(run: () => unknown): RuleProblem {
  const error = catchError(run);
  expect(error).toBeInstanceOf(RuleProblem);
  return error as RuleProblem;
}
