import { once } from 'node:events';
import { mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { request, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { openSeed } from '../helpers/seed.js';
import { use, useTestApp } from '../helpers/use.js';

const PAGE = '<!doctype html><title>app</title>';
const SCRIPT = 'console.log(1);'.repeat(100);
const MOVIE = Buffer.from(Array.from({ length: 200_000 }, (_, at) => at % 251));
const SECRET = 'SECRET, for nobody';
/** What a build of Vite writes, and what must not be served. */
const FILES: Record<string, string | Buffer> = {
  'dist/index.html': PAGE,
  'dist/about.html': 'about',
  'dist/docs/index.html': 'docs',
  'dist/404.html': 'nothing here',
  'dist/assets/index-Dk3xF9aQ.js': SCRIPT,
  'dist/assets/index-Dk3xF9aQ.js.br': brotliCompressSync(SCRIPT),
  'dist/assets/index-Dk3xF9aQ.js.gz': gzipSync(SCRIPT),
  'dist/assets/main.3f2a1b4c.css': 'a{}',
  'dist/jquery-validation.js': 'plain',
  'dist/photo-20261129.jpg': 'photo',
  'dist/empty.txt': '',
  'dist/movie.mp4': MOVIE,
  'dist/über uns.txt': 'umlaut',
  'dist/.well-known/assetlinks.json': '[]',
  'dist/api/data/posts': SECRET,
  'dist/console/index.html': SECRET,
  'dist/files/a.txt': SECRET,
  'dist/.env': SECRET,
  'dist/.git/config': SECRET,
  'dist/docs/.htpasswd': SECRET,
  'secret.txt': SECRET,
  'dist-2/secret.txt': SECRET,
};

const dir = use(await openTempDir());
for (const [path, content] of Object.entries(FILES)) {
  mkdirSync(dirname(join(dir.path, path)), { recursive: true });
  writeFileSync(join(dir.path, path), content);
}
const links = { 'out.txt': '../secret.txt', beside: '../dist-2', up: '..', hidden: '.env', here: 'about.html' };
for (const [name, target] of Object.entries(links)) symlinkSync(target, join(dir.path, 'dist', name));
const publicDir = { BSVC_PUBLIC_DIR: join(dir.path, 'dist') };
const site = await useTestApp({ settings: { ...publicDir, BSVC_RATE_LIMIT: '5/15m' } });
const app = await useTestApp({ settings: { ...publicDir, BSVC_PUBLIC_SPA: 'true', BSVC_RATE_LIMIT: 'off' } });

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Sends the path as it stands: fetch would tidy it up. */
function ask(to: TestApp, path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  const { port } = new URL(to.url);
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path, method, headers }, (reply) => {
      const parts: Buffer[] = [];
      reply.on('data', (part: Buffer) => parts.push(part));
      reply.on('end', () => resolve({ status: reply.statusCode!, headers: reply.headers, body: Buffer.concat(parts) }));
    });
    asked.on('error', reject).end();
  });
}

const HTML = { accept: 'text/html,*/*;q=0.8' };
const ETERNAL = 'public, max-age=31536000, immutable';

describe('the files of a folder', () => {
  it.each([
    ['/', 200, 'text/html; charset=utf-8', 'no-cache', PAGE],
    ['/index.html', 200, 'text/html; charset=utf-8', 'no-cache', PAGE],
    ['/about', 200, 'text/html; charset=utf-8', 'no-cache', 'about'],
    ['/about.html', 200, 'text/html; charset=utf-8', 'no-cache', 'about'],
    ['/here', 200, 'application/octet-stream', 'no-cache', 'about'],
    ['/docs/', 200, 'text/html; charset=utf-8', 'no-cache', 'docs'],
    ['/assets/index-Dk3xF9aQ.js?v=1', 200, 'text/javascript; charset=utf-8', ETERNAL, SCRIPT],
    ['/assets/main.3f2a1b4c.css', 200, 'text/css; charset=utf-8', ETERNAL, 'a{}'],
    ['/jquery-validation.js', 200, 'text/javascript; charset=utf-8', 'no-cache', 'plain'],
    ['/photo-20261129.jpg', 200, 'image/jpeg', 'no-cache', 'photo'],
    ['/empty.txt', 200, 'text/plain; charset=utf-8', 'no-cache', ''],
    ['/%C3%BCber%20uns.txt', 200, 'text/plain; charset=utf-8', 'no-cache', 'umlaut'],
    ['/u%CC%88ber%20uns.txt', 200, 'text/plain; charset=utf-8', 'no-cache', 'umlaut'],
    ['/.well-known/assetlinks.json', 200, 'application/json; charset=utf-8', 'no-cache', '[]'],
  ])('%s', async (path, status, type, cached, body) => {
    const reply = await ask(site, path);
    expect([reply.status, reply.headers['content-type'], reply.headers['cache-control']]).toEqual([
      status,
      type,
      cached,
    ]);
    expect(reply.body.toString()).toBe(body);
    expect(reply.headers['content-length']).toBe(String(Buffer.byteLength(body)));
    // No policy of the API, under which no page would run.
    expect(reply.headers['content-security-policy']).toBe("frame-ancestors 'self'");
    expect(reply.headers['x-content-type-options']).toBe('nosniff');
    const head = await ask(site, path, {}, 'HEAD');
    expect([head.status, head.headers['content-length'], head.body.length]).toEqual([
      status,
      reply.headers['content-length'],
      0,
    ]);
    const copy = await ask(site, path, { 'if-none-match': reply.headers.etag! });
    expect([copy.status, copy.body.length, copy.headers.etag]).toEqual([304, 0, reply.headers.etag]);
  });

  it('are sent as they were compressed, to who reads that, and whole ones are told apart', async () => {
    const path = '/assets/index-Dk3xF9aQ.js';
    const etags = new Set<string>();
    for (const [accepts, encoding, bytes] of [
      ['br, gzip', 'br', FILES['dist/assets/index-Dk3xF9aQ.js.br']],
      ['gzip', 'gzip', FILES['dist/assets/index-Dk3xF9aQ.js.gz']],
      ['br;q=0, identity', undefined, Buffer.from(SCRIPT)],
      ['', undefined, Buffer.from(SCRIPT)],
    ] as const) {
      const reply = await ask(site, path, { 'accept-encoding': accepts });
      expect(reply.headers['content-encoding']).toBe(encoding);
      expect(reply.headers['content-type']).toBe('text/javascript; charset=utf-8');
      expect(reply.body.equals(bytes as Buffer)).toBe(true);
      expect(reply.headers.vary).toContain('Accept-Encoding');
      etags.add(reply.headers.etag!);
      expect((await ask(site, path, { 'accept-encoding': accepts, 'if-none-match': reply.headers.etag! })).status).toBe(
        304,
      );
    }
    expect(etags.size).toBe(3);
  });

  it('can be asked for in part', async () => {
    const whole = await ask(site, '/movie.mp4');
    expect(whole.body.equals(MOVIE)).toBe(true);
    for (const [range, start, end] of [
      ['bytes=0-99', 0, 99],
      ['bytes=100000-', 100_000, 199_999],
      ['bytes=-1', 199_999, 199_999],
      ['bytes=199990-999999', 199_990, 199_999],
    ] as const) {
      const part = await ask(site, '/movie.mp4', { range, 'accept-encoding': 'br' });
      expect([part.status, part.headers['content-range']]).toEqual([206, `bytes ${start}-${end}/200000`]);
      expect(part.body.equals(MOVIE.subarray(start, end + 1))).toBe(true);
    }
    const beyond = await ask(site, '/movie.mp4', { range: 'bytes=200000-' });
    expect([beyond.status, beyond.headers['content-range'], beyond.headers['cache-control']]).toEqual([
      416,
      'bytes */200000',
      'no-store',
    ]);
    const other = await ask(site, '/movie.mp4', { range: 'bytes=0-1', 'if-range': '"other"' });
    expect([other.status, other.body.length]).toEqual([200, 200_000]);
  });

  it('leave the service its own paths, and what they do not have', async () => {
    expect((await ask(app, '/api/health')).headers['content-type']).toContain('application/json');
    expect((await ask(app, '/console/', HTML)).body.toString()).not.toContain(SECRET);
    expect((await ask(app, '/llms.txt', { accept: 'text/plain' })).body.toString()).toContain('bsvc');
    expect((await ask(app, '/', {}, 'POST')).status).toBe(405);
    const folder = await ask(site, '/docs');
    expect([folder.status, folder.headers.location]).toEqual([308, 'docs/']);
  });

  it('are counted by no limit of the API', async () => {
    for (let n = 0; n < 20; n++) expect((await ask(site, '/')).headers['ratelimit-limit']).toBeUndefined();
    expect((await ask(site, '/api/nothing')).status).toBe(404);
  });
});

describe('what is no file', () => {
  it('is the page 404.html to who goes there, and an error of the API to programs', async () => {
    const page = await ask(site, '/nowhere', HTML);
    expect([page.status, page.body.toString(), page.headers['cache-control']]).toEqual([
      404,
      'nothing here',
      'no-cache',
    ]);
    const error = await ask(site, '/nowhere.js', { accept: '*/*' });
    expect([error.status, error.headers['content-type']]).toEqual([404, 'application/json; charset=utf-8']);
  });

  it('is index.html for a front end with routes of its own, where somebody goes there, and there alone', async () => {
    for (const path of ['/lists/7', '/users/ada@example.com', '/a/b/c.html'])
      expect((await ask(app, path, HTML)).body.toString()).toBe(PAGE);
    const navigation = { accept: '*/*', 'sec-fetch-mode': 'navigate' };
    expect((await ask(app, '/lists/7', navigation)).body.toString()).toBe(PAGE);
    for (const headers of [{ accept: '*/*' }, { ...HTML, 'sec-fetch-mode': 'no-cors' }])
      expect((await ask(app, '/assets/old-Dk3xF9aQ.js', headers)).status).toBe(404);
    expect((await ask(app, '/api/nothing', HTML)).status).toBe(404);
  });

  it('is said at the start', async () => {
    const settings = { BSVC_PUBLIC_DIR: join(dir.path, 'none') };
    await expect(openTestApp({ settings })).rejects.toMatchObject({ code: 'NO_PUBLIC_DIR' });
  });
});

describe('hostile paths', () => {
  it('links that lead out are named in the log, and not served', async () => {
    const line = site.logLines.find((each) => each.includes('lead out of the folder'))!;
    for (const name of ['out.txt', 'beside', 'up', 'hidden']) expect(line).toContain(name);
  });

  it('get nothing that is not in the folder', async () => {
    const secrets = [
      ...['secret.txt', '.env', '.git/config', 'docs/.htpasswd', 'out.txt', 'beside/secret.txt', 'up/secret.txt'],
      ...['hidden', 'dist-2/secret.txt', 'console/index.html', 'files/a.txt', 'api/data/posts', 'etc/passwd'],
    ];
    const step = fc.constantFrom(
      ...[
        '..',
        '.',
        '%2e%2e',
        '%2E.',
        '..%2f',
        '..%5c',
        '..\\',
        '%00',
        '%252e%252e',
        '',
        'docs',
        'assets',
        'docs%2f..',
      ],
      ...['%c0%ae%c0%ae', '.git', '....', ';', '%', '%zz', '*', '~'],
    );
    const separator = fc.constantFrom('/', '//', '%2f', '%2F', '\\', '%5c', '/./');
    const path = fc
      .tuple(fc.array(fc.tuple(step, separator), { maxLength: 6 }), fc.constantFrom(...secrets), fc.boolean())
      .map(([steps, name, isEncoded]) => {
        const end = isEncoded ? name.replaceAll('.', '%2e').replaceAll('/', '%2f') : name;
        return `/${steps.flat().join('')}${end}`;
      });
    await fc.assert(
      fc.asyncProperty(path, fc.boolean(), async (hostile, spa) => {
        const { body, status } = await ask(spa ? app : site, hostile, HTML);
        expect(body.includes(SECRET), hostile).toBe(false);
        expect(status, hostile).toBeLessThan(500);
      }),
      { numRuns: 500, seed: openSeed('public folder') },
    );
  });
});

describe('a front end that is built anew', () => {
  it('is served without a restart, and what has gone is 404 as long as it is gone', async () => {
    const dist = join(dir.path, 'dist');
    const next = new Date(Date.now() + 5_000);
    writeFileSync(join(dist, 'assets/index-N3wBu1ld.js'), 'new');
    writeFileSync(join(dist, 'index.html'), 'new page');
    utimesSync(join(dist, 'index.html'), next, next);
    rmSync(join(dist, 'assets/index-Dk3xF9aQ.js'));
    expect((await ask(app, '/assets/index-N3wBu1ld.js')).status).toBe(404);
    expect((await ask(app, '/')).body.toString()).toBe('new page');
    expect((await ask(app, '/assets/index-N3wBu1ld.js')).body.toString()).toBe('new');
    expect((await ask(app, '/assets/index-Dk3xF9aQ.js')).status).toBe(404);
    renameSync(dist, `${dist}-away`);
    expect((await ask(app, '/about')).status).toBe(404);
    renameSync(`${dist}-away`, dist);
    expect((await ask(app, '/about')).body.toString()).toBe('about');
  });

  it.each([
    ['a folder', (path: string) => mkdirSync(path)],
    ['a link', (path: string) => symlinkSync('../secret.txt', path)],
    ['nothing', () => undefined],
  ])('has no file where %s has taken its place', async (_what, place) => {
    const path = join(dir.path, 'dist', 'photo-20261129.jpg');
    rmSync(path);
    place(path);
    const { status, headers } = await ask(site, '/photo-20261129.jpg');
    expect([status, headers.etag]).toEqual([404, undefined]);
    rmSync(path, { recursive: true, force: true });
    writeFileSync(path, 'photo');
    writeFileSync(join(dir.path, 'dist', 'index.html'), PAGE);
    await ask(site, '/');
  });

  it('cuts a reply off when its file becomes shorter: the next one is never taken for its rest', async () => {
    const path = join(dir.path, 'dist', 'movie.mp4');
    // More than the system keeps for a connection that nobody reads from.
    truncateSync(path, 64 * 1024 * 1024);
    const socket = connect(Number(new URL(site.url).port), '127.0.0.1');
    const lines = (name: string): string => `GET ${name} HTTP/1.1\r\nHost: x\r\n\r\n`;
    socket.write(lines('/movie.mp4') + lines('/about'));
    await once(socket, 'readable');
    truncateSync(path, 1000);
    let status = '';
    const received = socket.on('error', () => undefined).setEncoding('latin1') as AsyncIterable<string>;
    try {
      for await (const text of received) status += text.match(/HTTP\/1\.1 \d+/g)?.join(' ') ?? '';
    } catch {
      // Reset, as it is to be.
    }
    expect(status).toBe('HTTP/1.1 200');
    writeFileSync(path, MOVIE);
  });
});
