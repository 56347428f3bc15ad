import { ObjectId } from 'bson';
import request from 'supertest';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Collection } from '../world/collections.js';
import { exportDocuments } from '../world/documents.js';
import { buildCollection, buildProject, storedDocuments } from '../helpers/build-project.js';
import { listenToCommands, type CommandLog } from '../helpers/command-log.js';
import { useTestApp } from '../helpers/use.js';

const DOCUMENTS = 60;
/** Sixteen of them fit into a reply. */
const TEXT = 'x'.repeat(1_000_000);

let log: CommandLog;
const letter = new ObjectId();

const test = await useTestApp();
const shop = await buildProject(test.app);
const scans = await buildCollection(test.app, shop.project, {
  name: 'scans',
  fields: [
    { name: 'n', type: 'Number' },
    { name: 'text', type: 'String' },
  ],
});
const letters = await buildCollection(test.app, shop.project, {
  name: 'letters',
  fields: [
    { name: 'scan', type: 'Ref', ref: 'scans' },
    { name: 'pages', type: 'Array', items: { type: 'Ref', ref: 'scans' } },
  ],
});
for (let n = 0; n < DOCUMENTS; n++) await place(scans, { n, text: TEXT });
const firstScan = (await storedDocuments(test.app, scans).findOne({ n: 0 }))!._id;
const scan = firstScan.toHexString();
for (let n = 0; n < DOCUMENTS; n++) await place(letters, { scan });
await place(letters, { _id: letter, pages: Array.from({ length: DOCUMENTS }, () => scan) });
beforeEach(() => {
  log = listenToCommands();
});
afterEach(() => log.stop());

/** A document put there past all rules. */
async function place(collection: Collection, fields: Record<string, unknown>): Promise<void> {
  const now = new Date(test.app.clock.now());
  await storedDocuments(test.app, collection).insertOne({
    _id: new ObjectId(),
    isDeleted: false,
    deletedAt: null,
    createdAt: now,
    updatedAt: now,
    ...fields,
  });
}

/** How often the database was asked for documents, or told that no more are wanted. */
function reads(name: 'find' | 'getMore' | 'killCursors'): number {
  return log.named(name).filter(({ body }) => String(body.collection ?? body[name]).startsWith('documents_')).length;
}

const get = (path: string) => request(test.server).get(`/api/data/${path}`).set('x-api-key', shop.publishable);
const TOO_LARGE = { success: false, code: 'RESULT_TOO_LARGE' };

describe('a reply of more than 16 MiB of documents', () => {
  it.each(['', '&cursor=start', '&skip=3', '&sort=n'])(
    'is refused with 400, and the rest of the page is not read: limit=1000%s',
    async (more) => {
      const { body } = await get(`scans?limit=1000${more}`).expect(400);
      expect(body).toMatchObject(TOO_LARGE);
      expect(body.message).toMatch(/smaller limit/);
      // Once without room for all of it, once with; all of them would be four batches.
      expect(reads('find')).toBe(2);
      expect(reads('getMore')).toBeLessThanOrEqual(2);
      expect(reads('killCursors')).toBe(2);
    },
  );

  it('can be asked for again with a smaller limit', async () => {
    const { body } = await get('scans?limit=10').expect(200);
    expect(body.data).toMatchObject({ total: DOCUMENTS, limit: 10 });
    expect(body.data.items).toHaveLength(10);
  });

  it('can be read by cursor in smaller pages, also from a refused page on', async () => {
    const seen = new Set<number>();
    let cursor: string | null = 'start';
    while (cursor !== null) {
      if (seen.size === 20) await get(`scans?limit=30&sort=n&cursor=${cursor}`).expect(400);
      const reply: request.Response = await get(`scans?limit=10&sort=n&cursor=${cursor}`).expect(200);
      for (const { n } of reply.body.data.items) seen.add(n);
      cursor = reply.body.data.nextCursor;
    }
    expect(seen.size).toBe(DOCUMENTS);
  });

  it('can be asked for again without the large field', async () => {
    const { body } = await get('scans?limit=1000&fields=n').expect(200);
    expect(body.data.items).toHaveLength(DOCUMENTS);
  });

  it('can be counted without being read', async () => {
    const { body } = await get('scans?count=true').expect(200);
    expect(body.data).toEqual({ count: DOCUMENTS });
  });

  it('is refused where one document would be put into many', async () => {
    expect((await get('letters?limit=1000&populate=scan').expect(400)).body).toMatchObject(TOO_LARGE);
    expect((await get('letters?limit=10&sort=-_id&populate=scan').expect(200)).body.data.items[0].scan.n).toBe(0);
    expect((await get(`letters/${letter.toHexString()}?populate=pages`).expect(400)).body).toMatchObject(TOO_LARGE);
    await get(`letters/${letter.toHexString()}`).expect(200);
  });

  it('is refused for a pipeline, whose rest is not read either', async () => {
    const { body } = await request(test.server)
      .post('/api/data/scans/aggregate')
      .set('x-api-key', shop.publishable)
      .send({ pipeline: [{ $match: {} }] })
      .expect(400);
    expect(body).toMatchObject(TOO_LARGE);
    // Batches of a pipeline are half as large.
    expect(reads('getMore')).toBeLessThanOrEqual(3);
  });
});

describe('an export', () => {
  it('reads no further than its reader', async () => {
    for await (const { n } of exportDocuments(test.app, scans, { includeDeleted: false })) if (n === 5) break;
    expect(reads('find')).toBe(1);
    expect(reads('getMore')).toBe(0);
    expect(reads('killCursors')).toBe(1);
  });
});
