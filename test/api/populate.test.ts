import { ObjectId } from 'bson';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { defaultUsersCollection, forgetCollection } from '../world/collections.js';
import { collectionStore } from '../world/stored.js';
import { signAccessToken } from '../world/users.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const ME = new ObjectId().toHexString();
const id = () => new ObjectId();

const authorIds = [id(), id(), id()];
const noteIds = [id(), id()];
const userId = id();
const post = id();

const test = await useTestApp();
const shop = await buildProject(test.app);
const token = signAccessToken(test.app, shop.project, ME, 60_000);
const authors = await buildCollection(test.app, shop.project, {
  name: 'authors',
  fields: [
    { name: 'name', type: 'String' },
    { name: 'boss', type: 'Ref', ref: 'authors' },
  ],
});
const notes = await buildCollection(test.app, shop.project, {
  name: 'notes',
  fields: [{ name: 'text', type: 'String' }],
  rls: { mode: 'private', ownerField: 'userId' },
});
const posts = await buildCollection(test.app, shop.project, {
  name: 'posts',
  fields: [
    { name: 'title', type: 'String' },
    { name: 'author', type: 'Ref', ref: 'authors' },
    { name: 'editors', type: 'Array', items: { type: 'Ref', ref: 'authors' } },
    { name: 'note', type: 'Ref', ref: 'notes' },
    { name: 'writer', type: 'Ref', ref: 'users' },
    { name: 'gone', type: 'Ref', ref: 'nowhere' },
    { name: 'meta', type: 'Object', fields: [{ name: 'reviewer', type: 'Ref', ref: 'authors' }] },
    {
      name: 'parts',
      type: 'Array',
      items: { type: 'Object', fields: [{ name: 'by', type: 'Ref', ref: 'authors' }] },
    },
  ],
});
const users = defaultUsersCollection(shop.project._id);
users.fields.push({ name: 'nick', type: 'String', public: true });
await collectionStore(test.app).insertOne(users);
forgetCollection(test.app, users);
const [ann, bob, trashed] = authorIds as [ObjectId, ObjectId, ObjectId];
await placeDocuments(test.app, authors, [
  { _id: ann, name: 'Ann', boss: bob.toHexString() },
  { _id: bob, name: 'Bob' },
  { _id: trashed, name: 'Trashed', isDeleted: true, deletedAt: new Date() },
]);
await placeDocuments(test.app, notes, [
  { _id: noteIds[0], text: 'mine', userId: ME },
  { _id: noteIds[1], text: 'theirs', userId: id().toHexString() },
]);
await placeDocuments(test.app, users, [
  { _id: userId, email: 'secret@example.test', password: 'hash', nick: 'Annie', emailVerified: true },
]);
const text = (value: ObjectId): string => value.toHexString();
await placeDocuments(test.app, posts, [
  {
    _id: post,
    title: 'one',
    author: text(ann),
    editors: [text(bob), text(trashed), text(ann)],
    note: text(noteIds[0]!),
    writer: text(userId),
    gone: text(id()),
    meta: { reviewer: text(bob).toUpperCase() },
    parts: [{ by: text(ann) }, {}, { by: text(bob) }],
  },
  { title: 'two', author: text(trashed), note: text(noteIds[1]!) },
  { title: 'three' },
]);

type Item = Record<string, never>;
const get = (path: string, { key = shop.publishable, bearer = '' } = {}) =>
  request(test.server)
    .get(`/api/data/${path}`)
    .set({ 'x-api-key': key, ...(bearer && { authorization: `Bearer ${bearer}` }) });
const list = async (query: string, who = {}): Promise<Item[]> =>
  ((await get(`posts?sort=createdAt&${query}`, who).expect(200)).body as { data: { items: Item[] } }).data.items;

describe('populate', () => {
  it('replaces Refs by their documents: plain, in arrays, nested, through arrays of objects', async () => {
    const [first] = await list('populate=author,editors,meta.reviewer,parts.by&meta=false');
    const [ann, bob] = [
      { _id: authorIds[0]!.toHexString(), name: 'Ann', boss: authorIds[1]!.toHexString() },
      { _id: authorIds[1]!.toHexString(), name: 'Bob' },
    ];
    expect(first).toMatchObject({
      author: ann,
      editors: [bob, authorIds[2]!.toHexString(), ann],
      meta: { reviewer: bob },
      parts: [{ by: ann }, {}, { by: bob }],
    });
    expect(first!.author).not.toHaveProperty('createdAt');
  });

  it('answers to the name expand too, in lists by cursor and for one document', async () => {
    const [first] = await list('expand=author&cursor=start');
    expect(first!.author).toMatchObject({ name: 'Ann', isDeleted: false });
    const { body } = await get(`posts/${post.toHexString()}?expand=author&populate=note&fields=title`, {
      bearer: token,
    }).expect(200);
    expect(Object.keys(body).sort()).toEqual(['_id', 'author', 'note', 'title']);
    expect(body.note).toMatchObject({ text: 'mine' });
  });

  it('leaves trashed documents as identifiers, unless the trash is asked for', async () => {
    expect((await list('populate=author'))[1]!.author).toBe(authorIds[2]!.toHexString());
    expect((await list('populate=author&include_deleted=true'))[1]!.author).toMatchObject({ name: 'Trashed' });
  });

  it('shows a user’s own documents of a private collection, and needs a user', async () => {
    const [first, second] = await list('populate=note', { bearer: token });
    expect(first!.note).toMatchObject({ text: 'mine' });
    expect(second!.note).toBe(noteIds[1]!.toHexString());
    const { body } = await get('posts?populate=note').expect(401);
    expect(body.code).toBe('AUTH_REQUIRED');
    expect((await list('populate=note', { key: shop.secret }))[1]!.note).toMatchObject({ text: 'theirs' });
  });

  it('shows public fields of users only, even to the secret key', async () => {
    for (const key of [shop.publishable, shop.secret]) {
      const [first] = await list('populate=writer', { key });
      expect(first!.writer).toEqual({ _id: userId.toHexString(), nick: 'Annie' });
    }
  });

  it.each([
    ['populate=title', 'populate: "title" is not a declared Ref field'],
    ['populate=nothing', 'populate: "nothing" is not a declared Ref field'],
    ['populate=author.boss', 'populate: "author.boss" is not a declared Ref field'],
    ['populate=gone', 'populate: the collection "nowhere" does not exist'],
  ])('answers ?%s with 400', async (query, message) => {
    const { body } = await get(`posts?${query}`).expect(400);
    expect(body).toMatchObject({ code: 'INVALID_QUERY', message });
  });
});

describe('GET /api/data/:collectionName/:id', () => {
  it('answers the bare document, with the fields and meta asked for', async () => {
    const { body } = await get(`posts/${post.toHexString()}?fields=title`).expect(200);
    expect(body).toEqual({ _id: post.toHexString(), title: 'one' });
    expect((await get(`posts/${post.toHexString()}?meta=false`).expect(200)).body).not.toHaveProperty('isDeleted');
  });

  it('answers 404 for a trashed document unless the trash is asked for', async () => {
    const path = `authors/${authorIds[2]!.toHexString()}`;
    expect((await get(path).expect(404)).body.code).toBe('DOCUMENT_NOT_FOUND');
    expect((await get(`${path}?include_deleted=true`).expect(200)).body).toMatchObject({
      name: 'Trashed',
      isDeleted: true,
    });
  });

  it('answers 400 for a malformed id and for unknown parameters', async () => {
    expect((await get('posts/12').expect(400)).body.code).toBe('INVALID_ID');
    expect((await get(`posts/${post.toHexString()}?title=one`).expect(400)).body.code).toBe('INVALID_QUERY');
  });
});
