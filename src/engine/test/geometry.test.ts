import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeOf, halvesOf, leastAngle, mostAngle, WORLD, type Cell } from '../query/geometry/cell.js';
import { TRANSPORTS, type OpenTransport } from './transports.js';
import type { DataCollection, DataDb } from '../index.js';
import { openSeed } from './helpers/seed.js';

const EARTH_METERS = 6_378_100;

type Pair = [number, number];
interface Shop {
  _id: number;
  kind: number;
  place?: unknown;
}

/** Coordinates where the sphere is difficult as often as anywhere else. */
const lng = fc.oneof(
  fc.double({ min: -180, max: 180, noNaN: true }),
  fc.constantFrom(-180, 180, 0, 179.9999, -179.9999, 90),
);
const lat = fc.oneof(
  fc.double({ min: -90, max: 90, noNaN: true }),
  fc.constantFrom(-90, 90, 0, 89.9999, -89.9999, 89.5, 45),
);
const pair: fc.Arbitrary<Pair> = fc.tuple(lng, lat);
const stored = fc.oneof(
  pair,
  pair.map((coordinates) => ({ type: 'Point', coordinates })),
  pair.map(([x, y]) => ({ lng: x, lat: y })),
);

/** By vectors, unlike the engine. */
function metersBetween(a: Pair, b: Pair): number {
  const [p, q] = [a, b].map(([x, y]) => {
    const [l, f] = [(x * Math.PI) / 180, (y * Math.PI) / 180];
    return [Math.cos(f) * Math.cos(l), Math.cos(f) * Math.sin(l), Math.sin(f)];
  }) as [number[], number[]];
  const cross = Math.hypot(p[1]! * q[2]! - p[2]! * q[1]!, p[2]! * q[0]! - p[0]! * q[2]!, p[0]! * q[1]! - p[1]! * q[0]!);
  return Math.atan2(cross, p[0]! * q[0]! + p[1]! * q[1]! + p[2]! * q[2]!) * EARTH_METERS;
}

function coordinatesOf(place: unknown): Pair {
  if (Array.isArray(place)) return place as Pair;
  if ('coordinates' in (place as object)) return (place as { coordinates: Pair }).coordinates;
  const { lng: x, lat: y } = place as { lng: number; lat: number };
  return [x, y];
}

describe('cells', () => {
  it('hold the places whose codes they begin, and bound the way to them', () => {
    fc.assert(
      fc.property(pair, pair, fc.integer({ min: 1, max: 51 }), (at, from, depth) => {
        const code = codeOf({ lng: at[0], lat: at[1] });
        let cell: Cell = WORLD;
        while (cell.depth < depth) {
          const [low, high] = halvesOf(cell);
          cell = Math.floor(code / 2 ** (51 - cell.depth)) % 2 === 0 ? low : high;
        }
        expect(at[0]).toBeGreaterThanOrEqual(cell.west);
        expect(at[0]).toBeLessThanOrEqual(cell.east);
        expect(at[1]).toBeGreaterThanOrEqual(cell.south);
        expect(at[1]).toBeLessThanOrEqual(cell.north);
        const spot = { lng: from[0], lat: from[1] };
        const angle = metersBetween(from, at) / EARTH_METERS;
        expect(leastAngle(spot, cell)).toBeLessThanOrEqual(angle + 1e-15);
        expect(mostAngle(spot, cell)).toBeGreaterThanOrEqual(angle - 1e-15);
      }),
      { numRuns: 2000, seed: openSeed('cells') },
    );
  });

  it('are compact at the poles too: one of a kilometer there spans an eighth of the meridians', () => {
    let cell: Cell = WORLD;
    while (cell.depth < 30) cell = halvesOf(cell)[1];
    expect(cell.north).toBe(90);
    expect(cell.east - cell.west).toBe(45);
  });
});

describe.each(TRANSPORTS)('geometry, $name', (transport) => {
  let opened: OpenTransport;
  let db: DataDb;
  let shops: DataCollection<Shop>;
  let unindexed: DataCollection<Shop>;
  let all: Shop[];

  beforeAll(async () => {
    opened = await transport.open();
    db = opened.db('geometry');
    shops = db.collection<Shop>('shops');
    unindexed = db.collection<Shop>('unindexed');
    const places = fc.sample(stored, { numRuns: 600, seed: 19 });
    // A town, so that cells have to be divided.
    for (let n = 0; n < 300; n++) places.push([(n % 20) * 1e-4 - 180, 70 + Math.floor(n / 20) * 1e-4]);
    all = places.map((place, n) => ({ _id: n, kind: n % 3, place }));
    all.push({ _id: 900, kind: 0 }, { _id: 901, kind: 0, place: null });
    // Half of them are there when the index is built.
    await shops.insertMany(all.slice(0, 450));
    await shops.createIndex({ place: '2dsphere' });
    await shops.insertMany(all.slice(450));
    await unindexed.insertMany(all);
  });

  afterAll(() => opened.close());

  const near = (from: unknown, options: object = {}, ...rest: object[]) =>
    shops
      .aggregate<Shop & { dist: number; at?: { place: unknown } }>([
        { $geoNear: { near: from, distanceField: 'dist', ...options } },
        ...rest,
      ])
      .toArray();

  function expected(from: Pair, least = 0, most = Infinity): { _id: number; meters: number }[] {
    return all
      .filter(({ place }) => place != null)
      .map(({ _id, place }) => ({ _id, meters: metersBetween(from, coordinatesOf(place)) }))
      .filter(({ meters }) => meters >= least && meters <= most)
      .sort((a, b) => a.meters - b.meters);
  }

  /** In the wanted order and with the wanted distances; of places equally far any may be the first. */
  function expectDistances(found: { _id: number; dist: number }[], wanted: { meters: number }[], from: Pair): void {
    const meters = new Map(expected(from).map((each) => [each._id, each.meters]));
    const errors = found.flatMap(({ _id, dist }, n) => [dist - meters.get(_id)!, dist - wanted[n]!.meters]);
    expect(found.length).toBe(wanted.length);
    expect(Math.max(...errors.map(Math.abs))).toBeLessThan(1e-5);
  }

  const viewpoints: Pair[] = [
    [13.4, 52.5],
    [180, 0],
    [-179.999, 70.0005],
    [0, 90],
    [77, -90],
    [-60, 89.99],
    [180, -45],
  ];

  it.each(viewpoints)(
    '$geoNear from %f, %f yields all places, nearest first, as a full computation has them',
    async (...from) => {
      expectDistances(await near({ type: 'Point', coordinates: from }), expected(from), from);
      expectDistances(
        await near({ type: 'Point', coordinates: from }, {}, { $limit: 20 }),
        expected(from).slice(0, 20),
        from,
      );
    },
  );

  it('$geoNear leaves out what is nearer than minDistance and farther than maxDistance', async () => {
    for (const from of viewpoints) {
      const point = { type: 'Point', coordinates: from };
      const bounds = { minDistance: 3e6, maxDistance: 9e6 };
      expectDistances(await near(point, bounds), expected(from, 3e6, 9e6), from);
    }
  });

  it('$geoNear from a pair takes and gives radians, times the multiplier', async () => {
    const found = await near([13.4, 52.5], { spherical: true, maxDistance: 0.5, distanceMultiplier: EARTH_METERS });
    expectDistances(found, expected([13.4, 52.5], 0, 0.5 * EARTH_METERS), [13.4, 52.5]);
  });

  it('$geoNear yields what satisfies query, and the place that was found', async () => {
    const from: Pair = [10, 10];
    const found = await near(from, { spherical: true, query: { kind: 1 }, includeLocs: 'at.place', key: 'place' });
    expect(found.length).toBe(300);
    expect(found.map(({ kind, at }) => [kind, at?.place])).toEqual(found.map(({ place }) => [1, place]));
  });

  it('$geoNear goes on with the other stages, in joins too', async () => {
    const nearest = expected([1, 1])
      .slice(0, 3)
      .map(({ _id }) => _id);
    const point = { type: 'Point', coordinates: [1, 1] };
    const grouped = await near(point, {}, { $limit: 3 }, { $group: { _id: null, ids: { $push: '$_id' } } });
    expect(grouped).toEqual([{ _id: null, ids: nearest }]);
    const pipeline = [{ $geoNear: { near: point, distanceField: 'd' } }, { $limit: 3 }, { $project: { _id: 1 } }];
    const joined = await unindexed
      .aggregate([
        { $match: { _id: 5 } },
        { $lookup: { from: 'shops', pipeline, as: 'near' } },
        { $project: { near: 1 } },
      ])
      .toArray();
    expect(joined).toEqual([{ _id: 5, near: nearest.map((_id) => ({ _id })) }]);
  });

  it('$geoNear counts a document with several places once, by the nearest', async () => {
    const routes = db.collection<{ _id: number; stops: { at: Pair }[] }>('routes');
    await routes.createIndex({ 'stops.at': '2dsphere' });
    await routes.insertMany([
      { _id: 1, stops: [{ at: [0, 0] }, { at: [50, 50] }] },
      { _id: 2, stops: [{ at: [49, 50] }, { at: [-100, 0] }, { at: [2, 0] }] },
    ]);
    const ids = async (near: Pair): Promise<number[]> =>
      (
        await routes.aggregate<{ _id: number }>([{ $geoNear: { near, spherical: true, distanceField: 'd' } }]).toArray()
      ).map(({ _id }) => _id);
    expect(await ids([50, 50])).toEqual([1, 2]);
    expect(await ids([2, 0])).toEqual([2, 1]);
  });

  const regions: [string, object][] = [
    ['a circle', { $centerSphere: [[13, 52], 0.3] }],
    ['a circle around the north pole', { $centerSphere: [[77, 89.9], 0.05] }],
    ['a circle across the antimeridian', { $centerSphere: [[180, 70], 0.02] }],
    ['a small circle', { $centerSphere: [[-180, 70], 1e-6] }],
    ['everything', { $centerSphere: [[0, 0], 4] }],
    ['a box', { $box: [[-20, -30], [60, 70]] }], // prettier-ignore
    ['a box up to the edge of the world', { $box: [[170, 60], [180, 90]] }], // prettier-ignore
    ['a polygon', { $polygon: [[0, 0], [100, 10], [40, 40], [90, 80], [-10, 60]] }], // prettier-ignore
    ['a circle on the plane', { $center: [[13, 52], 30] }],
    ['a GeoJSON polygon', { $geometry: { type: 'Polygon', coordinates: [[[0, 0], [100, 10], [40, 40], [90, 80], [-10, 60], [0, 0]]] } }], // prettier-ignore
    ['a GeoJSON polygon across the antimeridian', { $geometry: { type: 'Polygon', coordinates: [[[179, 69], [-179, 69], [-179, 71], [179, 71], [179, 69]]] } }], // prettier-ignore
    ['a GeoJSON polygon around a pole, with a hole', { $geometry: { type: 'Polygon', coordinates: [[[0, 60], [120, 60], [-120, 60], [0, 60]], [[0, 89.99], [120, 89.99], [-120, 89.99], [0, 89.99]]] } }], // prettier-ignore
    ['a GeoJSON polygon of many corners', { $geometry: { type: 'Polygon', coordinates: [[...Array.from({ length: 300 }, (_, n) => [60 * Math.cos((n * Math.PI) / 150), 50 * Math.sin((n * Math.PI) / 150)]), [60, 0]]] } }], // prettier-ignore
    ['several GeoJSON polygons', { $geometry: { type: 'MultiPolygon', coordinates: [[[[0, 0], [20, 0], [20, 80], [0, 0]]], [[[-180, -90], [-60, 0], [-160, 20], [-180, -90]]]] } }], // prettier-ignore
    ['a polygon of many corners', { $polygon: Array.from({ length: 300 }, (_, n) => [60 * Math.cos(n / 47.8), 60 * Math.sin(n / 47.8)]) }], // prettier-ignore
  ];

  it.each(regions)('$geoWithin %s finds the same with the index as without', async (_name, region) => {
    const filter = { place: { $geoWithin: region } };
    const ids = async (from: DataCollection<Shop>): Promise<number[]> =>
      (await from.find(filter).sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
    const found = await ids(shops);
    expect(found).toEqual(await ids(unindexed));
    expect(found.length).toBeGreaterThan(0);
    const both = { $or: [filter, { _id: 3 }] };
    expect(await shops.countDocuments(both)).toBe(await unindexed.countDocuments(both));
    const piped = await shops.aggregate([{ $match: filter }, { $sort: { _id: 1 } }]).toArray();
    expect(piped.map(({ _id }) => _id as unknown)).toEqual(found);
  });

  it('$geoWithin $centerSphere finds what a full computation finds', async () => {
    for (const center of viewpoints) {
      const found = await shops.countDocuments({ place: { $geoWithin: { $centerSphere: [center, 0.25] } } });
      expect(found).toBe(expected(center, 0, 0.25 * EARTH_METERS).length);
    }
  });

  /** Corners on a circle make an area without a dent: what lies to the left of all its edges is in it. */
  it('$geoWithin and $geoIntersects of a polygon find what lies to the left of its edges', async () => {
    const vector = ([x, y]: Pair): [number, number, number] => {
      const [l, f] = [(x * Math.PI) / 180, (y * Math.PI) / 180];
      return [Math.cos(f) * Math.cos(l), Math.cos(f) * Math.sin(l), Math.sin(f)];
    };
    const cross = (a: number[], b: number[]): number[] => [
      a[1]! * b[2]! - a[2]! * b[1]!,
      a[2]! * b[0]! - a[0]! * b[2]!,
      a[0]! * b[1]! - a[1]! * b[0]!,
    ];
    const dot = (a: number[], b: number[]): number => a[0]! * b[0]! + a[1]! * b[1]! + a[2]! * b[2]!;
    /** The place so many radians from another one, in a direction that turns against the clock. */
    const towards = (from: Pair, angle: number, bearing: number): Pair => {
      const c = vector(from);
      const some = cross(c, Math.abs(c[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0]);
      const u = some.map((part) => part / Math.hypot(...some));
      const v = cross(c, u);
      const [x, y, z] = c.map(
        (part, n) => part * Math.cos(angle) + (u[n]! * Math.cos(bearing) + v[n]! * Math.sin(bearing)) * Math.sin(angle),
      ) as [number, number, number];
      return [(Math.atan2(y, x) * 180) / Math.PI, (Math.atan2(z, Math.hypot(x, y)) * 180) / Math.PI];
    };
    let inside = 0;
    await fc.assert(
      fc.asyncProperty(
        pair,
        fc.double({ min: 0.01, max: 1.4, noNaN: true }),
        fc.integer({ min: 3, max: 12 }),
        fc.double({ min: 0, max: 6, noNaN: true }),
        fc.boolean(),
        async (center, radius, corners, turn, clockwise) => {
          // Against the clock, as seen from above.
          const ring = Array.from({ length: corners }, (_, n) =>
            towards(center, radius, turn + (n * 2 * Math.PI) / corners),
          );
          const edges = ring.map((from, n) => cross(vector(from), vector(ring[(n + 1) % corners]!)));
          const isIn = (at: Pair): boolean | null => {
            const sides = edges.map((normal) => dot(normal, vector(at)));
            // So near to an edge the last digits decide.
            if (sides.some((side) => Math.abs(side) < 1e-9)) return null;
            return sides.every((side) => side > 0);
          };
          const closed = [...ring, ring[0]!];
          const $geometry = { type: 'Polygon', coordinates: [clockwise ? closed.reverse() : closed] };
          for (const operator of ['$geoWithin', '$geoIntersects']) {
            const docs = await shops.find({ place: { [operator]: { $geometry } } as never }).toArray();
            const found = new Set(docs.map(({ _id }) => _id));
            for (const { _id, place } of all) {
              const expectedIn = place == null ? false : isIn(coordinatesOf(place));
              if (expectedIn !== null) expect(found.has(_id), JSON.stringify([place, ring])).toBe(expectedIn);
            }
            inside += found.size;
          }
        },
      ),
      { numRuns: 40, seed: openSeed('polygons') },
    );
    expect(inside).toBeGreaterThan(100);
  });

  it.each(viewpoints)(
    '$nearSphere and $near from %s are the nearest first, and a condition beside a sort',
    async (...from) => {
      const at = { type: 'Point', coordinates: from };
      const most = 2_000_000;
      const wanted = expected(from, 1000, most);
      const ids = (filter: object, options: object = {}) =>
        shops
          .find(filter as never, options)
          .toArray()
          .then((docs) => docs.map(({ _id, place }) => ({ _id, dist: metersBetween(from, coordinatesOf(place)) })));
      const near = { place: { $near: { $geometry: at, $maxDistance: most, $minDistance: 1000 } } };
      expectDistances(await ids(near), wanted, from);
      expectDistances(await ids(near, { skip: 2, limit: 7 }), wanted.slice(2, 9), from);
      expectDistances(await ids(near, { batchSize: 3 }), wanted, from);
      const legacy = {
        $and: [{ place: { $nearSphere: from, $maxDistance: most / EARTH_METERS } }, { kind: { $ne: 9 } }],
      };
      expectDistances(await ids(legacy), expected(from, 0, most), from);
      const sorted = await ids(near, { sort: { _id: -1 } });
      expect(sorted.map(({ _id }) => _id)).toEqual(wanted.map(({ _id }) => _id).sort((a, b) => b - a));
    },
  );

  it('an insert, an update and an index over what is no place are refused with 16755', async () => {
    for (const place of [[200, 0], [0, 91], ['a', 'b'], 'here', 7, [[1, 2]], { type: 'Point' }, [NaN, 1]]) {
      await expect(shops.insertOne({ _id: 1000, kind: 0, place })).rejects.toMatchObject({ code: 16755 });
    }
    await expect(shops.updateOne({ _id: 5 }, { $set: { place: [200, 0] } })).rejects.toMatchObject({ code: 16755 });
    const bad = db.collection<Shop>('bad');
    await bad.insertOne({ _id: 1, kind: 0, place: 'nowhere' });
    await expect(bad.createIndex({ place: '2dsphere' })).rejects.toMatchObject({ code: 16755 });
  });

  it('an index of places follows updates and removals', async () => {
    const moving = db.collection<Shop>('moving');
    await moving.createIndex({ place: '2dsphere' });
    await moving.insertMany([
      { _id: 1, kind: 0, place: [0, 0] },
      { _id: 2, kind: 0, place: [1, 0] },
      { _id: 3, kind: 0, place: [2, 0] },
    ]);
    await moving.updateOne({ _id: 1 }, { $set: { place: [170, 10] } });
    await moving.updateOne({ _id: 2 }, { $unset: { place: 1 } });
    await moving.deleteOne({ _id: 3 });
    const found = await moving
      .aggregate([{ $geoNear: { near: [0, 0], spherical: true, distanceField: 'd' } }, { $project: { _id: 1 } }])
      .toArray();
    expect(found).toEqual([{ _id: 1 }]);
    const { keysPerIndex, errors } = (await db.command({ validate: 'moving' })) as {
      keysPerIndex: object;
      errors: unknown[];
    };
    expect([keysPerIndex, errors]).toEqual([{ _id_: 2, place_2dsphere: 1 }, []]);
  });

  it('$geoNear without an index of places is refused with 27, and with two of them unless key names one', async () => {
    const stage = { $geoNear: { near: [0, 0], spherical: true, distanceField: 'd' } };
    await expect(unindexed.aggregate([stage]).toArray()).rejects.toMatchObject({ code: 27 });
    const two = db.collection('two');
    await two.createIndex({ a: '2dsphere' });
    await two.createIndex({ b: '2dsphere' });
    await two.insertOne({ _id: 1 as never, a: [1, 1], b: [50, 50] });
    await expect(two.aggregate([stage]).toArray()).rejects.toMatchObject({ code: 27 });
    const named = await two.aggregate([{ $geoNear: { ...stage.$geoNear, key: 'b', maxDistance: 0.1 } }]).toArray();
    expect(named).toEqual([]);
    await expect(shops.aggregate([{ $match: {} }, stage]).toArray()).rejects.toMatchObject({ code: 40603 });
  });
});

describe.each(TRANSPORTS.filter(({ foreign }) => !foreign))('geometry, $name', (transport) => {
  let opened: OpenTransport;
  beforeAll(async () => {
    opened = await transport.open();
  });
  afterAll(() => opened.close());

  it('other shapes and operators are refused by name', async () => {
    const places = opened.db('refusals').collection('places');
    await places.insertOne({ at: [1, 2] });
    const filters = [
      [{ at: { $geoWithin: { $uniqueDocs: 1 } } }, '$uniqueDocs'],
      [{ at: { $geoWithin: { $geometry: { type: 'Polygon', coordinates: [] } } } }, 'Polygon needs'],
      [{ at: { $geoWithin: { $geometry: { type: 'Polygon', coordinates: [[[0, 0], [1, 1], [2, 0]]] } } } }, '4 positions'], // prettier-ignore
      [{ at: { $geoWithin: { $geometry: { type: 'Polygon', coordinates: [[[0, 0], [1, 1], [2, 0], [3, 3]]] } } } }, 'not closed'], // prettier-ignore
      [{ at: { $geoWithin: { $geometry: { type: 'LineString', coordinates: [] } } } }, 'LineString'],
      [{ at: { $geoIntersects: { $box: [[0, 0], [1, 1]] } } }, '$geoIntersects'], // prettier-ignore
      [{ at: { $near: [0, 0] } }, '$near'],
      [{ $text: { $search: 'x' } }, '$text'],
    ] as const;
    for (const [filter, name] of filters) {
      await expect(places.findOne(filter as object)).rejects.toMatchObject({
        code: 2,
        message: expect.stringContaining(name) as string,
      });
    }
    const near = { at: { $near: { $geometry: { type: 'Point', coordinates: [0, 0] } } } };
    await expect(places.findOne(near as object)).rejects.toMatchObject({ code: 291 });
    await expect(places.countDocuments(near as object)).rejects.toMatchObject({ code: 5626500 });
    await expect(places.createIndex({ at: 'text' })).rejects.toMatchObject({ code: 67 });
    await expect(places.createIndex({ at: '2dsphere', b: 1 })).rejects.toMatchObject({ code: 67 });
  });

  it('$geoWithin reads the cells that cover its region, and nothing else', async () => {
    const db = opened.db('cells');
    await db.collection('places').createIndex({ at: '2dsphere' });
    await db
      .collection('places')
      .insertMany(Array.from({ length: 2000 }, (_, n) => ({ at: [(n % 50) * 7 - 175, Math.floor(n / 50) * 4 - 80] })));
    const filter = { at: { $geoWithin: { $centerSphere: [[0, 0], 0.2] } } };
    const reply = (await db.command({ explain: { find: 'places', filter } })) as {
      queryPlanner: { winningPlan: { inputStage: { indexName: string } } };
      executionStats: { nReturned: number; totalDocsExamined: number };
    };
    expect(reply.queryPlanner.winningPlan.inputStage.indexName).toBe('at_2dsphere');
    const { nReturned, totalDocsExamined } = reply.executionStats;
    expect(nReturned).toBeGreaterThan(3);
    expect(totalDocsExamined).toBeLessThan(nReturned * 3);
  });

  it('explain of a $geoNear names the index, and looks at few documents for few', async () => {
    const db = opened.db('cells');
    const near = { near: [0, 0], spherical: true, distanceField: 'd' };
    const explain = (stages: object[]): Promise<unknown> =>
      db.command({ explain: { aggregate: 'places', pipeline: stages, cursor: {} }, verbosity: 'executionStats' });
    const reply = (await explain([{ $geoNear: near }, { $limit: 5 }])) as {
      queryPlanner: { winningPlan: object };
      executionStats: { nReturned: number; totalDocsExamined: number };
    };
    expect(reply.queryPlanner.winningPlan).toMatchObject({ stage: 'GEO_NEAR_2DSPHERE', indexName: 'at_2dsphere' });
    expect(reply.executionStats.nReturned).toBe(5);
    expect(reply.executionStats.totalDocsExamined).toBeLessThan(200);
    expect(await explain([{ $geoNear: near }])).toMatchObject({ executionStats: { nReturned: 2000 } });
    await db.collection('bare').insertOne({ at: [0, 0] });
    const bare = db.command({ explain: { aggregate: 'bare', pipeline: [{ $geoNear: near }], cursor: {} } });
    await expect(bare).rejects.toMatchObject({ code: 27 });
  });
});
