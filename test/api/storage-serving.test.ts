import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';
import { openStorageClient, type StorageClient } from '../helpers/storage-client.js';

let test: TestApp;
let owner: TestProject;
let storage: StorageClient;
let text: { path: string; url: string };

beforeAll(async () => {
  test = await openTestApp();
  owner = await buildProject(test.app);
  storage = openStorageClient(test, owner.secret);
  text = await upload('0123456789', 'digits.txt', 'text/plain');
});
afterAll(() => test.close());

async function upload(bytes: string, name: string, type: string): Promise<{ path: string; url: string }> {
  const { path, url } = (await storage.upload(bytes, name, type)).body;
  return { path, url: url! };
}

const get = (url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
  fetch(url, { method, headers });

/** GET of a target exactly as written: fetch would tidy it up first. */
function getRaw(path: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(test.url);
    const request = httpRequest({ hostname, port, path, method: 'GET' }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode!, body: Buffer.concat(chunks).toString() }));
    });
    request.on('error', reject);
    request.end();
  });
}

describe('GET /files/:project/:name', () => {
  it('needs no key and never lets a file act as a page', async () => {
    const reply = await get(text.url);
    expect(reply.status).toBe(200);
    expect(await reply.text()).toBe('0123456789');
    expect(Object.fromEntries(reply.headers)).toMatchObject({
      'content-type': 'text/plain',
      'content-length': '10',
      'content-disposition': 'inline; filename="digits.txt"',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cross-origin-resource-policy': 'cross-origin',
      'accept-ranges': 'bytes',
    });
  });

  it('answers HEAD with the same headers and no body', async () => {
    const reply = await get(text.url, {}, 'HEAD');
    expect(reply.status).toBe(200);
    expect(reply.headers.get('content-length')).toBe('10');
    expect(await reply.text()).toBe('');
  });

  it.each([
    ['bytes=0-3', 206, '0123', 'bytes 0-3/10'],
    ['bytes=8-', 206, '89', 'bytes 8-9/10'],
    ['bytes=8-100', 206, '89', 'bytes 8-9/10'],
    ['bytes=-3', 206, '789', 'bytes 7-9/10'],
    ['bytes=-100', 206, '0123456789', 'bytes 0-9/10'],
    ['bytes=9-9', 206, '9', 'bytes 9-9/10'],
    ['bytes=5-2', 200, '0123456789', null],
    ['bytes=0-1,3-4', 200, '0123456789', null],
    ['lines=0-1', 200, '0123456789', null],
    ['bytes=--1', 200, '0123456789', null],
  ])('answers Range: %s with %d', async (range, status, body, contentRange) => {
    const reply = await get(text.url, { range });
    expect(reply.status).toBe(status);
    expect(await reply.text()).toBe(body);
    expect(reply.headers.get('content-range')).toBe(contentRange);
  });

  it.each(['bytes=10-', 'bytes=-0', 'bytes=99-100'])('answers 416 for Range: %s', async (range) => {
    const reply = await get(text.url, { range });
    expect(reply.status).toBe(416);
    expect(reply.headers.get('content-range')).toBe('bytes */10');
    expect(await reply.json()).toMatchObject({ success: false, code: 'RANGE_NOT_SATISFIABLE' });
  });

  it('answers 304 to a client that has the version, and whole files to an If-Range of another', async () => {
    const etag = (await get(text.url)).headers.get('etag')!;
    const same = await get(text.url, { 'if-none-match': `"other", ${etag}` });
    expect(same.status).toBe(304);
    expect(await same.text()).toBe('');
    expect((await get(text.url, { 'if-none-match': '"other"' })).status).toBe(200);
    expect((await get(text.url, { range: 'bytes=0-1', 'if-range': etag })).status).toBe(206);
    expect((await get(text.url, { range: 'bytes=0-1', 'if-range': '"other"' })).status).toBe(200);
  });

  it.each([
    ['image/png', 'a.png', 'inline', 'image/png'],
    ['image/jpeg', 'a.jpg', 'inline', 'image/jpeg'],
    ['video/mp4', 'a.mp4', 'inline', 'video/mp4'],
    ['audio/mpeg', 'a.mp3', 'inline', 'audio/mpeg'],
    ['application/pdf', 'a.pdf', 'inline', 'application/pdf'],
    ['text/html', 'a.html', 'attachment', 'application/octet-stream'],
    ['TEXT/HTML', 'a.png', 'attachment', 'application/octet-stream'],
    ['text/html', 'a.png', 'attachment', 'application/octet-stream'],
    ['image/svg+xml', 'a.svg', 'attachment', 'application/octet-stream'],
    ['application/xhtml+xml', 'a.xhtml', 'attachment', 'application/octet-stream'],
    ['text/xml', 'a.xml', 'attachment', 'application/octet-stream'],
    ['application/javascript', 'a.js', 'attachment', 'application/octet-stream'],
    ['text/css', 'a.css', 'attachment', 'application/octet-stream'],
    ['application/zip', 'a.zip', 'attachment', 'application/octet-stream'],
    ['nonsense', 'a.html', 'inline', 'text/plain'],
  ])('serves a file sent as %s (%s) as %s, %s', async (type, name, disposition, served) => {
    const { url } = await upload('<script>alert(1)</script>', name, type);
    const reply = await get(url);
    expect(reply.headers.get('content-type')).toBe(served);
    expect(reply.headers.get('content-disposition')).toBe(`${disposition}; filename="${name}"`);
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
    expect(reply.headers.get('content-security-policy')).toContain('sandbox');
  });

  it('shows html named .png as a broken image at most: the type is the sender’s, the content is never sniffed', async () => {
    const reply = await get((await upload('<html><script>alert(1)</script>', 'x.png', 'image/png')).url);
    expect(reply.headers.get('content-type')).toBe('image/png');
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('answers 404 for every path that is not exactly a stored file’s, and touches nothing', async () => {
    const id = owner.project._id.toHexString();
    const name = text.path.split('/')[1]!;
    await writeFile(join(test.dataDir, 'private.txt'), 'for nobody');
    const attacks = [
      `/files/../private.txt`,
      `/files/${id}/../../private.txt`,
      `/files/${id}/..%2f..%2fprivate.txt`,
      `/files/%2e%2e/private.txt`,
      `/files/..%2fprivate.txt`,
      `/files/%2e%2e%2fprivate.txt`,
      `/files//etc/passwd`,
      `/files/%2fetc%2fpasswd`,
      `/files/${id}`,
      `/files/${id}/`,
      `/files/`,
      `/files`,
      `/files/${id}/${name}%00`,
      `/files/${id}/${name}%00.png`,
      `/files/${id}/%00`,
      `/files/${id}/.`,
      `/files/${id}/..`,
      `/files/${id}\\..\\${name}`,
      `/files/${id}/${name}/`,
      `/files/${id}/./${name}`,
      `/files//${id}/${name}`,
      `/files/${id}//${name}`,
      `/files/${id.toUpperCase()}/${name}`,
      `/files/${id}/${encodeURIComponent(name).replace('_', '%5f')}`,
      `/files/${id}/${name.toUpperCase()}`,
      `/files/${id}/%`,
      `/files/${id}/%ff`,
      `/files/${id}/%c0%ae%c0%ae/private.txt`,
      `/files/incoming/x`,
      `/Files/${id}/${name}`,
      `/files/${id}/${'a'.repeat(5000)}`,
    ];
    for (const path of attacks) {
      const { status, body } = await getRaw(path);
      expect({ path, status }).toEqual({ path, status: 404 });
      expect(body).not.toContain('for nobody');
    }
    expect((await get(text.url)).status).toBe(200);
  });

  it('follows no symbolic link, of a file or of a directory', async () => {
    const victim = await upload('mine', 'mine.txt', 'text/plain');
    const path = join(test.dataDir, 'files', victim.path);
    await rm(path);
    await symlink(join(test.dataDir, 'private.txt'), path);
    expect((await get(victim.url)).status).toBe(404);
    const other = await buildProject(test.app);
    const theirs = (await openStorageClient(test, other.secret).upload('theirs', 'a.txt', 'text/plain')).body;
    const folder = dirname(join(test.dataDir, 'files', theirs.path));
    await writeFile(join(test.dataDir, 'private.txt'), 'for nobody');
    const outside = join(test.dataDir, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, theirs.path.split('/')[1]!), 'outside');
    await rm(folder, { recursive: true });
    await symlink(outside, folder);
    expect((await get(theirs.url!)).status).toBe(404);
    expect((await openStorageClient(test, other.secret).remove(theirs.path)).status).toBe(200);
    expect(await readFile(join(outside, theirs.path.split('/')[1]!), 'utf8')).toBe('outside');
  });

  it('answers 404 once the file is deleted', async () => {
    const { path, url } = await upload('gone', 'gone.txt', 'text/plain');
    expect((await get(url)).status).toBe(200);
    await storage.remove(path);
    expect((await get(url)).status).toBe(404);
  });

  it('answers 405 for other methods', async () => {
    const reply = await get(text.url, {}, 'DELETE');
    expect(reply.status).toBe(405);
    expect(reply.headers.get('allow')).toBe('GET, HEAD, OPTIONS, PUT');
  });
});
