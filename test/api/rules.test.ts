import { ObjectId } from 'bson';
import type { Response } from 'supertest';
import { describe, expect, it } from 'vitest';
import {
  completeRules,
  defaultUsersCollection,
  documentsName,
  editCollection,
  setRls,
  setRules,
} from '../world/collections.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { openDataClient, outcome, serverOf, type DataClient, userOf } from '../helpers/data-client.js';
import { openStreamClient } from '../helpers/event-stream.js';
import type { TestApp } from '../helpers/open-test-app.js';
import { useTestApp } from '../helpers/use.js';

const ADA = new ObjectId().toHexString();
const BOB = new ObjectId().toHexString();

const usersOf = (): ReturnType<TestApp['app']['db']['collection']> =>
  test.app.db.collection(documentsName(defaultUsersCollection(owner.project._id)));

const test = await useTestApp();
const owner = await buildProject(test.app);
await editCollection(test.app, owner.project._id, 'users', {
  addFields: [{ name: 'groups', type: 'Array', items: { type: 'String' }, protected: true }],
});
await usersOf().insertMany(
  [ADA, BOB].map((id) => ({
    _id: new ObjectId(id),
    email: `${id}@example.test`,
    isDeleted: false,
    _bsvc: {},
  })) as never,
);
const key = { 'x-api-key': owner.publishable };
const signedIn = (id: string, ttlMs?: number) => userOf(test, owner, id, ttlMs);
const as = {
  ada: signedIn(ADA),
  bob: signedIn(BOB),
  expired: signedIn(ADA, -1_000),
  nobody: key,
  server: serverOf(owner),
};

const call = (who: keyof typeof as, ...request: Parameters<DataClient>) => openDataClient(test, as[who])(...request);

const LIST_FIELDS = [
  { name: 'owner', type: 'String' as const, stamp: 'user.id' as const, fixed: true },
  { name: 'title', type: 'String' as const, default: 'untitled' },
  { name: 'members', type: 'Array' as const, items: { type: 'String' as const } },
  { name: 'open', type: 'Boolean' as const },
  { name: 'o', type: 'Object' as const, fields: [{ name: 'x', type: 'String' as const }] },
];

/** A collection with those rules; what is not given is `nobody`. */
async function ruled(rules: Parameters<typeof completeRules>[0], more: object = {}): Promise<string> {
  const { name } = await buildCollection(test.app, owner.project, { fields: LIST_FIELDS, rules, ...more });
  return name;
}

const SHARED = {
  read: 'doc.open or doc.owner = user.id or user.id in doc.members',
  create: 'doc.owner = user.id',
  update: 'doc.owner = user.id or user.id in doc.members',
  delete: 'doc.owner = user.id',
};

describe('a list that several users share', () => {
  it('is read and changed by its members, and trashed by its owner', async () => {
    const lists = await ruled(SHARED);
    const { body: made } = await call('ada', 'post', lists, { title: 'Food', members: [BOB] });
    expect(made).toMatchObject({ owner: ADA, members: [BOB] });
    const id = made._id as string;
    expect(await outcome(call('bob', 'get', `${lists}/${id}`))).toEqual('200');
    expect(await outcome(call('bob', 'patch', `${lists}/${id}`, { title: 'Drinks' }))).toEqual('200');
    expect(await outcome(call('bob', 'delete', `${lists}/${id}`))).toEqual('403 RULE_REFUSED before');
    expect(await outcome(call('bob', 'patch', `${lists}/${id}`, { members: [] }))).toEqual('403 RULE_REFUSED after');
    const refused = await call('bob', 'patch', `${lists}/${id}`, { members: [] });
    expect(refused.body.details).toMatchObject([{ rule: 'update', side: 'after' }]);
    expect(await outcome(call('ada', 'patch', `${lists}/${id}`, { members: [] }))).toEqual('200');
    expect(await outcome(call('bob', 'get', `${lists}/${id}`))).toEqual('404 DOCUMENT_NOT_FOUND');
    expect(await outcome(call('bob', 'patch', `${lists}/${id}`, { title: 'x' }))).toEqual('404 DOCUMENT_NOT_FOUND');
    expect(await outcome(call('bob', 'delete', `${lists}/${id}?permanent=true`))).toEqual('404 DOCUMENT_NOT_FOUND');
    expect(await outcome(call('ada', 'delete', `${lists}/${id}`))).toEqual('200');
    expect(await outcome(call('ada', 'patch', `${lists}/${id}/recover`))).toEqual('200');
  });

  it('is shown to strangers where it is open, but to nobody whose token has expired', async () => {
    const lists = await ruled(SHARED);
    await call('ada', 'post', lists, { title: 'Fair', open: true });
    expect((await call('nobody', 'get', lists)).body.data).toMatchObject({ total: 1 });
    expect(await outcome(call('expired', 'get', lists))).toEqual('401 TOKEN_EXPIRED');
  });

  it('says the same of what is not readable as of what is not there', async () => {
    const lists = await ruled(SHARED);
    const { body } = await call('ada', 'post', lists, { title: 'Mine' });
    const foreign = await call('bob', 'get', `${lists}/${body._id as string}`);
    const unknown = await call('bob', 'get', `${lists}/${new ObjectId().toHexString()}`);
    expect({ ...foreign.body, requestId: '' }).toEqual({ ...unknown.body, requestId: '' });
  });

  it('has one owner, who is the user who stored it, for good', async () => {
    const lists = await ruled({ ...SHARED, create: 'user' });
    expect(await outcome(call('bob', 'post', lists, { owner: ADA }))).toEqual('403 FIELD_FIXED fixed');
    const { body } = await call('bob', 'post', lists, { owner: BOB });
    const path = `${lists}/${body._id as string}`;
    expect(await outcome(call('bob', 'patch', path, { owner: ADA }))).toEqual('403 FIELD_FIXED fixed');
    expect(await outcome(call('bob', 'patch', path, { owner: null }))).toEqual('403 FIELD_FIXED fixed');
    expect(await outcome(call('bob', 'patch', path, { owner: BOB, title: 'sent back' }))).toEqual('200');
    expect(await outcome(call('server', 'patch', path, { owner: ADA }))).toEqual('200');
  });

  it('shows its trash to those who may fill it', async () => {
    const lists = await ruled(SHARED);
    const { body } = await call('ada', 'post', lists, { members: [BOB] });
    const id = body._id as string;
    await call('ada', 'delete', `${lists}/${id}`);
    const count = async (who: 'ada' | 'bob'): Promise<unknown> =>
      ((await call(who, 'get', `${lists}?include_deleted=true&count=true`)).body.data as { count: number }).count;
    expect([await count('ada'), await count('bob')]).toEqual([1, 0]);
    expect(await outcome(call('bob', 'get', `${lists}/${id}?include_deleted=true`))).toEqual('404 DOCUMENT_NOT_FOUND');
    expect(await outcome(call('bob', 'delete', `${lists}/${id}?permanent=true`))).toEqual('404 DOCUMENT_NOT_FOUND');
    const pipeline = [{ $match: {} }];
    const seen = await call('bob', 'post', `${lists}/aggregate?include_deleted=true`, { pipeline });
    expect(seen.body.data).toEqual([]);
  });

  it('is stored in one request whole or not at all', async () => {
    const lists = await ruled({ ...SHARED, create: 'doc.owner = user.id and doc.open' });
    const answer = await call('ada', 'post', `${lists}/bulk`, [{ open: true }, { open: false }] as never);
    expect([answer.status, answer.body.code, answer.body.message]).toEqual([
      403,
      'RULE_REFUSED',
      expect.stringContaining('Document 1:'),
    ]);
    expect((await call('server', 'get', `${lists}?count=true`)).body.data).toEqual({ count: 0 });
  });
});

describe('what nobody who is not signed in may do', () => {
  it('is answered by asking to sign in, where that could help', async () => {
    const lists = await ruled({ ...SHARED, read: 'user', update: 'nobody' });
    expect(await outcome(call('nobody', 'get', lists))).toEqual('401 AUTH_REQUIRED');
    expect(await outcome(call('nobody', 'post', lists, {}))).toEqual('401 AUTH_REQUIRED');
    expect(await outcome(call('expired', 'get', lists))).toEqual('401 TOKEN_EXPIRED');
    expect(await outcome(call('ada', 'get', lists))).toEqual('200');
    const { body } = await call('ada', 'post', lists, {});
    expect(await outcome(call('ada', 'patch', `${lists}/${body._id as string}`, { title: 'x' }))).toEqual(
      '403 RULE_REFUSED before',
    );
  });

  it('is what everybody may read, whatever the token is', async () => {
    const open = await ruled({ read: 'anyone' });
    expect(await outcome(call('expired', 'get', open))).toEqual('200');
    expect(await outcome(call('nobody', 'post', open, {}))).toEqual('403 RULE_REFUSED create');
  });

  it('can be to leave a message that nobody reads', async () => {
    const box = await ruled({ create: 'anyone' });
    const headers = { 'idempotency-key': 'a-message' };
    expect(await outcome(call('nobody', 'post', box, { title: 'Hello' }, headers))).toEqual('201');
    expect(await outcome(call('nobody', 'post', box, { title: 'Hello' }, headers))).toEqual('201');
    expect(await outcome(call('nobody', 'get', box))).toEqual('403 READ_BLOCKED');
    expect((await call('server', 'get', `${box}?count=true`)).body.data).toEqual({ count: 1 });
  });
});

describe('data of the server alone', () => {
  it('is neither read nor written with a publishable key, by whatever way', async () => {
    const kept = await ruled('server-only' as never);
    const { body } = await call('server', 'post', kept, { title: 'hidden-title' });
    const id = body._id as string;
    const refs = await buildCollection(test.app, owner.project, {
      fields: [{ name: 'to', type: 'Ref', ref: kept }],
    });
    await call('server', 'post', refs.name, { to: id });
    const join = { pipeline: [{ $lookup: { from: kept, localField: 'to', foreignField: '_id', as: 'found' } }] };
    const closed = '403 READ_BLOCKED';
    expect(await outcome(call('ada', 'get', kept))).toEqual(closed);
    expect(await outcome(call('ada', 'get', `${kept}/${id}`))).toEqual(closed);
    expect(await outcome(call('ada', 'post', `${kept}/aggregate`, { pipeline: [{ $match: {} }] }))).toEqual(closed);
    expect(await outcome(call('ada', 'get', `${kept}/changes`))).toEqual(closed);
    expect(await outcome(call('ada', 'post', `${refs.name}/aggregate`, join))).toEqual(closed);
    expect(await outcome(call('ada', 'get', `${refs.name}?populate=to`))).toEqual(closed);
    expect(await outcome(call('ada', 'post', kept, {}))).toEqual('403 WRITE_BLOCKED');
    expect(await outcome(call('ada', 'patch', `${kept}/${id}`, { title: 'x' }))).toEqual('403 WRITE_BLOCKED');
    expect(await outcome(call('ada', 'delete', `${kept}/${id}`))).toEqual('403 WRITE_BLOCKED');
  });
});

describe('an update', () => {
  it('is judged by the document that it leads to, whatever part of it changes', async () => {
    const lists = await ruled({ read: 'anyone', update: 'doc.o.x = "a" or "m" in doc.members' });
    const { body } = await call('server', 'post', lists, { o: { x: 'a' }, members: ['m', 'n'] });
    const path = `${lists}/${body._id as string}`;
    const parts = { 'o.x': 'b', 'members.0': 'x' };
    expect(await outcome(call('ada', 'patch', path, parts))).toEqual('403 RULE_REFUSED after');
    const taken = { 'o.x': 'b', $pull: { members: 'm' } };
    expect(await outcome(call('ada', 'patch', path, taken))).toEqual('403 RULE_REFUSED after');
    expect(await outcome(call('ada', 'patch', path, { 'members.1': 'x' }))).toEqual('200');
    expect(await outcome(call('ada', 'patch', path, { 'o.x': 'b' }))).toEqual('200');
    expect(await outcome(call('ada', 'patch', path, { members: ['n'] }))).toEqual('403 RULE_REFUSED after');
    expect(await outcome(call('ada', 'patch', path, { o: { x: 'a' }, members: ['n'] }))).toEqual('200');
    expect(await outcome(call('ada', 'patch', path, { o: null }))).toEqual('403 RULE_REFUSED after');
  });

  it('may change a part of it where the rule admits the user whatever the document holds', async () => {
    const lists = await ruled({ read: 'anyone', update: '"m" in doc.members or user' });
    const { body } = await call('server', 'post', lists, { members: ['m', 'n'] });
    const path = `${lists}/${body._id as string}`;
    expect(await outcome(call('ada', 'patch', path, { 'members.0': 'x' }))).toEqual('200');
  });

  it('may hand a document over where the rules say what it may lead to', async () => {
    const lists = await ruled({ read: 'user', update: '"me" in doc.members', updateTo: 'user' });
    const { body } = await call('server', 'post', lists, { members: ['me'] });
    const path = `${lists}/${body._id as string}`;
    expect(await outcome(call('ada', 'patch', path, { members: [] }))).toEqual('200');
    expect(await outcome(call('ada', 'patch', path, { members: ['me'] }))).toEqual('403 RULE_REFUSED before');
  });
});

describe('an attribute of the caller', () => {
  it('counts for the next request, in pages and streams too', async () => {
    const notes = await ruled(
      { read: '"staff" in user.groups', update: '"staff" in user.groups' },
      { changes: { on: true } },
    );
    await call('server', 'post', notes, { title: 'for staff' });
    const count = async (): Promise<unknown> =>
      ((await call('ada', 'get', `${notes}?count=true`)).body.data as { count: number }).count;
    const group = (groups: string[]): Promise<unknown> =>
      usersOf().updateOne({ _id: new ObjectId(ADA) }, { $set: { groups } });
    expect(await count()).toBe(0);
    await group(['staff']);
    expect(await count()).toBe(1);
    const { body } = await call('ada', 'get', `${notes}/changes`);
    const { cursor } = body.data as { cursor: string };
    const stream = await openStreamClient(test, { path: `/api/data/${notes}/changes`, method: 'GET', headers: as.ada });
    await stream.until(({ event }) => event === 'ready');
    expect(stream.known().size).toBe(1);
    await group([]);
    expect(await count()).toBe(0);
    const expired = '410 CURSOR_EXPIRED';
    expect(await outcome(call('ada', 'get', `${notes}/changes?since=${encodeURIComponent(cursor)}`))).toEqual(expired);
    await stream.until(({ event }) => event === 'reset');
    await call('server', 'post', notes, { title: 'a later secret' });
    stream.close();
    expect(stream.text()).not.toContain('a later secret');
  });

  it('is their roles, until they are taken away', async () => {
    const notes = await ruled({ read: '"editor" in user.roles', update: '"editor" in user.roles' });
    const { body: note } = await call('server', 'post', notes, { title: 'for editors' });
    const grant = (roles: string[]): Promise<unknown> =>
      usersOf().updateOne({ _id: new ObjectId(BOB) }, { $set: { '_bsvc.roles': roles } });
    const rename = (): Promise<unknown> =>
      outcome(call('bob', 'patch', `${notes}/${String(note._id)}`, { title: 'new' }));
    expect(await rename()).toEqual('404 DOCUMENT_NOT_FOUND');
    await grant(['editor']);
    expect(await rename()).toEqual('200');
    await grant([]);
    expect(await rename()).toEqual('404 DOCUMENT_NOT_FOUND');
  });

  it('of an account that is disabled is none', async () => {
    const notes = await ruled({ read: '"staff" in user.groups' });
    await call('server', 'post', notes, {});
    const set = (change: object): Promise<unknown> => usersOf().updateOne({ _id: new ObjectId(BOB) }, { $set: change });
    const count = async (): Promise<unknown> => (await call('bob', 'get', `${notes}?count=true`)).body.data;
    await set({ groups: ['staff'] });
    expect(await count()).toEqual({ count: 1 });
    await set({ '_bsvc.disabledAt': new Date() });
    expect(await count()).toEqual({ count: 0 });
  });
});

describe('a stream under rules', () => {
  it('tells each follower of what enters and leaves their view, and of nothing else', async () => {
    const lists = await ruled(SHARED, { changes: { on: true } });
    const open = (who: 'ada' | 'bob' | 'nobody') =>
      openStreamClient(test, { path: `/api/data/${lists}/changes`, method: 'GET', headers: as[who] });
    const streams = await Promise.all([open('ada'), open('bob'), open('nobody')]);
    for (const stream of streams) await stream.until(({ event }) => event === 'ready');
    const { body } = await call('ada', 'post', lists, { title: 'first-secret', members: [BOB] });
    const path = `${lists}/${body._id as string}`;
    const [ada, bob, nobody] = streams;
    const news = ({ event }: { event: string }): boolean => event === 'change';
    await ada!.until(news);
    await bob!.until(news);
    expect(bob!.known().size).toBe(1);
    const from = bob!.events.length;
    await call('ada', 'patch', path, { members: [], title: 'second-secret' });
    await bob!.until(news, from);
    expect(bob!.known().size).toBe(0);
    const opened = ada!.events.length;
    await ada!.until(({ data }) => (data.document as { title?: string } | undefined)?.title === 'second-secret');
    expect(bob!.text()).not.toContain('second-secret');
    await call('ada', 'patch', path, { open: true, title: 'for all' });
    await nobody!.until(news);
    await ada!.until(({ data }) => (data.document as { title?: string } | undefined)?.title === 'for all', opened);
    expect(nobody!.text()).not.toContain('secret');
    for (const stream of streams) stream.close();
  });
});

describe('rules of a collection', () => {
  const set = (name: string, rules: Parameters<typeof completeRules>[0], agreed = true): Promise<unknown> =>
    setRules(test.app, owner.project._id, name, completeRules(rules), { agreed });

  it('are not loosened unless somebody agrees', async () => {
    const lists = await ruled({ read: 'user' });
    await expect(set(lists, { read: 'anyone' }, false)).rejects.toMatchObject({ code: 'CONFIRMATION_REQUIRED' });
    await set(lists, { read: 'user and doc.open' }, false);
    await set(lists, { read: 'anyone' });
    expect(await outcome(call('nobody', 'get', lists))).toEqual('200');
  });

  it('do not stand beside row-level security', async () => {
    const rls = { mode: 'private', ownerField: 'owner' };
    await expect(ruled({ read: 'user' }, { rls })).rejects.toMatchObject({ code: 'INVALID_RULES' });
    const lists = await ruled({ read: 'user' });
    const later = setRls(test.app, owner.project._id, lists, { mode: 'private', ownerField: 'owner' });
    await expect(later).rejects.toMatchObject({ kind: 'invalid', code: 'INVALID_RULES' });
  });

  it('are switched on when all that is stored fits, also where nothing else is checked', async () => {
    const { name } = await buildCollection(test.app, owner.project, {
      mode: 'flexible',
      fields: [{ name: 'owner', type: 'String' }],
    });
    const { body } = await call('server', 'post', name, { owner: [ADA, BOB] });
    await expect(set(name, { read: 'doc.owner = user.id' })).rejects.toMatchObject({ code: 'RULE_VIOLATIONS' });
    await call('server', 'delete', `${name}/${body._id as string}?permanent=true`);
    await set(name, { read: 'doc.owner = user.id' });
    expect(await outcome(call('server', 'post', name, { owner: [ADA], other: 1 }))).toEqual(
      '400 VALIDATION_FAILED type',
    );
    expect(await outcome(call('server', 'post', name, { owner: ADA, other: [1] }))).toEqual('201');
  });

  it('name texts of at most 64 characters, unless a field says how long its own are', async () => {
    const fields = [
      { name: 'team', type: 'String' as const },
      { name: 'long', type: 'String' as const, maxLength: 80 },
      { name: 'tags', type: 'Array' as const, items: { type: 'String' as const } },
    ];
    const { name } = await buildCollection(test.app, owner.project, { mode: 'flexible', fields });
    const store = (body: object) => call('server', 'post', name, body);
    const { body } = await store({ tags: ['x'.repeat(65)] });
    const rules = { read: 'doc.team = user.id or doc.long = user.id or user.id in doc.tags' };
    await expect(set(name, rules)).rejects.toMatchObject({ code: 'RULE_VIOLATIONS' });
    await call('server', 'delete', `${name}/${body._id as string}?permanent=true`);
    await set(name, rules);
    const [fitting, longer] = ['x'.repeat(64), 'x'.repeat(65)];
    const refused = '400 VALIDATION_FAILED maxLength';
    expect(await outcome(store({ team: fitting, long: longer, tags: [fitting], other: 'x'.repeat(99) }))).toEqual(
      '201',
    );
    expect(await outcome(store({ team: longer }))).toEqual(refused);
    expect(await outcome(store({ tags: [longer] }))).toEqual(refused);
  });

  it('keep the fields that they name', async () => {
    const lists = await ruled({ read: 'doc.open or "staff" in user.groups' });
    const edit = (name: string, change: object): Promise<unknown> =>
      editCollection(test.app, owner.project._id, name, change);
    await expect(edit(lists, { dropFields: ['open'] })).rejects.toMatchObject({ code: 'NAMED_BY_RULE' });
    await expect(edit(lists, { setFields: [{ name: 'open', type: 'String' }] })).rejects.toMatchObject({
      code: 'NAMED_BY_RULE',
    });
    await expect(edit('users', { dropFields: ['groups'] })).rejects.toMatchObject({ code: 'NAMED_BY_RULE' });
    await edit(lists, { dropFields: ['title'] });
  });

  it('have an index for each field by which a list finds its documents', async () => {
    const { app } = test;
    const collection = await buildCollection(app, owner.project, {
      fields: LIST_FIELDS,
      rules: { read: SHARED.read },
      indexes: ['title'],
    });
    const names = (await app.db.collection(documentsName(collection)).indexes()).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['rule_open', 'rule_owner', 'rule_members', 'rule_open:title']));
  });
});

describe('row-level security', () => {
  it.each(['private', 'public-read'] as const)('%s is what its rules say, but for the codes', async (mode) => {
    const field = { name: 'owner', type: 'String' as const };
    const title = { name: 'title', type: 'String' as const };
    const own = 'doc.owner = user.id';
    const plain = await buildCollection(test.app, owner.project, {
      fields: [field, title],
      rls: { mode, ownerField: 'owner' },
    });
    const written = await buildCollection(test.app, owner.project, {
      fields: [{ ...field, stamp: 'user.id', fixed: true }, title],
      rules: { read: mode === 'private' ? own : 'anyone', create: own, update: own, delete: own },
    });
    const walk = async (name: string): Promise<number[]> => {
      const statuses: number[] = [];
      const note = async (answer: PromiseLike<Response>): Promise<Response> => {
        const given = await answer;
        statuses.push(given.status);
        return given;
      };
      const { body } = await note(call('ada', 'post', name, { title: 'a' }));
      const path = `${name}/${body._id as string}`;
      for (const who of ['ada', 'bob', 'nobody', 'expired', 'server'] as const) {
        const { body: list } = await note(call(who, 'get', `${name}?count=true`));
        statuses.push((list.data as { count?: number } | undefined)?.count ?? -1);
        await note(call(who, 'post', `${name}/aggregate`, { pipeline: [{ $count: 'n' }] }));
        if (mode === 'public-read' || who === 'ada' || who === 'server') await note(call(who, 'get', path));
      }
      await note(call('bob', 'post', name, { owner: ADA }));
      await note(call('ada', 'patch', path, { title: 'b' }));
      await note(call('ada', 'patch', path, { owner: BOB }));
      await note(call('nobody', 'post', name, {}));
      await note(call('expired', 'patch', path, { title: 'c' }));
      if (mode === 'public-read') await note(call('bob', 'delete', path));
      await note(call('ada', 'delete', path));
      return statuses;
    };
    expect(await walk(written.name)).toEqual(await walk(plain.name));
  });
});
