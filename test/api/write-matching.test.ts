import { ObjectId } from 'bson';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { type Collection, parseFieldSpec } from '../world/collections.js';
import { buildCollection, buildProject, storedDocuments } from '../helpers/build-project.js';
import { openDataClient, serverOf } from '../helpers/data-client.js';
import { useTestApp } from '../helpers/use.js';
import { parseBulkQuery, updateMatching } from '../world/documents.js';

const test = await useTestApp();
const owner = await buildProject(test.app);
const server = { 'x-api-key': owner.secret };

const build = (specs: string[], more: object = {}): Promise<Collection> =>
  buildCollection(test.app, owner.project, { fields: specs.map(parseFieldSpec), ...more });
const send = openDataClient(test, serverOf(owner));
const stored = (collection: Collection) => storedDocuments(test.app, collection).find({}).sort({ n: 1 }).toArray();

/** Numbers from 0, one document each, as the service stores them. */
async function fill(
  collection: Collection,
  count: number,
  more: (n: number) => object = () => ({}),
): Promise<string[]> {
  const ids: string[] = [];
  for (let from = 0; from < count; from += 100) {
    const some = Array.from({ length: Math.min(100, count - from) }, (_, at) => ({ n: from + at, ...more(from + at) }));
    const reply = await request(test.server)
      .post(`/api/data/${collection.name}/bulk`)
      .set(server)
      .send(some)
      .expect(201);
    ids.push(...(reply.body.data.ids as string[]));
  }
  return ids;
}

describe('PATCH /api/data/:collection?<filter>', () => {
  it('changes what matches when the count is confirmed, with operators', async () => {
    const things = await build(['n:Number!', 'state:String', 'seen:Number=0']);
    await fill(things, 230);
    const path = `${things.name}?n_gte=20`;
    for (const confirm of ['', '&confirm=209', '&confirm=0']) {
      const reply = await send('patch', path + confirm, { state: 'old' }).expect(409);
      expect([reply.body.code, reply.body.details[0].message]).toEqual(['COUNT_DIFFERS', '210']);
    }
    expect((await stored(things)).some(({ state }) => state === 'old')).toBe(false);
    const reply = await send('patch', `${path}&confirm=210`, { state: 'old', $inc: { seen: 2 } }).expect(200);
    expect(reply.body).toEqual({ success: true, data: { changed: 210 }, message: 'Changed 210' });
    for (const { n, state, seen, createdAt, updatedAt } of await stored(things)) {
      expect([state, seen]).toEqual((n as number) >= 20 ? ['old', 2] : [undefined, 0]);
      expect(updatedAt.getTime()).toBeGreaterThanOrEqual(createdAt.getTime());
    }
  });

  it('refuses what is no filter, no change and nobody’s right', async () => {
    const things = await build(['n:Number!', 'confirm:Number']);
    await fill(things, 2, (n) => ({ confirm: n }));
    const { name } = things;
    const refusals: [path: string, body: object, status: number, code: string][] = [
      [`${name}?confirm=2`, { n: 1 }, 400, 'FILTER_REQUIRED'],
      [name, { n: 1 }, 400, 'FILTER_REQUIRED'],
      [`${name}?nn=1&confirm=1`, { n: 1 }, 400, 'INVALID_QUERY'],
      [`${name}?n=1&limit=1&confirm=1`, { n: 1 }, 400, 'INVALID_QUERY'],
      [`${name}?n=1&include_deleted=true&confirm=1`, { n: 1 }, 400, 'INVALID_QUERY'],
      [`${name}?n=1&confirm=x`, { n: 1 }, 400, 'INVALID_QUERY'],
      [`${name}?n=1&confirm=1`, { n: 'x' }, 400, 'VALIDATION_FAILED'],
      [`${name}?n=1&confirm=1`, { n: null }, 400, 'VALIDATION_FAILED'],
      [`${name}?n=1&confirm=1`, { _id: new ObjectId().toHexString() }, 400, 'VALIDATION_FAILED'],
      [`${name}?n=1&confirm=1`, {}, 400, 'INVALID_BODY'],
      [`nowhere?n=1&confirm=1`, { n: 1 }, 404, 'COLLECTION_NOT_FOUND'],
      [`users?email=x&confirm=1`, { n: 1 }, 403, 'USERS_BLOCKED'],
    ];
    for (const [path, body, status, code] of refusals) {
      const reply = await send('patch', path, body);
      expect([reply.status, reply.body.code], `${path} ${JSON.stringify(body)}`).toEqual([status, code]);
    }
    const key = { 'x-api-key': owner.publishable };
    expect((await send('patch', `${name}?n=1&confirm=1`, { n: 5 }, key)).body.code).toBe('SECRET_KEY_REQUIRED');
    expect((await send('delete', `${name}?n=1&confirm=1`, undefined, key)).body.code).toBe('SECRET_KEY_REQUIRED');
    expect((await stored(things)).map(({ n }) => n)).toEqual([0, 1]);
    // A field named as a parameter.
    await send('patch', `${name}?filter[confirm]=1&confirm=1`, { n: 7 }).expect(200);
    expect((await stored(things)).map(({ n }) => n)).toEqual([0, 7]);
  });

  it('ends with the document that does not take the change, and says what stands', async () => {
    const things = await build(['n:Number{max:300}']);
    const ids = await fill(things, 250);
    const reply = await send('patch', `${things.name}?n_gte=0&confirm=250`, { $inc: { n: 100 } }).expect(400);
    const documents = await stored(things);
    const changed = documents.filter(({ _id, n }) => n !== ids.indexOf(_id.toHexString())).length;
    expect(reply.body.code).toBe('VALIDATION_FAILED');
    expect(reply.body.error).toMatch(/^Document [0-9a-f]{24}: Validation failed: n must be a number after \$inc/);
    if (changed > 0) expect(reply.body.error).toContain(`${changed} documents were changed before it, and stay so`);
    // Each transaction is whole.
    expect(changed % 100).toBe(0);
    expect(documents.every(({ n }) => (n as number) <= 300)).toBe(true);
    expect(documents).toHaveLength(250);
  });

  it('refuses more documents than one request changes', async () => {
    const things = await build(['n:Number!']);
    const now = new Date();
    const documents = Array.from({ length: 10_001 }, (_, n) => ({
      ...{ _id: new ObjectId(), n, isDeleted: false as const, deletedAt: null, createdAt: now, updatedAt: now },
    }));
    await storedDocuments(test.app, things).insertMany(documents);
    const reply = await send('patch', `${things.name}?n_gte=0&confirm=10001`, { n: 1 }).expect(413);
    expect([reply.body.code, reply.body.error]).toEqual(['TOO_MANY_DOCUMENTS', expect.stringContaining('10001')]);
  });

  it('leaves out what no longer matches, and counts what it changed', async () => {
    const things = await build(['n:Number!', 'state:String']);
    await fill(things, 30);
    const place = { collection: things, writer: null };
    const query = parseBulkQuery('n_lt=30&state_exists=false&confirm=30', things, false);
    const both = await Promise.all([
      updateMatching(test.app, place, query, { state: 'a' }),
      updateMatching(test.app, place, query, { state: 'b' }).catch((error: { code: string }) => {
        expect(error.code).toBe('COUNT_DIFFERS');
        return 0;
      }),
    ]);
    const states = (await stored(things)).map(({ state }) => state);
    expect([states.filter((state) => state === 'a').length, states.filter((state) => state === 'b').length]).toEqual(
      both,
    );
    expect(both[0] + both[1]).toBe(30);
  });
});

describe('DELETE /api/data/:collection?<filter>', () => {
  it('trashes, and removes for good from the trash too', async () => {
    const things = await build(['n:Number!']);
    await fill(things, 120);
    const { name } = things;
    expect((await send('delete', `${name}?n_lt=110`).expect(409)).body.details[0].message).toBe('110');
    expect((await send('delete', `${name}?n_lt=110&confirm=110`).expect(200)).body.data).toEqual({ removed: 110 });
    expect((await stored(things)).filter(({ isDeleted }) => isDeleted === true)).toHaveLength(110);
    await send('delete', `${name}?n_lt=110&confirm=110&include_deleted=only`).expect(400);
    const trash = `${name}?include_deleted=only&permanent=true`;
    expect((await send('delete', `${trash}&n_lt=5&confirm=5`).expect(200)).body.data).toEqual({ removed: 5 });
    expect((await send('delete', `${trash}&confirm=105`).expect(200)).body.data).toEqual({ removed: 105 });
    const rest = await send('delete', `${name}?n_gte=0&permanent=true&confirm=10`).expect(200);
    expect(rest.body).toEqual({ success: true, data: { removed: 10 }, message: 'Removed 10' });
    expect(await stored(things)).toEqual([]);
  });

  it('keeps what references hold', async () => {
    const boards = await build(['n:Number!']);
    const cards = await build([`board:Ref(${boards.name})!{onDelete:restrict}`]);
    const [first] = await fill(boards, 3);
    await request(test.server).post(`/api/data/${cards.name}`).set(server).send({ board: first }).expect(201);
    const reply = await send('delete', `${boards.name}?n_gte=0&confirm=3`).expect(409);
    expect([reply.body.code, reply.body.error]).toEqual([
      'DOCUMENT_REFERRED_TO',
      expect.stringMatching(new RegExp(`^Document ${first}: `)),
    ]);
    const left = (await stored(boards)).filter(({ isDeleted }) => isDeleted === false);
    expect(left.length).toBe(3);
    expect(left.some(({ n }) => n === 0)).toBe(true);
  });
});
