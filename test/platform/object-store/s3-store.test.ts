import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BucketAccess } from '../../../src/platform/object-store/s3-client.js';
import { openS3Store, type S3Store, type S3StoreOptions } from '../../../src/platform/object-store/s3-store.js';
import { openSpool } from '../../../src/platform/object-store/spool.js';
import { openS3Double, type S3Double } from '../../helpers/s3-double.js';
import { openTempDir, type TempDir } from '../../helpers/temp-dir.js';

const GRANT = { contentType: 'image/png', size: 5, expiresInMs: 60_000 };
const PLAIN = { contentType: 'text/plain', attachment: false };

describe('a bucket with an S3 API', () => {
  let double: S3Double;
  let dir: TempDir;
  let stores: S3Store[];

  beforeEach(async () => {
    double = await openS3Double();
    dir = await openTempDir();
    stores = [];
  });
  afterEach(async () => {
    for (const store of stores) store.close();
    await double.close();
    await dir.remove();
  });

  function open(access: Partial<BucketAccess> = {}, options: Partial<S3StoreOptions> = {}): S3Store {
    const spool = openSpool(join(dir.path, 'incoming'));
    const store = openS3Store({ ...double.access, ...access }, { allowPrivate: true, spool, ...options });
    stores.push(store);
    return store;
  }

  function send(url: string, headers: Record<string, string>, body: string): Promise<Response> {
    return fetch(url, { method: 'PUT', headers, body });
  }

  describe('a signed PUT address', () => {
    it('takes the declared type and length, without further headers', async () => {
      const url = await open().signPutUrl('p/a.png', GRANT, '');
      expect((await send(url, { 'content-type': 'image/png' }, '12345')).status).toBe(200);
      expect(double.objects.get('p/a.png')).toMatchObject({ bytes: Buffer.from('12345'), contentType: 'image/png' });
    });

    it('signs host, content-type and content-length', async () => {
      const url = new URL(await open().signPutUrl('p/a.png', GRANT, ''));
      expect(url.searchParams.get('X-Amz-SignedHeaders')).toBe('content-length;content-type;host');
      expect(url.searchParams.get('X-Amz-Expires')).toBe('60');
    });

    it.each([
      ['another type', { 'content-type': 'text/html' }, '12345'],
      ['a longer body', { 'content-type': 'image/png' }, '123456'],
      ['a shorter body', { 'content-type': 'image/png' }, '1234'],
    ])('is refused with %s', async (_what, headers, body) => {
      const url = await open().signPutUrl('p/a.png', GRANT, '');
      expect((await send(url, headers, body)).status).toBe(403);
      expect(double.objects.size).toBe(0);
    });

    it('is refused for another key and after it expired', async () => {
      const url = await open().signPutUrl('p/a.png', GRANT, '');
      expect((await send(url.replace('a.png', 'b.png'), { 'content-type': 'image/png' }, '12345')).status).toBe(403);
      double.setSkewMs(61_000);
      expect((await send(url, { 'content-type': 'image/png' }, '12345')).status).toBe(403);
      expect(double.objects.size).toBe(0);
    });
  });

  it('stores type and disposition with the object', async () => {
    await open().put('p/a.html', Readable.from(['<p>']), { contentType: 'text/html', attachment: true });
    await open().put('p/a.txt', Readable.from(['text']), PLAIN);
    expect(double.objects.get('p/a.html')).toMatchObject({ contentType: 'text/html', disposition: 'attachment' });
    expect(double.objects.get('p/a.txt')).toMatchObject({ contentType: 'text/plain', disposition: null });
  });

  it('copies an object as one to save, and only the bytes that were meant', async () => {
    const store = open();
    await store.put('p/from', Readable.from(['<svg/>']), { contentType: 'image/png', attachment: false });
    const { version } = (await store.findVersion('p/from'))!;
    const options = { contentType: 'image/svg+xml', attachment: true, version };
    expect(await store.copyVersion('p/from', 'p/a.svg', options)).toBe(true);
    const copied = { contentType: 'image/svg+xml', disposition: 'attachment', bytes: Buffer.from('<svg/>') };
    expect(double.objects.get('p/a.svg')).toEqual(copied);
    await store.put('p/from', Readable.from(['<evil/>']), { contentType: 'image/png', attachment: false });
    expect(await store.copyVersion('p/from', 'p/a.svg', options)).toBe(false);
    await store.remove('p/from');
    expect(await store.copyVersion('p/from', 'p/a.svg', options)).toBe(false);
    expect(double.objects.get('p/a.svg')).toEqual(copied);
  });

  it.each([503, 500, 0])('repeats an upload when the bucket fails with %d (0 = connection broken)', async (status) => {
    double.failNext(2, status);
    await open().put('p/a.txt', Readable.from(['text']), PLAIN);
    expect(double.objects.get('p/a.txt')?.bytes.toString()).toBe('text');
    expect(double.requests).toHaveLength(3);
  });

  it('answers 503 STORAGE_UNAVAILABLE when the bucket keeps failing', async () => {
    double.failNext(100, 503);
    await expect(open().put('p/a.txt', Readable.from(['text']), PLAIN)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'STORAGE_UNAVAILABLE',
      message: 'The bucket cannot be reached (SlowDown): try again shortly',
    });
  });

  it('does not repeat what the bucket refuses, and tells its code', async () => {
    const store = open({ secretAccessKey: 'wrong' });
    await expect(store.put('p/a.txt', Readable.from(['text']), PLAIN)).rejects.toMatchObject({
      code: 'STORAGE_REFUSED',
      message: 'The bucket refused the request (SignatureDoesNotMatch)',
    });
    expect(double.requests).toHaveLength(1);
    await expect(open({ bucket: 'other' }).put('p/a.txt', Readable.from(['t']), PLAIN)).rejects.toMatchObject({
      message: 'The bucket refused the request (NoSuchBucket)',
    });
  });

  it('does not mistake a refusal for an absent object', async () => {
    await expect(open({ accessKeyId: 'AKIAOTHER' }).findSize('p/a.txt')).rejects.toMatchObject({ kind: 'unavailable' });
  });

  it('gives up on a bucket that takes a request and never answers', async () => {
    double.hang();
    const store = open({}, { callMs: 50 });
    for (const call of [
      () => store.findSize('p/a'),
      () => store.remove('p/a'),
      () => store.put('p/a', Readable.from(['x']), PLAIN),
      () => store.preflightPut('p/a', 'https://app.test'),
    ])
      await expect(call()).rejects.toMatchObject({ kind: 'unavailable', code: 'STORAGE_UNAVAILABLE' });
  });

  it('ends all attempts to store an object in the time that they have together', async () => {
    double.failNext(100, 503);
    await expect(open({}, { putMs: 0 }).put('p/a', Readable.from(['x']), PLAIN)).rejects.toMatchObject({
      code: 'STORAGE_UNAVAILABLE',
    });
    expect(double.requests.length).toBeLessThanOrEqual(1);
  });

  it('believes in a copy only when it is there', async () => {
    const store = open();
    await store.put('p/a', Readable.from(['x']), PLAIN);
    expect(await store.copyVersion('p/a', 'p/b', { ...PLAIN, version: null })).toBe(true);
    double.pretendToCopy();
    await expect(store.copyVersion('p/a', 'p/c', { ...PLAIN, version: null })).rejects.toMatchObject({
      message: 'The bucket cannot be reached (CopyMissing): try again shortly',
    });
    expect([...double.objects.keys()]).toEqual(['p/a', 'p/b']);
  });

  it('tells an address that nobody listens on', async () => {
    await expect(open({ endpoint: 'http://127.0.0.1:1' }).findSize('p/a')).rejects.toMatchObject({
      message: 'The bucket cannot be reached (ECONNREFUSED): try again shortly',
    });
  });

  it.each(['http://127.0.0.1', 'http://localhost', 'http://[::1]', 'http://[::ffff:127.0.0.1]', 'http://0.0.0.0'])(
    'sends nothing to %s when private addresses are not allowed',
    async (host) => {
      const store = open({ endpoint: `${host}:${new URL(double.url).port}` }, { allowPrivate: false });
      for (const call of [() => store.findSize('p/a'), () => store.preflightPut('p/a', 'https://app.test')])
        await expect(call()).rejects.toMatchObject({ message: 'The bucket’s address is private and may not be used' });
      expect(double.requests).toEqual([]);
    },
  );

  describe('CORS', () => {
    it('is off until applied, then lets the named origins PUT', async () => {
      const store = open();
      expect(await store.preflightPut('p/a', 'https://app.test')).toEqual({ allowed: false, status: 403 });
      await store.applyCors(['https://app.test']);
      expect(await store.preflightPut('p/a', 'https://app.test')).toEqual({ allowed: true, status: 200 });
      expect((await store.preflightPut('p/a', 'https://evil.test')).allowed).toBe(false);
    });
  });

  it('has public addresses only when the bucket has one', () => {
    expect(open({ publicUrl: 'https://cdn.test/f' }).publicUrl('p/a.png', '')).toBe('https://cdn.test/f/p/a.png');
    expect(open({ publicUrl: null }).publicUrl('p/a.png', '')).toBeNull();
  });
});
