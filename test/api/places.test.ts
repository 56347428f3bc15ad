import { ObjectId } from 'bson';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { editCollection, listMissingIndexes } from '../world/collections.js';
import { signAccessToken } from '../world/users.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const ME = new ObjectId().toHexString();
const SOMEONE = new ObjectId().toHexString();
const HERE = { type: 'Point', coordinates: [13.4, 52.5] };

/** How many meters to the north of HERE. */
const northOf = (meters: number): [number, number] => [13.4, 52.5 + (meters / 6_378_100) * (180 / Math.PI)];

const test = await useTestApp();
const town = await buildProject(test.app);
const token = signAccessToken(test.app, town.project, ME, 600_000);
const indexes = ['place:2dsphere'];
const shops = await buildCollection(test.app, town.project, { name: 'shops', indexes });
const rls = { mode: 'private', ownerField: 'userId' } as const;
const notes = await buildCollection(test.app, town.project, { name: 'notes', indexes, rls });
const gone = { isDeleted: true, deletedAt: new Date() };
await placeDocuments(
  test.app,
  shops,
  Array.from({ length: 60 }, (_, n) => ({ name: `shop ${n}`, open: n % 2 === 0, place: northOf(n * 100) })),
);
await placeDocuments(test.app, shops, [
  { name: 'in the trash', place: northOf(1), ...gone },
  { name: 'unfinished', place: northOf(2), isDeleted: 'removed' },
  { name: 'nowhere' },
]);
await placeDocuments(test.app, notes, [
  { name: 'mine', userId: ME, place: { type: 'Point', coordinates: northOf(500) } },
  { name: 'not mine', userId: SOMEONE, place: { type: 'Point', coordinates: northOf(3) } },
  { name: 'mine, in the trash', userId: ME, place: northOf(4), ...gone },
]);

const post = (path: string, body: object, { key = town.publishable, bearer = '' } = {}) =>
  request(test.server)
    .post(`/api/data/${path}`)
    .set({ 'x-api-key': key, ...(bearer && { authorization: `Bearer ${bearer}` }) })
    .send(body);

async function names(path: string, pipeline: object[], who = {}): Promise<unknown[]> {
  const { body } = await post(path, { pipeline }, who);
  expect(body).toMatchObject({ success: true });
  return (body as { data: { name: unknown }[] }).data.map(({ name }) => name);
}

async function refusal(path: string, pipeline: object[]): Promise<string> {
  const { body } = await post(path, { pipeline }).expect(400);
  return (body as { message: string }).message;
}

const near = (options: object = {}) => ({ $geoNear: { near: HERE, distanceField: 'meters', ...options } });

describe('$geoNear', () => {
  it('answers the nearest documents with their distances in meters', async () => {
    const { body } = await post('shops/aggregate', { pipeline: [near(), { $limit: 20 }] }).expect(200);
    const { data } = body as { data: { name: string; meters: number }[] };
    expect(data.map(({ name, meters }) => [name, Math.round(meters)])).toEqual(
      Array.from({ length: 20 }, (_, n) => [`shop ${n}`, n * 100]),
    );
  });

  it('takes bounds and a query', async () => {
    const bounds = { minDistance: 950, maxDistance: 1450, query: { open: true } };
    expect(await names('shops/aggregate', [near(bounds)])).toEqual(['shop 10', 'shop 12', 'shop 14']);
  });

  it('shows the trash to those who ask for it, and an unfinished bulk insert to nobody', async () => {
    const nearest = [near({ maxDistance: 150 })];
    expect(await names('shops/aggregate', nearest)).toEqual(['shop 0', 'shop 1']);
    expect(await names('shops/aggregate?include_deleted=true', nearest)).toEqual(['shop 0', 'in the trash', 'shop 1']);
  });

  it('yields what the caller may read, whatever its query says and wherever it stands', async () => {
    const anything = { query: { $or: [{ userId: SOMEONE }, { name: { $exists: true } }] } };
    expect(await names('notes/aggregate', [near(anything)], { bearer: token })).toEqual(['mine']);
    expect(await names('notes/aggregate', [near()], { key: town.secret })).toEqual(['not mine', 'mine']);
    const joined = [
      { $limit: 1 },
      { $lookup: { from: 'notes', pipeline: [near(anything)], as: 'notes' } },
      { $unwind: '$notes' },
      { $replaceWith: '$notes' },
    ];
    expect(await names('shops/aggregate', joined, { bearer: token })).toEqual(['mine']);
  });

  it('cannot make a document readable by writing the distance over a field of the rules', async () => {
    for (const field of ['userId', 'isDeleted', 'deletedAt']) {
      const found = await names('notes/aggregate', [near({ distanceField: field })], { bearer: token });
      expect(found.filter((name) => name !== 'mine')).toEqual([]);
    }
  });

  it.each<[string, object, string]>([
    ['no place', { near: undefined }, '$geoNear needs near'],
    ['no distanceField', { distanceField: undefined }, '$geoNear needs distanceField'],
    ['an unknown option', { num: 5 }, '$geoNear has no option "num"'],
    ['a place that is none', { near: [500, 0], spherical: true }, 'The database refused the pipeline'],
    ['a key without an index', { key: 'name' }, '"key" names has no index of places'],
  ])('with %s is refused with 400', async (_, options, message) => {
    expect(await refusal('shops/aggregate', [near(options)])).toContain(message);
  });

  it('on a collection without an index of places is refused with the way to one', async () => {
    const { name } = await buildCollection(test.app, town.project);
    const { body } = await post(`${name}`, { a: 1 }, { key: town.secret }).expect(201);
    expect(body).toMatchObject({ a: 1 });
    expect(await refusal(`${name}/aggregate`, [near()])).toBe(
      '$geoNear needs an index of places, such as "place:2dsphere": add it to the indexes of the collection',
    );
  });
});

describe('$geoWithin', () => {
  it.each<[string, object]>([
    ['a circle', { $centerSphere: [HERE.coordinates, 250 / 6_378_100] }],
    ['a box', { $box: [northOf(-10), [13.5, northOf(210)[1]]] }],
    ['a polygon', { $polygon: [[13.3, 52.4999], [13.5, 52.4999], [13.5, northOf(210)[1]], [13.3, northOf(210)[1]]] }], // prettier-ignore
  ])('finds what lies in %s', async (_, region) => {
    const pipeline = [{ $match: { place: { $geoWithin: region } } }, { $sort: { place: 1, name: 1 } }];
    expect((await names('shops/aggregate', pipeline)).sort()).toEqual(['shop 0', 'shop 1', 'shop 2']);
  });

  it('of too many regions is refused before any is computed', async () => {
    const region = { place: { $geoWithin: { $centerSphere: [[0, 0], 1] } } };
    const pipeline = [{ $match: { $or: Array.from({ length: 51 }, () => region) } }];
    expect(await refusal('shops/aggregate', pipeline)).toBe(
      'A pipeline may have at most 50 $geoWithin and $geoIntersects',
    );
  });
});

it.each<[string, object]>([
  ['$near', { place: { $near: [0, 0] } }],
  ['$nearSphere', { place: { $nearSphere: [0, 0] } }],
  ['$text', { $text: { $search: 'shop' } }],
])('%s in a $match is refused by name, with what there is instead', async (name, filter) => {
  expect(await refusal('shops/aggregate', [{ $match: filter }])).toMatch(
    new RegExp(`^\\${name} is not available here: .{10}`),
  );
});

describe('a write of what is no place', () => {
  const secret = () => ({ key: town.secret });

  it.each<[string, unknown]>([
    ['a longitude beyond the world', { type: 'Point', coordinates: [200, 0] }],
    ['a text', 'Berlin'],
    ['texts', ['13.4', '52.5']],
  ])('is refused with 400: %s', async (_, place) => {
    const message = expect.stringContaining('index of places') as string;
    const { body } = await post('shops', { name: 'bad', place }, secret()).expect(400);
    expect(body).toMatchObject({ code: 'VALIDATION_FAILED', message });
    const good = await post('shops', { name: 'to change', place: [1, 1] }, secret()).expect(201);
    const { _id } = good.body as { _id: string };
    const changed = await request(test.server)
      .patch(`/api/data/shops/${_id}`)
      .set('x-api-key', town.secret)
      .send({ place })
      .expect(400);
    expect(changed.body).toMatchObject({ code: 'VALIDATION_FAILED', message });
    const { body: bulk } = await post(
      'shops/bulk',
      [{ name: 'bad' }, { name: 'bad', place }] as never,
      secret(),
    ).expect(400);
    expect(bulk).toMatchObject({ code: 'VALIDATION_FAILED', message });
    expect(await names('shops/aggregate', [{ $match: { name: 'bad' } }])).toEqual([]);
  });
});

describe('an index of places', () => {
  it('is there under a name of its own, and goes when it is no longer asked for', async () => {
    const made = await buildCollection(test.app, town.project, { indexes: ['place:2dsphere', 'place'] });
    expect(await listMissingIndexes(test.app, made)).toEqual([]);
    const changed = await editCollection(test.app, town.project._id, made.name, { indexes: ['name'] });
    expect(await listMissingIndexes(test.app, changed)).toEqual([]);
    expect(await listMissingIndexes(test.app, made)).toContain('geo_place');
  });

  it('is refused over documents that hold something else', async () => {
    const made = await buildCollection(test.app, town.project);
    await placeDocuments(test.app, made, [{ place: 'Berlin' }]);
    const edited = editCollection(test.app, town.project._id, made.name, { indexes: ['place:2dsphere'] });
    await expect(edited).rejects.toMatchObject({
      code: 'INDEX_REFUSED',
      message: expect.stringContaining('something else than a point') as string,
    });
  });

  it.each([
    'name:2dsphere',
    '_id:2dsphere',
    'place:2dsphere,name',
    'place,a:2dsphere',
    '-place:2dsphere',
    ':2dsphere',
    'place:2d',
  ])('cannot be %s', async (spec) => {
    const { body } = await request(test.server)
      .post('/api/schemas')
      .set('x-api-key', town.secret)
      .send({
        name: 'refused',
        fields: [
          { name: 'name', type: 'String' },
          { name: 'place', type: 'Array', items: { type: 'Number' } },
        ],
        indexes: [spec],
      })
      .expect(400);
    expect(body).toMatchObject({ code: 'INVALID_INDEX' });
  });
});
