import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { editCollection, parseFieldSpec, presentFieldSpec } from '../world/collections.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { openDataClient, serverOf } from '../helpers/data-client.js';
import { useTestApp } from '../helpers/use.js';

type Body = Record<string, unknown>;

/** Tickets of two firms, and one that is in the trash, by what they are called here. */
const ids: Record<string, string> = {};

const test = await useTestApp();
const owner = await buildProject(test.app);
const tickets = await buildCollection(test.app, owner.project, {
  name: 'tickets',
  fields: ['org:String!', 'title:String'].map(parseFieldSpec),
});
const trashed = { isDeleted: true, deletedAt: new Date() };
const placed = await placeDocuments(test.app, tickets, [{ org: 'oak' }, { org: 'pine' }, { org: 'oak', ...trashed }]);
[ids.oaks, ids.pines, ids.gone] = placed as [string, string, string];
ids.unknown = 'f'.repeat(24);
await buildCollection(test.app, owner.project, {
  name: 'comments',
  fields: ['org:String', 'ticket:Ref(tickets){same:[org]}', 'also:Array(Ref(tickets){same:[org]})'].map(parseFieldSpec),
});

const send = openDataClient(test, serverOf(owner));
const named = (body: Body): Body =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.map((each) => ids[each as string]) : (ids[value as string] ?? value),
    ]),
  );

describe('a Ref with same', () => {
  it.each<[string, Body]>([
    ['one of the same firm', { org: 'oak', ticket: 'oaks' }],
    ['several', { org: 'oak', also: ['oaks'] }],
    ['none', { org: 'oak', ticket: null }],
  ])('takes %s, new and changed', async (_, sent) => {
    const made = await send('post', 'comments', named(sent)).expect(201);
    await send('patch', `comments/${(made.body as { _id: string })._id}`, named(sent)).expect(200);
    const other = await send('post', 'comments', { org: 'pine' }).expect(201);
    await send('patch', `comments/${(other.body as { _id: string })._id}`, named(sent)).expect(200);
  });

  it.each<[string, Body | null, Body, string]>([
    ['one of another firm', null, { org: 'oak', ticket: 'pines' }, 'ticket'],
    ['one where this one says nothing', null, { ticket: 'oaks' }, 'ticket'],
    ['one that is in the trash', null, { org: 'oak', ticket: 'gone' }, 'ticket'],
    ['one that is nowhere', null, { org: 'oak', ticket: 'unknown' }, 'ticket'],
    ['one of several', null, { org: 'oak', also: ['oaks', 'pines'] }, 'also'],
    ['another one', { org: 'oak', ticket: 'oaks' }, { ticket: 'pines' }, 'ticket'],
    ['the same one once this one moves', { org: 'oak', ticket: 'oaks' }, { org: 'pine' }, 'ticket'],
    ['the same ones once this one moves', { org: 'oak', also: ['oaks'] }, { org: 'pine' }, 'also'],
  ])('refuses %s in the same words', async (_, stored, sent, field) => {
    const made = stored && (await send('post', 'comments', named(stored)).expect(201));
    const reply = made
      ? await send('patch', `comments/${(made.body as { _id: string })._id}`, named(sent))
      : await send('post', 'comments', named(sent));
    expect([reply.status, (reply.body as Body).code, (reply.body as Body).message]).toEqual([
      400,
      'REFERENCE_MISSING',
      `Validation failed: ${field} must be the id of a document in "tickets" with the same org`,
    ]);
  });

  it('moves with what it refers to', async () => {
    const made = await send('post', 'comments', { org: 'oak', ticket: ids.oaks }).expect(201);
    const path = `comments/${(made.body as { _id: string })._id}`;
    await send('patch', path, { org: 'pine', ticket: ids.pines }).expect(200);
  });

  it('tells nobody what a field has that only the secret key sees', async () => {
    const open = { read: 'user', create: 'user', update: 'user', delete: 'nobody' };
    const files = await buildCollection(test.app, owner.project, {
      name: 'files',
      fields: ['org:String@hidden', 'title:String'].map(parseFieldSpec),
      rules: open,
    });
    const [file] = await placeDocuments(test.app, files, [{ org: 'oak' }]);
    await buildCollection(test.app, owner.project, {
      name: 'remarks',
      fields: ['org:String', 'file:Ref(files){same:[org]}'].map(parseFieldSpec),
      rules: open,
    });
    const signedUp = await request(test.server)
      .post('/api/userAuth/signup')
      .set('x-api-key', owner.publishable)
      .send({ email: 'eve@example.com', password: 'correct horse battery' })
      .expect(201);
    const { accessToken } = signedUp.body as { accessToken: string };
    const guess = (org: string) =>
      request(test.server)
        .post('/api/data/remarks')
        .set({ 'x-api-key': owner.publishable, authorization: `Bearer ${accessToken}` })
        .send({ org, file });
    const [right, wrong] = [await guess('oak'), await guess('pine')];
    const told = ({ status, body }: typeof right) => [status, { ...(body as Body), requestId: '' }];
    expect(told(right)).toEqual(told(wrong));
    expect(right.body).toMatchObject({ code: 'REFERENCE_MISSING' });
    await send('post', 'remarks', { org: 'oak', file }).expect(201);
  });

  it('is declared when the stored documents fit', async () => {
    const notes = await buildCollection(test.app, owner.project, {
      fields: ['org:String', 'ticket:Ref(tickets){check}'].map(parseFieldSpec),
    });
    await placeDocuments(test.app, notes, [{ org: 'oak', ticket: ids.pines }]);
    const setFields = [parseFieldSpec('ticket:Ref(tickets){same:[org]}')];
    await expect(editCollection(test.app, owner.project._id, notes.name, { setFields })).rejects.toMatchObject({
      code: 'CONSTRAINT_VIOLATIONS',
    });
  });

  it.each(['ticket:Ref(tickets){same:[firm]}', 'ticket:Ref(tickets){same:[ticket]}', 'ticket:String{same:[org]}'])(
    'cannot be %s',
    async (spec) => {
      const input = { fields: ['org:String', spec].map(parseFieldSpec) };
      await expect(buildCollection(test.app, owner.project, input)).rejects.toMatchObject({
        code: 'VALIDATION_FAILED',
      });
    },
  );

  it('is written as it is read', () => {
    const field = parseFieldSpec('ticket:Ref(tickets)!{check,onDelete:trash,same:[org,team]}');
    expect(parseFieldSpec(presentFieldSpec(field)!)).toEqual(field);
  });
});
