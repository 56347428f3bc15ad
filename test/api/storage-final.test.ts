import { request as httpRequest, type ClientRequest } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sweepUploads } from '../world/jobs.js';
import { setBucket } from '../world/projects.js';
import { fileStore, filesOf } from '../world/stored.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { createFakeClock, type FakeClock } from '../helpers/fake-clock.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';
import { openS3Double, s3Settings, type S3Double } from '../helpers/s3-double.js';
import { listStoredFiles, openStorageClient, putSigned, type StorageClient } from '../helpers/storage-client.js';

const TWO_HOURS = 2 * 60 * 60 * 1000;
const PLACES = ['local', 'the service’s bucket', 'the project’s bucket'] as const;
const GOOD = 'GOOD!';
const EVIL = 'EVIL!';

let test: TestApp;
let clock: FakeClock;
let double: S3Double;
let owner: TestProject;
let storage: StorageClient;

interface Grant {
  signedUrl: string;
  filePath: string;
}

const request = async (): Promise<Grant> =>
  (await storage.request({ filename: 'a.txt', contentType: 'text/plain', size: GOOD.length })).body;
const confirm = ({ filePath }: Grant) => storage.confirm({ filePath, size: GOOD.length });
const put = (grant: Grant, bytes: string) => putSigned(grant.signedUrl, bytes, 'text/plain');

/** Every object of the project, wherever it is kept; names alone. */
const keptObjects = async (): Promise<string[]> =>
  [...(await listStoredFiles(test.dataDir)), ...double.objects.keys()].filter((name) =>
    name.includes(owner.project._id.toHexString()),
  );

/** A PUT whose last byte has not been sent. */
function openSlowPut(grant: Grant, bytes: string): { request: ClientRequest; finish(): Promise<number> } {
  const slow = httpRequest(grant.signedUrl, {
    method: 'PUT',
    headers: { 'content-type': 'text/plain', 'content-length': bytes.length },
  });
  const answer = new Promise<number>((resolve, reject) => {
    slow.once('error', reject);
    slow.once('response', (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode!));
    });
  });
  slow.write(bytes.slice(0, -1));
  return {
    request: slow,
    finish: () => {
      slow.end(bytes.slice(-1));
      return answer;
    },
  };
}

describe.each(PLACES)('a confirmed upload (%s)', (place) => {
  beforeAll(async () => {
    double = await openS3Double();
    clock = createFakeClock();
    test = await openTestApp({
      clock,
      settings: {
        BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
        ...(place === 'the service’s bucket' && s3Settings(double.access)),
      },
    });
  });
  afterAll(async () => {
    await test.close();
    await double.close();
  });
  beforeEach(async () => {
    owner = await buildProject(test.app);
    if (place === 'the project’s bucket') await setBucket(test.app, owner.project, double.access, false);
    storage = openStorageClient(test, owner.secret);
  });

  it('keeps its bytes when a PUT that began before ends after the confirmation', async () => {
    const grant = await request();
    const slow = openSlowPut(grant, EVIL);
    if (place === 'local')
      await eventually('the slow upload is under way', async () => (await underWay(grant)).length === 1);
    expect((await put(grant, GOOD)).status).toBe(200);
    const { url } = (await confirm(grant)).body;
    const before = await fetch(url!);
    expect(await before.text()).toBe(GOOD);
    expect(await slow.finish()).toBe(place === 'local' ? 409 : 200);
    const after = await fetch(url!);
    expect([await after.text(), after.headers.get('etag')]).toEqual([GOOD, before.headers.get('etag')]);
    await expectOneObject();
  });

  it('keeps its bytes when its address is used again', async () => {
    const grant = await request();
    await put(grant, GOOD);
    const { url } = (await confirm(grant)).body;
    expect((await put(grant, EVIL)).status).toBe(place === 'local' ? 409 : 200);
    expect((await confirm(grant)).body).toMatchObject({ url });
    expect(await (await fetch(url!)).text()).toBe(GOOD);
    await expectOneObject();
  });

  it('is one of the versions that were sent, whole, when everything happens at once', async () => {
    const grant = await request();
    const versions = Array.from({ length: 8 }, (_, at) => `${at}`.repeat(GOOD.length));
    await put(grant, GOOD);
    await Promise.all(versions.flatMap((version) => [put(grant, version), confirm(grant)]));
    const { status, body } = await confirm(grant);
    expect(status).toBe(200);
    const text = await (await fetch(body.url!)).text();
    expect([GOOD, ...versions]).toContain(text);
    await expectOneObject();
    expect(await (await fetch(body.url!)).text()).toBe(text);
    expect((await storage.remove(grant.filePath)).status).toBe(200);
    expect(await keptObjects()).toEqual([]);
  });

  it.runIf(place !== 'local')('is what was sent last when it is exchanged while it is being confirmed', async () => {
    const grant = await request();
    await put(grant, GOOD);
    const key = decodeURIComponent(new URL(grant.signedUrl).pathname).split('/').slice(2).join('/');
    double.beforeCopy(() => double.objects.set(key, { ...double.objects.get(key)!, bytes: Buffer.from(EVIL) }));
    const { status, body } = await confirm(grant);
    expect(status).toBe(200);
    expect(await (await fetch(body.url!)).text()).toBe(EVIL);
    await expectOneObject();
  });

  it.runIf(place === 'local')('takes sixteen PUTs of an address at once, and no more', async () => {
    const grant = await request();
    const slow = Array.from({ length: 16 }, () => openSlowPut(grant, GOOD));
    await eventually('all are under way', async () => (await underWay(grant)).length === 16);
    const refused = await put(grant, GOOD);
    expect([refused.status, await refused.json()]).toMatchObject([429, { code: 'UPLOADS_PENDING' }]);
    for (const each of slow) expect(await each.finish()).toBe(200);
    expect((await confirm(grant)).status).toBe(200);
    await expectOneObject();
  });
});

async function underWay({ filePath }: Grant): Promise<readonly string[]> {
  return (await fileStore(test.app).findOne({ path: filePath }))?.objects ?? [];
}

/**
 * Once nothing can arrive any more and the sweep has come by, one object is kept, and its record says that there is
 * nothing else.
 */
async function expectOneObject(): Promise<void> {
  clock.advance(TWO_HOURS);
  await sweepUploads(test.app);
  expect(await keptObjects()).toHaveLength(1);
  const [file] = await fileStore(test.app).find(filesOf(owner.project._id)).toArray();
  expect(file).toMatchObject({ state: 'confirmed', objects: [file!.object] });
  expect(file).not.toHaveProperty('dueAt');
}
