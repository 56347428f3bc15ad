import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildProject } from '../../helpers/build-project.js';
import { openStorageClient } from '../../helpers/storage-client.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);
const storage = openStorageClient(test, owner.secret);
const text = await upload('0123456789', 'digits.txt', 'text/plain');

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

  /** Conditions of RFC 9110 13 in the order in which they are evaluated; `tag` and `date` are those of the file. */
  it.each([
    ['If-None-Match of the version', { 'if-none-match': 'tag' }, 304],
    ['a weak one', { 'if-none-match': 'W/tag' }, 304],
    ['any version', { 'if-none-match': '*' }, 304],
    ['another version', { 'if-none-match': '"other"' }, 200],
    ['If-Modified-Since its date', { 'if-modified-since': 'date' }, 304],
    ['a later date', { 'if-modified-since': 'later' }, 304],
    ['an earlier date', { 'if-modified-since': 'earlier' }, 200],
    ['what is no date', { 'if-modified-since': 'yesterday' }, 200],
    ['another version, although unmodified', { 'if-none-match': '"other"', 'if-modified-since': 'date' }, 200],
    ['the version, although modified', { 'if-none-match': 'tag', 'if-modified-since': 'earlier' }, 304],
    ['If-Match of the version', { 'if-match': 'tag' }, 200],
    ['If-Match of another version', { 'if-match': '"other"' }, 412],
    ['If-Unmodified-Since its date', { 'if-unmodified-since': 'date' }, 200],
    ['If-Unmodified-Since an earlier date', { 'if-unmodified-since': 'earlier' }, 412],
    ['If-Match before If-Unmodified-Since', { 'if-match': 'tag', 'if-unmodified-since': 'earlier' }, 200],
    ['If-Match before If-None-Match', { 'if-match': '"other"', 'if-none-match': 'tag' }, 412],
  ])('answers %s (%o) with %d, to GET and HEAD', async (_name, conditions, status) => {
    const { headers } = await get(text.url);
    const [tag, date] = [headers.get('etag')!, headers.get('last-modified')!];
    const day = 86_400_000;
    const dates: Record<string, string> = {
      date,
      later: new Date(Date.parse(date) + day).toUTCString(),
      earlier: new Date(Date.parse(date) - day).toUTCString(),
    };
    const sent = Object.fromEntries(
      Object.entries(conditions).map(([name, value]) => [name, dates[value] ?? value.replace('tag', tag)]),
    );
    for (const method of ['GET', 'HEAD']) expect((await get(text.url, sent, method)).status).toBe(status);
  });

  it.each(['文档.pdf', 'قائمة.pdf', 'ファイル 2.pdf', 'смета.pdf', 'Ünïcode.pdf', 'नमस्ते.pdf', '😀.pdf', 'a;b, c.pdf'])(
    'keeps the extension of %s in the path, and its name for whoever saves it',
    async (name) => {
      const signed = await storage.request({ filename: name, contentType: 'application/pdf', size: 2 });
      expect(signed.body.filePath).toMatch(/_[\w.-]*\w\.pdf$/);
      const { url, path } = await upload('x', name, 'application/pdf');
      expect(path).toMatch(/_[\w.-]*\w\.pdf$/);
      const disposition = (await get(url)).headers.get('content-disposition')!;
      const [, encoded] = /filename\*=UTF-8''([^;]+)/.exec(disposition) ?? [];
      const [, quoted] = /filename="((?:[^"\\]|\\.)*)"/.exec(disposition) ?? [];
      expect(encoded === undefined ? quoted?.replace(/\\(.)/g, '$1') : decodeURIComponent(encoded)).toBe(name);
    },
  );

  it.each([
    ['text/plain; charset=utf-8', 'text/plain; charset=utf-8'],
    ['text/plain;charset="utf-8"', 'text/plain;charset="utf-8"'],
    ['Text/Plain; Charset=Shift_JIS', 'Text/Plain; Charset=Shift_JIS'],
    ['audio/webm;codecs=opus', 'audio/webm;codecs=opus'],
    ['video/mp4; codecs="avc1.42E01E, mp4a.40.2"', 'video/mp4; codecs="avc1.42E01E, mp4a.40.2"'],
    ['text/plain; charset=utf-8; format=flowed', 'text/plain; charset=utf-8; format=flowed'],
    ['text/plain; x="<script>"', 'text/plain'],
    ['text/html; charset=utf-8', 'application/octet-stream'],
  ])('serves a part of type %s as %s', async (type, served) => {
    const head = `--B\r\nContent-Disposition: form-data; name="note"\r\n\r\ncontent-type: text/css\r\n`;
    const part = `--B\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\nContent-Type: ${type}\r\n\r\n`;
    const sent = await fetch(`${test.url}/api/storage/upload`, {
      method: 'POST',
      headers: { 'x-api-key': owner.secret, 'content-type': 'multipart/form-data; boundary=B' },
      body: `${head}${part}Content-Type: text/html\r\n\r\nx\r\n--B--\r\n`,
    });
    const { url } = (await sent.json()) as { url: string };
    expect((await get(url)).headers.get('content-type')).toBe(served);
  });

  it('takes the slash of a path encoded, too', async () => {
    expect(await (await get(text.url.replace(text.path, encodeURIComponent(text.path)))).text()).toBe('0123456789');
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
