import { ObjectId } from 'bson';
import request from 'supertest';
import { expect, it } from 'vitest';
import {
  type Collection,
  addCollection,
  dropCollection,
  editCollection,
  parseFieldSpec,
  renameCollection,
} from '../world/collections.js';
import { importDocuments, insertDocuments, trashDocument } from '../world/documents.js';
import { drainJobs } from '../world/jobs.js';
import { signAccessToken } from '../world/users.js';
import { buildCollection, buildProject, storedDocuments } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);
const server = { 'x-api-key': owner.secret };

const build = (specs: string[], more: object = {}): Promise<Collection> =>
  buildCollection(test.app, owner.project, { fields: specs.map(parseFieldSpec), ...more });
const api = (method: 'get' | 'post' | 'patch' | 'delete', path: string, body?: object) =>
  request(test.server)[method](`/api/data/${path}`).set(server).send(body);
const store = async ({ name }: Collection, body: object): Promise<string> =>
  ((await api('post', name, body).expect(201)).body as { _id: string })._id;
const isThere = async ({ name }: Collection, id: string): Promise<boolean> =>
  (await api('get', `${name}/${id}`)).status === 200;
const refused = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  return (error as { code: string }).code;
};
const nobody = (): string => new ObjectId().toHexString();

it('refuses the id of a document that is not there, by every way in', async () => {
  const people = await build(['name:String']);
  const posts = await build([
    'title:String',
    `author:Ref(${people.name})!{check}`,
    `likes:Array(Ref(${people.name}){check})`,
  ]);
  const ada = await store(people, { name: 'Ada' });
  const bob = await store(people, { name: 'Bob' });
  const post = await store(posts, { author: ada.toUpperCase(), likes: [ada] });
  expect((await api('get', `${posts.name}/${post}`)).body).toMatchObject({ author: ada, likes: [ada] });
  const refusals = [
    api('post', posts.name, { author: nobody() }),
    api('post', posts.name, { author: ada, likes: [ada, nobody()] }),
    api('post', `${posts.name}/bulk`, [{ author: ada }, { author: nobody() }]),
    api('patch', `${posts.name}/${post}`, { author: nobody() }),
    api('patch', `${posts.name}/${post}`, { likes: [nobody()] }),
    api('patch', `${posts.name}/${post}`, { 'likes.0': nobody() }),
    api('patch', `${posts.name}/${post}`, { $push: { likes: nobody() } }),
    api('patch', `${posts.name}/${post}`, { $addToSet: { likes: { $each: [ada, nobody()] } } }),
  ];
  for (const pending of refusals) {
    const { status, body } = await pending;
    expect([status, body.code]).toEqual([400, 'REFERENCE_MISSING']);
    expect(body.message).toMatch(/(author|likes) must be the id of a document in/);
  }
  await api('patch', `${posts.name}/${post}`, { $push: { likes: bob }, title: 'x' }).expect(200);
  const imported = await importDocuments(test.app, posts, [{ author: ada }, { author: nobody() }]);
  expect(imported).toMatchObject({ inserted: 1, rejected: [{ index: 1 }] });
  await api('delete', `${people.name}/${bob}`).expect(200);
  await api('patch', `${posts.name}/${post}`, { author: bob }).expect(400);
  expect((await api('get', `${posts.name}?count=true`)).body.data).toEqual({ count: 2 });
});

it('holds a document that others refer to', async () => {
  const people = await build(['name:String']);
  const posts = await build([`author:Ref(${people.name}){check,onDelete:restrict}`]);
  const ada = await store(people, {});
  const [one, two] = [await store(posts, { author: ada }), await store(posts, { author: ada })];
  for (const path of [`${people.name}/${ada}`, `${people.name}/${ada}?permanent=true`]) {
    const { body } = await api('delete', path).expect(409);
    expect(body).toMatchObject({ code: 'DOCUMENT_REFERRED_TO', message: expect.stringContaining('2 documents of') });
  }
  const stranger = {
    'x-api-key': owner.publishable,
    authorization: `Bearer ${signAccessToken(test.app, owner.project, nobody(), 600_000)}`,
  };
  const own = await build(['userId:String', 'name:String'], { rls: { mode: 'public-read', ownerField: 'userId' } });
  const held = await build([`own:Ref(${own.name}){onDelete:restrict}`]);
  const theirs = await store(own, { userId: nobody() });
  await store(held, { own: theirs });
  // Who may not remove it does not learn that others refer to it.
  await request(test.server).delete(`/api/data/${own.name}/${theirs}`).set(stranger).expect(403);
  await api('patch', `${posts.name}/${one}`, { author: null }).expect(200);
  await api('delete', `${posts.name}/${two}`).expect(200);
  await api('delete', `${people.name}/${ada}`).expect(200);
  // Nobody is to find a document that refers to one that is gone.
  expect((await api('patch', `${posts.name}/${two}/recover`).expect(409)).body.code).toBe('REFERENCE_MISSING');
  await api('patch', `${people.name}/${ada}/recover`).expect(200);
  await api('patch', `${posts.name}/${two}/recover`).expect(200);
});

it('settles by the same transaction what refers to a document, up to 100 at any depth, and more by a job', async () => {
  const boards = await build(['name:String']);
  const cards = await build([`board:Ref(${boards.name})!{onDelete:trash}`]);
  const notes = await build([`card:Ref(${cards.name}){onDelete:remove}`]);
  const fill = async (count: number): Promise<string> => {
    const board = await store(boards, {});
    const place = { collection: cards, writer: null };
    const { ids } = await insertDocuments(test.app, place, Array(count).fill({ board }));
    await store(notes, { card: ids[0] });
    return board;
  };
  const left = (board: string) => storedDocuments(test.app, cards).countDocuments({ board, isDeleted: false });
  const notesLeft = () => storedDocuments(test.app, notes).countDocuments({});

  const [few, many] = [await fill(99), await fill(100)];
  await store(cards, { board: many });
  await api('delete', `${boards.name}/${few}`).expect(200);
  expect([await left(few), await notesLeft()]).toEqual([0, 1]);
  await api('delete', `${boards.name}/${many}`).expect(200);
  expect([await left(many), await notesLeft()]).toEqual([101, 1]);
  await drainJobs(test.app);
  expect([await left(many), await notesLeft()]).toEqual([0, 0]);
});

it('clears, trashes or removes what refers to a document that goes, at any depth, and takes back what was trashed', async () => {
  const boards = await build(['name:String']);
  const cards = await build([`board:Ref(${boards.name})!{onDelete:trash}`]);
  const notes = await build([`card:Ref(${cards.name}){onDelete:trash}`, `also:Ref(${boards.name}){onDelete:unset}`]);
  const marks = await build([`boards:Array(Ref(${boards.name}){onDelete:unset})`]);
  const logs = await build([`board:Ref(${boards.name}){onDelete:remove}`]);
  const [board, other] = [await store(boards, {}), await store(boards, {})];
  const [card, own, kept] = [
    await store(cards, { board }),
    await store(cards, { board }),
    await store(cards, { board: other }),
  ];
  const note = await store(notes, { card, also: board });
  const mark = await store(marks, { boards: [board, other] });
  const log = await store(logs, { board });
  await api('delete', `${cards.name}/${own}`).expect(200);
  await api('delete', `${boards.name}/${board}`).expect(200);
  await drainJobs(test.app);
  expect(await isThere(cards, card)).toBe(false);
  expect(await isThere(cards, kept)).toBe(true);
  expect(await isThere(notes, note)).toBe(false);
  expect((await api('get', `${marks.name}/${mark}`)).body.boards).toEqual([other]);
  await api('patch', `${cards.name}/${card}/recover`).expect(409);
  await api('patch', `${boards.name}/${board}/recover`).expect(200);
  await drainJobs(test.app);
  expect(await isThere(cards, card)).toBe(true);
  expect(await isThere(notes, note)).toBe(true);
  expect((await api('get', `${notes.name}/${note}`)).body.also).toBeUndefined();
  // What its user had trashed stays there.
  expect(await isThere(cards, own)).toBe(false);
  expect(await isThere(logs, log)).toBe(false);
  const { body } = await request(test.server).get('/metrics');
  expect(body).toBeDefined();
});

it('sees in a batch what stands before, and decides all of it at once', async () => {
  const boards = await build(['name:String']);
  const cards = await build([`board:Ref(${boards.name})!{onDelete:restrict}`]);
  const id = nobody();
  const send = (...operations: object[]) => request(test.server).post('/api/batch').set(server).send({ operations });
  const card = { op: 'insert', collection: cards.name, body: { board: id } };
  const board = { op: 'insert', collection: boards.name, body: { _id: id } };
  const { body } = await send(card, board).expect(400);
  expect(body).toMatchObject({ code: 'REFERENCE_MISSING', details: [{ index: 0, field: 'board' }] });
  const stored = await send(board, card).expect(200);
  const cardId = (stored.body.data.results as { id: string }[])[1]!.id;
  const gone = { op: 'remove', collection: boards.name, id };
  expect((await send(gone).expect(409)).body.code).toBe('DOCUMENT_REFERRED_TO');
  await send({ op: 'remove', collection: cards.name, id: cardId }, gone).expect(200);

  // Also what the batch itself has stored.
  const other = nobody();
  const notes = await build([`board:Ref(${boards.name})!{onDelete:trash}`]);
  const [note, itsBoard] = [nobody(), { op: 'insert', collection: boards.name, body: { _id: other } }];
  const itsNote = { op: 'insert', collection: notes.name, body: { _id: note, board: other } };
  const without = { op: 'remove', collection: boards.name, id: other };
  const held = await send(itsBoard, { op: 'insert', collection: cards.name, body: { board: other } }, without);
  expect([held.status, held.body]).toMatchObject([
    409,
    { code: 'DOCUMENT_REFERRED_TO', details: [{ index: 2, message: expect.stringContaining('1 document of') }] },
  ]);
  await send(itsBoard, itsNote, without).expect(200);
  await drainJobs(test.app);
  expect(await isThere(notes, note)).toBe(false);
});

it('clears what another comes to refer to at the moment when it goes', async () => {
  const boards = await build(['n:Number']);
  const lists = await build([`board:Ref(${boards.name}){onDelete:trash}`]);
  const cards = await build([`list:Ref(${lists.name}){onDelete:unset}`]);
  const board = await store(boards, {});
  const list = await store(lists, { board });
  const { db } = test.app;
  let card = '';
  const comeBetween = async (): Promise<void> => {
    card ||= await store(cards, { list });
  };
  const overtaken: typeof db = {
    ...db,
    transform: (...given) => comeBetween().then(() => db.transform(...given)),
    transformTogether: (turns) => comeBetween().then(() => db.transformTogether(turns)),
  };
  await trashDocument({ ...test.app, db: overtaken }, { collection: boards, writer: null }, board);
  await drainJobs(test.app);
  expect(card).not.toBe('');
  expect(await isThere(lists, list)).toBe(false);
  expect((await api('get', `${cards.name}/${card}`).expect(200)).body.list ?? null).toBe(null);
});

it('stores several documents together only while what they refer to is there', async () => {
  const boards = await build(['n:Number']);
  const lists = await build([`board:Ref(${boards.name}){onDelete:remove}`]);
  const board = await store(boards, {});
  const { db } = test.app;
  const overtaken: typeof db = {
    ...db,
    async transformTogether(turns) {
      await api('delete', `${boards.name}/${board}`).expect(200);
      return db.transformTogether(turns);
    },
  };
  const place = { collection: lists, writer: null };
  const stored = insertDocuments({ ...test.app, db: overtaken }, place, [{ board }, { board }]);
  expect(await refused(stored)).toBe('REFERENCE_MISSING');
  expect((await api('get', lists.name).expect(200)).body.data.items).toEqual([]);
});

it('tells an end user that documents refer to what it removes, not how many nor where', async () => {
  const rules = { read: 'user', create: 'user', update: 'user', delete: 'user' };
  const boards = await build(['name:String'], { rules });
  const kept = await build([`unseen:Ref(${boards.name}){onDelete:restrict}`], { rules });
  const board = await store(boards, { name: 'a' });
  const authorization = `Bearer ${signAccessToken(test.app, owner.project, nobody(), 600_000)}`;
  const headers = { 'x-api-key': owner.publishable, authorization };
  const remove = () => [
    request(test.server).delete(`/api/data/${boards.name}/${board}`).set(headers),
    request(test.server).delete(`/api/data/${boards.name}/${board}?permanent=true`).set(headers),
    request(test.server)
      .post('/api/batch')
      .set(headers)
      .send({ operations: [{ op: 'remove', collection: boards.name, id: board }] }),
  ];
  const replies: string[] = [];
  for (let count = 0; count < 2; count++) {
    await store(kept, { unseen: board });
    for (const pending of remove()) {
      const { status, body, text } = await pending;
      expect([status, body.code]).toEqual([409, 'DOCUMENT_REFERRED_TO']);
      expect(text).not.toMatch(new RegExp(`unseen|${kept.name}|[0-9] documents?`));
      replies.push(text.replace(/"requestId":"[^"]*"/, ''));
    }
  }
  expect(replies.slice(0, replies.length / 2)).toEqual(replies.slice(replies.length / 2));
  expect((await api('delete', `${boards.name}/${board}`)).text).toContain(`2 documents of \\"${kept.name}\\"`);
});

it('refuses schemas whose references cannot be kept', async () => {
  const add = (specs: string[], name = `c${nobody()}`) =>
    addCollection(test.app, owner.project, { name, fields: specs.map(parseFieldSpec) });
  const boards = await build(['name:String']);
  const to = `Ref(${boards.name})`;
  expect(await refused(add(['a:Ref{check}']))).toBe('VALIDATION_FAILED');
  expect(await refused(add([`a:${to}!{onDelete:unset}`]))).toBe('VALIDATION_FAILED');
  expect(await refused(add([`a:Object{b:${to}{check}}`]))).toBe('VALIDATION_FAILED');
  const cards = await build([`board:${to}{onDelete:trash}`]);
  expect(await refused(add([`card:Ref(${cards.name}){onDelete:restrict}`]))).toBe('INVALID_REFERENCE');
  expect(await refused(dropCollection(test.app, owner.project._id, boards.name))).toBe('REFERRED_TO');
  expect(await refused(renameCollection(test.app, owner.project._id, boards.name, 'elsewhere'))).toBe('REFERRED_TO');
  const loose = await build([`board:${to}`]);
  await store(loose, { board: nobody() });
  const checked = { setFields: [parseFieldSpec(`board:${to}{check}`)] };
  const { _id } = owner.project;
  expect(await refused(editCollection(test.app, _id, loose.name, checked))).toBe('CONSTRAINT_VIOLATIONS');
  const edited = await editCollection(test.app, _id, loose.name, checked, { forNewWrites: true });
  expect(edited.fields[0]).toEqual({ name: 'board', type: 'Ref', ref: boards.name, check: true });
});

it('lets go of what is gone: by $pull, by another list, and beside what stays', async () => {
  const people = await build(['name:String']);
  const posts = await build(['title:String', `likes:Array(Ref(${people.name}){check})`]);
  const [ada, bob, eve] = [await store(people, {}), await store(people, {}), await store(people, {})];
  const post = await store(posts, { likes: [ada, bob, eve] });
  for (const gone of [ada, bob]) await api('delete', `${people.name}/${gone}?permanent=true`).expect(200);
  const { body } = await api('patch', `${posts.name}/${post}`, { $pull: { likes: ada }, title: 'a' }).expect(200);
  expect((body as { data: object }).data).toMatchObject({ likes: [bob, eve] });
  await api('patch', `${posts.name}/${post}`, { $pull: { likes: { $in: [bob, eve] } } }).expect(200);
  expect((await api('get', `${posts.name}/${post}`)).body).toMatchObject({ likes: [], title: 'a' });
});
