import fc from 'fast-check';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import {
  type Collection,
  type CollectionEdit,
  editCollection,
  parseFieldSpec,
  setChanges,
  requireNoViolations,
  requireStoredCollection,
} from '../world/collections.js';
import { importDocuments, readNewDocument } from '../world/documents.js';
import { renewDocumentsJob } from '../world/jobs.js';
import { insertDocumentRecord } from '../world/stored.js';
import { buildCollection, buildProject, placeDocuments, storedDocuments } from '../helpers/build-project.js';
import { openDataClient, serverOf } from '../helpers/data-client.js';
import { openFollower } from '../helpers/feed-follower.js';
import { runs } from '../helpers/runs.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);

const build = (specs: string[], more: object = {}): Promise<Collection> =>
  buildCollection(test.app, owner.project, { fields: specs.map(parseFieldSpec), ...more });
const send = openDataClient(test, serverOf(owner));
const edit = (collection: Collection, change: CollectionEdit): Promise<Collection> =>
  editCollection(test.app, owner.project._id, collection.name, change);

interface Shown {
  _id: string;
  email?: string;
  name?: string;
}

async function list(path: string): Promise<Shown[]> {
  const { status, body } = await send('get', path);
  expect(status, JSON.stringify(body)).toBe(200);
  return body.data.items as Shown[];
}

const emails = async (path: string): Promise<(string | undefined)[]> => (await list(path)).map(({ email }) => email);
const encode = encodeURIComponent;

/** What the guide says: compared in lower case and composed form, one sigma. */
const fold = (text: string): string => text.normalize('NFC').toLowerCase().replace(/ς/g, 'σ');
const compare = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

const TEXTS = [
  'Ann@X.org',
  'ann@x.org',
  'ANN',
  'Bob',
  'bob',
  'bOB, the',
  'Éva',
  'e\u0301va',
  'ΟΔΟΣ',
  'οδος',
  'οδοσ',
  'straße',
  'STRASSE',
  'İ',
  '10',
  'NULL',
  'True',
  '^A.b',
  'B|a',
  'b\\A',
  '\uffff',
  '😀A',
];

type Operator = '' | '_ne' | '_in' | '_gt' | '_gte' | '_lt' | '_lte' | '_exists' | '_startswith';
interface Asked {
  field: 'email' | 'name';
  operator: Operator;
  texts: string[];
}

/** The plainest filter one could write; `name` is compared as it is written. */
function matches(document: Shown, { field, operator, texts }: Asked): boolean {
  const form = field === 'email' ? fold : (text: string) => text;
  const value = document[field];
  if (operator === '_exists') return (value !== undefined) === (texts[0] === 'true');
  const wanted = texts.map(form);
  const equal = value !== undefined && wanted.includes(form(value));
  if (operator === '_ne') return !equal;
  if (operator === '' || operator === '_in') return equal;
  if (value === undefined) return false;
  if (operator === '_startswith') return form(value).startsWith(wanted[0]!);
  const order = compare(form(value), wanted[0]!);
  return { _gt: order > 0, _gte: order >= 0, _lt: order < 0, _lte: order <= 0 }[operator];
}

const toQuery = ({ field, operator, texts }: Asked): string =>
  (texts.length > 1 ? texts : [...texts, ...(operator === '_in' ? texts : [])])
    .map((text) => `${field}${operator}=${encode(text)}`)
    .join('&');
const toEntry = ({ field, operator, texts }: Asked): [string, unknown] => [
  field + operator,
  operator === '_in' ? texts : operator === '_exists' ? texts[0] === 'true' : texts[0],
];

const pick = <T>(values: readonly T[]) => fc.constantFrom(...values);
const text = pick(TEXTS);
const asked: fc.Arbitrary<Asked> = fc
  .tuple(
    pick(['email', 'email', 'email', 'name'] as const),
    pick<Operator>(['', '', '_ne', '_in', '_gt', '_gte', '_lt', '_lte', '_exists', '_startswith']),
    fc.array(text, { minLength: 3, maxLength: 3 }),
    fc.boolean(),
  )
  .map(([field, operator, texts, flag]) => ({
    field,
    operator,
    texts: operator === '_in' ? texts : operator === '_exists' ? [String(flag)] : texts.slice(0, 1),
  }));
const differentParameters = (all: readonly Asked[]): boolean =>
  new Set(all.map(({ field, operator }) => field + operator)).size === all.length;

/** One write of a client; `at` names a document. */
type Step = { kind: string; at: number; email: string | undefined; name: string };
const steps = fc.array(
  fc.record({
    kind: pick([
      'insert',
      'bulk',
      'import',
      'batch',
      'patch',
      'put',
      'clear',
      '$unset',
      'trash',
      'recover',
      'matching',
    ]),
    at: fc.nat(9),
    email: fc.option(text, { nil: undefined }),
    name: text,
  }),
  { minLength: 8, maxLength: 24 },
);

async function write(collection: Collection, { kind, at, email, name }: Step, ids: string[]): Promise<void> {
  const body = { ...(email !== undefined && { email }), name };
  const path = collection.name;
  const id = ids[at % Math.max(1, ids.length)];
  const one = `${path}/${id}`;
  const take = async (added: Promise<{ body: { _id: string } }>): Promise<void> =>
    void ids.push((await added).body._id);
  if (kind === 'insert' || id === undefined) return take(send('post', path, body).expect(201));
  if (kind === 'bulk') {
    const reply = await send('post', `${path}/bulk`, [body, { ...body, name: 'second' }]).expect(201);
    ids.push(...(reply.body.data.ids as string[]));
  } else if (kind === 'import') {
    expect(await importDocuments(test.app, collection, [body])).toMatchObject({ inserted: 1 });
  } else if (kind === 'batch') {
    const operations = [
      { op: 'insert', collection: path, body },
      { op: 'update', collection: path, id, body: { email: email ?? null } },
    ];
    const reply = await request(test.server).post('/api/batch').set('x-api-key', owner.secret).send({ operations });
    expect([200, 404, 409]).toContain(reply.status);
  } else if (kind === 'trash') {
    await send('delete', one);
  } else if (kind === 'recover') {
    await send('patch', `${one}/recover`);
  } else if (kind === 'matching') {
    const count = (await send('get', `${path}?count=true&email=${encode(name)}`)).body.data.count as number;
    await send('patch', `${path}?email=${encode(name)}&confirm=${count}`, body).expect(200);
  } else {
    const sent =
      kind === 'clear' ? { email: null } : kind === '$unset' ? { $unset: ['email'], name } : { ...body, name };
    await send(kind === 'put' ? 'put' : 'patch', one, sent);
  }
}

/** Asks each question of a collection in every way and compares with what its documents say. */
async function expectAnswers(collection: Collection, questions: readonly Asked[][]): Promise<void> {
  const all = await list(`${collection.name}?limit=1000&sort=_id`);
  for (const all3 of questions) {
    const expected = all.filter((document) => all3.every((one) => matches(document, one))).map(({ _id }) => _id);
    const query = all3.map(toQuery).join('&');
    const found = await list(`${collection.name}?limit=1000&sort=_id&${query}`);
    expect(
      found.map(({ _id }) => _id),
      query,
    ).toEqual(expected);
    const either = all.filter((document) => all3.some((one) => matches(document, one))).map(({ _id }) => _id);
    const or = encode(JSON.stringify(all3.map((one) => Object.fromEntries([toEntry(one)]))));
    expect((await list(`${collection.name}?limit=1000&sort=_id&or=${or}`)).map(({ _id }) => _id)).toEqual(either);
    const { body } = await send('get', `${collection.name}?count=true&${query}`);
    expect(body.data.count, query).toBe(expected.length);
  }
}

/** Pages through a collection by cursor, and by number, and compares with the order of what its documents say. */
async function expectOrder(collection: Collection): Promise<void> {
  const all = await list(`${collection.name}?limit=1000&sort=_id`);
  for (const sign of ['', '-']) {
    const turn = sign === '' ? 1 : -1;
    const keyOf = ({ email }: Shown): string => (email === undefined ? '' : `\u0001${fold(email)}`);
    const order = (a: Shown, b: Shown): number => turn * (compare(keyOf(a), keyOf(b)) || compare(a._id, b._id));
    const expected = [...all].sort(order).map(({ _id }) => _id);
    const paged: string[] = [];
    for (let cursor: string | null = 'start'; cursor !== null;) {
      const { body } = await send(
        'get',
        `${collection.name}?limit=3&sort=${sign}email&fields=name&cursor=${encode(cursor)}`,
      ).expect(200);
      paged.push(...(body.data.items as Shown[]).map(({ _id }) => _id));
      cursor = body.data.nextCursor as string | null;
    }
    expect(paged).toEqual(expected);
    expect((await list(`${collection.name}?limit=1000&sort=${sign}email`)).map(({ _id }) => _id)).toEqual(expected);
  }
}

describe('@nocase agrees with a plain comparison in lower case', () => {
  it.each([
    ['without an index', []],
    ['with an index', ['email', 'name,-email']],
  ])('after any writes, %s', async (_, indexes) => {
    const property = fc.asyncProperty(
      steps,
      fc.array(fc.array(asked, { minLength: 1, maxLength: 3 }).filter(differentParameters), {
        minLength: 12,
        maxLength: 12,
      }),
      async (writes, questions) => {
        const collection = await build(['email:String@nocase', 'name:String'], { indexes });
        const ids: string[] = [];
        for (const one of writes) await write(collection, one, ids);
        await expectAnswers(collection, questions);
        await expectOrder(collection);
      },
    );
    await fc.assert(property, { seed: 51, numRuns: runs(8) });
  });

  it('in the changes that a follower is told of', async () => {
    const made = await build(['email:String@nocase', 'name:String']);
    const { name } = await setChanges(test.app, owner.project._id, made.name, { on: true });
    const follower = openFollower(test, name, { 'x-api-key': owner.secret }, 'email=ANN@x.org');
    await follower.catchUp();
    const add = async (email: string): Promise<string> =>
      (await send('post', name, { email }).expect(201)).body._id as string;
    const news = async (): Promise<string[]> => {
      follower.told.length = 0;
      follower.news.length = 0;
      await follower.catchUp();
      // The log of a MongoDB does not know what a document was, and tells more.
      if (test.app.db.kind === 'embedded') expect(follower.told).toEqual(follower.news);
      return follower.news.map(({ type, id }) => `${type} ${id}`);
    };
    const [ann, bob] = [await add('Ann@X.org'), await add('Bob')];
    expect(await news()).toEqual([`upsert ${ann}`]);
    await send('patch', `${name}/${ann}`, { email: 'ann@X.ORG' });
    await send('patch', `${name}/${bob}`, { name: 'still nobody’s' });
    expect(await news()).toEqual([`upsert ${ann}`]);
    await send('patch', `${name}/${ann}`, { email: 'another' });
    expect(await news()).toEqual([`gone ${ann}`]);
    await send('patch', `${name}/${bob}`, { email: 'ANN@X.ORG' });
    expect(await news()).toEqual([`upsert ${bob}`]);
    await send('delete', `${name}/${bob}`);
    expect(await news()).toEqual([`gone ${bob}`]);
  });

  it('shows texts as they were stored, and nothing else', async () => {
    const { name } = await build(['email:String@nocase=Nobody']);
    await send('post', name, {}).expect(201);
    await send('post', name, { email: 'Ann@X.org' }).expect(201);
    const found = await list(`${name}?email_in=nobody,ann@x.ORG&sort=email`);
    expect(found.map(({ email }) => email)).toEqual(['Ann@X.org', 'Nobody']);
    expect(JSON.stringify(found)).not.toContain('nocase');
    const pipeline = [{ $match: { email: 'ann@x.org' } }];
    expect((await send('post', `${name}/aggregate`, { pipeline }).expect(200)).body.data).toEqual([]);
    const own = [{ $match: { '_bsvc.nocase.email': 'ann@x.org' } }];
    expect((await send('post', `${name}/aggregate`, { pipeline: own })).status).toBe(400);
    expect((await send('get', `${name}?_bsvc.nocase.email=ann@x.org`)).status).toBe(400);
  });

  it('is not how rules compare: they take what is stored as it is written', async () => {
    const nobody = { create: 'nobody', update: 'nobody', delete: 'nobody' };
    const { name } = await build(['email:String@nocase'], { rules: { read: 'doc.email = "Ann"', ...nobody } });
    for (const email of ['Ann', 'ann', 'ANN']) await send('post', name, { email }).expect(201);
    for (const query of ['sort=email', 'email=ANN', 'email_ne=bob']) {
      const { body } = await request(test.server)
        .get(`/api/data/${name}?${query}`)
        .set('x-api-key', owner.publishable)
        .expect(200);
      expect(
        (body.data.items as Shown[]).map(({ email }) => email),
        query,
      ).toEqual(['Ann']);
    }
  });

  it('tells nobody by a filter what is hidden from them', async () => {
    const { name } = await build(['email:String@nocase@hidden', 'name:String']);
    const as = (query: string) =>
      request(test.server).get(`/api/data/${name}?${query}`).set('x-api-key', owner.publishable);
    await send('post', name, { email: 'Ann' }).expect(201);
    for (const query of ['email=ann', 'sort=email', 'or=[{"email_startswith":"a"}]']) {
      expect((await as(query)).body, query).toMatchObject({ code: 'FIELD_NOT_READABLE' });
    }
  });

  it('is refused for anything but a String at the top level', async () => {
    for (const field of [
      { name: 'n', type: 'Number', nocase: true },
      { name: 'list', type: 'Array', items: { type: 'String' }, nocase: true },
      { name: 'inner', type: 'Object', fields: [{ name: 'text', type: 'String', nocase: true }] },
    ] as const) {
      await expect(buildCollection(test.app, owner.project, { fields: [field as never] })).rejects.toMatchObject({
        details: [expect.objectContaining({ rule: 'nocase' })],
      });
    }
    const { name } = await build(['email:String@nocase']);
    const { body } = await send('post', name, { email: 'x' });
    expect((await send('patch', `${name}/${body._id as string}`, { $max: { email: 'y' } })).status).toBe(400);
  });
});

describe('a unique @nocase field', () => {
  it('is taken by any writing of it, wherever it is written', async () => {
    const collection = await build(['email:String@nocase&', 'n:Number']);
    const { name } = collection;
    const ann = (await send('post', name, { email: 'Ann@X.org' }).expect(201)).body._id as string;
    const bob = (await send('post', name, { email: 'bob' }).expect(201)).body._id as string;
    const taken = { code: 'DUPLICATE_VALUE', details: [{ field: 'email', rule: 'unique' }] };
    expect((await send('post', name, { email: 'ann@x.ORG' }).expect(409)).body).toMatchObject(taken);
    expect((await send('patch', `${name}/${bob}`, { email: 'ANN@X.ORG' }).expect(409)).body).toMatchObject(taken);
    expect((await send('post', `${name}/bulk`, [{ email: 'x' }, { email: 'X' }])).status).toBe(409);
    expect(await importDocuments(test.app, collection, [{ email: 'BOB' }, { email: 'C' }])).toMatchObject({
      inserted: 1,
      rejected: [{ index: 0, message: 'email must be unique: the value is taken' }],
    });
    await send('patch', `${name}/${ann}`, { email: 'ANN@x.org' }).expect(200);
    await send('delete', `${name}/${ann}`).expect(200);
    await send('post', name, { email: 'ann@x.org' }).expect(201);
    await send('patch', `${name}/${ann}/recover`).expect(409);
    const operations = [{ op: 'insert', collection: name, body: { email: 'Bob' } }];
    const reply = await request(test.server).post('/api/batch').set('x-api-key', owner.secret).send({ operations });
    expect(reply.body).toMatchObject({ code: 'DUPLICATE_VALUE' });
    expect(await emails(`${name}?sort=email`)).toEqual(['ann@x.org', 'bob', 'C']);
  });

  it('names one document for an import by key', async () => {
    const collection = await build(['email:String@nocase&', 'n:Number']);
    await send('post', collection.name, { email: 'Ann', n: 1 }).expect(201);
    const rows = [
      { email: 'ANN', n: 2 },
      { email: 'Bob', n: 1 },
      { email: 'bob', n: 2 },
    ];
    const outcome = await importDocuments(test.app, collection, rows, { key: 'email' });
    expect(outcome).toMatchObject({ inserted: 1, updated: 2, rejected: [] });
    expect(await list(`${collection.name}?sort=email&fields=email,n`)).toMatchObject([
      { email: 'ANN', n: 2 },
      { email: 'bob', n: 2 },
    ]);
  });

  it('is so together with other fields', async () => {
    const { name } = await build(['team:String', 'nick:String@nocase'], { uniques: [['team', 'nick']] });
    await send('post', name, { team: 'a', nick: 'Max' }).expect(201);
    await send('post', name, { team: 'A', nick: 'max' }).expect(201);
    const reply = await send('post', name, { team: 'a', nick: 'MAX' }).expect(409);
    expect(reply.body.message).toContain('team and nick');
  });
});

describe('a field that becomes @nocase, or ceases to be', () => {
  const nocase = parseFieldSpec('email:String@nocase');
  const unique = parseFieldSpec('email:String&@nocase');
  const plain = parseFieldSpec('email:String');
  const kept = async (collection: Collection): Promise<unknown[]> => {
    const found = await storedDocuments(test.app, collection).find({}).sort({ _id: 1 }).toArray();
    return found.map(({ _bsvc }) => (_bsvc as { nocase?: unknown } | undefined)?.nocase);
  };

  it('takes the stored documents along, trashed ones too, and both ways', async () => {
    const collection = await build(['email:String', 'name:String'], { indexes: ['email'] });
    const { name } = collection;
    const ids = await placeDocuments(test.app, collection, [{ email: 'Ann' }, { email: 'bob' }, { name: 'none' }]);
    await send('delete', `${name}/${ids[1]}`).expect(200);
    await edit(collection, { setFields: [nocase] });
    expect(await emails(`${name}?email=ANN`)).toEqual(['Ann']);
    expect(await emails(`${name}?email=BOB&include_deleted=true`)).toEqual(['bob']);
    await expectOrder(collection);
    await edit(collection, { setFields: [plain] });
    expect(await emails(`${name}?email=ANN`)).toEqual([]);
    expect(await emails(`${name}?email=Ann`)).toEqual(['Ann']);
    expect(await kept(collection)).toEqual([undefined, undefined, undefined]);
    const { folding } = await requireStoredCollection(test.app, owner.project._id, name);
    expect(folding).toEqual([]);
    // By another way: the mode of the collection.
    await edit(collection, { setFields: [nocase], mode: 'flexible' });
    expect(await emails(`${name}?email=ANN`)).toEqual([]);
    await edit(collection, { mode: 'enforced' });
    expect(await emails(`${name}?email=ANN`)).toEqual(['Ann']);
  });

  it('is refused where documents share a unique value, by a check alike, and then nothing has changed', async () => {
    const collection = await build(['email:String&', 'name:String']);
    await placeDocuments(test.app, collection, [
      { email: 'Ann' },
      { email: 'ANN' },
      { email: 'ann' },
      { email: 'Bob' },
    ]);
    const refusal = {
      code: 'DUPLICATE_VALUE',
      details: [{ field: 'email', rule: 'unique', message: '"ann" is in 3 documents' }],
    };
    const fields = [unique, parseFieldSpec('name:String')];
    const checked = requireNoViolations(test.app, collection, { ...collection, fields });
    await expect(checked).rejects.toMatchObject(refusal);
    await expect(edit(collection, { setFields: [unique] })).rejects.toMatchObject(refusal);
    expect(await emails(`${collection.name}?email=ann`)).toEqual(['ann']);
    await send('post', collection.name, { email: 'BOB' }).expect(201);
    await send('post', collection.name, { email: 'BOB' }).expect(409);
    expect(await kept(collection)).toEqual([undefined, undefined, undefined, undefined, undefined]);
    await send('delete', `${collection.name}?email_in=ANN,ann,BOB&confirm=3`).expect(200);
    const settled = await requireStoredCollection(test.app, owner.project._id, collection.name);
    await requireNoViolations(test.app, settled, { ...settled, fields });
    await edit(collection, { setFields: [unique] });
    await send('post', collection.name, { email: 'BOB' }).expect(409);
  });

  it('answers right after writes that came in between, and after a late one by the next pass', async () => {
    const collection = await build(['email:String', 'name:String']);
    const { name } = collection;
    const ids = await placeDocuments(
      test.app,
      collection,
      Array.from({ length: 250 }, (_, at) => ({ email: `Person ${at}` })),
    );
    for (const fields of [[nocase], [plain], [nocase]]) {
      let isOver = false;
      const change = edit(collection, { setFields: fields }).finally(() => (isOver = true));
      for (let at = 0; !isOver && at < 60; at++) {
        await send('patch', `${name}/${ids[(at * 31) % ids.length]}`, { email: `Changed ${at}` }).expect(200);
        await send('post', name, { email: `Added ${at}` }).expect(201);
      }
      await change;
    }
    const question = (operator: Operator, text: string): Asked[] => [{ field: 'email', operator, texts: [text] }];
    await expectAnswers(collection, [
      question('', 'CHANGED 1'),
      question('_startswith', 'person 6'),
      question('_gt', 'CHANGED 5'),
    ]);
    const late = readNewDocument(collection, { email: 'Late' }, null, Date.now());
    await insertDocumentRecord(test.app, collection, late);
    expect(await emails(`${name}?email=LATE`)).toEqual([]);
    const payload = { collectionId: collection._id.toHexString(), begunAt: 0 };
    await renewDocumentsJob.run(test.app, payload, null as never);
    expect(await emails(`${name}?email=LATE`)).toEqual(['Late']);
  });
});
