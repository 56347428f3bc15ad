import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sweepUploads } from '../../world/jobs.js';
import { measureStorage, updateProject } from '../../world/projects.js';
import { fileStore, recountStorage } from '../../world/stored.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openSeed } from '../../helpers/seed.js';
import { listStoredFiles, openStorageClient, putSigned, type StorageClient } from '../../helpers/storage-client.js';
import { runs } from '../../helpers/runs.js';
import { useTestApp } from '../../helpers/use.js';

const SEED = openSeed('storage');
const LIMIT = 3_000;
const HOUR = 60 * 60 * 1000;

const clock = createFakeClock();

const test = await useTestApp({ clock });

/** What a client has been told of a file. */
interface Known {
  path: string;
  /** The last bytes that were taken. */
  bytes: Uint8Array | null;
  signedUrl: string | null;
  size: number;
  isConfirmed: boolean;
}

interface Shop {
  owner: TestProject;
  storage: StorageClient;
  known: Known[];
}

const KINDS = ['upload', 'request', 'put', 'put', 'confirm', 'confirm', 'delete', 'deleteAll', 'pass'] as const;
const action = fc.record({
  what: fc.constantFrom(...KINDS),
  which: fc.nat({ max: 5 }),
  size: fc.constantFrom(0, 100, 700, 1_500),
});
type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

async function perform(shop: Shop, { what, which, size }: Action): Promise<void> {
  const { storage, known } = shop;
  const file = known[which % Math.max(1, known.length)];
  if (what === 'upload') return uploadOne(shop, size);
  if (what === 'request') return requestOne(shop, size);
  if (what === 'pass') return void clock.advance(10 * 60_000);
  if (what === 'deleteAll') {
    expect((await storage.removeAll()).status).toBe(200);
    for (const one of known) one.isConfirmed = false;
    return;
  }
  if (!file) return;
  if (what === 'put' && file.signedUrl !== null) {
    const bytes = randomBytes(file.size);
    const { status } = await putSigned(file.signedUrl, bytes, 'image/png');
    expect(status).toBeLessThan(500);
    if (status < 300) file.bytes = bytes;
  }
  if (what === 'confirm') {
    const { status } = await storage.confirm({ filePath: file.path, size: file.size });
    expect([200, 403, 404, 409]).toContain(status);
    if (status === 200) file.isConfirmed = true;
  }
  if (what === 'delete') {
    const { status } = await storage.remove(file.path);
    expect([200, 404]).toContain(status);
    if (status === 200) file.isConfirmed = false;
  }
}

async function uploadOne({ storage, known }: Shop, size: number): Promise<void> {
  const bytes = randomBytes(size);
  const { status, body } = await storage.upload(bytes);
  expect([201, 403]).toContain(status);
  if (status === 201) known.push({ path: body.path, bytes, signedUrl: null, size, isConfirmed: true });
}

async function requestOne({ storage, known }: Shop, size: number): Promise<void> {
  const { status, body } = await storage.request({ filename: 'a.png', contentType: 'image/png', size });
  expect([200, 403]).toContain(status);
  if (status === 200)
    known.push({ path: body.filePath, bytes: null, signedUrl: body.signedUrl, size, isConfirmed: false });
}

/** What is stored, charged and served is what clients were told. */
async function check({ owner, known }: Shop): Promise<void> {
  const confirmed = known.filter(({ isConfirmed }) => isConfirmed);
  const { files, bytes } = await measureStorage(test.app, owner.project);
  expect({ files, bytes }).toEqual({
    files: confirmed.length,
    bytes: confirmed.reduce((sum, { size }) => sum + size, 0),
  });
  expect(bytes).toBeLessThanOrEqual(LIMIT);
  for (const file of known) {
    const reply = await fetch(`${test.url}/files/${file.path}`);
    expect(reply.status).toBe(file.isConfirmed ? 200 : 404);
    const body = Buffer.from(await reply.arrayBuffer());
    if (file.isConfirmed) expect(body.equals(file.bytes!)).toBe(true);
  }
}

async function openShop(): Promise<Shop> {
  const owner = await buildProject(test.app);
  await updateProject(test.app, owner.project.name, { limits: { storage: LIMIT } });
  return { owner, storage: openStorageClient(test, owner.secret), known: [] };
}

/** After hours nothing is left but what is confirmed, and a count finds nothing to correct. */
async function checkAtLast({ owner }: Shop): Promise<void> {
  clock.advance(2 * HOUR);
  await sweepUploads(test.app);
  const confirmed = await fileStore(test.app).find({ projectId: owner.project._id, state: 'confirmed' }).toArray();
  const { files, bytes } = await measureStorage(test.app, owner.project);
  expect({ files, bytes }).toEqual({
    files: confirmed.length,
    bytes: confirmed.reduce((sum, { size }) => sum + size!, 0),
  });
  expect(await recountStorage(test.app, owner.project)).toEqual({ before: bytes, after: bytes });
  const stored = await listStoredFiles(test.dataDir);
  expect(stored.filter((path) => path.includes(owner.project._id.toHexString()))).toHaveLength(files);
}

describe('any sequence of what happens to the files of a project', () => {
  it('leaves stored, charged and served what clients were told, and no more than the quota', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 25 }), async (actions) => {
        const shop = await openShop();
        for (const one of actions) {
          await perform(shop, one);
          await check(shop);
        }
        await checkAtLast(shop);
      }),
      { numRuns: runs(40), seed: SEED },
    );
  });

  it('charges what is stored when much of it happens at once', async () => {
    const bursts = fc.array(fc.array(action, { minLength: 2, maxLength: 8 }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(bursts, async (all) => {
        const shop = await openShop();
        for (const actions of all) {
          await Promise.all(actions.map((one) => perform(shop, one)));
          expect((await measureStorage(test.app, shop.owner.project)).bytes).toBeLessThanOrEqual(LIMIT);
        }
        await checkAtLast(shop);
      }),
      { numRuns: runs(40), seed: SEED },
    );
  });
});
