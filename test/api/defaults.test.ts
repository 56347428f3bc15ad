import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { editCollection, parseFieldSpec } from '../world/collections.js';
import { importDocuments } from '../world/documents.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const SPECS = ['title:String', 'state:String=open', 'seats:Number=0', 'at:Object{city:String,floor:Number=1}'];
type Body = Record<string, unknown>;

const test = await useTestApp();
const owner = await buildProject(test.app);
const { name } = await buildCollection(test.app, owner.project, { fields: SPECS.map(parseFieldSpec) });

const send = (method: 'post' | 'patch', path: string, body: object) =>
  request(test.server)[method](`/api/data/${path}`).set('x-api-key', owner.secret).send(body);
const told = ({ title, state, seats, at }: Body): Body => ({ title, state, seats, at });

describe('a field with a default', () => {
  const fresh = { state: 'open', seats: 0 };
  it.each<[string, Body, Body]>([
    ['is filled in where it is left out', {}, fresh],
    ['is filled in for null', { state: null, seats: null }, fresh],
    [
      'is filled in inside of an object',
      { at: { city: 'Bonn', floor: null } },
      { ...fresh, at: { city: 'Bonn', floor: 1 } },
    ],
    ['takes a value', { state: 'closed' }, { ...fresh, state: 'closed' }],
  ])('%s', async (_, body, stored) => {
    const { body: made } = await send('post', name, body).expect(201);
    expect(told(made as Body)).toEqual(told(stored));
  });

  const held = { title: 'a', state: 'closed', seats: 5, at: { city: 'Bonn', floor: 4 } };
  it.each<[string, Body, Body]>([
    ['null', { state: null, title: null }, { state: 'open', seats: 5, at: held.at }],
    ['$unset', { $unset: ['seats', 'at.floor'] }, { ...held, seats: 0, at: { city: 'Bonn', floor: 1 } }],
    ['null by its path', { 'at.floor': null }, { ...held, at: { city: 'Bonn', floor: 1 } }],
    ['an object that leaves it out', { at: { city: 'Ulm' } }, { ...held, at: { city: 'Ulm', floor: 1 } }],
  ])('is set back by %s', async (_, change, stored) => {
    const { body: made } = await send('post', name, held).expect(201);
    const { body: changed } = await send('patch', `${name}/${(made as Body)._id as string}`, change).expect(200);
    const document = ((changed as { data?: Body }).data ?? changed) as Body;
    expect(told(document)).toEqual(told(stored));
  });

  it('is there in an object that a path makes, and none is made to set it back', async () => {
    const { body: made } = await send('post', name, {}).expect(201);
    const path = `${name}/${(made as Body)._id as string}`;
    const read = async (): Promise<Body> =>
      (await request(test.server).get(`/api/data/${path}`).set('x-api-key', owner.secret).expect(200)).body as Body;
    await send('patch', path, { 'at.floor': null }).expect(200);
    expect((await read()).at).toBeUndefined();
    await send('patch', path, { 'at.city': 'Bonn' }).expect(200);
    expect((await read()).at).toEqual({ city: 'Bonn', floor: 1 });
  });

  it('is filled in by an import', async () => {
    const collection = await buildCollection(test.app, owner.project, { fields: SPECS.map(parseFieldSpec) });
    expect(await importDocuments(test.app, collection, [{ state: null }, {}])).toMatchObject({ inserted: 2 });
    const reply = await request(test.server)
      .get(`/api/data/${collection.name}?state=open&seats=0&count=true`)
      .set('x-api-key', owner.secret);
    expect(reply.body).toMatchObject({ data: { count: 2 } });
  });

  it('is given to the documents that are stored, in the trash too, as it is declared', async () => {
    const collection = await buildCollection(test.app, owner.project, {
      fields: ['title:String', 'at:Array(Object{city:String})'].map(parseFieldSpec),
    });
    const before = { title: 'a', at: [{ city: 'Bonn' }] };
    await placeDocuments(test.app, collection, [
      before,
      { ...before, isDeleted: true, deletedAt: new Date() },
    ] as never);
    await editCollection(test.app, owner.project._id, collection.name, {
      addFields: [parseFieldSpec('state:String=open@nocase')],
      setFields: [parseFieldSpec('at:Array(Object{city:String,floor:Number=1})')],
    });
    const reply = await request(test.server)
      .get(`/api/data/${collection.name}?state=OPEN&include_deleted=true`)
      .set('x-api-key', owner.secret)
      .expect(200);
    const items = (reply.body as { data: { items: Body[] } }).data.items;
    expect(items.map(({ state, at }) => ({ state, at }))).toEqual(
      Array(2).fill({ state: 'open', at: [{ city: 'Bonn', floor: 1 }] }),
    );
  });

  it('cannot be required', async () => {
    const reply = await request(test.server)
      .post('/api/schemas')
      .set('x-api-key', owner.secret)
      .send({ name: 'both', fields: [{ name: 'state', type: 'String', required: true, default: 'open' }] })
      .expect(400);
    expect((reply.body as { message: string }).message).toBe(
      'Invalid field: state cannot be required and have a default: a field with a default is always there',
    );
  });
});
