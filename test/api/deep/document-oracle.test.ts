import { ObjectId, type Document } from 'bson';
import supertest from 'supertest';
import { describe, expect, it } from 'vitest';
import { addCollection } from '../../world/collections.js';
import { CHANGE_LOG } from '../../world/stored.js';
import { signAccessToken } from '../../world/users.js';
import { buildProject, storedDocuments } from '../../helpers/build-project.js';
import { openSeed } from '../../helpers/seed.js';
import { openRandom, type Random } from '../../helpers/random.js';
import { useTestApp } from '../../helpers/use.js';

const CASES = Number(process.env.BSVC_TEST_RUNS ?? (process.env.BSVC_TEST_TRANSPORT === 'wire' ? 3 : 6));
const REQUESTS = 40;
/**
 * rules.md 13, property 6: of two stores that differ only in documents that a caller may not read, every reply to that
 * caller is the same text.
 */
const reached = { shown: 0, empty: 0, unknown: 0, written: 0, refused: 0, differing: 0 };
const test = await useTestApp();

const [USER, OTHER] = [new ObjectId(), new ObjectId()].map(String) as [string, string];
const BOARDS = ['b0', 'b1', 'b2'];
const OWN_BOARD = 'b0';
const READ = 'doc.owner = user.id or doc.board in members[user = user.id].board';

type Send = (
  method: 'get' | 'post' | 'patch' | 'delete',
  path: string,
  body?: object,
) => Promise<{ status: number; text: string }>;

/** A project in which the same user asks about these cards. */
async function buildStore(cards: Document[], members: Document[]): Promise<Send> {
  const { app, server } = test;
  const { project, publishable } = await buildProject(app);
  const texts = (...names: string[]) => names.map((name) => ({ name, type: 'String' as const }));
  const changes = { on: true };
  const { collection: joins } = await addCollection(app, project, {
    name: 'members',
    fields: texts('board', 'user'),
    rules: { read: 'doc.user = user.id', create: 'nobody', update: 'nobody', delete: 'nobody' },
    changes,
  });
  const fields = [...texts('board', 'owner', 'title'), { name: 'n', type: 'Number' as const }];
  const rules = { read: READ, create: 'doc.owner = user.id', update: READ, delete: 'doc.owner = user.id' };
  const { collection } = await addCollection(app, project, { name: 'cards', fields, rules, changes, indexes: ['n'] });
  await addCollection(app, project, {
    name: 'refs',
    fields: [{ name: 'to', type: 'Array', items: { type: 'Ref', ref: 'cards' } }],
  });
  await storedDocuments(app, joins).insertMany(members as never);
  await storedDocuments(app, collection).insertMany(cards as never);
  for (const { _id } of app.db.changeLogs ? [] : [collection, joins]) {
    // Begun long ago: followers of a new log wait until every process knows of it.
    const head = { _id: _id.toHexString(), c: _id, n: 0, at: new Date(0), epoch: 'first' };
    await app.db.collection(CHANGE_LOG).updateOne({ _id: head._id } as never, { $setOnInsert: head }, { upsert: true });
  }
  const token = signAccessToken(app, project, USER, 600_000);
  const headers = { 'x-api-key': publishable, authorization: `Bearer ${token}` };
  return async (method, path, body) => {
    const call = supertest(server)[method](`/api/data/${path}`).set(headers);
    const { status, text } = body === undefined ? await call : await call.send(body);
    const plain = text.replaceAll(/"(nextCursor|cursor|requestId)":"[^"]*"/g, '"$1":"…"');
    return { status, text: plain.replaceAll(MOMENT, '<now>').replaceAll(NEW_ID, '"$1":"<new>"') };
  };
}

/** Moments of writes; those of the documents that were placed are in another year. */
const MOMENT = /"20[2-9]\d-[^"]*Z"/g;
/** Ids of documents that a request has made; those that were placed begin otherwise. */
const NEW_ID = /"(_?id)":"6[0-9a-f]{23}"/g;

const placedId = (at: number): ObjectId => new ObjectId(`0000${at.toString(16).padStart(20, '0')}`);

function requestOf(random: Random, ids: readonly string[]): Parameters<Send> {
  const [id, board, n] = [random.pick(ids), random.pick(BOARDS), random.below(4)];
  const filter = random.pick([`board=${board}`, `n=${n}`, `n_gt=${n}`, `owner=${OTHER}`, `title_startswith=t`, '']);
  const lookup = { from: 'cards', localField: 'board', foreignField: 'board', as: 'found' };
  return random.pick<() => Parameters<Send>>([
    () => ['get', `cards?${filter}&sort=${random.pick(['n', '-n', '_id', 'title'])}&limit=${1 + random.below(5)}`],
    () => ['get', `cards?count=true&${filter}`],
    () => ['get', `cards?cursor=start&limit=2&${filter}`],
    () => ['get', `cards/${id}`],
    () => ['get', `cards?include_deleted=true&${filter}`],
    () => ['get', `cards/changes?${filter}&limit=${1 + random.below(5)}`],
    () => ['get', `cards/changes?since=now&${filter}`],
    () => ['post', 'cards/aggregate', { pipeline: [{ $sort: { n: 1, _id: 1 } }, { $limit: 3 }] }],
    () => [
      'post',
      'cards/aggregate',
      { pipeline: [{ $group: { _id: '$board', n: { $sum: 1 } } }, { $sort: { _id: 1 } }] },
    ],
    () => ['post', 'cards/aggregate', { pipeline: [{ $sort: { _id: 1 } }, { $lookup: lookup }] }],
    () => [
      'post',
      'members/aggregate',
      { pipeline: [{ $sort: { _id: 1 } }, { $unionWith: 'cards' }, { $count: 'n' }] },
    ],
    () => ['get', 'refs?populate=to&sort=_id'],
    () => ['patch', `cards/${id}`, { title: random.pick(['t1', 't2']) }],
    () => ['patch', `cards/${id}`, { board }],
    () => ['delete', `cards/${id}${random.chance(0.3) ? '?permanent=true' : ''}`],
    () => ['patch', `cards/${id}/recover`],
    () => ['post', 'cards', { owner: random.pick([USER, OTHER]), board, n }],
  ])();
}

async function compareStores(seed: number): Promise<void> {
  const random = openRandom(seed);
  const stores: [Document[], Document[]] = [[], []];
  for (let at = 0; at < 14; at++) {
    const moment = new Date(Date.UTC(1999, 0, 1, 0, 0, at));
    const isTrashed = random.chance(0.15);
    const base = { _id: placedId(at), isDeleted: isTrashed, deletedAt: isTrashed ? moment : null };
    const system = { ...base, createdAt: moment, updatedAt: moment };
    const isShown = random.chance(0.5);
    const content = (): Document => ({
      board: isShown && random.chance(0.5) ? OWN_BOARD : random.pick(BOARDS.slice(1)),
      owner: OTHER,
      title: random.pick(['t1', 't2', 'u']),
      n: random.below(4),
    });
    const card = content();
    if (isShown && card.board !== OWN_BOARD) card.owner = USER;
    if (isShown) for (const store of stores) store.push({ ...system, ...card });
    else {
      // What is not readable is something else in the other store, or is not there.
      reached.differing++;
      if (random.chance(0.7)) stores[0].push({ ...system, ...card });
      if (random.chance(0.7)) stores[1].push({ ...system, ...content() });
    }
  }
  const moment = new Date(Date.UTC(1999, 0, 1));
  const system = { isDeleted: false, deletedAt: null, createdAt: moment, updatedAt: moment };
  const member = (board: string, user: string): Document => ({ _id: placedId(100), ...system, board, user });
  const others = (): Document[] => BOARDS.map((board, at) => ({ ...member(board, OTHER), _id: placedId(200 + at) }));
  const sends = [
    await buildStore(stores[0], [member(OWN_BOARD, USER)]),
    await buildStore(stores[1], [member(OWN_BOARD, USER), ...others()]),
  ] as const;
  const ids = Array.from({ length: 15 }, (_, at) => placedId(at).toHexString());
  for (let n = 0; n < REQUESTS; n++) {
    const request = requestOf(random, ids);
    // The log of a MongoDB is written after the reply: both feeds begin when all of it is there.
    await test.app.backgroundTasks.idle();
    const [one, other] = [await sends[0](...request), await sends[1](...request)];
    expect(other, JSON.stringify({ seed, request, stores }, null, 1)).toEqual(one);
    expect(one.status, one.text).toBeLessThan(500);
    if (one.status === 404) reached.unknown++;
    else if (one.status === 403) reached.refused++;
    else if (request[0] !== 'get' && !request[1].endsWith('aggregate')) reached.written++;
    else reached[/:\[\]|:0\b/.test(one.text) ? 'empty' : 'shown']++;
  }
}

describe('documents that a caller may not read', () => {
  it('change no reply to it', async () => {
    const seed = openSeed('document-oracle');
    for (let at = 0; at < CASES; at++) await compareStores(seed + at);
    expect(Object.entries(reached).filter(([, count]) => count === 0)).toEqual([]);
  });
});
