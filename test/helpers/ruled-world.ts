import { ObjectId } from 'bson';
import request from 'supertest';
import { signAccessToken } from '../../src/features/access/sign-access-token.js';
import { addCollection } from '../../src/features/collections/add-collection.js';
import { documentsName } from '../../src/features/collections/collection.js';
import { editCollection } from '../../src/features/collections/edit-collection.js';
import { defaultUsersCollection } from '../../src/features/collections/users-collection.js';
import { completeRules } from '../../src/features/collections/rules/check-rules.js';
import { setRules } from '../../src/features/collections/change-collection.js';
import { buildProject, type TestProject } from './build-project.js';
import type { TestApp } from './open-test-app.js';
import type { Random } from './random.js';

export type Values = Record<string, unknown>;

/** A rule's text, and beside it what it means, said a second time without the product's code. */
export interface GeneratedRule {
  text: string;
  admits: (user: Values | null, document: Values) => boolean;
  asksCaller: boolean;
}

/** Somebody who asks; null attributes: nobody is signed in. */
export interface Person {
  user: Values | null;
  headers: Record<string, string>;
}

const TEXTS = ['red', 'green', 'blue'];

/** Memberships by id, as the collection `joins` holds them; rules look at them at the moment when they are asked. */
export type Joins = ReadonlyMap<string, Values>;

/** The values of a set, said without the product's code. */
const valuesOf = (joins: Joins, isMine: (join: Values) => boolean, field: string): unknown[] =>
  [...joins.values()].filter(isMine).flatMap((join) => join[field] ?? []);

/** One value equals another: never what is absent or empty. */
const same = (left: unknown, right: unknown): boolean =>
  left !== undefined && left !== null && left !== '' && left === right;
const among = (value: unknown, list: unknown): boolean => Array.isArray(list) && list.some((each) => same(value, each));

const condition = (random: Random, joins: Joins): GeneratedRule => {
  const text = random.pick(TEXTS);
  const mine =
    (user: Values | null) =>
    ({ who }: Values): boolean =>
      same(who, user?.id);
  const rule = (asksCaller: boolean, words: string, admits: GeneratedRule['admits']): GeneratedRule => ({
    text: words,
    admits,
    asksCaller,
  });
  const inner = (document: Values): Values => (document.o ?? {}) as Values;
  return random.pick([
    () => rule(true, 'user', (user) => user !== null),
    () => rule(true, 'doc.owner = user.id', (user, { owner }) => same(owner, user?.id)),
    () => rule(true, 'user.id = doc.owner', (user, { owner }) => same(owner, user?.id)),
    () => rule(true, 'user.id in doc.members', (user, { members }) => among(user?.id, members)),
    () => rule(true, 'doc.colour = user.team', (user, { colour }) => same(colour, user?.team)),
    () => rule(true, 'doc.colour in user.teams', (user, { colour }) => among(colour, user?.teams)),
    () => rule(true, 'doc.level = user.level', (user, { level }) => same(level, user?.level)),
    () => rule(true, 'user.staff', (user) => user?.staff === true),
    () => rule(true, `"${text}" in user.teams`, (user) => among(text, user?.teams)),
    () => rule(true, `user.team in ["${text}", "red"]`, (user) => among(user?.team, [text, 'red'])),
    () => rule(true, 'user.emailVerified', (user) => user?.emailVerified === true),
    () => rule(false, 'doc.open', (_user, { open }) => open === true),
    () => rule(false, 'doc.open = false', (_user, { open }) => open === false),
    () => rule(false, `doc.colour = "${text}"`, (_user, { colour }) => same(colour, text)),
    () => rule(false, `doc.colour in ["${text}", "blue"]`, (_user, { colour }) => among(colour, [text, 'blue'])),
    () => rule(false, 'doc.level in [1, 2]', (_user, { level }) => among(level, [1, 2])),
    () => rule(false, `"${text}" in doc.tags`, (_user, { tags }) => among(text, tags)),
    () => rule(true, 'doc.o.x = user.team', (user, document) => same(inner(document).x, user?.team)),
    () =>
      rule(true, 'user.id in doc.rows.who', (user, { rows }) =>
        among(
          user?.id,
          ((rows ?? []) as Values[]).map(({ who }) => who),
        ),
      ),
    () =>
      rule(true, 'doc.colour in joins[who = user.id].group', (user, { colour }) =>
        among(colour, valuesOf(joins, mine(user), 'group')),
      ),
    () =>
      rule(true, `doc.colour in joins[who = user.id and rank in [1, 2]].group`, (user, { colour }) =>
        among(
          colour,
          valuesOf(joins, (join) => mine(user)(join) && among(join.rank, [1, 2]), 'group'),
        ),
      ),
    () =>
      rule(true, 'doc.o.x in joins[user.id in people and active].groups', (user, document) =>
        among(
          inner(document).x,
          valuesOf(joins, ({ people, active }) => among(user?.id, people) && active === true, 'groups'),
        ),
      ),
    () =>
      rule(true, 'doc.level in joins[who = user.id and group = user.team].rank', (user, { level }) =>
        among(
          level,
          valuesOf(joins, (join) => mine(user)(join) && same(join.group, user?.team), 'rank'),
        ),
      ),
    () =>
      rule(true, `"${text}" in joins[who = user.id].group`, (user) =>
        among(text, valuesOf(joins, mine(user), 'group')),
      ),
    () =>
      rule(true, 'user.team in joins[user.id in people].groups', (user) =>
        among(
          user?.team,
          valuesOf(joins, ({ people }) => among(user?.id, people), 'groups'),
        ),
      ),
  ])();
};

const MAX_SETS = 4;

/** A rule of a few conditions, most with sets, as many as a rule may have. */
export function generateRule(random: Random, joins: Joins): GeneratedRule {
  const least = random.chance(0.7) ? 1 : 0;
  for (;;) {
    const rule = generatePart(random, joins, 0);
    const sets = rule.text.split('joins[').length - 1;
    if (sets >= least && sets <= MAX_SETS) return rule;
  }
}

function generatePart(random: Random, joins: Joins, depth: number): GeneratedRule {
  const kind = random.below(depth === 0 ? 12 : 8);
  if (kind === 11) return ANYONE;
  if (kind === 10) return { text: 'nobody', admits: () => false, asksCaller: false };
  if (depth > 2 || kind < 3) return condition(random, joins);
  const parts = [generatePart(random, joins, depth + 1), generatePart(random, joins, depth + 1)];
  const asksCaller = parts.some((part) => part.asksCaller);
  if (kind < 7) {
    const admits: GeneratedRule['admits'] = (user, document) => parts.some((part) => part.admits(user, document));
    return { text: `(${parts.map(({ text }) => text).join(' or ')})`, admits, asksCaller };
  }
  const admits: GeneratedRule['admits'] = (user, document) => parts.every((part) => part.admits(user, document));
  return { text: parts.map(({ text }) => text).join(' and '), admits, asksCaller };
}

/** Some of the fields of a document, each of its declared type or left out. */
export function generateFields(random: Random, users: readonly string[]): Values {
  const maybe = (value: () => unknown): unknown => (random.chance(0.3) ? undefined : value());
  const some = (items: readonly string[]): string[] => items.filter(() => random.chance(0.4));
  const fields: Values = {
    owner: maybe(() => random.pick([...users, ''])),
    members: maybe(() => some(users)),
    colour: maybe(() => random.pick([...TEXTS, ''])),
    level: maybe(() => random.below(4)),
    open: maybe(() => random.chance(0.5)),
    tags: maybe(() => some(TEXTS)),
    o: maybe(() => (random.chance(0.5) ? { x: random.pick(TEXTS) } : {})),
    rows: maybe(() => some(users).map((who) => ({ who }))),
  };
  return JSON.parse(JSON.stringify(fields)) as Values;
}

/** Some of the fields of a membership. */
export function generateJoin(random: Random, users: readonly string[]): Values {
  const maybe = (value: () => unknown): unknown => (random.chance(0.15) ? undefined : value());
  const some = (items: readonly string[]): string[] => items.filter(() => random.chance(0.5));
  const fields: Values = {
    who: maybe(() => random.pick(users)),
    people: maybe(() => some(users)),
    group: maybe(() => random.pick([...TEXTS, ''])),
    groups: maybe(() => some(TEXTS)),
    rank: maybe(() => random.below(4)),
    active: maybe(() => random.chance(0.7)),
  };
  return JSON.parse(JSON.stringify(fields)) as Values;
}

export const RULED = ['read', 'create', 'update', 'delete'] as const;

export interface RuledWorld {
  owner: TestProject;
  people: Person[];
  userIds: string[];
  rules: Record<(typeof RULED)[number], GeneratedRule>;
  /** Ids that the collection `refs` refers to. */
  referred: readonly string[];
  /** The memberships that stand. */
  joins: Map<string, Values>;
  server: Person;
  /** The stored documents by id, as the test knows them. */
  documents: Map<string, Values>;
  /** Those in the trash. */
  trashed: Map<string, Values>;
  send(
    person: Person,
    method: 'get' | 'post' | 'patch' | 'delete',
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: Reply; text: string }>;
}

export interface Reply {
  code?: string;
  _id?: string;
  data?: unknown;
  details?: { rule: string }[];
}

const FIELDS = [
  ...['owner', 'colour', 'text'].map((name) => ({ name, type: 'String' as const })),
  ...['level', 'v'].map((name) => ({ name, type: 'Number' as const })),
  { name: 'open', type: 'Boolean' as const },
  ...['members', 'tags'].map((name) => ({ name, type: 'Array' as const, items: { type: 'String' as const } })),
  { name: 'o', type: 'Object' as const, fields: [{ name: 'x', type: 'String' as const }] },
  {
    name: 'rows',
    type: 'Array' as const,
    items: { type: 'Object' as const, fields: [{ name: 'who', type: 'String' as const }] },
  },
];

const JOIN_FIELDS = [
  ...['who', 'group'].map((name) => ({ name, type: 'String' as const })),
  ...['people', 'groups'].map((name) => ({ name, type: 'Array' as const, items: { type: 'String' as const } })),
  { name: 'rank', type: 'Number' as const },
  { name: 'active', type: 'Boolean' as const },
];

/**
 * A project whose users have attributes, with a collection `things` under random rules that holds `count` documents,
 * and a collection `refs` that everybody reads and that refers to all of them.
 */
export async function buildRuledWorld(test: TestApp, random: Random, count: number): Promise<RuledWorld> {
  const { app } = test;
  const owner = await buildProject(app);
  const { project } = owner;
  await editCollection(app, project._id, 'users', {
    addFields: [
      { name: 'team', type: 'String', protected: true },
      { name: 'level', type: 'Number', protected: true },
      { name: 'staff', type: 'Boolean', protected: true },
      { name: 'teams', type: 'Array', items: { type: 'String' }, protected: true },
    ],
  });
  const users: Values[] = [
    { team: 'red', level: 1, staff: false, teams: ['red', 'green'], emailVerified: true },
    { team: '', level: 2, staff: true, teams: [], emailVerified: false },
    { emailVerified: false, teams: ['blue'] },
  ];
  const stored = users.map((user, at) => ({
    ...user,
    _id: new ObjectId(),
    email: `u${at}@example.test`,
    isDeleted: false,
  }));
  await app.db.collection(documentsName(defaultUsersCollection(project._id))).insertMany(stored as never);
  const userIds = stored.map(({ _id }) => _id.toHexString());
  const joins = new Map<string, Values>();
  const rules = Object.fromEntries(RULED.map((name) => [name, generateRule(random, joins)])) as RuledWorld['rules'];
  const mode = random.chance(0.5) ? 'enforced' : 'flexible';
  await addCollection(app, project, { name: 'things', mode, fields: FIELDS, access: 'public', changes: { on: true } });
  await addCollection(app, project, {
    name: 'refs',
    access: 'public',
    fields: [{ name: 'to', type: 'Array', items: { type: 'Ref', ref: 'things' } }],
  });
  await addCollection(app, project, { name: 'joins', mode, fields: JOIN_FIELDS, access: 'public' });
  const server: Person = { user: null, headers: { 'x-api-key': owner.secret } };
  const world: RuledWorld = {
    owner,
    joins,
    server,
    rules,
    userIds,
    people: [
      { user: null, headers: { 'x-api-key': owner.publishable } },
      ...users.map((user, at) => ({
        user: { ...user, id: userIds[at]! },
        headers: {
          'x-api-key': owner.publishable,
          authorization: `Bearer ${signAccessToken(app, project, userIds[at]!, 600_000)}`,
        },
      })),
    ],
    referred: [],
    documents: new Map(),
    trashed: new Map(),
    async send({ headers }, method, path, body) {
      const call = request(test.server)[method](`/api/data/${path}`).set(headers);
      const reply = body === undefined ? await call : await call.send(body as object);
      return { status: reply.status, body: reply.body as Reply, text: reply.text };
    },
  };
  for (let at = 0; at < count; at++) {
    const fields = { ...generateFields(random, userIds), text: `secret-${at}-` };
    const { body, text } = await world.send(server, 'post', 'things', fields);
    if (!body._id) throw new Error(text);
    world.documents.set(body._id, fields);
  }
  for (let at = 0; at < count / 2; at++) {
    const fields = generateJoin(random, userIds);
    const { body, text } = await world.send(server, 'post', 'joins', fields);
    if (!body._id) throw new Error(text);
    joins.set(body._id, fields);
  }
  world.referred = [...world.documents.keys()];
  await world.send(server, 'post', 'refs', { to: world.referred });
  const texts = Object.fromEntries(RULED.map((name) => [name, rules[name].text])) as Record<
    (typeof RULED)[number],
    string
  >;
  await setRules(app, project._id, 'things', texts, { agreed: true });
  return world;
}

export const RULED_FIELDS = FIELDS.map(({ name }) => name).filter((name) => !['text', 'v'].includes(name));

/** The fields that rules name, as far as the document has them: what the service adds to it decides nothing. */
export function ruledPart(document: Values): Values {
  const isThere = (name: string): boolean => document[name] !== null && document[name] !== undefined;
  return Object.fromEntries(RULED_FIELDS.filter(isThere).map((name) => [name, document[name]]));
}

/** A rule that admits some of the documents to some of the people. */
export function generateDividingRule({ joins, people, documents }: RuledWorld, random: Random): GeneratedRule {
  for (;;) {
    const rule = generateRule(random, joins);
    const verdicts = people.flatMap(({ user }) => [...documents.values()].map((each) => rule.admits(user, each)));
    const admitted = verdicts.filter(Boolean).length;
    if (admitted > 2 && admitted < verdicts.length) return rule;
  }
}

/** Puts the collection under these rules, and nobody's where none is given; the world knows them, too. */
export async function giveRules(
  { app }: Pick<TestApp, 'app'>,
  world: RuledWorld,
  rules: Partial<RuledWorld['rules']>,
): Promise<void> {
  Object.assign(world.rules, rules);
  const texts = Object.fromEntries(Object.entries(rules).map(([name, { text }]) => [name, text]));
  await setRules(app, world.owner.project._id, 'things', completeRules(texts), { agreed: true });
}

export const ANYONE: GeneratedRule = { text: 'anyone', admits: () => true, asksCaller: false };
