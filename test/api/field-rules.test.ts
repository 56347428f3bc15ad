import { ObjectId } from 'bson';
import supertest, { type Response } from 'supertest';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  type Collection,
  type Field,
  changeCollection,
  defaultUsersCollection,
  dropCollection,
  documentsName,
  editCollection,
} from '../world/collections.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { openDataClient, outcome, serverOf, type DataClient, userOf } from '../helpers/data-client.js';
import { openStreamClient } from '../helpers/event-stream.js';
import { useTestApp } from '../helpers/use.js';

const [ADA, BOB, STAFF] = Array.from({ length: 3 }, () => new ObjectId().toHexString()) as [string, string, string];

const test = await useTestApp();
const owner = await buildProject(test.app);
await editCollection(test.app, owner.project._id, 'users', {
  addFields: [{ name: 'groups', type: 'Array', items: { type: 'String' }, protected: true }],
});
const users = [ADA, BOB, STAFF].map((id) => ({
  _id: new ObjectId(id),
  email: `${id}@example.test`,
  isDeleted: false,
  groups: id === STAFF ? ['staff'] : [],
  _bsvc: {},
}));
await test.app.db.collection(documentsName(defaultUsersCollection(owner.project._id))).insertMany(users as never);
const key = { 'x-api-key': owner.publishable };
const signedIn = (id: string, ttlMs?: number) => userOf(test, owner, id, ttlMs);
const as = {
  ada: signedIn(ADA),
  bob: signedIn(BOB),
  staff: signedIn(STAFF),
  nobody: key,
  expired: signedIn(ADA, -1_000),
  server: serverOf(owner),
};

const call = (who: keyof typeof as, ...request: Parameters<DataClient>) => openDataClient(test, as[who])(...request);
const said = (answer: PromiseLike<Response>) => outcome(answer, ({ field }) => field);

const FIELDS: Field[] = [
  { name: 'owner', type: 'String', stamp: 'user.id', fixed: true },
  { name: 'title', type: 'String' },
  { name: 'cost', type: 'Number', hidden: true, default: 7 },
  { name: 'notes', type: 'String', read: 'doc.owner = user.id' },
  { name: 'estimate', type: 'Number', write: '"staff" in user.groups' },
  { name: 'grade', type: 'String', read: '"staff" in user.groups', write: '"staff" in user.groups' },
  { name: 'extra', type: 'Object', read: 'doc.owner = user.id' },
];
const RULES = { read: 'anyone', create: 'user', update: 'user', delete: 'user' };

const build = (more: object = {}): Promise<Collection> =>
  buildCollection(test.app, owner.project, { fields: FIELDS, rules: RULES, changes: { on: true }, ...more });

const items = ({ body }: Response): Record<string, unknown>[] =>
  (Array.isArray(body.data) ? body.data : (body.data as { items: unknown[] }).items) as Record<string, unknown>[];

const AGENT = 'doc.desk in seats[user = user.id and role = "agent"].desk';

describe('a field that members of a set may set', () => {
  let seats: Collection;
  let name: string;
  const DESK = 'd1';

  beforeAll(async () => {
    seats = await buildCollection(test.app, owner.project, {
      name: 'seats',
      fields: ['desk', 'user', 'role'].map((each) => ({ name: each, type: 'String' })),
      access: 'server-only',
    });
    const fields: Field[] = [
      { name: 'desk', type: 'String' },
      { name: 'title', type: 'String' },
      { name: 'state', type: 'String', write: AGENT, default: 'open' },
      { name: 'secret', type: 'Number', read: 'nobody', write: AGENT, default: 5 },
      { name: 'log', type: 'Array', items: { type: 'String' }, write: `${AGENT} or doc.title = "free"` },
    ];
    ({ name } = await build({ fields }));
    await call('server', 'post', 'seats', { desk: DESK, user: STAFF, role: 'agent' });
    await call('server', 'post', 'seats', { desk: DESK, user: BOB, role: 'customer' });
  });
  const add = async (body: object = {}): Promise<string> =>
    (await call('server', 'post', name, { desk: DESK, title: 't', ...body })).body._id as string;

  it.each<[string, object, object | null]>([
    ['a value', { state: 'done' }, { state: 'done' }],
    ['what is there already', { state: 'open' }, null],
    ['an operator', { $push: { log: 'x' } }, { log: ['x'] }],
    ['nothing in its place', { state: null }, null],
    ['what nobody is shown', { secret: 6 }, { secret: 6 }],
    ['the default of what nobody is shown', { secret: 5 }, { secret: 5 }],
  ])('takes %s from them alone', async (_, change, expected) => {
    const id = await add();
    const isFree = 'state' in change && (change.state === 'open' || change.state === null);
    for (const who of ['ada', 'bob', 'nobody'] as const) {
      const told = await said(call(who, 'patch', `${name}/${id}`, change));
      const refused = who === 'nobody' ? '401 AUTH_REQUIRED' : isFree ? '200' : '403 FIELD_PROTECTED';
      expect(told.split(' ', 2).join(' '), who).toBe(refused);
    }
    expect((await call('staff', 'patch', `${name}/${id}`, change)).status).toBe(200);
    if (expected) expect((await call('server', 'get', `${name}/${id}`)).body).toMatchObject(expected);
  });

  it('is judged by the stored document, and by the new one when it is inserted', async () => {
    const foreign = await add({ desk: 'd2' });
    expect(await said(call('staff', 'patch', `${name}/${foreign}`, { state: 'x' }))).toEqual(
      '403 FIELD_PROTECTED state',
    );
    expect(await said(call('staff', 'patch', `${name}/${foreign}`, { desk: DESK, state: 'x' }))).toEqual(
      '403 FIELD_PROTECTED state',
    );
    const insert = (who: 'staff' | 'bob', body: object) => said(call(who, 'post', name, body));
    expect(await insert('staff', { desk: DESK, state: 'x' })).toEqual('201');
    expect(await insert('staff', { desk: 'd2', state: 'x' })).toEqual('403 FIELD_PROTECTED state');
    expect(await insert('bob', { desk: DESK, state: 'x' })).toEqual('403 FIELD_PROTECTED state');
    expect(await insert('bob', { desk: DESK, state: 'open' })).toEqual('201');
    expect(await insert('bob', { desk: DESK, title: 'free', log: ['x'] })).toEqual('201');
    expect(await insert('bob', { desk: DESK, secret: 5 })).toEqual('403 FIELD_PROTECTED secret');
    expect(await said(call('bob', 'post', `${name}/bulk`, [{ desk: DESK }, { desk: DESK, state: 'x' }]))).toEqual(
      '403 FIELD_PROTECTED state',
    );
  });

  it('follows the set at once, also within a batch', async () => {
    const id = await add();
    const seat = (await call('server', 'post', 'seats', { desk: DESK, user: ADA, role: 'agent' })).body._id as string;
    expect((await call('ada', 'patch', `${name}/${id}`, { state: 'a' })).status).toBe(200);
    await call('server', 'patch', `seats/${seat}`, { role: 'customer' });
    expect(await said(call('ada', 'patch', `${name}/${id}`, { state: 'b' }))).toEqual('403 FIELD_PROTECTED state');
    const operations = [
      { op: 'insert', collection: name, body: { desk: DESK, title: 'of the batch' } },
      { op: 'update', collection: name, id, body: { state: 'c' } },
    ];
    const batch = (who: 'ada' | 'staff') => supertest(test.server).post('/api/batch').set(as[who]).send({ operations });
    expect((await batch('ada')).body).toMatchObject({ code: 'FIELD_PROTECTED', details: [{ index: 1 }] });
    expect((await batch('staff')).status).toBe(200);
  });

  it('keeps the collection that it names, until that goes with all that names it', async () => {
    await expect(dropCollection(test.app, owner.project._id, seats.name)).rejects.toMatchObject({
      code: 'NAMED_BY_RULE',
    });
    await expect(
      editCollection(test.app, owner.project._id, seats.name, { dropFields: ['role'] }),
    ).rejects.toMatchObject({ code: 'NAMED_BY_RULE' });
    const read = { fields: [{ name: 'a', type: 'String', read: AGENT } as Field] };
    await expect(build(read)).rejects.toMatchObject({ code: 'INVALID_RULE' });
    await editCollection(test.app, owner.project._id, name, {
      setFields: [
        { name: 'state', type: 'String' },
        { name: 'secret', type: 'Number' },
        { name: 'log', type: 'Array', items: { type: 'String' } },
      ],
    });
    await dropCollection(test.app, owner.project._id, seats.name);
  });
});

describe.each(['enforced', 'flexible'] as const)('fields with rules of their own, %s', (mode) => {
  let name: string;
  let id: string;
  beforeAll(async () => {
    ({ name } = await build({ mode }));
    const stored = { owner: ADA, title: 'one', cost: 987654, notes: 'mine', estimate: 3, grade: 'A', extra: { a: 1 } };
    id = (await call('server', 'post', name, stored)).body._id as string;
  });

  it.each([
    ['nobody', ['owner', 'title', 'estimate']],
    ['bob', ['owner', 'title', 'estimate']],
    ['ada', ['owner', 'title', 'notes', 'estimate', 'extra']],
    ['staff', ['owner', 'title', 'estimate', 'grade']],
    ['server', ['owner', 'title', 'cost', 'notes', 'estimate', 'grade', 'extra']],
  ] as const)('are left out for %s of a document, a list, a join, the feed and a stream', async (who, shown) => {
    const named = FIELDS.map((field) => field.name);
    const seen = (document: unknown): string[] => named.filter((key) => key in (document as object));
    expect(seen((await call(who, 'get', `${name}/${id}`)).body)).toEqual(shown);
    expect(seen(items(await call(who, 'get', name))[0])).toEqual(shown);
    const { name: refs } = await buildCollection(test.app, owner.project, {
      fields: [{ name: 'to', type: 'Ref', ref: name }],
    });
    await call('server', 'post', refs, { to: id });
    expect(seen(items(await call(who, 'get', `${refs}?populate=to`))[0]!.to)).toEqual(shown);
    const always = shown.filter((field) => who === 'server' || (field !== 'notes' && field !== 'extra'));
    for (const pipeline of [
      [{ $match: {} }],
      [{ $replaceWith: { $mergeObjects: ['$$ROOT', { x: 1 }] } }],
      [{ $unionWith: refs }, { $limit: 1 }],
    ]) {
      expect(seen(items(await call(who, 'post', `${name}/aggregate`, { pipeline }))[0])).toEqual(always);
    }
    const joins = [
      { $lookup: { from: name, localField: 'to', foreignField: '_id', as: 'found' } },
      { $graphLookup: { from: name, startWith: '$to', connectFromField: 'owner', connectToField: '_id', as: 'found' } },
    ];
    for (const join of joins) {
      const [{ found }] = items(await call(who, 'post', `${refs}/aggregate`, { pipeline: [join] })) as [
        { found: unknown[] },
      ];
      expect(seen(found[0])).toEqual(always);
    }
    const [change] = items(await call(who, 'get', `${name}/changes`)) as [{ document: object }];
    expect(seen(change.document)).toEqual(shown);
  });

  it('are left out of what streams tell, for each as it sees them', async () => {
    const { name: live } = await build({ mode });
    const made = (await call('server', 'post', live, { owner: ADA, cost: 1, notes: 'n', grade: 'A' })).body
      ._id as string;
    const who = ['ada', 'bob', 'staff', 'server'] as const;
    const streams = await Promise.all(
      who.map((each) =>
        openStreamClient(test, { method: 'GET', path: `/api/data/${live}/changes`, headers: as[each] }),
      ),
    );
    const shownTo = (): (string | undefined)[][] =>
      streams.map((stream) => ['cost', 'notes', 'grade'].filter((key) => key in stream.known().get(made)!));
    const expected = [['notes'], [], ['grade'], ['cost', 'notes', 'grade']];
    for (const stream of streams) await stream.until(({ event }) => event === 'ready');
    expect(shownTo()).toEqual(expected);
    const from = streams.map((stream) => stream.events.length);
    await call('server', 'patch', `${live}/${made}`, { title: 'changed' });
    for (const [at, stream] of streams.entries()) await stream.until(({ event }) => event === 'change', from[at]);
    expect(shownTo()).toEqual(expected);
    await call('server', 'patch', `${live}/${made}`, { owner: BOB });
    for (const stream of streams) {
      await stream.until((_, { known }) => known().get(made)?.owner === BOB);
      stream.close();
    }
    expect(shownTo()).toEqual([[], ['notes'], ['grade'], ['cost', 'notes', 'grade']]);
  });

  it('cannot be named by who does not see them in every document', async () => {
    const pipelines = (field: string): object[][] => [
      [{ $match: { [field]: 1 } }],
      [{ $match: { $or: [{ title: 'x' }, { $and: [{ [field]: { $gt: 1 } }] }] } }],
      [{ $match: { $expr: { $eq: [`$${field}`, 41] } } }],
      [{ $sort: { [field]: 1 } }],
      [{ $group: { _id: `$${field}` } }],
      [{ $group: { _id: null, all: { $push: `$$ROOT.${field}` } } }],
      [{ $project: { [field]: 1 } }],
      [{ $set: { x: { $cond: [{ $gt: [`$${field}`, 1] }, 1, 2] } } }],
      [{ $set: { x: { $getField: field } } }],
      [{ $facet: { a: [{ $sortByCount: `$${field}` }] } }],
      [{ $lookup: { from: name, let: { a: `$${field}` }, pipeline: [], as: 'b' } }],
      [{ $lookup: { from: name, localField: 'title', foreignField: field, as: 'b' } }],
      [{ $lookup: { from: name, pipeline: [{ $match: { [field]: 41 } }], as: 'b' } }],
      [{ $graphLookup: { from: name, startWith: 1, connectFromField: 'title', connectToField: field, as: 'b' } }],
      [{ $unionWith: { coll: name, pipeline: [{ $match: { [`${field}.x`]: 1 } }] } }],
      [{ $setWindowFields: { sortBy: { [field]: 1 }, output: { n: { $documentNumber: {} } } } }],
      [{ $fill: { output: { [field]: { value: 1 } } } }],
      [{ $fill: { partitionByFields: [field], output: { title: { value: 1 } } } }],
      [{ $densify: { field: 'v', partitionByFields: [field], range: { step: 1, bounds: 'full' } } }],
    ];
    const refused = async (who: keyof typeof as, path: string, body?: object): Promise<void> => {
      const asked = path + JSON.stringify(body ?? '');
      const named = asked.includes('extra') ? /^400 FIELD_NOT_READABLE extra$/ : /^400 FIELD_NOT_READABLE ./;
      expect(await said(call(who, body ? 'post' : 'get', path, body)), asked).toMatch(named);
    };
    for (const field of ['cost', 'notes', 'grade', 'extra']) {
      const value = field === 'extra' ? 'extra.a=1' : `${field}=1`;
      for (const query of [value, `sort=-${field}`, `fields=title,${field}`, `${field}_exists=true`]) {
        await refused('bob', `${name}?${query}`);
      }
      for (const query of [value, `fields=${field}`]) await refused('bob', `${name}/changes?${query}`);
      await refused('ada', `${name}/${id}?fields=${field}`.replace('grade', 'cost'));
      for (const pipeline of pipelines(field)) await refused('nobody', `${name}/aggregate`, { pipeline });
    }
    expect(await said(call('staff', 'get', `${name}?grade=A`))).toEqual('200');
    expect(await said(call('server', 'get', `${name}?cost_gt=1&sort=notes`))).toEqual('200');
  });

  it('are not suggested for a name that there is not, where they are hidden', async () => {
    for (const query of ['csot=1', 'sort=-csot', 'fields=csot', 'csot_exists=true']) {
      const { text } = await call('ada', 'get', `${name}?${query}`);
      expect([text.includes('Unknown field'), text.includes('cost')]).toEqual([mode === 'enforced', false]);
    }
    const { text } = await call('ada', 'get', `${name}?sort=titel`);
    expect(text.includes('did you mean')).toBe(mode === 'enforced');
  });

  it('are not in a computed name either, nor in what a stage makes of the whole document', async () => {
    const stages = [
      { $set: { x: { $getField: { $concat: ['co', 'st'] } } } },
      { $set: { x: { $map: { input: ['$$ROOT'], in: '$$this.cost' } } } },
      { $project: { all: { $objectToArray: '$$ROOT' } } },
      { $match: { $expr: { $in: [987654, { $map: { input: { $objectToArray: '$$ROOT' }, in: '$$this.v' } }] } } },
    ];
    for (const stage of stages) {
      const { status, text } = await call('ada', 'post', `${name}/aggregate`, { pipeline: [stage] });
      expect(status, text).toBe(200);
      expect(text).not.toMatch(/987654|mine/);
    }
    const [first] = stages;
    expect((await call('server', 'post', `${name}/aggregate`, { pipeline: [first] })).text).toContain('987654');
  });

  it('are set by those whom their rule admits, and may be sent back unchanged by who sees them', async () => {
    const path = `${name}/${id}`;
    expect(await said(call('bob', 'patch', path, { estimate: 4 }))).toEqual('403 FIELD_PROTECTED estimate');
    expect(await said(call('bob', 'patch', path, { estimate: null }))).toEqual('403 FIELD_PROTECTED estimate');
    expect(await said(call('bob', 'patch', path, { estimate: 3, title: 'two' }))).toEqual('200');
    expect(await said(call('staff', 'patch', path, { estimate: 5, grade: 'B' }))).toEqual('200');
    for (const cost of [987654, 42]) {
      expect(await said(call('ada', 'patch', path, { cost }))).toEqual('403 FIELD_PROTECTED cost');
    }
    for (const grade of ['B', 'C']) {
      expect(await said(call('ada', 'patch', path, { grade }))).toEqual('403 FIELD_PROTECTED grade');
    }
    expect(await said(call('bob', 'patch', path, { 'extra.a': 2 }))).toEqual('403 FIELD_PROTECTED extra');
    // Written without being seen: the answer does not show it.
    const { body } = await call('bob', 'patch', path, { notes: 'from bob' });
    expect(body.data).not.toHaveProperty('notes');
    const whole = (await call('ada', 'get', path)).body;
    expect(await said(call('ada', 'patch', path, whole))).toEqual('200');
    const stored = (await call('server', 'get', path)).body;
    expect(stored).toMatchObject({ cost: 987654, estimate: 5, grade: 'B', notes: 'from bob', title: 'two' });
  });

  it('of a new document are those of its writer, and the others as the service sets them', async () => {
    const { status, body } = await call('ada', 'post', name, { title: 'x', notes: 'n' });
    expect([status, body.owner, body.notes, body.cost]).toEqual([201, ADA, 'n', undefined]);
    expect((await call('server', 'get', `${name}/${body._id as string}`)).body).toMatchObject({ cost: 7 });
    expect(await said(call('ada', 'post', name, { cost: 7 }))).toEqual('403 FIELD_PROTECTED cost');
    expect(await said(call('ada', 'post', name, { estimate: 1 }))).toEqual('403 FIELD_PROTECTED estimate');
    expect(await said(call('ada', 'post', `${name}/bulk`, [{}, { grade: 'A' }]))).toEqual('403 FIELD_PROTECTED grade');
    expect(await said(call('staff', 'post', name, { estimate: 1, grade: 'A' }))).toEqual('201');
    expect(await said(call('expired', 'get', name))).toEqual('401 TOKEN_EXPIRED');
  });
});

describe('the declaration of a field’s rules', () => {
  const declare = (fields: Field[], more: object = {}): Promise<unknown> =>
    build({ fields, ...more }).then(
      () => 'accepted',
      (error: { code: string }) => error.code,
    );
  const plain: Field[] = [
    { name: 'owner', type: 'String' },
    { name: 'tags', type: 'Array' },
  ];

  it.each([
    ['a mistake in it', [{ name: 'a', type: 'String', read: 'doc.ownr = user.id' }], {}, 'INVALID_RULE'],
    ['a unique field', [{ name: 'a', type: 'String', hidden: true, unique: true }], {}, 'VALIDATION_FAILED'],
    [
      'hidden beside another rule',
      [{ name: 'a', type: 'String', hidden: true, read: 'user' }],
      {},
      'VALIDATION_FAILED',
    ],
    [
      'a required field that is hidden',
      [{ name: 'a', type: 'String', hidden: true, required: true }],
      {},
      'VALIDATION_FAILED',
    ],
    [
      'a field within another one',
      [{ name: 'a', type: 'Object', fields: [{ name: 'b', type: 'String', hidden: true }] }],
      {},
      'VALIDATION_FAILED',
    ],
    [
      'a field that a rule names',
      [{ name: 'a', type: 'String', read: 'user' }],
      { rules: { read: 'doc.a = "x"' } },
      'INVALID_RULE',
    ],
    [
      'a field that another field’s rule names',
      [
        { name: 'a', type: 'String', read: 'user' },
        { name: 'b', type: 'String', write: 'doc.a = "x"' },
      ],
      {},
      'INVALID_RULE',
    ],
    ['a set in it', [{ name: 'a', type: 'String', read: '"x" in members[user = user.id].board' }], {}, 'INVALID_RULE'],
    [
      'a field that is unique with another one',
      [{ name: 'a', type: 'String', hidden: true }],
      { uniques: [['owner', 'a']] },
      'INVALID_UNIQUE',
    ],
    ['an indexed list', [{ name: 'a', type: 'Array', hidden: true }], { indexes: ['tags,a'] }, 'INVALID_INDEX'],
    ['an indexed text', [{ name: 'a', type: 'String', hidden: true }], { indexes: ['tags,a'] }, 'accepted'],
  ] as [string, Field[], object, string][])('of %s', async (_, fields, more, code) => {
    expect(await declare([...plain, ...fields], more)).toBe(code);
  });

  it('keeps what a rule of a field names, and drops nothing behind its back', async () => {
    const { name } = await build();
    const without = FIELDS.filter((field) => field.name !== 'owner');
    const dropped = changeCollection(test.app, owner.project._id, name, () => ({ fields: without }));
    await expect(dropped).rejects.toMatchObject({ code: 'NAMED_BY_RULE' });
    const users = editCollection(test.app, owner.project._id, 'users', { dropFields: ['groups'] });
    await expect(users).rejects.toMatchObject({ code: 'NAMED_BY_RULE' });
  });

  it('refuses sets of what is not shown to everybody', async () => {
    const fields: Field[] = [
      { name: 'user', type: 'String' },
      { name: 'board', type: 'String', hidden: true },
    ];
    const { name } = await build({ fields });
    expect(await declare(plain, { rules: { read: `doc.owner in ${name}[user = user.id].board` } })).toBe(
      'INVALID_RULE',
    );
  });

  it('shows a publishable key no hidden field of the schema', async () => {
    const { name } = await build();
    const schemaFor = async (who: keyof typeof as): Promise<string> =>
      (await supertest(test.server).get(`/api/schemas/${name}`).set(as[who])).text;
    expect(await schemaFor('ada')).not.toContain('cost');
    expect(await schemaFor('server')).toContain('cost');
  });
});
