import { ObjectId } from 'bson';
import request from 'supertest';
import { signAccessToken } from '../../src/features/access/sign-access-token.js';
import { addCollection } from '../../src/features/collections/add-collection.js';
import { documentsName } from '../../src/features/collections/collection.js';
import { editCollection } from '../../src/features/collections/edit-collection.js';
import { defaultUsersCollection } from '../../src/features/collections/users-collection.js';
import { setRules } from '../../src/features/collections/set-rules.js';
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

/** One value equals another: never what is absent or empty. */
const same = (left: unknown, right: unknown): boolean =>
  left !== undefined && left !== null && left !== '' && left === right;
const among = (value: unknown, list: unknown): boolean => Array.isArray(list) && list.some((each) => same(value, each));

const condition = (random: Random): GeneratedRule => {
  const text = random.pick(TEXTS);
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
  ])();
};

/** A rule of a few conditions. */
export function generateRule(random: Random, depth = 0): GeneratedRule {
  const kind = random.below(depth === 0 ? 12 : 8);
  if (kind === 11) return { text: 'anyone', admits: () => true, asksCaller: false };
  if (kind === 10) return { text: 'nobody', admits: () => false, asksCaller: false };
  if (depth > 2 || kind < 3) return condition(random);
  const parts = [generateRule(random, depth + 1), generateRule(random, depth + 1)];
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

export const RULED = ['read', 'create', 'update', 'delete'] as const;

export interface RuledWorld {
  owner: TestProject;
  people: Person[];
  userIds: string[];
  rules: Record<(typeof RULED)[number], GeneratedRule>;
  /** Ids that the collection `refs` refers to. */
  referred: readonly string[];
  /** The stored documents by id, as the test knows them. */
  documents: Map<string, Values>;
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
  { name: 'level', type: 'Number' as const },
  { name: 'open', type: 'Boolean' as const },
  ...['members', 'tags'].map((name) => ({ name, type: 'Array' as const, items: { type: 'String' as const } })),
  { name: 'o', type: 'Object' as const, fields: [{ name: 'x', type: 'String' as const }] },
  {
    name: 'rows',
    type: 'Array' as const,
    items: { type: 'Object' as const, fields: [{ name: 'who', type: 'String' as const }] },
  },
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
  const rules = Object.fromEntries(RULED.map((name) => [name, generateRule(random)])) as RuledWorld['rules'];
  const mode = random.chance(0.5) ? 'enforced' : 'flexible';
  await addCollection(app, project, { name: 'things', mode, fields: FIELDS, changes: { on: true } });
  await addCollection(app, project, {
    name: 'refs',
    fields: [{ name: 'to', type: 'Array', items: { type: 'Ref', ref: 'things' } }],
  });
  const world: RuledWorld = {
    owner,
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
    async send({ headers }, method, path, body) {
      const call = request(test.server)[method](`/api/data/${path}`).set(headers);
      const reply = body === undefined ? await call : await call.send(body as object);
      return { status: reply.status, body: reply.body as Reply, text: reply.text };
    },
  };
  const secret: Person = { user: null, headers: { 'x-api-key': owner.secret } };
  for (let at = 0; at < count; at++) {
    const fields = { ...generateFields(random, userIds), text: `secret-${at}-` };
    const { body, text } = await world.send(secret, 'post', 'things', fields);
    if (!body._id) throw new Error(text);
    world.documents.set(body._id, fields);
  }
  world.referred = [...world.documents.keys()];
  await world.send(secret, 'post', 'refs', { to: world.referred });
  const texts = Object.fromEntries(RULED.map((name) => [name, rules[name].text])) as Record<
    (typeof RULED)[number],
    string
  >;
  await setRules(app, project._id, 'things', texts, { agreed: true });
  return world;
}
