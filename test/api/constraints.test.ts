import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { type Collection, editCollection, parseFieldSpec } from '../world/collections.js';
import { importDocuments } from '../world/documents.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { openDataClient, serverOf } from '../helpers/data-client.js';
import { searchConstraints } from '../helpers/search-constraints.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);

let made = 0;
const build = (...specs: string[]): Promise<Collection> =>
  buildCollection(test.app, owner.project, { name: `held${++made}`, fields: specs.map(parseFieldSpec) });
const send = openDataClient(test, serverOf(owner));

interface Refusal {
  message: string;
  details: { field: string; rule: string; message: string }[];
}

describe('constraints of fields', () => {
  it('tells every broken rule of a document at once', async () => {
    const { name } = await build(
      'title:String{minLength:2,maxLength:5}!',
      'role:String{enum:owner|editor}',
      'slug:String{pattern:^[a-z-]+$}',
      'mail:String{format:email}',
      'site:String{format:url}',
      'key:String{format:uuid}',
      'price:Number{min:0,max:10,integer}',
      'born:Date{min:1900-01-01,max:now}',
      'tags:Array(String{maxLength:3}){minItems:1,maxItems:2,uniqueItems}',
      'meta:Object{size:Number{enum:1|2}}',
    );
    const reply = await send('post', name, {
      title: 'much too long',
      role: 'admin',
      slug: 'No Slug',
      mail: 'nobody',
      site: 'javascript:alert(1)',
      key: '1',
      price: 10.5,
      born: '2999-01-01',
      tags: ['a', 'a', 'long'],
      meta: { size: 3 },
    }).expect(400);
    const { message, details } = reply.body as Refusal;
    expect(message).toBe('Validation failed: title must have at most 5 characters');
    expect(details.map(({ message: text }) => text)).toEqual([
      'title must have at most 5 characters',
      'role must be one of owner, editor',
      'slug must match ^[a-z-]+$',
      'mail must be an e-mail address',
      'site must be a web address (http or https)',
      'key must be a UUID',
      'price must be at most 10',
      'price must be a whole number',
      'born must be no later than the moment of the write',
      'tags.2 must have at most 3 characters',
      'tags must have at most 2 items',
      'tags must not have the same item twice',
      'meta.size must be one of 1, 2',
    ]);
    expect(details[1]!.rule).toBe('enum');
  });

  it('stores texts trimmed and in lower case, and counts characters as people do', async () => {
    const { name } = await build('mail:String{trim,lowercase,format:email,maxLength:20}&', 'face:String{maxLength:2}');
    const first = await send('post', name, { mail: '  Ada@Example.com ', face: '👍👍' }).expect(201);
    expect(first.body).toMatchObject({ mail: 'ada@example.com', face: '👍👍' });
    await send('post', name, { mail: 'ADA@example.com' }).expect(409);
    await send('patch', `${name}/${first.body._id}`, { face: '👍👍👍' }).expect(400);
  });

  it('keeps a list without repeated items when a position is changed', async () => {
    const { name } = await build('tags:Array(String){uniqueItems}', 'parts:Array(Object{a:Number}){uniqueItems}');
    const { body } = await send('post', name, { tags: ['a', 'b'], parts: [{ a: 1 }] }).expect(201);
    const change = (changes: object) => send('patch', `${name}/${body._id}`, changes);
    expect((await change({ 'tags.1': 'a' }).expect(400)).body.message).toBe(
      'Validation failed: tags must not have the same item twice',
    );
    await change({ 'tags.0': 'c', 'tags.1': 'c' }).expect(400);
    await change({ 'tags.0': 'b', 'tags.1': 'a' }).expect(200);
    await change({ 'tags.0': 'a', 'tags.1': 'b' }).expect(200);
    await change({ 'parts.0.a': 2 }).expect(200);
    expect((await change({ $inc: { 'parts.0.a': -2 } }).expect(200)).body.data.parts).toEqual([{ a: 0 }]);
    await change({ 'tags.1': 'b' }).expect(200);
    expect((await change({ 'tags.0': 'c' }).expect(200)).body.data.tags).toEqual(['c', 'b']);
  });

  it('bounds what patterns may cost for one document', async () => {
    const { name } = await build('texts:Array(String{pattern:"(x+x+){1,40}y"})');
    const reply = await send('post', name, { texts: Array.from({ length: 250 }, () => 'x'.repeat(1000)) });
    expect(reply.status).toBe(400);
    expect((reply.body as Refusal).details[0]!.rule).toBe('pattern');
  });

  it('reports every broken rule of each imported value', async () => {
    const collection = await build('title:String{maxLength:3}', 'price:Number{min:0}');
    const outcome = await importDocuments(test.app, collection, [{ title: 'long', price: -1 }, { title: 'ok' }]);
    expect(outcome.inserted).toBe(1);
    expect(outcome.rejected).toEqual([
      {
        index: 0,
        message: expect.stringMatching(/title must have at most 3 characters.*price must be at least 0/),
      },
    ]);
  });

  it('is not added over stored documents that break it, unless it is for new writes', async () => {
    const collection = await build('price:Number', 'note:String');
    const ids = await placeDocuments(test.app, collection, [
      ...Array.from({ length: 12 }, (_, at) => ({ price: -at })),
      { price: -3, isDeleted: true },
    ]);
    const edit = { setFields: [parseFieldSpec('price:Number{min:0}')] };
    const add = (options?: object) => editCollection(test.app, owner.project._id, collection.name, edit, options);
    const refusal = await add().catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'CONSTRAINT_VIOLATIONS', kind: 'conflict' });
    expect((refusal as Error).message).toMatch(/^12 stored documents do not fit/);
    expect((refusal as Refusal).details.map(({ field }) => field)).toEqual(ids.slice(1, 11));
    await add({ forNewWrites: true });
    await send('patch', `${collection.name}/${ids[1]}`, { note: 'still changed' }).expect(200);
    await send('patch', `${collection.name}/${ids[1]}`, { price: -1 }).expect(400);
    // What was agreed to is not asked for again by another edit.
    const other = { setFields: [parseFieldSpec('note:String{maxLength:20}')] };
    await editCollection(test.app, owner.project._id, collection.name, other);
  });

  it('keeps several fields unique together, in trash and recovery like one', async () => {
    const fields = ['board:Ref!', 'user:Ref', 'role:String'].map(parseFieldSpec);
    const uniques = [['board', 'user']];
    const { name } = await buildCollection(test.app, owner.project, { name: `held${++made}`, fields, uniques });
    const [board, user, other] = ['a', 'b', 'c'].map((digit) => digit.repeat(24));
    const first = await send('post', name, { board, user }).expect(201);
    const second = await send('post', name, { board, user, role: 'x' }).expect(409);
    expect(second.body).toMatchObject({
      code: 'DUPLICATE_VALUE',
      message: 'Duplicate value: another document has the same board and user',
      details: [{ field: 'board' }, { field: 'user' }],
    });
    await send('post', `${name}/bulk`, [
      { board, user: other },
      { board, user },
    ]).expect(409);
    await send('post', name, { board }).expect(201);
    await send('post', name, { board }).expect(201);
    const path = `/api/data/${name}/${first.body._id}`;
    await request(test.server).delete(path).set('x-api-key', owner.secret).expect(200);
    await send('post', name, { board, user }).expect(201);
    await send('patch', `${name}/${first.body._id}/recover`, {}).expect(409);
  });

  it('does not make fields unique together over stored repeats, nor what cannot be', async () => {
    const collection = await build('board:String', 'user:String', 'tags:Array');
    await placeDocuments(test.app, collection, [
      { board: 'a', user: 'b' },
      { board: 'a', user: 'b' },
      { board: 'a', user: 'c' },
    ]);
    const edit = (uniques: string[][]) => editCollection(test.app, owner.project._id, collection.name, { uniques });
    await expect(edit([['board', 'user']])).rejects.toMatchObject({
      code: 'DUPLICATE_VALUE',
      message: 'board and user cannot be unique, since documents share values: "a" with "b" is in 2 documents',
    });
    for (const names of [['board'], ['board', 'board'], ['board', 'tags'], ['board', 'none']]) {
      await expect(edit([names])).rejects.toMatchObject({ code: 'INVALID_UNIQUE' });
    }
    await expect(
      edit([
        ['board', 'user'],
        ['user', 'board'],
      ]),
    ).rejects.toMatchObject({ code: 'INVALID_UNIQUE' });
    expect((await edit([])).uniques).toEqual([]);
  });

  it.each([1, 2, 3])('never lets a violation stand, and refuses nothing that fits (seed %i)', (seed) =>
    searchConstraints(test, owner, seed),
  );
});
