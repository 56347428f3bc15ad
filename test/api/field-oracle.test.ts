import { ObjectId, type Document } from 'bson';
import supertest from 'supertest';
import { describe, expect, it } from 'vitest';
import {
  type Field,
  addCollection,
  defaultUsersCollection,
  documentsName,
  editCollection,
} from '../world/collections.js';
import { CHANGE_LOG } from '../world/stored.js';
import { signAccessToken } from '../world/users.js';
import { buildProject, storedDocuments } from '../helpers/build-project.js';
import { openSeed } from '../helpers/seed.js';
import { openRandom, type Random } from '../helpers/random.js';
import { readingPipeline } from '../helpers/reading-pipelines.js';
import { useTestApp } from '../helpers/use.js';

const CASES = Number(process.env.CASES ?? (process.env.BSVC_TEST_TRANSPORT === 'wire' ? 8 : 25));
/**
 * rules.md 13, property 6: of two stores that differ only in what a caller does not see of the fields, every reply to
 * that caller is the same text.
 */
const reached = { shown: 0, unnamed: 0, refused: 0, written: 0, differing: 0 };
const test = await useTestApp();

const [USER, OTHER] = [new ObjectId(), new ObjectId()].map(String) as [string, string];
const HIDDEN = ['a', 'b', 'c'];
const MARKER = 'marker-of-what-is-not-shown';

interface Store {
  send: (method: 'get' | 'post' | 'patch', path: string, body?: object) => Promise<{ status: number; text: string }>;
}

/** A project whose collection holds these documents, asked by one and the same caller. */
async function buildStore(
  fields: Field[],
  documents: Document[],
  groups: string[],
  isSignedIn: boolean,
): Promise<Store> {
  const { app, server } = test;
  const { project, publishable } = await buildProject(app);
  await editCollection(app, project._id, 'users', {
    addFields: [{ name: 'groups', type: 'Array', items: { type: 'String' }, protected: true }],
  });
  const account = { _id: new ObjectId(USER), email: 'u@example.test', isDeleted: false, groups, _bsvc: {} };
  await app.db.collection(documentsName(defaultUsersCollection(project._id))).insertOne(account as never);
  const rules = { read: 'anyone', create: 'anyone', update: 'anyone', delete: 'anyone' };
  const more = { rules, changes: { on: true }, indexes: ['text'] };
  const { collection } = await addCollection(app, project, { name: 'things', fields, ...more });
  await storedDocuments(app, collection).insertMany(documents as never);
  // The log of a MongoDB was begun long ago: followers of a new one wait until every process knows of it.
  const head = { _id: collection._id.toHexString(), c: collection._id, n: 0, at: new Date(0), epoch: 'first' };
  if (!app.db.changeLogs) await app.db.collection(CHANGE_LOG).insertOne(head as never);
  const token = signAccessToken(app, project, USER, 600_000);
  const headers = { 'x-api-key': publishable, ...(isSignedIn && { authorization: `Bearer ${token}` }) };
  return {
    async send(method, path, body) {
      const call = supertest(server)[method](`/api/data/${path}`).set(headers);
      const { status, text } = body === undefined ? await call : await call.send(body);
      return {
        status,
        text: text.replaceAll(/"(nextCursor|cursor|requestId)":"[^"]*"/g, '"$1":"…"').replaceAll(MOMENT, '<now>'),
      };
    },
  };
}

/** Moments of writes; those of the documents that were placed are in another year. */
const MOMENT = /"20[2-9]\d-[^"]*Z"/g;

/** A value of a small domain, so that guesses are right at times. */
const valueOf = (random: Random, { type }: Field): unknown => {
  if (type === 'Number') return random.below(3);
  if (type === 'Array') return Array.from({ length: random.below(3) }, () => random.pick(['x', 'y']));
  if (type === 'Object') return { k: random.pick(['x', 'y', MARKER]) };
  return random.pick(['x', 'y', MARKER]);
};

function generateFields(random: Random): Field[] {
  const rules = ['"staff" in user.groups', 'doc.owner = user.id', 'user', 'nobody', 'doc.text = "x"'];
  const marked = HIDDEN.map((name): Field => {
    const type = random.pick(['String', 'Number', 'Array', 'Object'] as const);
    const fixed = random.chance(0.2) && { fixed: true };
    if (random.chance(0.3)) return { name, type, hidden: true, ...fixed };
    const write = random.chance(0.5) && { write: random.pick(rules) };
    return { name, type, read: random.pick(rules), ...write, ...fixed };
  });
  return [{ name: 'owner', type: 'String' }, { name: 'text', type: 'String' }, ...marked];
}

/** The rule said a second time, without the product's code. */
function isSeen(field: Field, document: Document, groups: string[], userId: string | null): boolean {
  const meanings: Record<string, boolean> = {
    '"staff" in user.groups': userId !== null && groups.includes('staff'),
    'doc.owner = user.id': userId !== null && document.owner === userId,
    user: userId !== null,
    nobody: false,
    'doc.text = "x"': document.text === 'x',
  };
  return !field.hidden && meanings[field.read!]!;
}

function requestOf(random: Random, fields: Field[], ids: string[]): Parameters<Store['send']> {
  const name = random.pick(fields.map((field) => field.name));
  const field = fields.find((each) => each.name === name)!;
  const value = valueOf(random, field);
  const text = encodeURIComponent(typeof value === 'object' ? 'x' : String(value));
  const id = random.pick(ids);
  const guess = { [name]: value };
  const stages: Document[] = [
    { $match: { [name]: value } },
    { $match: { $expr: { $eq: [`$${name}`, value] } } },
    { $match: { $expr: { $eq: [{ $getField: { $concat: [name, ''] } }, value] } } },
    { $match: { $expr: { $in: [value, { $map: { input: { $objectToArray: '$$ROOT' }, in: '$$this.v' } }] } } },
    { $sort: { [name]: 1, _id: 1 } },
    { $group: { _id: `$${name}`, n: { $sum: 1 } } },
    { $group: { _id: null, all: { $push: '$$ROOT' } } },
    { $project: { size: { $bsonSize: '$$ROOT' }, is: { $type: `$${name}` } } },
    { $replaceWith: { all: '$$CURRENT' } },
    { $lookup: { from: 'things', localField: 'text', foreignField: name, as: 'found' } },
    { $lookup: { from: 'things', localField: 'text', foreignField: 'text', as: 'found' } },
    { $graphLookup: { from: 'things', startWith: '$text', connectFromField: name, connectToField: 'text', as: 'g' } },
    {
      $graphLookup: { from: 'things', startWith: '$text', connectFromField: 'owner', connectToField: 'text', as: 'g' },
    },
    {
      $graphLookup: {
        ...{ from: 'things', startWith: '$text', connectFromField: 'owner', connectToField: 'text', as: 'g' },
        restrictSearchWithMatch: random.pick([
          guess,
          { $expr: { $eq: [{ $getField: { field: { $concat: [name, ''] }, input: '$$ROOT' } }, value] } },
          { $expr: { $let: { vars: { d: '$$CURRENT' }, in: { $eq: [`$$d.${name}`, value] } } } },
        ]),
      },
    },
    { $unionWith: { coll: 'things', pipeline: [{ $match: guess }] } },
    { $facet: { one: [{ $match: guess }, { $count: 'n' }] } },
    { $unwind: { path: `$${name}`, preserveNullAndEmptyArrays: true } },
    { $redact: { $cond: [{ $eq: [`$$CURRENT.${name}`, value] }, '$$KEEP', '$$PRUNE'] } },
    { $bucket: { groupBy: `$${name}`, boundaries: [0, 1, 9], default: 'other' } },
    { $set: { [`${name}.k`]: 1 } },
    { $densify: { field: name, range: { step: 1, bounds: 'full' } } },
    { $fill: { sortBy: { [name]: 1 }, output: { z: { value: 1 } } } },
  ];
  return random.pick<() => Parameters<Store['send']>>([
    () => ['get', `things?sort=_id&limit=${1 + random.below(5)}`],
    () => ['get', `things?sort=_id&${name}${random.pick(['', '_gt', '_ne', '_in', '_startswith', '_exists'])}=${text}`],
    () => ['get', `things?count=true&${name}=${text}`],
    () => ['get', `things?sort=${name}`],
    () => ['get', `things?cursor=start&limit=2&sort=${random.pick(['text', name])}`],
    () => ['get', `things?sort=_id&fields=${name}`],
    () => ['get', `things/${id}`],
    () => ['get', `things/changes?limit=${1 + random.below(9)}`],
    () => ['get', `things/changes?${name}=${text}`],
    () => ['post', 'things/aggregate', { pipeline: [{ $sort: { _id: 1 } }, random.pick(stages)] }],
    () => ['post', 'things/aggregate', { pipeline: [random.pick(stages), { $match: { text: 'x' } }] }],
    () => ['post', 'things/aggregate', { pipeline: [random.pick(stages), random.pick(stages)] }],
    () => ['patch', `things/${id}`, guess],
    () => ['patch', `things/${id}`, { ...guess, a: null }],
    () => ['patch', `things/${id}`, { [`${name}.k`]: 'x' }],
    () => ['patch', `things/${id}`, { [`${name}.0`]: 'x' }],
    () => ['patch', `things/${id}`, { [name]: null }],
  ])();
}

async function compareStores(seed: number, generate = requestOf): Promise<void> {
  const random = openRandom(seed);
  const fields = generateFields(random);
  const groups = random.chance(0.4) ? ['staff'] : [];
  const userId = random.chance(0.7) ? USER : null;
  const first: Document[] = [];
  const second: Document[] = [];
  for (let at = 0; at < 5; at++) {
    const moment = new Date(Date.UTC(1999, 0, 1, 0, 0, at));
    const system = { _id: new ObjectId(), isDeleted: false, deletedAt: null, createdAt: moment, updatedAt: moment };
    const shown = { owner: random.pick([USER, OTHER]), text: random.pick(['x', 'y']) };
    const one: Document = { ...system, ...shown };
    const other: Document = { ...system, ...shown };
    for (const field of fields.filter(({ name }) => HIDDEN.includes(name))) {
      const make = (): unknown => (random.chance(0.2) ? undefined : valueOf(random, field));
      const value = make();
      const differing = isSeen(field, shown, groups, userId) ? value : make();
      if (value !== undefined) one[field.name] = value;
      if (differing !== undefined) other[field.name] = differing;
      if (JSON.stringify(value) !== JSON.stringify(differing)) reached.differing++;
    }
    first.push(one);
    second.push(other);
  }
  const stores = [
    await buildStore(fields, first, groups, userId !== null),
    await buildStore(fields, second, groups, userId !== null),
  ] as const;
  const ids = first.map(({ _id }) => String(_id));
  for (let n = 0; n < 40; n++) {
    const request = generate(random, fields, ids);
    // What a rule names decides what is shown: then the two may differ in that.
    if (request[0] === 'patch' && ['text', 'owner'].some((name) => name in request[2]!)) continue;
    // The log of a MongoDB is written after the reply: both feeds begin when all of it is there.
    await test.app.backgroundTasks.idle();
    const [one, other] = [await stores[0].send(...request), await stores[1].send(...request)];
    const what = JSON.stringify({ fields, groups, userId, request, first, second }, null, 1);
    expect(other, what).toEqual(one);
    expect(one.status, what).toBeLessThan(500);
    if (one.text.includes('FIELD_NOT_READABLE')) reached.unnamed++;
    else if (one.text.includes('FIELD_PROTECTED')) reached.refused++;
    else if (one.status === 200 && request[0] === 'patch') reached.written++;
    else if (one.status === 200) reached.shown++;
  }
}

describe('what a caller does not see of fields', () => {
  it('changes no reply to it', async () => {
    const seed = openSeed('field-oracle');
    for (let at = 0; at < CASES; at++) await compareStores(seed + at);
    // It was named, guessed, written and left out.
    expect(Object.entries(reached).filter(([, count]) => count === 0)).toEqual([]);
  });

  it('changes no reply to a pipeline that reads it, by whatever operator and place', async () => {
    const seed = openSeed('field-pipelines');
    Object.assign(reached, { shown: 0, unnamed: 0 });
    const pipelineOf: typeof requestOf = (random, fields) => {
      const field = random.pick(fields.filter(({ name }) => HIDDEN.includes(name)));
      return ['post', 'things/aggregate', { pipeline: readingPipeline(random, field.name) }];
    };
    for (let at = 0; at < CASES; at++) await compareStores(seed + at, pipelineOf);
    expect(Math.min(reached.shown, reached.unnamed)).toBeGreaterThan(CASES);
  });
});
