import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/platform/time/clock.js';
import { openLocalStore } from '../../../src/platform/object-store/local-store.js';
import { isObjectKey, type ObjectStore } from '../../../src/platform/object-store/object-store.js';
import type { BucketAccess } from '../../../src/platform/object-store/s3-client.js';
import { openS3Store } from '../../../src/platform/object-store/s3-store.js';
import { openSpool } from '../../../src/platform/object-store/spool.js';
import { openSecretBox } from '../../../src/platform/secrets/secret-box.js';
import { openS3Double } from '../../helpers/s3-double.js';
import { openTempDir, type TempDir } from '../../helpers/temp-dir.js';

const MIB = 1024 * 1024;
const PLAIN = { contentType: 'application/octet-stream', attachment: false };

/** One store under test, and another way to look at what it stored. */
interface Subject {
  store: ObjectStore;
  read(key: string): Promise<Buffer>;
  /** Names of files that are still arriving. */
  listArriving(): Promise<string[]>;
  close(): Promise<void>;
}

const realBucket = readRealBucket();

const SUBJECTS: [string, () => Promise<Subject>][] = [
  ['local', openLocalSubject],
  ['s3, against the double', async () => openS3Subject(await openS3Double())],
  ...(realBucket
    ? [
        [
          's3, against BSVC_TEST_S3_ENDPOINT',
          () => openS3Subject({ access: realBucket, close: () => Promise.resolve() }),
        ] as [string, () => Promise<Subject>],
      ]
    : []),
];

describe.each(SUBJECTS)('object store: %s', (_name, open) => {
  let subject: Subject;
  const folder = `t${randomBytes(6).toString('hex')}`;
  const newKey = (): string => `${folder}/${randomUUID()}_file.bin`;

  beforeAll(async () => void (subject = await open()));
  afterAll(() => subject.close());

  it('stores what the stream gives and tells its size', async () => {
    const key = newKey();
    const bytes = randomBytes(3 * MIB + 17);
    expect(await subject.store.put(key, Readable.from(inPieces(bytes)), PLAIN)).toMatchObject({ size: bytes.length });
    expect(await subject.store.findSize(key)).toBe(bytes.length);
    expect(hash(await subject.read(key))).toBe(hash(bytes));
    expect(await subject.listArriving()).toEqual([]);
    await subject.store.remove(key);
  });

  it('stores an empty object', async () => {
    const key = newKey();
    expect(await subject.store.put(key, Readable.from([]), PLAIN)).toMatchObject({ size: 0 });
    expect(await subject.store.findSize(key)).toBe(0);
    await subject.store.remove(key);
  });

  it('replaces an object as a whole', async () => {
    const key = newKey();
    await subject.store.put(key, Readable.from([Buffer.alloc(9, 'a')]), PLAIN);
    await subject.store.put(key, Readable.from([Buffer.from('new')]), PLAIN);
    expect((await subject.read(key)).toString()).toBe('new');
    await subject.store.remove(key);
  });

  it('stores nothing when the stream fails, and keeps what was there', async () => {
    const [absent, present] = [newKey(), newKey()];
    await subject.store.put(present, Readable.from([Buffer.from('old')]), PLAIN);
    for (const key of [absent, present])
      await expect(subject.store.put(key, Readable.from(broken()), PLAIN)).rejects.toThrow('the client went away');
    expect(await subject.store.findSize(absent)).toBeNull();
    expect((await subject.read(present)).toString()).toBe('old');
    expect(await subject.listArriving()).toEqual([]);
    await subject.store.remove(present);
  });

  it('ends with one whole object when many are put under one key at once', async () => {
    const key = newKey();
    const bodies = Array.from({ length: 12 }, (_, i) => Buffer.alloc(64 * 1024, i));
    await Promise.all(bodies.map((body) => subject.store.put(key, Readable.from(inPieces(body)), PLAIN)));
    const stored = await subject.read(key);
    expect(bodies.some((body) => body.equals(stored))).toBe(true);
    await subject.store.remove(key);
  });

  it('removes, and again', async () => {
    const key = newKey();
    await subject.store.put(key, Readable.from([Buffer.from('x')]), PLAIN);
    await subject.store.remove(key);
    await subject.store.remove(key);
    expect(await subject.store.findSize(key)).toBeNull();
  });

  it('finds nothing where nothing is', async () => {
    expect(await subject.store.findSize(newKey())).toBeNull();
  });

  it.each([
    '../x',
    'a/../b',
    'a/..',
    '/etc/passwd',
    'a',
    'a/b/c',
    'a//b',
    'a/b\0',
    'a\\b/c',
    '.a/b',
    'a/.b',
    'a/%2e%2e',
  ])('takes no key like %j', async (key) => {
    expect(isObjectKey(key)).toBe(false);
    await expect(subject.store.findSize(key)).rejects.toThrow('not an object key');
    await expect(subject.store.put(key, Readable.from([]), PLAIN)).rejects.toThrow('not an object key');
    await expect(subject.store.remove(key)).rejects.toThrow('not an object key');
  });
});

async function openLocalSubject(): Promise<Subject> {
  const dir = await openTempDir();
  const spool = openSpool(join(dir.path, 'incoming'));
  const store = openLocalStore({
    dir: join(dir.path, 'files'),
    spool,
    secrets: openSecretBox('master'),
    clock: systemClock,
  });
  return {
    store,
    read: (key) => readFile(join(dir.path, 'files', key)),
    listArriving: () => listArriving(dir),
    close: () => dir.remove(),
  };
}

async function openS3Subject(endpoint: { access: BucketAccess; close(): Promise<void> }): Promise<Subject> {
  const { GetObjectCommand, S3Client } = await import('@aws-sdk/client-s3');
  const dir = await openTempDir();
  const { access } = endpoint;
  const store = openS3Store(access, { allowPrivate: true, spool: openSpool(join(dir.path, 'incoming')) });
  const reader = new S3Client({
    region: access.region,
    ...(access.endpoint && { endpoint: access.endpoint }),
    forcePathStyle: access.forcePathStyle,
    credentials: access,
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  return {
    store,
    read: async (key) => {
      const found = await reader.send(new GetObjectCommand({ Bucket: access.bucket, Key: key }));
      return Buffer.from(await found.Body!.transformToByteArray());
    },
    listArriving: () => listArriving(dir),
    close: async () => {
      store.close();
      reader.destroy();
      await endpoint.close();
      await dir.remove();
    },
  };
}

function readRealBucket(): BucketAccess | null {
  const env = (name: string): string | null => process.env[`BSVC_TEST_S3_${name}`] || null;
  if (!env('ENDPOINT')) return null;
  return {
    endpoint: env('ENDPOINT'),
    region: env('REGION') ?? 'us-east-1',
    bucket: env('BUCKET') ?? 'bsvc-test',
    accessKeyId: env('ACCESS_KEY_ID') ?? '',
    secretAccessKey: env('SECRET_ACCESS_KEY') ?? '',
    publicUrl: null,
    forcePathStyle: env('FORCE_PATH_STYLE') !== 'false',
  };
}

async function listArriving(dir: TempDir): Promise<string[]> {
  return (await readdir(dir.path)).includes('incoming') ? readdir(join(dir.path, 'incoming')) : [];
}

function* inPieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 16_384) yield bytes.subarray(at, at + 16_384);
}

async function* broken(): AsyncGenerator<Buffer> {
  yield Buffer.alloc(100_000);
  await Promise.resolve();
  throw new Error('the client went away');
}

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
