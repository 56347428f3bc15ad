import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { measureStorage, requireProject, setBucket, updateProject } from '../../../world/projects.js';
import { buildProject, type TestProject } from '../../../helpers/build-project.js';
import { openTestApp, type TestApp } from '../../../helpers/open-test-app.js';
import { openS3Double, s3Settings, type S3Double } from '../../../helpers/s3-double.js';
import { listStoredFiles, openStorageClient, putSigned, type StorageClient } from '../../../helpers/storage-client.js';

const MIB = 1024 * 1024;
const PLACES = ['local', 'the service’s bucket', 'the project’s bucket'] as const;

let test: TestApp;
let double: S3Double;
let owner: TestProject;
let storage: StorageClient;

/** Where the bytes are, for what the API does not show. */
const keptPaths = async (): Promise<string[]> =>
  [...(await listStoredFiles(test.dataDir)), ...double.objects.keys()].filter((path) =>
    path.includes(owner.project._id.toHexString()),
  );
const usedBytes = async (): Promise<number> => (await measureStorage(test.app, owner.project)).bytes;

describe.each(PLACES)('uploads to signed addresses: %s', (place) => {
  const isExternal = place === 'the project’s bucket';

  beforeAll(async () => {
    double = await openS3Double();
    test = await openTestApp({
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
    if (isExternal) await setBucket(test.app, owner.project, double.access, false);
    storage = openStorageClient(test, owner.secret);
  });

  it('take the bytes, confirm them, serve them at a public address and delete them', async () => {
    const bytes = randomBytes(2000);
    const requested = await storage.request({ filename: 'a b.png', contentType: 'image/png', size: 2000 });
    expect(requested.status).toBe(200);
    expect(requested.body).toEqual({
      signedUrl: expect.stringMatching(/^http/),
      filePath: expect.stringMatching(new RegExp(`^${owner.project._id.toHexString()}/[0-9a-f-]{36}_a-b\\.png$`)),
    });
    const { signedUrl, filePath } = requested.body;
    expect(await usedBytes()).toBe(0);
    expect((await putSigned(signedUrl, bytes, 'image/png')).status).toBe(200);
    const confirmed = await storage.confirm({ filePath, size: 2000 });
    expect(confirmed.status).toBe(200);
    expect(confirmed.body).toEqual({
      message: 'Upload confirmed',
      path: filePath,
      provider: isExternal ? 'external' : 'internal',
      url: place === 'local' ? `${test.url}/files/${filePath}` : `${double.access.publicUrl}/${filePath}`,
    });
    const read = await fetch(confirmed.body.url!);
    expect(read.headers.get('content-type')).toBe('image/png');
    expect(Buffer.from(await read.arrayBuffer()).equals(bytes)).toBe(true);
    expect(await usedBytes()).toBe(isExternal ? 0 : 2000);

    const removed = await storage.remove(filePath);
    expect(removed.status).toBe(200);
    expect(removed.body).toEqual({ success: true, data: {}, message: 'File deleted' });
    expect((await fetch(confirmed.body.url!)).status).toBe(404);
    expect(await keptPaths()).toEqual([]);
    expect(await usedBytes()).toBe(0);
    const again = await storage.remove(filePath);
    expect(again.status).toBe(404);
    expect(again.body.code).toBe('FILE_NOT_FOUND');
    expect((await storage.confirm({ filePath, size: 2000 })).status).toBe(404);
  });

  it('answer 409 UPLOAD_NOT_READY with Retry-After before the bytes, and succeed afterwards', async () => {
    const { signedUrl, filePath } = (await storage.request({ filename: 'a.txt', contentType: 'text/plain', size: 5 }))
      .body;
    const early = await storage.confirm({ filePath, size: 5 });
    expect(early.status).toBe(409);
    expect(early.body.code).toBe('UPLOAD_NOT_READY');
    expect(Number(early.headers.get('retry-after'))).toBeGreaterThan(0);
    await putSigned(signedUrl, 'hello', 'text/plain');
    const confirmed = await storage.confirm({ filePath, size: 5 });
    expect(confirmed.status).toBe(200);
    expect(await (await fetch(confirmed.body.url!)).text()).toBe('hello');
  });

  it('charge once for fifty confirmations at once, and for later ones', async () => {
    const { signedUrl, filePath } = (await storage.request({ filename: 'a.bin', contentType: 'image/png', size: 700 }))
      .body;
    await putSigned(signedUrl, new Uint8Array(700), 'image/png');
    const replies = await Promise.all(Array.from({ length: 50 }, () => storage.confirm({ filePath, size: 700 })));
    expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([200]));
    expect((await storage.confirm({ filePath, size: 700 })).body).toEqual(replies[0]!.body);
    expect(await usedBytes()).toBe(isExternal ? 0 : 700);
  });

  it('tolerate 64 bytes of drift in the announced size, not 65; the bytes are kept', async () => {
    const { signedUrl, filePath } = (await storage.request({ filename: 'a.bin', contentType: 'image/png', size: 1000 }))
      .body;
    await putSigned(signedUrl, new Uint8Array(1000), 'image/png');
    for (const size of [935, 1065, 0]) {
      const reply = await storage.confirm({ filePath, size });
      expect({ size, status: reply.status, code: reply.body.code }).toEqual({
        size,
        status: 400,
        code: 'UPLOAD_SIZE_MISMATCH',
      });
    }
    expect((await storage.confirm({ filePath, size: 1064 })).status).toBe(200);
    expect(await usedBytes()).toBe(isExternal ? 0 : 1000);
  });

  it('refuse another type and another number of bytes than declared, and store nothing', async () => {
    const { signedUrl, filePath } = (await storage.request({ filename: 'a.png', contentType: 'image/png', size: 100 }))
      .body;
    for (const [type, bytes] of [
      ['text/html', 100],
      ['image/png', 165],
      ['image/png', 35],
    ] as const) {
      expect((await putSigned(signedUrl, new Uint8Array(bytes), type)).status).toBeGreaterThanOrEqual(400);
    }
    expect(await keptPaths()).toEqual([]);
    expect((await storage.confirm({ filePath, size: 100 })).status).toBe(409);
  });

  // A bucket compares with the length in the signature itself.
  it.runIf(place === 'local').each([36, 164])(
    'take %i bytes where 100 were declared, and charge what came',
    async (size) => {
      const { signedUrl, filePath } = (
        await storage.request({ filename: 'a.png', contentType: 'image/png', size: 100 })
      ).body;
      expect((await putSigned(signedUrl, new Uint8Array(size), 'image/png')).status).toBe(200);
      expect((await storage.confirm({ filePath, size: 100 })).status).toBe(200);
      expect(await usedBytes()).toBe(size);
    },
  );

  it('refuse a path of another project and paths that are none', async () => {
    const { signedUrl, filePath } = (await storage.request({ filename: 'a.txt', contentType: 'text/plain', size: 2 }))
      .body;
    await putSigned(signedUrl, 'ok', 'text/plain');
    const stranger = openStorageClient(test, (await buildProject(test.app)).secret);
    expect((await stranger.confirm({ filePath, size: 2 })).status).toBe(404);
    expect((await storage.confirm({ filePath, size: 2 })).status).toBe(200);
    const id = owner.project._id.toHexString();
    const attacks = [
      filePath.replace(id, `../${id}`),
      `${id}/../${filePath}`,
      encodeURIComponent(filePath),
      `/${filePath}`,
      `${filePath}\0`,
      `${filePath}/`,
      `./${filePath}`,
      id,
      `${id}/`,
      '/etc/passwd',
      '..',
      `${id}/..%2f..%2fsecret.key`,
      `${id}/../../secret.key`,
      `${filePath}%00`,
      filePath.replace('/', '\\'),
      filePath.toUpperCase(),
    ];
    for (const path of attacks) {
      expect({ path, status: (await storage.remove(path)).status }).toEqual({ path, status: 404 });
      expect({ path, status: (await storage.confirm({ filePath: path, size: 2 })).status }).toEqual({
        path,
        status: 404,
      });
    }
    expect((await stranger.remove(filePath)).status).toBe(404);
    expect(await keptPaths()).toHaveLength(1);
    expect(await usedBytes()).toBe(isExternal ? 0 : 2);
  });

  it('are only saved by browsers, not shown, when they carry html', async () => {
    const html = '<script>alert(1)</script>';
    const file = { filename: 'page.png', contentType: 'text/html', size: html.length };
    const { signedUrl, filePath } = (await storage.request(file)).body;
    await putSigned(signedUrl, html, 'text/html');
    const signed = (await storage.confirm({ filePath, size: html.length })).body.url!;
    const direct = (await storage.upload(html, 'page.html', 'text/html')).body.url!;
    for (const url of [signed, direct]) {
      const reply = await fetch(url);
      expect(reply.headers.get('content-disposition')).toMatch(/^attachment/);
      expect(await reply.text()).toBe(html);
    }
  });

  it('are all deleted by DELETE /api/storage/all', async () => {
    for (let i = 0; i < 5; i++) expect((await storage.upload(`file ${i}`, `${i}.txt`, 'text/plain')).status).toBe(201);
    const pending = (await storage.request({ filename: 'later.txt', contentType: 'text/plain', size: 2 })).body;
    const reply = await storage.removeAll();
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({ success: true, data: { deleted: 5 }, message: 'All files deleted' });
    expect(await keptPaths()).toEqual([]);
    expect(await usedBytes()).toBe(0);
    await putSigned(pending.signedUrl, 'ok', 'text/plain');
    expect((await storage.confirm({ filePath: pending.filePath, size: 2 })).status).toBe(200);
  });

  it('never overrun the quota when many are confirmed at its edge', async () => {
    if (isExternal) await updateProject(test.app, owner.project.name, { limits: { storage: 0 } });
    else await updateProject(test.app, owner.project.name, { limits: { storage: 1000 } });
    const uploads = await Promise.all(
      Array.from({ length: 24 }, async () => {
        const { body } = await storage.request({ filename: 'x.png', contentType: 'image/png', size: 100 });
        await putSigned(body.signedUrl, new Uint8Array(100), 'image/png');
        return body.filePath;
      }),
    );
    const replies = await Promise.all(
      uploads.flatMap((filePath) => [1, 2].map(() => storage.confirm({ filePath, size: 100 }))),
    );
    const confirmed = replies.filter((reply) => reply.status === 200).map((reply) => reply.body.path);
    expect(new Set(confirmed).size).toBe(isExternal ? 24 : 10);
    expect(replies.filter((reply) => ![200, 403].includes(reply.status))).toEqual([]);
    expect(await usedBytes()).toBe(isExternal ? 0 : 1000);
  });
});

describe('POST /api/storage/upload-request', () => {
  beforeAll(async () => {
    double = await openS3Double();
    test = await openTestApp({ settings: { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
    owner = await buildProject(test.app);
    storage = openStorageClient(test, owner.secret);
  });
  afterAll(async () => {
    await test.close();
    await double.close();
  });

  it.each([
    [{ contentType: 'image/png', size: 1 }, 'Validation failed: filename is required'],
    [{ filename: 'a', size: 1 }, 'Validation failed: contentType is required'],
    [{ filename: 'a', contentType: 'image/png' }, 'Validation failed: size is required'],
    [{ filename: '', contentType: 'image/png', size: 1 }, 'Validation failed: filename is required'],
    [{ filename: 7, contentType: 'image/png', size: 1 }, 'Validation failed: filename must be a String'],
    [
      { filename: 'a', contentType: 'image/png\r\nx: y', size: 1 },
      'contentType must be a media type such as image/png',
    ],
    [{ filename: 'a', contentType: 'image/png', size: '1' }, 'Validation failed: size must be a whole Number'],
    [{ filename: 'a', contentType: 'image/png', size: -1 }, 'Validation failed: size must be >= 0'],
    [{ filename: 'a', contentType: 'image/png', size: 1.5 }, 'Validation failed: size must be a whole Number'],
  ])('answers 400 for %j', async (body, message) => {
    const reply = await storage.request(body);
    expect(reply.status).toBe(400);
    expect(reply.body).toMatchObject({ code: 'VALIDATION_FAILED', message });
  });

  it('answers 400 for a confirmation without filePath or size', async () => {
    expect((await storage.confirm({ size: 1 })).body).toMatchObject({
      message: 'Validation failed: filePath is required',
    });
    expect((await storage.confirm({ filePath: 'a/b' })).body).toMatchObject({
      message: 'Validation failed: size is required',
    });
    expect((await storage.remove(undefined)).status).toBe(400);
  });

  it('answers 413 beyond 10 MiB, and takes exactly as many', async () => {
    const file = { filename: 'a', contentType: 'image/png' };
    expect((await storage.request({ ...file, size: 10 * MIB })).status).toBe(200);
    const reply = await storage.request({ ...file, size: 10 * MIB + 1 });
    expect(reply.status).toBe(413);
    expect(reply.body.code).toBe('FILE_TOO_LARGE');
  });

  it('answers 403 QUOTA_EXCEEDED when the file cannot fit', async () => {
    const poor = await buildProject(test.app);
    await updateProject(test.app, poor.project.name, { limits: { storage: 10 } });
    const reply = await openStorageClient(test, poor.secret).request({
      filename: 'a',
      contentType: 'image/png',
      size: 11,
    });
    expect(reply.status).toBe(403);
    expect(reply.body.code).toBe('QUOTA_EXCEEDED');
  });

  it('answers 429 when far more uploads wait for confirmation than can ever fit', async () => {
    const { secret } = await buildProject(test.app);
    const client = openStorageClient(test, secret);
    const requests = await Promise.all(
      Array.from({ length: 30 }, () => client.request({ filename: 'a', contentType: 'image/png', size: 10 * MIB })),
    );
    expect(requests.every((reply) => reply.status === 200)).toBe(true);
    const reply = await client.request({ filename: 'a', contentType: 'image/png', size: 10 * MIB });
    expect(reply.status).toBe(429);
    expect(reply.body.code).toBe('UPLOADS_PENDING');
  });

  it('has no size cap in the project’s own bucket, and warns when that has no public address', async () => {
    const { project, secret } = await buildProject(test.app);
    await setBucket(test.app, project, { ...double.access, publicUrl: null }, true);
    const client = openStorageClient(test, secret);
    const size = 11 * MIB;
    const { signedUrl, filePath } = (await client.request({ filename: 'a.mp4', contentType: 'video/mp4', size })).body;
    expect(signedUrl).toContain(double.url);
    expect((await putSigned(signedUrl, new Uint8Array(size), 'video/mp4')).status).toBe(200);
    expect((await client.confirm({ filePath, size })).body).toEqual({
      message: 'Upload confirmed',
      path: filePath,
      provider: 'external',
      url: null,
      warning: expect.stringContaining('no public URL'),
    });
    const direct = await client.upload(new Uint8Array(size), 'b.mp4', 'video/mp4');
    expect(direct.status).toBe(201);
    expect(direct.body).toMatchObject({ provider: 'external', url: null, warning: expect.any(String) as string });
  });

  it('keeps a bucket’s files deletable when its keys change, and forgets them when the bucket is left', async () => {
    const { project, secret } = await buildProject(test.app);
    const client = openStorageClient(test, secret);
    await setBucket(test.app, project, double.access, false);
    const [first, second] = [await client.upload('1'), await client.upload('2')];
    await setBucket(
      test.app,
      await requireProject(test.app, project.name),
      { ...double.access, region: 'eu-test-1' },
      false,
    );
    expect((await client.remove(first.body.path)).status).toBe(200);
    expect(double.objects.has(first.body.path)).toBe(false);
    await setBucket(
      test.app,
      await requireProject(test.app, project.name),
      { ...double.access, bucket: 'elsewhere' },
      false,
    );
    expect((await client.remove(second.body.path)).status).toBe(200);
    expect(double.objects.has(second.body.path)).toBe(true);
  });

  it('answers 503 without details of the bucket when it is away, and recovers', async () => {
    const { project, secret } = await buildProject(test.app);
    await setBucket(test.app, project, double.access, false);
    const client = openStorageClient(test, secret);
    double.failNext(3, 503);
    const reply = await client.upload('x');
    expect(reply.status).toBe(503);
    expect(reply.body.code).toBe('STORAGE_UNAVAILABLE');
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await client.upload('x')).status).toBe(201);
  });
});

describe('the signed address of the service itself', () => {
  beforeAll(async () => {
    test = await openTestApp();
    owner = await buildProject(test.app);
    storage = openStorageClient(test, owner.secret);
  });
  afterAll(() => test.close());

  const request = async (): Promise<{ signedUrl: string; filePath: string }> =>
    (await storage.request({ filename: 'a.txt', contentType: 'text/plain', size: 5 })).body;

  it('takes nothing when any part of it is changed', async () => {
    const { signedUrl } = await request();
    const other = await request();
    const changed: ((url: URL) => void)[] = [
      (url) => void (url.pathname = new URL(other.signedUrl).pathname),
      (url) => url.searchParams.set('expires', String(Number(url.searchParams.get('expires')) + 1)),
      (url) => url.searchParams.set('size', '6'),
      (url) => url.searchParams.set('type', 'text/html'),
      (url) => url.searchParams.set('signature', 'A'.repeat(43)),
      (url) => url.searchParams.delete('signature'),
    ];
    for (const change of changed) {
      const url = new URL(signedUrl);
      change(url);
      const reply = await putSigned(url.href, '12345', 'text/plain');
      expect(reply.status).toBe(403);
      expect(await reply.json()).toMatchObject({ code: 'UPLOAD_URL_INVALID' });
    }
    expect(await listStoredFiles(test.dataDir)).toEqual([]);
  });

  it('may be used again until the upload is confirmed, then no more', async () => {
    const { signedUrl, filePath } = await request();
    expect((await putSigned(signedUrl, '12345', 'text/plain')).status).toBe(200);
    expect((await putSigned(signedUrl, '54321', 'text/plain')).status).toBe(200);
    const { url } = (await storage.confirm({ filePath, size: 5 })).body;
    const late = await putSigned(signedUrl, 'xxxxx', 'text/plain');
    expect(late.status).toBe(409);
    expect(await late.json()).toMatchObject({ code: 'UPLOAD_CLOSED' });
    expect(await (await fetch(url!)).text()).toBe('54321');
  });

  it('refuses a body without a length that is longer or shorter than declared', async () => {
    for (const pieces of [['x'.repeat(60), 'x'.repeat(10)], []]) {
      const { signedUrl } = await request();
      const body = new ReadableStream({
        start(controller) {
          for (const piece of pieces) controller.enqueue(Buffer.from(piece));
          controller.close();
        },
      });
      const init = { method: 'PUT', headers: { 'content-type': 'text/plain' }, body, duplex: 'half' } as RequestInit;
      const reply = await fetch(signedUrl, init);
      expect(reply.status).toBe(400);
      expect(await reply.json()).toMatchObject({ code: 'UPLOAD_SIZE_MISMATCH' });
    }
  });

  it('does not serve what is not confirmed', async () => {
    const { signedUrl, filePath } = await request();
    await putSigned(signedUrl, '12345', 'text/plain');
    expect((await fetch(`${test.url}/files/${filePath}`)).status).toBe(404);
  });

  it('can be used from a page of any origin', async () => {
    const { signedUrl } = await request();
    const preflight = await fetch(signedUrl, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://app.example',
        'access-control-request-method': 'PUT',
        'access-control-request-headers': 'content-type',
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe('https://app.example');
    expect(preflight.headers.get('access-control-allow-methods')).toContain('PUT');
    expect(preflight.headers.get('access-control-allow-headers')).toContain('content-type');
  });
});
