import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { beforeEach, describe, expect, it } from 'vitest';
import { measureStorage, updateProject } from '../world/projects.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { listStoredFiles, openStorageClient, putSigned, type StorageClient } from '../helpers/storage-client.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, openUserClient } from '../helpers/user-client.js';

const MIB = 1024 * 1024;

let owner: TestProject;
let storage: StorageClient;

const test = await useTestApp();
beforeEach(async () => {
  owner = await buildProject(test.app);
  storage = openStorageClient(test, owner.secret);
});

const usedBytes = async (): Promise<number> => (await measureStorage(test.app, owner.project)).bytes;
const storedFiles = async (): Promise<string[]> =>
  (await listStoredFiles(test.dataDir)).filter(
    (path) => path.includes(owner.project._id.toHexString()) || path.includes('incoming'),
  );

const nothingIsLeft = () => eventually('nothing is left', async () => (await storedFiles()).length === 0);

async function arrivedBytes(): Promise<number> {
  const paths = await listStoredFiles(test.dataDir);
  const sizes = await Promise.all(paths.map(async (path) => (await stat(path)).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

describe('POST /api/storage/upload', () => {
  it('stores the file and answers 201 with path, url and provider', async () => {
    const bytes = randomBytes(1000);
    const reply = await storage.upload(bytes, 'Über uns (1).png');
    expect(reply.status).toBe(201);
    expect(reply.body).toEqual({
      message: 'File uploaded',
      path: expect.stringMatching(new RegExp(`^${owner.project._id.toHexString()}/[0-9a-f-]{36}_Uber-uns-1-.png$`)),
      url: `${test.url}/files/${reply.body.path}`,
      provider: 'internal',
    });
    const read = await fetch(reply.body.url!);
    expect(Buffer.from(await read.arrayBuffer()).equals(bytes)).toBe(true);
    expect(await usedBytes()).toBe(1000);
  });

  it('takes an empty file', async () => {
    const reply = await storage.upload('', 'empty.txt', 'text/plain');
    expect(reply.status).toBe(201);
    const read = await fetch(reply.body.url!);
    expect(read.status).toBe(200);
    expect(await read.text()).toBe('');
  });

  it('takes exactly 10 MiB', async () => {
    const reply = await storage.upload(new Uint8Array(10 * MIB));
    expect(reply.status).toBe(201);
    expect(await usedBytes()).toBe(10 * MIB);
  });

  it('answers 413 for one byte more, and leaves nothing behind', async () => {
    const reply = await storage.upload(new Uint8Array(10 * MIB + 1));
    expect(reply.status).toBe(413);
    expect(reply.body).toMatchObject({ success: false, code: 'FILE_TOO_LARGE' });
    expect(await storedFiles()).toEqual([]);
    expect(await usedBytes()).toBe(0);
  });

  it('answers 413 while a much larger body is still being sent', async () => {
    const upload = openRawUpload(owner.secret);
    const answered = upload.answer;
    let sent = 0;
    let done = false;
    void answered.then(() => (done = true));
    const chunk = Buffer.alloc(256 * 1024);
    while (!done && sent < 40 * MIB) {
      await upload.write(chunk);
      sent += chunk.length;
    }
    expect((await answered).status).toBe(413);
    expect(sent).toBeLessThan(40 * MIB);
    upload.destroy();
    expect(await storedFiles()).toEqual([]);
  });

  it('answers 400 FILE_MISSING without the field "file"', async () => {
    const other = await storage.upload('x', 'a.png', 'image/png', 'image');
    expect(other.status).toBe(400);
    expect(other.body.code).toBe('FILE_MISSING');
    const json = await fetch(`${test.url}/api/storage/upload`, {
      method: 'POST',
      headers: { 'x-api-key': owner.secret, 'content-type': 'application/json' },
      body: '{}',
    });
    expect(json.status).toBe(400);
    expect(await json.json()).toMatchObject({ code: 'FILE_MISSING' });
    const empty = await fetch(`${test.url}/api/storage/upload`, {
      method: 'POST',
      headers: { 'x-api-key': owner.secret },
      body: new FormData(),
    });
    expect(empty.status).toBe(400);
  });

  it('answers 400 for two files and keeps neither', async () => {
    const form = new FormData();
    form.append('file', new File(['one'], 'a.txt'));
    form.append('file', new File(['two'], 'b.txt'));
    const reply = await fetch(`${test.url}/api/storage/upload`, {
      method: 'POST',
      headers: { 'x-api-key': owner.secret },
      body: form,
    });
    expect(reply.status).toBe(400);
    expect(await storedFiles()).toEqual([]);
    expect(await usedBytes()).toBe(0);
  });

  it('keeps the bytes on disk, not in memory, while twenty uploads arrive', async () => {
    const uploads = Array.from({ length: 20 }, () => openRawUpload(owner.secret));
    await Promise.all(uploads.map((upload) => upload.write(Buffer.alloc(5 * MIB))));
    const held = 20 * 256 * 1024;
    await eventually('almost all of it is on disk', async () => (await arrivedBytes()) > 20 * 5 * MIB - held);
    for (const upload of uploads) upload.destroy();
    await nothingIsLeft();
  });

  it('leaves nothing behind when the client goes away in the middle', async () => {
    const upload = openRawUpload(owner.secret);
    await upload.write(Buffer.alloc(3 * MIB));
    await eventually('it arrives', async () => (await storedFiles()).length > 0);
    upload.destroy();
    await nothingIsLeft();
    expect(await usedBytes()).toBe(0);
  });

  it('answers 400 for a form without its end, and leaves nothing behind', async () => {
    const body = `--B\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\nbytes`;
    for (const broken of [
      body,
      `${body}\r\n--B`,
      `${body}\r\n--B\r\nContent-Disposition: form-data; name="x"\r\n\r\ny`,
    ]) {
      const reply = await fetch(`${test.url}/api/storage/upload`, {
        method: 'POST',
        headers: { 'x-api-key': owner.secret, 'content-type': 'multipart/form-data; boundary=B' },
        body: broken,
      });
      expect(reply.status).toBe(400);
      expect(await reply.json()).toMatchObject({ code: 'INVALID_BODY' });
    }
    expect(await storedFiles()).toEqual([]);
    expect(await usedBytes()).toBe(0);
  });

  it('answers 403 QUOTA_EXCEEDED beyond the quota, and leaves nothing behind', async () => {
    await updateProject(test.app, owner.project.name, { limits: { storage: 1000 } });
    expect((await storage.upload(new Uint8Array(600))).status).toBe(201);
    const reply = await storage.upload(new Uint8Array(401));
    expect(reply.status).toBe(403);
    expect(reply.body.code).toBe('QUOTA_EXCEEDED');
    expect(await storedFiles()).toHaveLength(1);
    expect((await storage.upload(new Uint8Array(400))).status).toBe(201);
    expect(await usedBytes()).toBe(1000);
  });

  it('never overruns the quota when many uploads come at its edge', async () => {
    await updateProject(test.app, owner.project.name, { limits: { storage: 1000 } });
    const replies = await Promise.all(Array.from({ length: 30 }, () => storage.upload(new Uint8Array(100))));
    expect(replies.filter((reply) => reply.status === 201)).toHaveLength(10);
    expect(replies.filter((reply) => reply.status === 403)).toHaveLength(20);
    expect(await usedBytes()).toBe(1000);
    expect(await storedFiles()).toHaveLength(10);
  });

  it.each([
    ['no key', undefined, 401, 'API_KEY_MISSING'],
    ['an unknown key', `sk_live_${'x'.repeat(43)}`, 401, 'API_KEY_INVALID'],
  ])('answers 401 with %s', async (_what, key, status, code) => {
    const reply = await openStorageClient(test, key ?? '').upload('x');
    expect(reply.status).toBe(status);
    expect(reply.body.code).toBe(code);
    expect(await storedFiles()).toEqual([]);
  });

  it('takes a publishable key only when the project says so', async () => {
    const browser = openStorageClient(test, owner.publishable);
    const refused = await browser.upload('x');
    expect(refused.status).toBe(403);
    expect(refused.body.code).toBe('SECRET_KEY_REQUIRED');
    await updateProject(test.app, owner.project.name, { publishableUploads: true });
    const { status, body } = await browser.upload('x');
    expect(status).toBe(201);
    expect((await browser.remove(body.path)).status).toBe(401);
    expect((await browser.removeAll()).status).toBe(403);
  });
});

describe('DELETE /api/storage/file with a publishable key', () => {
  const signIn = async (): Promise<StorageClient> => {
    const { body } = await openUserClient(test, owner.publishable).signUp();
    return openStorageClient(test, owner.publishable, bearer((body as { accessToken: string }).accessToken));
  };
  beforeEach(() => updateProject(test.app, owner.project.name, { publishableUploads: true }));

  it('deletes files that the same signed-in user uploaded, in either way', async () => {
    const ann = await signIn();
    const direct = (await ann.upload('x')).body.path;
    const { signedUrl, filePath } = (await ann.request({ filename: 'a', contentType: 'image/png', size: 1 })).body;
    await putSigned(signedUrl, 'x', 'image/png');
    expect((await ann.confirm({ filePath, size: 1 })).status).toBe(200);
    for (const path of [direct, filePath]) expect((await ann.remove(path)).status).toBe(200);
    expect(await storedFiles()).toEqual([]);
  });

  it.each([
    ['another user', (): Promise<StorageClient> => signIn(), 403, 'OWNER_MISMATCH'],
    ['nobody', () => Promise.resolve(openStorageClient(test, owner.publishable)), 401, 'AUTH_REQUIRED'],
    [
      'a bad token',
      () => Promise.resolve(openStorageClient(test, owner.publishable, bearer('x.y.z'))),
      401,
      'TOKEN_INVALID',
    ],
  ])('refuses to delete for %s what a user, the server or a visitor uploaded', async (_who, client, status, code) => {
    const uploaders = [await signIn(), storage, openStorageClient(test, owner.publishable)];
    const paths = await Promise.all(uploaders.map(async (uploader) => (await uploader.upload('kept')).body.path));
    const stranger = await client();
    for (const path of paths) expect(await stranger.remove(path)).toMatchObject({ status, body: { code } });
    for (const path of paths) expect(await (await fetch(`${test.url}/files/${path}`)).text()).toBe('kept');
    for (const path of paths) expect((await storage.remove(path)).status).toBe(200);
  });
});

/** A multipart upload whose body is written by hand, chunk by chunk, and never ends by itself. */
function openRawUpload(key: string): {
  answer: Promise<{ status: number }>;
  write(chunk: Buffer): Promise<void>;
  destroy(): void;
} {
  const request = httpRequest(`${test.url}/api/storage/upload`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'multipart/form-data; boundary=B', 'transfer-encoding': 'chunked' },
  });
  const answer = new Promise<{ status: number }>((resolve) => {
    request.on('response', (response) => {
      response.resume();
      resolve({ status: response.statusCode! });
    });
  });
  request.on('error', () => undefined);
  request.write(
    '--B\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\nContent-Type: image/png\r\n\r\n',
  );
  return {
    answer,
    write: (chunk) => new Promise((resolve) => void request.write(chunk, () => resolve())),
    destroy: () => request.destroy(),
  };
}
