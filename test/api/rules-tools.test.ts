import { describe, expect, it } from 'vitest';
import supertest from 'supertest';
import { addCollection, documentsName, requireCollection } from '../world/collections.js';
import { signUp } from '../world/users.js';
import { buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const ADMIN = 'an-admin-token-of-at-least-32-characters';

const send = async (collection: string, body: object): Promise<string> => {
  const { body: stored } = await supertest(test.server)
    .post(`/api/data/${collection}`)
    .set({ 'x-api-key': owner.secret })
    .send(body);
  return (stored as { _id: string })._id;
};

const test = await useTestApp({ settings: { BSVC_ADMIN_TOKEN: ADMIN } });
const owner = await buildProject(test.app);
const { app } = test;
const { project } = owner;
const [ada, eve] = (await Promise.all(
  ['ada', 'eve'].map(async (name) => {
    const body = { email: `${name}@example.test`, emailVerified: true };
    return (await signUp(app, project, body, 'project', { needsPassword: false }))._id.toHexString();
  }),
)) as [string, string];
await addCollection(app, project, {
  name: 'members',
  fields: [
    { name: 'board', type: 'String' },
    { name: 'user', type: 'String' },
  ],
  rules: 'server-only',
});
await addCollection(app, project, {
  name: 'cards',
  fields: [
    { name: 'board', type: 'String' },
    { name: 'open', type: 'Boolean' },
    { name: 'cost', type: 'Number', hidden: true },
  ],
  rules: { read: 'doc.open or doc.board in members[user = user.id].board', update: '"staff" in user.roles' },
});
const board = 'garden';
await send('members', { board, user: ada });
const card = await send('cards', { board, cost: 4 });
await send('cards', { board: 'other', open: true, cost: 5 });
const operate = async (path: string): Promise<{ status: number; body: { code?: string; data?: unknown } }> => {
  const { status, body } = await supertest(test.server)
    .get(`/api/projects/${owner.project._id.toHexString()}${path}`)
    .set({ authorization: `Bearer ${ADMIN}` });
  return { status, body: body as { code?: string; data?: unknown } };
};

interface Explained {
  rules: {
    rule: string;
    admits: string;
    filter?: object;
    sets: unknown[];
    alternatives: { admits: string; conditions: object[] }[];
  }[];
  list?: object;
  document?: object;
}
const explain = async (query: string): Promise<Explained> =>
  (await operate(`/rules/cards/explain?${query}`)).body.data as Explained;

describe('explaining rules', () => {
  it('shows what is left of each rule for a user, and how a list is read', async () => {
    const { rules, list } = await explain(`as=${ada}`);
    const [read, create, update] = rules;
    expect(read).toMatchObject({
      rule: 'read',
      admits: 'depends',
      filter: { $or: [{ open: true }, { board }] },
      sets: [{ text: 'members[user = user.id].board', values: 1, ageMs: expect.any(Number) as number }],
      alternatives: [
        { admits: 'depends', conditions: [{ text: 'doc.open = true', admits: 'depends' }] },
        { admits: 'depends', conditions: [{ text: 'doc.board in members[user = user.id].board', admits: 'depends' }] },
      ],
    });
    expect([create!.admits, update!.admits]).toEqual(['no', 'no']);
    expect(list).toMatchObject({ returned: 2 });
  });

  it('says of a document which alternative admits it, and what is left out', async () => {
    const { rules, document } = await explain(`as=ada@example.test&id=${card}`);
    expect(rules[0]).toMatchObject({
      admits: 'yes',
      alternatives: [{ admits: 'no' }, { admits: 'yes' }],
    });
    expect(rules[0]).not.toHaveProperty('filter');
    expect(document).toEqual({ id: card, leftOut: ['cost'] });
    expect((await explain(`as=${eve}&id=${card}`)).rules[0]).toMatchObject({ admits: 'no' });
    expect((await explain(`id=${card}`)).rules[0]).toMatchObject({ admits: 'no' });
  });

  it('tells each condition as a rule is written, with what it comes to for the user', async () => {
    const conditions = [
      [`user.id = "${'0'.repeat(24)}"`, 'no'],
      ['"staff" in user.roles', 'no'],
      ['doc.board in ["garden", "court"]', 'depends'],
      ['doc.cost in [1, 2.5]', 'depends'],
      ['doc.open = false', 'depends'],
      ['doc.board in user.roles', 'no'],
      ['user.id in doc.people', 'depends'],
      ['"garden" in seats[user.id in people].board', 'yes'],
      ['"court" in seats[user.id in people].board', 'no'],
      ['doc.board in seats[user.id in people and role in ["editor", "owner"] and open = true].board', 'depends'],
      ['doc.board in seats[user = user.id and role in user.roles and cost = 3].board', 'no'],
    ] as const;
    const people = { name: 'people', type: 'Array' as const, items: { type: 'String' as const } };
    const fields = [
      { name: 'board', type: 'String' as const },
      { name: 'open', type: 'Boolean' as const },
      { name: 'cost', type: 'Number' as const },
      people,
    ];
    const names = ['user', 'role'].map((name) => ({ name, type: 'String' as const }));
    await addCollection(test.app, owner.project, {
      name: 'seats',
      fields: [...fields, ...names],
      rules: 'server-only',
    });
    await send('seats', { board, people: [eve, ada], role: 'editor', open: true });
    const read = conditions.map(([text]) => text).join(' or ');
    await addCollection(test.app, owner.project, { name: 'worded', fields, rules: { read, update: 'user' } });
    const { body } = await operate(`/rules/worded/explain?as=${ada}`);
    const { rules } = body.data as Explained;
    const told = rules.map(({ alternatives }) => alternatives.flatMap((each) => each.conditions));
    expect(told[0]).toEqual(conditions.map(([text, admits]) => ({ text, admits })));
    expect(told[2]).toEqual([{ text: 'user', admits: 'yes' }]);
  });

  it('knows no foreign user, document or collection', async () => {
    const outcome = async (path: string) => {
      const { status, body } = await operate(path);
      return [status, body.code];
    };
    expect(await outcome(`/rules/cards/explain?as=${'0'.repeat(24)}`)).toEqual([404, 'USER_NOT_FOUND']);
    expect(await outcome(`/rules/cards/explain?id=${'0'.repeat(24)}`)).toEqual([404, 'DOCUMENT_NOT_FOUND']);
    expect(await outcome('/rules/none/explain')).toEqual([404, 'COLLECTION_NOT_FOUND']);
    expect(await outcome('/rules/users/explain')).toEqual([403, 'USERS_BLOCKED']);
    expect(await outcome('/rules/cards/explain?filter=cost%3D4')).toEqual([400, 'FIELD_NOT_READABLE']);
  });
});

describe('checking rules that are not saved', () => {
  const check = async (body: object, collection = 'cards') => {
    const answer = await supertest(test.server)
      .post(`/api/projects/${owner.project._id.toHexString()}/rules/${collection}/check`)
      .set({ authorization: `Bearer ${ADMIN}` })
      .send(body);
    const { code, data } = answer.body as { code?: string; data?: Review };
    return answer.status === 200 ? data : [answer.status, code];
  };
  interface Review {
    findings: { code: string; message: string; details?: { field: string; rule: string }[] }[];
    loosens: string[];
  }

  it('says of each mistake where it is', async () => {
    const rules = { read: 'doc.open or doc.bord = "x"', update: 'doc.open or', delete: 'user' };
    const { findings, loosens } = (await check({ rules })) as Review;
    expect(findings.map(({ code, details }) => [code, details?.[0]?.field, details?.[0]?.rule])).toEqual([
      ['INVALID_RULE', 'rules.read', '12'],
      ['INVALID_RULE', 'rules.update', '11'],
    ]);
    expect(loosens).toEqual([]);
  });

  it('says what they loosen, what no index serves, and which documents violate, and changes nothing', async () => {
    const read = 'doc.open or doc.board in members[user = user.id].board';
    expect(await check({ rules: { read, update: '"staff" in user.roles' } })).toEqual({ findings: [], loosens: [] });
    expect(await check({})).toEqual({ findings: [], loosens: [] });
    expect(await check({ rules: null })).toMatchObject({ findings: [], loosens: ['access: rules -> public'] });
    const wide = { read: 'anyone' };
    expect(await check({ rules: wide })).toMatchObject({ loosens: [`rule read: ${read} -> anyone`] });
    const { app } = test;
    const names = Array.from({ length: 9 }, (_, n) => `f${n}`);
    const fields = names.map((name) => ({ name, type: 'String' as const }));
    const { collection } = await addCollection(app, owner.project, {
      name: 'wide',
      mode: 'flexible',
      fields,
      access: 'public',
    });
    const { insertedId } = await app.db.collection(documentsName(collection)).insertOne({ f0: ['a', 'b'] });
    const rules = { read: names.map((name) => `doc.${name} = user.id`).join(' or ') };
    const { findings } = (await check({ rules, data: true }, 'wide')) as Review;
    expect(findings).toMatchObject([
      { code: 'RULE_VIOLATIONS', details: [{ field: String(insertedId) }] },
      { code: 'UNINDEXED', message: expect.stringContaining('doc.f8') as string },
    ]);
    const stored = await requireCollection(app, owner.project._id, 'wide');
    expect([stored.rules ?? null, stored.isPublic]).toEqual([null, true]);
  });

  it('is refused like what it asks about', async () => {
    expect(await check({ rules: { read: 'anyone' } }, 'none')).toEqual([404, 'COLLECTION_NOT_FOUND']);
    expect(await check({ rules: { read: 'anyone' } }, 'users')).toEqual([403, 'USERS_BLOCKED']);
    expect(await check({ rules: { raed: 'anyone' } })).toEqual([400, 'VALIDATION_FAILED']);
  });
});

describe('an operator’s list as somebody', () => {
  it('is what this user is shown, and is recorded', async () => {
    const list = async (query: string) => {
      const { status, body } = await operate(`/collections/cards/documents?${query}`);
      const { items } = (body.data ?? {}) as { items?: object[] };
      return items ? items.map((item) => 'cost' in item) : [status, body.code];
    };
    expect(await list('')).toEqual([true, true]);
    expect(await list(`as=${ada}`)).toEqual([false, false]);
    expect(await list('sort=_id&as=eve%40example.test')).toEqual([false]);
    expect(await list('as=anyone')).toEqual([false]);
    expect(await list('as=anyone&cost=4')).toEqual([400, 'FIELD_NOT_READABLE']);
    expect(await list('as=')).toEqual([400, 'INVALID_QUERY']);
    expect(await list('as=nobody@example.test')).toEqual([404, 'USER_NOT_FOUND']);
    const acts = (await supertest(test.server)
      .get('/api/admin/audit?action=play%20as')
      .set({ authorization: `Bearer ${ADMIN}` })) as { body: { data: { items: { requestId?: string }[] } } };
    expect(JSON.stringify(acts.body)).toContain(ada);
    for (const act of acts.body.data.items) expect(act.requestId).toMatch(/^[\w-]{36}$/);
  });
});

describe('a membership that an operator changes', () => {
  it('is in the audit log by the request that was answered', async () => {
    const project = `/api/projects/${owner.project._id.toHexString()}`;
    const as = { authorization: `Bearer ${ADMIN}` };
    const added = await supertest(test.server)
      .post(`${project}/collections/members/documents`)
      .set(as)
      .send({ board: 'court', user: eve });
    const ended = await supertest(test.server)
      .delete(`${project}/collections/members/documents/${(added.body as { data: { _id: string } }).data._id}`)
      .set(as);
    const { body } = await supertest(test.server).get('/api/admin/audit?limit=2').set(as);
    const acts = (body as { data: { items: { requestId?: string; input: { collection?: string } }[] } }).data.items;
    expect(acts.map(({ requestId, input }) => [requestId, input.collection])).toEqual(
      [ended, added].map(({ headers }) => [(headers as Record<string, string>)['x-request-id'], 'members']),
    );
  });
});
