import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { parseFieldSpec } from '../world/collections.js';
import { buildCollection, buildProject, storedDocuments } from '../helpers/build-project.js';
import { openDataClient, serverOf } from '../helpers/data-client.js';
import { searchOperators } from '../helpers/search-operators.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);

const build = (specs: string[], more: object = {}) =>
  buildCollection(test.app, owner.project, { ...(specs.length > 0 && { fields: specs.map(parseFieldSpec) }), ...more });
const send = openDataClient(test, serverOf(owner));
const insert = async (name: string, body: object): Promise<string> =>
  ((await send('post', name, body).expect(201)).body as { _id: string })._id;

describe('update operators', () => {
  it('count, append and clear beside plain fields, by one write', async () => {
    const { name } = await build(['title:String', 'views:Number', 'tags:Array(String)', 'seen:Date', 'note:String']);
    const id = await insert(name, { title: 'a', tags: ['x'], note: 'gone' });
    const { body } = await send('patch', `${name}/${id}`, {
      title: 'b',
      $inc: { views: 2 },
      $push: { tags: { $each: ['y', 'z'], $slice: -2 } },
      $max: { seen: '2026-01-31' },
      $unset: ['note'],
    }).expect(200);
    expect(body.data).toMatchObject({ title: 'b', views: 2, tags: ['y', 'z'], seen: '2026-01-31T00:00:00.000Z' });
    expect(body.data).not.toHaveProperty('note');
  });

  it('lose nothing of many at once, within what the schema allows', async () => {
    const { name } = await build(['places:Number{min:0}=10', 'names:Array(String){maxItems:7}']);
    const id = await insert(name, {});
    const book = (at: number) => send('patch', `${name}/${id}`, { $inc: { places: -1 }, $push: { names: `n${at}` } });
    const replies = await Promise.all(Array.from({ length: 20 }, (_, at) => book(at)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(7);
    const refused = replies.find(({ status }) => status !== 200)!;
    expect(refused.status).toBe(400);
    expect(refused.body.message).toBe('Validation failed: names must have at most 7 items');
    const read = await request(test.server).get(`/api/data/${name}/${id}`).set('x-api-key', owner.secret);
    expect(read.body).toMatchObject({ places: 3, names: { length: 7 } });
  });

  it('are refused whole for what has no meaning', async () => {
    const fields = ['a:Number!', 'tags:Array(String)', 'o:Object{b:Number!,c:Number}', 'f:Boolean', 'any:Array'];
    const { name } = await build(fields);
    const id = await insert(name, { a: 1, tags: ['x'] });
    const refusals: [object, string][] = [
      [{ $inc: { a: 1 }, a: 2 }, 'CONFLICTING_PATHS'],
      [{ $inc: { a: 1 }, $mul: { a: 2 } }, 'CONFLICTING_PATHS'],
      [{ $inc: { 'o.c': 1 }, o: { b: 1 } }, 'CONFLICTING_PATHS'],
      [{ $push: { tags: 'y' }, 'tags.0': 'z' }, 'CONFLICTING_PATHS'],
      [{ $inc: { 'o.c': 1 } }, 'VALIDATION_FAILED'],
      [{ $inc: { a: '1' } }, 'VALIDATION_FAILED'],
      [{ $inc: { tags: 1 } }, 'VALIDATION_FAILED'],
      [{ $inc: { none: 1 } }, 'VALIDATION_FAILED'],
      [{ $inc: { updatedAt: 1 } }, 'VALIDATION_FAILED'],
      [{ $min: { f: 1 } }, 'VALIDATION_FAILED'],
      [{ $push: { tags: 1 } }, 'VALIDATION_FAILED'],
      [{ $push: { tags: { $each: 'x' } } }, 'VALIDATION_FAILED'],
      [{ $push: { tags: { $each: [], $sort: 1 } } }, 'VALIDATION_FAILED'],
      [{ $push: { tags: { $each: ['y'], $slice: 0.5 } } }, 'VALIDATION_FAILED'],
      [{ $pull: { tags: { $in: ['x'], a: 1 } } }, 'VALIDATION_FAILED'],
      [{ $unset: ['a'] }, 'VALIDATION_FAILED'],
      [{ $unset: ['tags.0'] }, 'VALIDATION_FAILED'],
      [{ $unset: 'tags' }, 'INVALID_BODY'],
      [{ $inc: 1 }, 'INVALID_BODY'],
      [{ $rename: { a: 'b' } }, 'INVALID_BODY'],
      ...['$push', '$addToSet', '$pull', '$inc', '$mul', '$min', '$max'].flatMap((operator) =>
        ['$gt', '$in', '$each', '$slice', '$position', 'a.b', '__proto__'].flatMap((key): [object, string][] => {
          const operand = JSON.parse(`{"${key}": ["x"]}`) as object;
          const takes = (operator === '$pull' ? '$in' : /Set|push/.test(operator) && '$each') === key;
          const hidden = JSON.parse(`{"$each": [{"${key}": 1}], "$in": [{"${key}": 1}]}`) as Record<string, unknown>;
          const inside = operator === '$pull' ? { $in: hidden.$in } : { $each: hidden.$each };
          return [
            ...(takes ? [] : [[{ [operator]: { any: operand } }, 'INVALID_BODY'] as [object, string]]),
            [{ [operator]: { any: [operand] } }, 'INVALID_BODY'],
            [{ [operator]: { any: inside } }, 'INVALID_BODY'],
          ];
        }),
      ),
      [{ $inc: { _bsvc: 1 } }, 'VALIDATION_FAILED'],
      [{ $inc: Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`x${at}`, 1])) }, 'INVALID_BODY'],
      [{ $push: { tags: { $each: Array.from({ length: 1001 }, () => 'x') } } }, 'VALIDATION_FAILED'],
    ];
    for (const [body, code] of refusals) {
      const reply = await send('patch', `${name}/${id}`, body);
      expect([reply.status, reply.body.code], JSON.stringify(body)).toEqual([400, code]);
    }
    const read = await request(test.server).get(`/api/data/${name}/${id}`).set('x-api-key', owner.secret);
    expect(read.body).toMatchObject({ a: 1, tags: ['x'] });
  });

  it('say why the stored document does not take them', async () => {
    const { name } = await build([]);
    const id = await insert(name, { a: 'text', b: [1], c: { d: 1 }, big: Number.MAX_SAFE_INTEGER });
    const refusals: [object, RegExp][] = [
      [{ $inc: { a: 1 } }, /^Validation failed: a must be a number after \$inc/],
      [{ $inc: { b: 1 } }, /^Validation failed: b must be a number/],
      [{ $inc: { big: 1 } }, /^Validation failed: big must be a number.*at most 9007199254740991/],
      [{ $push: { a: 1 } }, /^Validation failed: a must be an Array/],
      [{ $pull: { c: 1 } }, /^Validation failed: c must be an Array/],
      [{ $inc: { 'a.x': 1 } }, /^Validation failed: a\.x cannot be set: a is not an object/],
      [{ $inc: { a: 1 }, $push: { c: 1 } }, /^Validation failed: a must be a number/],
    ];
    for (const [body, message] of refusals) {
      const reply = await send('patch', `${name}/${id}`, body);
      expect([reply.status, reply.body.message], JSON.stringify(body)).toEqual([400, expect.stringMatching(message)]);
    }
  });

  it('let a list grow to 10000 items', async () => {
    const collection = await build(['l:Array']);
    const id = await insert(collection.name, { l: [] });
    const filled = Array.from({ length: 9999 }, () => 1);
    await storedDocuments(test.app, collection).updateMany({}, { $set: { l: filled } });
    const push = (count: number) =>
      send('patch', `${collection.name}/${id}`, { $push: { l: { $each: Array.from({ length: count }, () => 2) } } });
    expect((await push(2)).body.code).toBe('DOCUMENT_TOO_LARGE');
    await push(1).expect(200);
    await push(1).expect(413);
    await send('patch', `${collection.name}/${id}`, { $addToSet: { l: { $each: [1, 2] } } }).expect(200);
    await send('patch', `${collection.name}/${id}`, { $push: { l: { $each: [3], $slice: -1 } } }).expect(200);
  });

  it('do not change fixed fields and owners, nor documents of others', async () => {
    const { name } = await build(['n:Number@fixed', 'owner:String', 'level:Number'], {
      rules: { read: 'anyone', create: 'anyone', update: 'doc.level in [1, 2]', delete: 'nobody' },
    });
    const id = await insert(name, { n: 1, level: 1 });
    const as = { 'x-api-key': owner.publishable };
    const patch = (body: object) => send('patch', `${name}/${id}`, body, as);
    expect((await patch({ $inc: { n: 1 } }).expect(403)).body.code).toBe('FIELD_FIXED');
    await patch({ $inc: { level: 1 } }).expect(200);
    expect((await patch({ $inc: { level: 1 } }).expect(403)).body).toMatchObject({
      code: 'RULE_REFUSED',
      details: [{ rule: 'update', side: 'after' }],
    });
    const owned = await build(['n:Number'], { rls: { mode: 'private', ownerField: 'userId' } });
    const mine = await insert(owned.name, { userId: 'a'.repeat(24) });
    expect((await send('patch', `${owned.name}/${mine}`, { $unset: ['userId'] }).expect(403)).body.code).toBe(
      'OWNER_IMMUTABLE',
    );
  });

  it('are applied once for an Idempotency-Key, at the same time too, and honour If-Match', async () => {
    const { name } = await build(['n:Number', 'm:Number']);
    const id = await insert(name, { n: 0 });
    const once = (key: string, body: object = { $inc: { n: 1 } }) =>
      send('patch', `${name}/${id}`, body, { 'idempotency-key': key });
    const replies = await Promise.all(Array.from({ length: 8 }, () => once('k')));
    expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
    expect((await once('k').expect(200)).body.data.n).toBe(1);
    expect((await once('k', { $inc: { n: 2 } }).expect(422)).body.code).toBe('IDEMPOTENCY_KEY_REUSED');
    const { headers } = await once('l').expect(200);
    const match = { 'if-match': headers.etag as string };
    await send('patch', `${name}/${id}`, { $inc: { n: 1 } }, match).expect(200);
    await send('patch', `${name}/${id}`, { $inc: { n: 1 } }, match).expect(412);
    const remove = () => send('delete', `${name}/${id}`, {}, { 'idempotency-key': 'gone' });
    await remove().expect(200);
    expect((await remove().expect(200)).body.data).toEqual({ id });
    await send('delete', `${name}/${id}`).expect(404);
  });

  it('are applied once after a process died before it noted that it was done', async () => {
    const collection = await build(['n:Number']);
    const id = await insert(collection.name, { n: 0 });
    const once = () => send('patch', `${collection.name}/${id}`, { $inc: { n: 1 } }, { 'idempotency-key': 'dies' });
    await once().expect(200);
    await test.app.db.collection('idempotency_keys').updateMany({}, { $set: { isDone: false } });
    expect((await once().expect(200)).body.data.n).toBe(1);
  });

  it.each([1, 2, 3, 4])('store what a model says, or nothing (seed %i)', (seed) => searchOperators(test, owner, seed));
});
