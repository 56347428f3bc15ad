import { describe, expect, it } from 'vitest';
import {
  checkStoredDocuments,
  editCollection,
  parseFieldSpec,
  readUniqueOption,
  type Unique,
  writeUnique,
} from '../world/collections.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { openDataClient, serverOf } from '../helpers/data-client.js';
import { useTestApp } from '../helpers/use.js';

const FIELDS = ['staff:String!', 'at:String!', 'status:String=booked', 'paid:Boolean', 'tags:Array(String)'].map(
  parseFieldSpec,
);
const BOOKED: Unique = { fields: ['staff', 'at'], where: { status: 'booked' } };
const ten = { staff: 'ann', at: '10:00' };

const test = await useTestApp();
const owner = await buildProject(test.app);
const { name } = await buildCollection(test.app, owner.project, { fields: FIELDS, uniques: [BOOKED] });

const send = openDataClient(test, serverOf(owner));
const idOf = (reply: { body: unknown }): string => (reply.body as { _id: string })._id;

describe('a unique with a condition', () => {
  it('holds among the documents that meet it, and for no other', async () => {
    const first = idOf(await send('post', name, ten).expect(201));
    const refused = await send('post', name, { ...ten, status: 'booked' }).expect(409);
    expect(refused.body).toMatchObject({
      code: 'DUPLICATE_VALUE',
      message: 'Duplicate value: another document has the same staff and at',
    });
    const waiting = idOf(await send('post', name, { ...ten, status: 'waiting' }).expect(201));
    await send('post', name, { ...ten, status: 'waiting' }).expect(201);
    await send('patch', `${name}/${waiting}`, { status: 'booked' }).expect(409);
    await send('patch', `${name}/${first}`, { status: 'cancelled' }).expect(200);
    await send('patch', `${name}/${waiting}`, { status: 'booked' }).expect(200);
    await send('patch', `${name}/${first}`, { status: 'booked' }).expect(409);
  });

  it('lets one of many at the same time win', async () => {
    const sent = Array.from({ length: 12 }, () => send('post', name, { staff: 'bob', at: '11:00' }));
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([201, ...Array<number>(11).fill(409)]);
  });

  it('is declared when the stored documents are so, and changed and given up', async () => {
    const other = await buildCollection(test.app, owner.project, { fields: FIELDS });
    const edit = (uniques: Unique[]) => editCollection(test.app, owner.project._id, other.name, { uniques });
    const held = { ...ten, status: 'booked' };
    await placeDocuments(test.app, other, [held, held, { ...ten, status: 'waiting' }]);
    await expect(edit([BOOKED])).rejects.toMatchObject({ code: 'DUPLICATE_VALUE' });
    const waiting: Unique = { fields: ['staff', 'at'], where: { status: 'waiting' } };
    const changed = await edit([waiting]);
    await send('post', other.name, { ...ten, status: 'waiting' }).expect(409);
    await send('post', other.name, held).expect(201);
    expect(await checkStoredDocuments(test.app, changed, new AbortController().signal)).toMatchObject({
      violations: 0,
    });
    const report = await checkStoredDocuments(
      test.app,
      { ...changed, uniques: [BOOKED] },
      new AbortController().signal,
    );
    expect(report).toMatchObject({ violations: 2 });
    await edit([]);
    await send('post', other.name, { ...ten, status: 'waiting' }).expect(201);
  });

  it.each<[string, Unique]>([
    ['a field that nobody declares', { fields: ['staff'], where: { state: 'booked' } }],
    ['a value of another type', { fields: ['staff'], where: { paid: 'yes' } }],
    ['a list', { fields: ['staff'], where: { tags: 'a' } }],
    ['no condition', { fields: ['staff'], where: {} }],
    ['no field', { fields: [], where: { status: 'booked' } }],
  ])('cannot have %s', async (_, unique) => {
    const input = { fields: FIELDS, uniques: [unique] };
    await expect(buildCollection(test.app, owner.project, input)).rejects.toMatchObject({ code: 'INVALID_UNIQUE' });
  });

  it.each<[string, Unique]>([
    ['board,user', ['board', 'user']],
    ['staff,at where status=booked', BOOKED],
    ['staff where paid=true,seats=5', { fields: ['staff'], where: { paid: true, seats: 5 } }],
    ['staff where status="a b"', { fields: ['staff'], where: { status: 'a b' } }],
  ])('is written at the command line as %s', (text, unique) => {
    expect(readUniqueOption(text)).toEqual(unique);
    expect(writeUnique(unique)).toBe(text);
  });
});
