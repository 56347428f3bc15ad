import { ObjectId } from 'bson';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { type Collection, defaultUsersCollection, documentsName, parseFieldSpec } from '../world/collections.js';
import { signAccessToken } from '../world/users.js';
import { buildCollection, buildProject, storedDocuments } from '../helpers/build-project.js';
import { openRandom, type Random } from '../helpers/random.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);
const id = new ObjectId();
const ada = id.toHexString();
await test.app.db
  .collection(documentsName(defaultUsersCollection(owner.project._id)))
  .insertOne({ _id: id, email: `${ada}@example.test`, isDeleted: false, _bsvc: {} } as never);
const token = signAccessToken(test.app, owner.project, ada, 900_000);
const headers = { 'x-api-key': owner.publishable, authorization: `Bearer ${token}` };

const newId = (): string => new ObjectId().toHexString();

/** Boards by their ids alone: memberships that everybody makes of themselves, and cards for their members. */
interface World {
  members: Collection;
  cards: Collection;
}
async function buildWorld(): Promise<World> {
  const mine = 'doc.user = user.id';
  const members = await buildCollection(test.app, owner.project, {
    fields: ['board:String!', 'user:String!', 'role:String=editor'].map(parseFieldSpec),
    rules: { read: mine, create: mine, update: mine, delete: mine },
  });
  const isMember = `doc.board in ${members.name}[user = user.id].board`;
  const edits = `doc.board in ${members.name}[user = user.id and role = "editor"].board`;
  const cards = await buildCollection(test.app, owner.project, {
    fields: [
      'board:String!',
      'n:Number{min:0,max:4}=0',
      'note:String',
      'state:String=open',
      'meta:Object{a:Number}',
    ].map(parseFieldSpec),
    rules: { read: isMember, create: edits, update: `${edits} and doc.state = "open"`, delete: edits },
  });
  return { members, cards };
}

interface Operation {
  op: 'insert' | 'update' | 'remove' | 'recover';
  on: keyof World;
  id?: string;
  body?: Record<string, unknown>;
}
const named = (world: World, { op, on, id, body }: Operation) => ({
  ...{ op, collection: world[on].name },
  ...(id !== undefined && { id }),
  ...(body && { body }),
});
const batch = (world: World, operations: readonly Operation[]) =>
  request(test.server)
    .post('/api/batch')
    .set(headers)
    .send({ operations: operations.map((operation) => named(world, operation)) });

/** One operation as a request of its own. */
function alone(world: World, { op, on, id, body }: Operation) {
  const path = `/api/data/${world[on].name}`;
  const send = request(test.server);
  if (op === 'insert') return send.post(path).set(headers).send(body);
  if (op === 'update') return send.patch(`${path}/${id}`).set(headers).send(body);
  if (op === 'remove') return send.delete(`${path}/${id}`).set(headers);
  return send.patch(`${path}/${id}/recover`).set(headers);
}

async function stored({ members, cards }: World): Promise<unknown[]> {
  const all = await Promise.all([members, cards].map((each) => storedDocuments(test.app, each).find({}).toArray()));
  const shown = all.flat().map(({ createdAt: _c, updatedAt: _u, deletedAt: _d, _bsvc: _b, ...fields }) => fields);
  return shown.sort((a, b) => (String(a._id) < String(b._id) ? -1 : 1));
}

describe('a batch under rules with sets', () => {
  it('changes, removes and takes back what it stores itself', async () => {
    const world = await buildWorld();
    const [board, card] = [newId(), newId()];
    const join: Operation = { op: 'insert', on: 'members', body: { board, user: ada } };
    const insert: Operation = { op: 'insert', on: 'cards', body: { _id: card, board } };
    const update = (body: object): Operation => ({ op: 'update', on: 'cards', id: card, body: { ...body } });
    const { body } = await batch(world, [
      ...[join, insert, update({ note: 'a' }), update({ $inc: { n: 2 } }), update({ 'meta.a': 1 })],
      { op: 'remove', on: 'cards', id: card },
      { op: 'recover', on: 'cards', id: card },
    ]).expect(200);
    const last = (body.data as { results: { document: object }[] }).results.at(-1)!.document;
    expect(last).toMatchObject({ _id: card, note: 'a', n: 2, meta: { a: 1 }, isDeleted: false });
  });

  it('refuses as one after the other would be refused', async () => {
    const world = await buildWorld();
    const [board, foreign, card, member] = [newId(), newId(), newId(), newId()];
    const join = (role?: string): Operation => ({
      ...{ op: 'insert', on: 'members' },
      body: { _id: member, board, user: ada, ...(role && { role }) },
    });
    const insert: Operation = { op: 'insert', on: 'cards', body: { _id: card, board } };
    const update = (body: object): Operation => ({ op: 'update', on: 'cards', id: card, body: { ...body } });
    const refusals: [Operation[], number, string][] = [
      [[join(), insert, update({ board: foreign })], 403, 'RULE_REFUSED'],
      [[join(), insert, update({ state: 'closed' })], 403, 'RULE_REFUSED'],
      [[join(), insert, update({ n: 5 })], 400, 'VALIDATION_FAILED'],
      [[join(), insert, update({ $inc: { n: 5 } })], 400, 'VALIDATION_FAILED'],
      [[join(), insert, update({ $inc: { n: 2 } }), update({ $inc: { n: 3 } })], 400, 'VALIDATION_FAILED'],
      [[join(), insert, { op: 'recover', on: 'cards', id: card }], 404, 'DOCUMENT_NOT_FOUND'],
      [[join(), insert, { op: 'remove', on: 'cards', id: card }, update({ note: 'b' })], 404, 'DOCUMENT_NOT_FOUND'],
      // A right that the batch itself takes away from what it stores.
      [[join(), { op: 'update', on: 'members', id: member, body: { role: 'viewer' } }, insert], 403, 'RULE_REFUSED'],
      [[join(), { op: 'remove', on: 'members', id: member }, insert], 403, 'RULE_REFUSED'],
    ];
    for (const [operations, status, code] of refusals) {
      const reply = await batch(world, operations);
      const at = operations.length - 1;
      const what = `${JSON.stringify(operations)}: ${reply.text}`;
      expect([reply.status, reply.body.code, reply.body.details?.[0].index], what).toEqual([status, code, at]);
      expect(await stored(world)).toEqual([]);
    }
    await batch(world, [
      join('viewer'),
      { op: 'update', on: 'members', id: member, body: { role: 'editor' } },
      insert,
    ]).expect(200);
  });

  it.each([1, 2])('is what its operations are one after the other (seed %i)', async (seed) => {
    const random = openRandom(seed);
    const [single, whole] = [await buildWorld(), await buildWorld()];
    const boards = Array.from({ length: 3 }, newId);
    const ids = Array.from({ length: 5 }, newId);
    for (const world of [single, whole]) {
      await alone(world, { op: 'insert', on: 'members', body: { _id: boards[0], board: boards[0], user: ada } }).expect(
        201,
      );
    }
    const reached = { whole: 0, refused: 0, told: 0, 'changed what is new': 0 };
    for (let round = 0; round < 20; round++) {
      const fresh = newId();
      const first: Operation = { op: 'insert', on: 'cards', body: { _id: fresh, board: boards[0] } };
      const more = Array.from({ length: 1 + random.below(3) }, () =>
        draw(random, boards, [...ids, ...Array.from({ length: 9 }, () => fresh)]),
      );
      const operations = random.chance(0.6) ? [first, ...more] : more;
      let refusal: { index: number; status: number; code: string } | null = null;
      const changedByOperators = new Set<string>();
      for (const [index, operation] of operations.entries()) {
        const { status, body } = await alone(single, operation);
        if (status < 300) continue;
        refusal = { index, status, code: (body as { code: string }).code };
        break;
      }
      const reply = await batch(whole, operations);
      const what = `${JSON.stringify(operations)}: ${reply.text} for ${JSON.stringify(refusal)}`;
      const [bad, before] = refusal ? [operations[refusal.index]!, operations.slice(0, refusal.index)] : [null, []];
      for (const { id, body } of before) if (body?.$inc) changedByOperators.add(id!);
      if (refusal === null) {
        expect(reply.status, what).toBe(200);
        reached.whole++;
        const made = new Set(operations.flatMap(({ op, body }) => (op === 'insert' ? [body!._id] : [])));
        if (operations.some(({ op, id }) => op !== 'insert' && made.has(id))) reached['changed what is new']++;
      } else {
        reached.refused++;
        expect(reply.status, what).toBeGreaterThanOrEqual(400);
        // What can be said without the stored documents is said of a later operation first.
        const { index } = (reply.body as { details: { index: number }[] }).details[0]!;
        expect(index, what).toBeGreaterThanOrEqual(refusal.index);
        const isTold = index === refusal.index && (bad!.id === undefined || !changedByOperators.has(bad!.id));
        if (isTold) {
          expect([reply.status, reply.body.code], what).toEqual([refusal.status, refusal.code]);
          reached.told++;
        }
        // Those before the refused one stand in the other world.
        if (before.length > 0) await batch(whole, before).expect(200);
      }
      expect(await stored(whole), what).toEqual(await stored(single));
    }
    expect(Math.min(...Object.values(reached)), JSON.stringify(reached)).toBeGreaterThan(0);
  });
});

/** Memberships are only made: what is changed of stored ones is not seen within a batch. */
function draw(random: Random, boards: readonly string[], ids: readonly string[]): Operation {
  const [board, id] = [random.pick(boards), random.pick(ids)];
  if (random.chance(0.15)) return { op: 'insert', on: 'members', body: { _id: newId(), board, user: ada } };
  const op = random.pick(['insert', 'update', 'update', 'remove', 'recover'] as const);
  if (op === 'insert') return { op, on: 'cards', body: { _id: id, board } };
  if (op !== 'update') return { op, on: 'cards', id };
  const body = random.pick<Record<string, unknown>>([
    ...[{ note: 'a' }, { board }, { n: 3 }, { $inc: { n: 1 } }, { 'meta.a': 2 }, { note: null }, { n: 9 }],
    ...(random.chance(0.2) ? [{ state: 'closed' }] : []),
  ]);
  return { op, on: 'cards', id, body };
}
