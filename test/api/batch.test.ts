import { ObjectId } from 'bson';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { type Collection, defaultUsersCollection, documentsName, parseFieldSpec } from '../world/collections.js';
import { signAccessToken } from '../world/users.js';
import { buildCollection, buildProject, storedDocuments } from '../helpers/build-project.js';
import { openRandom } from '../helpers/random.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);
const server = { 'x-api-key': owner.secret };

const build = (specs: string[], more: object = {}): Promise<Collection> =>
  buildCollection(test.app, owner.project, { fields: specs.map(parseFieldSpec), ...more });
const batch = (operations: object[], headers: object = {}) =>
  request(test.server)
    .post('/api/batch')
    .set({ ...server, ...headers })
    .send({ operations });
const countOf = (collection: Collection) => storedDocuments(test.app, collection).countDocuments({});
const newId = (): string => new ObjectId().toHexString();

interface Results {
  results: { id: string; document: Record<string, unknown> | null }[];
}

describe('POST /api/batch', () => {
  it('carries operations out in order, each seeing those before it', async () => {
    const boards = await build(['title:String!', 'cards:Number=0', 'names:Array(String)']);
    const cards = await build(['board:Ref!', 'title:String']);
    const board = newId();
    const { body } = await batch([
      { op: 'insert', collection: boards.name, body: { _id: board, title: 'b' } },
      { op: 'insert', collection: cards.name, body: { board, title: 'c' } },
      { op: 'update', collection: boards.name, id: board, body: { $inc: { cards: 1 }, $push: { names: 'c' } } },
      { op: 'update', collection: boards.name, id: board, body: { $inc: { cards: 1 }, title: 'B' } },
      { op: 'remove', collection: boards.name, id: board },
      { op: 'recover', collection: boards.name, id: board },
    ]).expect(200);
    const { results } = body.data as Results;
    expect(results[3]).toMatchObject({ id: board, document: { title: 'B', cards: 2, names: ['c'] } });
    expect(results[4]).toEqual({ id: board, document: null });
    expect(results[5]!.document).toMatchObject({ title: 'B', isDeleted: false });
    const read = await request(test.server).get(`/api/data/${boards.name}/${board}`).set(server).expect(200);
    expect(read.body).toEqual(results[5]!.document);
  });

  it('stores nothing when one operation is refused, and names it', async () => {
    const things = await build(['slug:String&', 'n:Number{min:0}']);
    const id = newId();
    const put = (body: object) => ({ op: 'insert', collection: things.name, body });
    await batch([put({ _id: id, slug: 'a', n: 1 })]).expect(200);
    const refusals: [object, number, string][] = [
      [put({ slug: 'a' }), 409, 'DUPLICATE_VALUE'],
      [put({ _id: id }), 409, 'DUPLICATE_VALUE'],
      [put({ n: -1 }), 400, 'VALIDATION_FAILED'],
      [put({ _id: 'x' }), 400, 'VALIDATION_FAILED'],
      [{ op: 'update', collection: things.name, id, body: { $inc: { n: -2 } } }, 400, 'VALIDATION_FAILED'],
      [{ op: 'update', collection: things.name, id: newId(), body: { n: 1 } }, 404, 'DOCUMENT_NOT_FOUND'],
      [{ op: 'update', collection: things.name, body: { n: 1 } }, 400, 'INVALID_BODY'],
      [
        { op: 'update', collection: things.name, id, body: { n: 1 }, ifMatch: '"2000-01-01T00:00:00.000Z"' },
        412,
        'CHANGED_MEANWHILE',
      ],
      [{ op: 'remove', collection: 'nowhere', id }, 404, 'COLLECTION_NOT_FOUND'],
      [{ op: 'insert', collection: 'users', body: {} }, 403, 'USERS_BLOCKED'],
      [{ op: 'recover', collection: things.name, id }, 404, 'DOCUMENT_NOT_FOUND'],
    ];
    for (const [operation, status, code] of refusals) {
      const reply = await batch([put({ slug: 'b' }), operation, put({})]);
      expect([reply.status, reply.body.code], JSON.stringify(operation)).toEqual([status, code]);
      expect(reply.body.details[0], JSON.stringify(operation)).toMatchObject({ index: 1, code });
      expect(await countOf(things)).toBe(1);
    }
    const lists = await build(['tags:Array(Number)'], { indexes: ['tags'] });
    const list = (from: number) => ({
      ...{ op: 'insert', collection: lists.name },
      body: { tags: Array.from({ length: 3000 }, (_, n) => from + n) },
    });
    const wide = await batch([0, 1, 2, 3].map(list));
    if (process.env.BSVC_TEST_TRANSPORT !== 'wire') {
      expect([wide.status, wide.body.details[0].index]).toEqual([413, 3]);
      expect(wide.body.message).toContain('what is written together may have 10000 index entries');
      expect(await countOf(lists)).toBe(0);
    }
    // Refused by what an earlier operation of the batch has made of it.
    const reply = await batch([
      { op: 'update', collection: things.name, id, body: { $inc: { n: -1 } } },
      { op: 'update', collection: things.name, id, body: { $inc: { n: -1 } } },
    ]);
    expect([reply.status, reply.body.details[0].index]).toEqual([400, 1]);
    const read = await request(test.server).get(`/api/data/${things.name}/${id}`).set(server);
    expect(read.body.n).toBe(1);
  });

  it('lets rules see what earlier operations store', async () => {
    const ada = newId();
    await test.app.db
      .collection(documentsName(defaultUsersCollection(owner.project._id)))
      .insertOne({ _id: new ObjectId(ada), email: `${ada}@example.test`, isDeleted: false, _bsvc: {} } as never);
    const as = {
      'x-api-key': owner.publishable,
      authorization: `Bearer ${signAccessToken(test.app, owner.project, ada, 600_000)}`,
    };
    const rulesFor = (rule: string) => ({ read: rule, create: rule, update: rule, delete: rule });
    const members = await build(['board:Ref!', 'user:String!'], { rules: rulesFor('doc.user = user.id') });
    const cards = await build(['board:Ref!', 'n:Number'], {
      rules: rulesFor(`doc.board in ${members.name}[user = user.id].board`),
    });
    const board = newId();
    const join = { op: 'insert', collection: members.name, body: { board, user: ada } };
    const card = { op: 'insert', collection: cards.name, body: { board } };
    const late = await batch([card, join], as);
    expect([late.status, late.body.code, late.body.details[0].index]).toEqual([403, 'RULE_REFUSED', 0]);
    expect(await countOf(members)).toBe(0);
    const foreign = { op: 'insert', collection: members.name, body: { board, user: newId() } };
    expect((await batch([foreign, card], as)).status).toBe(403);
    const { body } = await batch([join, card, card], as).expect(200);
    const { id } = (body.data as Results).results[1]!;
    await batch([{ op: 'update', collection: cards.name, id, body: { $inc: { n: 1 } } }], as).expect(200);
    expect(await countOf(cards)).toBe(2);
  });

  it('is carried out once for an Idempotency-Key, whole or not at all among others', async () => {
    const things = await build(['n:Number{min:0}']);
    const [left, right] = [newId(), newId()];
    const put = (id: string, n: number) => ({ op: 'insert', collection: things.name, body: { _id: id, n } });
    const add = (id: string, n: number) => ({ op: 'update', collection: things.name, id, body: { $inc: { n } } });
    await batch([put(left, 10), put(right, 0)]).expect(200);
    const moves = Array.from({ length: 12 }, (_, at) =>
      batch([add(left, -1), add(right, 1)], at < 6 ? { 'idempotency-key': 'same' } : {}),
    );
    for (const { status } of await Promise.all(moves)) expect([200, 409]).toContain(status);
    const sums = await storedDocuments(test.app, things).find().sort({ n: 1 }).toArray();
    const [a, b] = sums.map(({ n }) => n as unknown as number) as [number, number];
    expect(a + b).toBe(10);
    await test.app.db.collection('idempotency_keys').updateMany({}, { $set: { isDone: true } });
    const again = await batch([add(left, -1), add(right, 1)], { 'idempotency-key': 'same' }).expect(200);
    expect((again.body.data as Results).results.map(({ id }) => id)).toEqual([left, right]);
    expect((await batch([add(left, -1)], { 'idempotency-key': 'same' })).status).toBe(422);
  });

  it.each([1, 2, 3])('makes of random batches what one after the other would, or nothing (seed %i)', async (seed) => {
    const random = openRandom(seed);
    const things = await build(['n:Number{min:0,max:4}', 'tag:String&']);
    const ids = Array.from({ length: 4 }, newId);
    let model = new Map<string, { n: number; tag?: string; gone?: boolean }>();
    const reached = { whole: 0, refused: 0 };
    for (let round = 0; round < 60; round++) {
      const next = structuredClone(model);
      let isRefused = false;
      const operations = Array.from({ length: 1 + random.below(4) }, () => {
        const id = random.pick(ids);
        const known = next.get(id);
        const taken = (tag: string): boolean =>
          [...next].some(([at, each]) => at !== id && !each.gone && each.tag === tag);
        const op = random.pick(['insert', 'update', 'update', 'remove', 'recover'] as const);
        if (op === 'insert') {
          const tag = random.pick(['a', 'b', 'c', 'd', 'e']);
          if (known || taken(tag)) isRefused = true;
          else next.set(id, { n: 1, tag });
          return { op, collection: things.name, body: { _id: id, n: 1, tag } };
        }
        if (op === 'update') {
          const by = random.pick([-2, -1, 1, 2]);
          if (!known || known.gone || known.n + by < 0 || known.n + by > 4) isRefused = true;
          else known.n += by;
          return { op, collection: things.name, id, body: { $inc: { n: by } } };
        }
        if (!known || Boolean(known.gone) !== (op === 'recover')) isRefused = true;
        else if (op === 'recover' && taken(known.tag!)) isRefused = true;
        else known.gone = op === 'remove';
        return { op, collection: things.name, id };
      });
      const reply = await batch(operations);
      expect(reply.status === 200, `${JSON.stringify(operations)} ${JSON.stringify([...model])} ${reply.text}`).toBe(
        !isRefused,
      );
      if (!isRefused) model = next;
      reached[isRefused ? 'refused' : 'whole']++;
      const stored = await storedDocuments(test.app, things).find().toArray();
      expect(new Map(stored.map((each) => [each._id.toHexString(), [each.n, each.isDeleted]]))).toEqual(
        new Map([...model].map(([id, { n, gone = false }]) => [id, [n, gone]])),
      );
    }
    expect(Math.min(reached.whole, reached.refused)).toBeGreaterThan(3);
  });
});
