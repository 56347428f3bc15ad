import fc from 'fast-check';
import request from 'supertest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Collection, setChanges } from '../world/collections.js';
import { buildCollection, buildProject, placeDocuments, type TestProject } from '../helpers/build-project.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

type Pair = [number, number];

const EARTH_METERS = 6_378_100;
const RADIANS = Math.PI / 180;

function metersBetween(a: Pair, b: Pair): number {
  const half = (degrees: number): number => Math.sin((degrees * RADIANS) / 2) ** 2;
  const h = half(b[1] - a[1]) + Math.cos(a[1] * RADIANS) * Math.cos(b[1] * RADIANS) * half(b[0] - a[0]);
  return 2 * EARTH_METERS * Math.asin(Math.min(1, Math.sqrt(h)));
}

/** By the signs of the three edges: small areas are as on a plane, but for what lies near an edge. */
function isWithin(at: Pair, corners: Pair[]): boolean | null {
  const sides = corners.map(([x1, y1], n) => {
    const [x2, y2] = corners[(n + 1) % corners.length]!;
    return (x2 - x1) * (at[1] - y1) - (y2 - y1) * (at[0] - x1);
  });
  if (sides.some((side) => Math.abs(side) < 1e-6)) return null;
  return sides.every((side) => side > 0) || sides.every((side) => side < 0);
}

const town = fc.tuple(
  fc.double({ min: 13.3, max: 13.5, noNaN: true }),
  fc.double({ min: 52.4, max: 52.6, noNaN: true }),
);
const rounded = town.map(([lng, lat]): Pair => [Number(lng.toFixed(6)), Number(lat.toFixed(6))]);

describe('filters of places', () => {
  let test: TestApp;
  let project: TestProject;
  let collections: Collection[];
  let places: Map<string, Pair>;

  beforeAll(async () => {
    test = await openTestApp();
    project = await buildProject(test.app);
    const fields = [{ name: 'place', type: 'Object' as const, required: false }];
    collections = [
      await buildCollection(test.app, project.project, { name: 'shops', fields, indexes: ['place:2dsphere'] }),
      await buildCollection(test.app, project.project, { name: 'bare', fields }),
    ];
    const sample = fc.sample(rounded, { numRuns: 150, seed: 11 });
    places = new Map();
    for (const collection of collections) {
      const docs = sample.map((coordinates, n) => ({ n, place: { type: 'Point', coordinates } }));
      const ids = await placeDocuments(test.app, collection, [...docs, { n: 1000 }]);
      ids.slice(0, sample.length).forEach((id, n) => places.set(id, sample[n]!));
    }
  });
  afterAll(() => test.close());

  async function ids(collection: Collection, query: string): Promise<Set<string>> {
    const { body, status } = await request(test.server)
      .get(`/api/data/${collection.name}?limit=1000&${query}`)
      .set('x-api-key', project.publishable);
    expect(status, `${query}: ${JSON.stringify(body)}`).toBe(200);
    const { items, total } = (body as { data: { items: { _id: string }[]; total: number } }).data;
    expect(total).toBe(items.length);
    return new Set(items.map(({ _id }) => _id));
  }

  async function compare(query: string, expected: (at: Pair) => boolean | null): Promise<number> {
    let met = 0;
    for (const collection of collections) {
      const found = await ids(collection, query);
      const own = [...(await ids(collection, 'place_exists=true'))];
      for (const id of own) {
        const wanted = expected(places.get(id)!);
        if (wanted !== null) expect(found.has(id), `${query} ${String(places.get(id))}`).toBe(wanted);
      }
      expect(found.size).toBeLessThanOrEqual(own.length);
      met += found.size;
    }
    return met;
  }

  it('find what is in the circle or the polygon, with an index of places as without', async () => {
    let met = 0;
    await fc.assert(
      fc.asyncProperty(rounded, fc.integer({ min: 0, max: 20_000 }), async (center, meters) => {
        met += await compare(`place_near=${center.join()},${String(meters)}`, (at) => {
          const distance = metersBetween(center, at);
          return Math.abs(distance - meters) < 0.1 ? null : distance <= meters;
        });
      }),
      { seed: 5, numRuns: 15 },
    );
    await fc.assert(
      fc.asyncProperty(fc.tuple(rounded, rounded, rounded), async (corners) => {
        const area = Math.abs(
          (corners[1][0] - corners[0][0]) * (corners[2][1] - corners[0][1]) -
            (corners[2][0] - corners[0][0]) * (corners[1][1] - corners[0][1]),
        );
        fc.pre(area > 1e-3);
        met += await compare(`place_within=${corners.flat().join()}`, (at) => isWithin(at, corners));
      }),
      { seed: 6, numRuns: 15 },
    );
    expect(met).toBeGreaterThan(100);
  });

  it('are followed by the feed', async () => {
    const changes = (query: string) =>
      request(test.server).get(`/api/data/shops/changes?${query}`).set('x-api-key', project.publishable);
    await setChanges(test.app, project.project._id, 'shops', { on: true });
    const filter = 'place_near=-70,10,1000';
    const begun = await changes(filter);
    expect(begun.status, JSON.stringify(begun.body)).toBe(200);
    const { cursor } = (begun.body as { data: { cursor: string } }).data;
    const add = (coordinates: Pair) =>
      request(test.server)
        .post('/api/data/shops')
        .set('x-api-key', project.secret)
        .send({ place: { type: 'Point', coordinates } });
    const answer = await add([-70.001, 10]);
    expect(answer.status, JSON.stringify(answer.body)).toBe(201);
    const { _id } = answer.body as { _id: string };
    await add([-71, 10]);
    const later = await changes(`${filter}&since=${encodeURIComponent(cursor)}`);
    const text = JSON.stringify(later.body);
    expect(text).toContain(_id);
    expect(text).not.toContain('-71');
  });
});
