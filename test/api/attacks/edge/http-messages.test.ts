import { connect } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { createApi, startServer } from '../../../world/app.js';
import { setSocialProvider, updateProject } from '../../../world/projects.js';
import { buildCollection, buildProject } from '../../../helpers/build-project.js';
import { use } from '../../../helpers/use.js';
import { asSecret, buildStranger, fire, openStage, outcomeOf } from '../stage.js';

const stage = use(await openStage());
const own = await buildStranger(stage);
await buildCollection(stage.app, own.project, { name: 'things' });
await setSocialProvider(stage.app, own.project, {
  name: 'github',
  clientId: 'id',
  clientSecret: 'secret',
  redirectUrls: ['https://app.example.test/'],
});
/** The server as it is in production, with its own answers to what is no HTTP. */
const server = await startServer(createApi(stage.app), '127.0.0.1', 0);
afterAll(async () => {
  await server.stop(0);
});

interface Reply {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Sends bytes exactly as written and reads until the server closes, as it has to; the replies one after the other. */
function speak(...parts: string[]): Promise<Reply[]> {
  return new Promise((resolve) => {
    const socket = connect(server.port, '127.0.0.1');
    const heard: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => heard.push(chunk));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(parseReplies(Buffer.concat(heard).toString('latin1'))));
    for (const part of parts) socket.write(part, 'latin1');
  });
}

function parseReplies(text: string): Reply[] {
  const replies: Reply[] = [];
  for (let rest = text; rest.startsWith('HTTP/1.1 ');) {
    const end = rest.indexOf('\r\n\r\n');
    const [first, ...lines] = rest.slice(0, end).split('\r\n') as [string, ...string[]];
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    ) as Record<string, string>;
    const length = Number(headers['content-length'] ?? 0);
    replies.push({ status: Number(first.split(' ')[1]), headers, body: rest.slice(end + 4, end + 4 + length) });
    rest = rest.slice(end + 4 + length);
  }
  return replies;
}

/** Every refusal is JSON of the one shape with a request id, whoever wrote it. */
function expectRefusal(reply: Reply | undefined, status: number): void {
  expect(reply).toMatchObject({ status, headers: { 'content-type': 'application/json; charset=utf-8' } });
  const body = JSON.parse(reply!.body) as { requestId: string };
  expect(body).toMatchObject({ success: false, data: {}, code: expect.any(String), message: expect.any(String) });
  expect(reply!.headers['x-request-id']).toBe(body.requestId);
}

const get = (rest: string): string => `GET /api/health/live HTTP/1.1\r\nHost: x\r\n${rest}\r\n`;
const post = (headers: string, body: string, path = '/api/data/things'): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${own.secret}\r\nContent-Type: application/json\r\n${headers}\r\n${body}`;
const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';

/**
 * Messages whose end two parsers could see in different places. What follows them must never be taken for a request.
 */
const AMBIGUOUS: readonly [what: string, message: () => string][] = [
  [
    'Content-Length and Transfer-Encoding',
    () => post('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n', `0\r\n\r\n${SMUGGLED}`),
  ],
  [
    'Transfer-Encoding and Content-Length',
    () => post('Transfer-Encoding: chunked\r\nContent-Length: 4\r\n', `0\r\n\r\n${SMUGGLED}`),
  ],
  ['two lengths that differ', () => post('Content-Length: 2\r\nContent-Length: 40\r\n', `{}${SMUGGLED}`)],
  ['a list of lengths', () => post('Content-Length: 2, 40\r\n', `{}${SMUGGLED}`)],
  ['a negative length', () => post('Content-Length: -2\r\n', `{}${SMUGGLED}`)],
  ['a length with a sign', () => post('Content-Length: +2\r\n', `{}${SMUGGLED}`)],
  ['a hexadecimal length', () => post('Content-Length: 0x2\r\n', `{}${SMUGGLED}`)],
  ['a length beyond numbers', () => post(`Content-Length: ${'9'.repeat(40)}\r\n`, `{}${SMUGGLED}`)],
  ['an unknown transfer encoding', () => post('Transfer-Encoding: xchunked\r\n', `0\r\n\r\n${SMUGGLED}`)],
  ['chunked, but not last', () => post('Transfer-Encoding: chunked, identity\r\n', `0\r\n\r\n${SMUGGLED}`)],
  [
    'two transfer encodings',
    () => post('Transfer-Encoding: identity\r\nTransfer-Encoding: xchunked\r\n', `0\r\n\r\n${SMUGGLED}`),
  ],
  ['a space before the colon', () => post('Transfer-Encoding : chunked\r\nContent-Length: 2\r\n', `{}${SMUGGLED}`)],
  ['a vertical tab in the encoding', () => post('Transfer-Encoding: \x0bchunked\r\n', `0\r\n\r\n${SMUGGLED}`)],
  ['a folded header', () => post('Transfer-Encoding:\r\n chunked\r\nContent-Length: 2\r\n', `{}${SMUGGLED}`)],
  ['a bare line feed in the headers', () => post('X-A: b\nContent-Length: 0\r\n', SMUGGLED)],
  ['a bare carriage return in the headers', () => post('X-A: b\rContent-Length: 0\r\n', SMUGGLED)],
  ['a NUL in a header', () => post('X-A: b\0c\r\nContent-Length: 0\r\n', SMUGGLED)],
  ['a chunk size that is no number', () => post('Transfer-Encoding: chunked\r\n', `zz\r\n{}\r\n0\r\n\r\n${SMUGGLED}`)],
  [
    'a chunk size beyond numbers',
    () => post('Transfer-Encoding: chunked\r\n', `ffffffffffffffffff\r\n{}\r\n0\r\n\r\n${SMUGGLED}`),
  ],
  [
    'a chunk that is longer than it says',
    () => post('Transfer-Encoding: chunked\r\n', `1\r\n{}\r\n0\r\n\r\n${SMUGGLED}`),
  ],
  [
    'chunk extensions without end',
    () => post('Transfer-Encoding: chunked\r\n', `2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n${SMUGGLED}`),
  ],
];

describe('a message whose end is not clear', () => {
  it.each(AMBIGUOUS)('(%s) is refused, and what follows it is no request', async (_what, message) => {
    const replies = await speak(message());
    expect(replies.length).toBeLessThanOrEqual(1);
    expectRefusal(replies[0], 400);
    expect(JSON.stringify(replies)).not.toContain('smuggled');
  });

  it('unlike two requests one after the other, which are two', async () => {
    const replies = await speak(post('Content-Length: 2\r\n', '{}'), get('Connection: close\r\n'));
    expect(replies.map(({ status }) => status)).toEqual([201, 200]);
  });
});

/** Things that are no HTTP request, or not one of ours. */
const MALFORMED: readonly [what: string, status: number, message: () => string][] = [
  ['nothing but noise', 400, () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
  ['the beginning of HTTP/2', 400, () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['an unknown version', 400, () => 'GET / HTTP/9.9\r\nHost: x\r\n\r\n'],
  ['no version', 404, () => 'GET /nothing\r\n\r\n'],
  ['no host', 400, () => 'GET /api/health/live HTTP/1.1\r\n\r\n'],
  ['two hosts', 400, () => get('Host: y\r\n')],
  ['the same host twice', 400, () => get('hOST: x\r\n')],
  ['two hosts in an older version', 400, () => 'GET /api/health/live HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n'],
  ['a method in small letters', 400, () => 'get /api/health/live HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['an invented method', 400, () => 'SMUGGLE /api/health/live HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a method of 10,000 letters', 400, () => `${'A'.repeat(10_000)} / HTTP/1.1\r\nHost: x\r\n\r\n`],
  ['a space in the path', 400, () => 'GET /api/health live HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a header without a name', 400, () => get(': x\r\n')],
  ['a header without a colon', 400, () => get('nonsense\r\n')],
  ['a header of 100,000 characters', 431, () => get(`X-A: ${'a'.repeat(100_000)}\r\n`)],
  ['20,000 headers', 431, () => get('a: b\r\n'.repeat(20_000))],
  ['a path of 100,000 characters', 431, () => `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
  [
    'an expectation nobody knows',
    417,
    () => post('Content-Length: 2\r\nExpect: miracles\r\nConnection: close\r\n', '{}'),
  ],
  ['a request for a tunnel', 405, () => 'CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\n\r\n'],
];

describe('what is no request of this service', () => {
  it.each(MALFORMED)('(%s) is answered %i in the one shape, and others are served', async (_what, status, message) => {
    expectRefusal((await speak(message()))[0], status);
    expect((await speak(get('Connection: close\r\n')))[0]?.status).toBe(200);
  });

  it('by a method that no route has is 404 or 405 with Allow', async () => {
    for (const method of ['TRACE', 'PROPFIND', 'PURGE', 'LINK', 'M-SEARCH', 'DELETE']) {
      const [reply] = await speak(`${method} /api/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expectRefusal(reply, 405);
      expect(reply!.headers.allow).toBe('GET, HEAD, OPTIONS');
      expect(reply!.body).not.toContain('Host');
    }
  });

  it('is not upgraded to another protocol', async () => {
    for (const protocol of ['websocket', 'h2c', 'TLS/1.0']) {
      const upgrade = `Connection: Upgrade, close\r\nUpgrade: ${protocol}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZQ==\r\nHTTP2-Settings: AAA\r\n`;
      const [reply] = await speak(get(upgrade));
      expect({ protocol, status: reply?.status }).toEqual({ protocol, status: 200 });
    }
  });

  it('is not made another method by a header or a parameter', async () => {
    const { _id } = JSON.parse((await asSecret(stage, own)('POST', '/api/data/things', { a: 1 })).text) as {
      _id: string;
    };
    const overrides = { 'x-http-method-override': 'DELETE', 'x-method-override': 'DELETE', 'x-http-method': 'DELETE' };
    const path = `/api/data/things/${_id}`;
    expect((await asSecret(stage, own)('GET', path, undefined, overrides)).status).toBe(200);
    expect((await asSecret(stage, own)('GET', path)).status).toBe(200);
  });
});

/** Ways to write an address. `outcome` is what the way leads to; none may lead around a guard. */
const ADDRESSES: readonly [target: string, outcome: string][] = [
  ['/api/data/users', '403 USERS_BLOCKED'],
  ['/api/data/Users', '403 USERS_BLOCKED'],
  ['/api/data/%75sers', '403 USERS_BLOCKED'],
  ['/api/data/users/', '403 USERS_BLOCKED'],
  ['/api/data/users%2f', '403 USERS_BLOCKED'],
  ['/api/data/usersX', '403 USERS_BLOCKED'],
  ['/api/data/users;x=1', '403 USERS_BLOCKED'],
  ['/api/data/users?x', '403 USERS_BLOCKED'],
  ['/api/data/users%00', '403 USERS_BLOCKED'],
  ['/api/data//users', '404 NOT_FOUND'],
  ['/api/data/./users', '404 COLLECTION_NOT_FOUND'],
  ['/api/data/things/../users', '404 NOT_FOUND'],
  ['/api/data/%2e%2e/users', '404 COLLECTION_NOT_FOUND'],
  ['/api//data/users', '404 NOT_FOUND'],
  ['//api/data/users', '404 NOT_FOUND'],
  ['/api/data\\users', '404 NOT_FOUND'],
  ['/API/data/users', '404 NOT_FOUND'],
  ['/api/Data/things', '404 NOT_FOUND'],
  ['/api/data/things#fragment', '200'],
  ['http://evil.test/api/data/things', '200'],
  ['http://evil.test/api/data/users', '403 USERS_BLOCKED'],
  ['https://user:password@evil.test/api/data/users', '403 USERS_BLOCKED'],
  ['file:///etc/passwd', '404 NOT_FOUND'],
  ['*', '404 NOT_FOUND'],
  ['/%', '404 NOT_FOUND'],
  ['/%00', '404 NOT_FOUND'],
  ['/api/data/%', '404 COLLECTION_NOT_FOUND'],
  ['/api/data/%ff', '404 COLLECTION_NOT_FOUND'],
  ['/api/data/%E0%80%AF', '404 COLLECTION_NOT_FOUND'],
  ['/api/data/things%0d%0aX-Evil:%201', '404 COLLECTION_NOT_FOUND'],
  ['/api/projects/..%2fadmin/me', '404 NOT_FOUND'],
  ['/metrics/../api/health', '404 NOT_FOUND'],
  ['/metrics', '401 AUTH_REQUIRED'],
  ['/metrics/', '401 AUTH_REQUIRED'],
  ['/api/health/live/', '200'],
  ['/api/health/live/x', '404 NOT_FOUND'],
  ['/..;/metrics', '404 NOT_FOUND'],
];

describe('an address', () => {
  it.each(ADDRESSES)('%s leads to %s', async (target, outcome) => {
    const answer = await fire(stage, { method: 'GET', path: target, headers: { 'x-api-key': own.secret } });
    expect(outcomeOf(answer)).toBe(outcome);
    expect(answer.headers).not.toHaveProperty('x-evil');
    expect(answer.headers).not.toHaveProperty('location');
  });
});

/**
 * Header values that would like to become more than a value. Node’s own client refuses to send them, so they go by
 * hand.
 */
const CRLF = [
  'a%0d%0aX-Evil: 1',
  'a\\r\\nX-Evil: 1',
  'a\u00c4\u008d\u008aX-Evil: 1',
  "a';--",
  '<script>',
  'a'.repeat(5000),
  '\u00ff\u00fe',
];

describe('what is echoed', () => {
  it.each(CRLF)('%s stays one value, or is not echoed', async (value) => {
    const headers = [
      'x-request-id',
      'origin',
      'host',
      'x-forwarded-for',
      'x-forwarded-host',
      'x-refresh-token-mode',
      'idempotency-key',
      'access-control-request-headers',
      'user-agent',
      'cookie',
      'range',
      'if-none-match',
      'accept-language',
    ];
    for (const name of headers) {
      const host = name === 'host' ? '' : 'Host: x\r\n';
      for (const [method, path] of [
        ['GET', '/api/data/things'],
        ['OPTIONS', '/api/data/things'],
        ['POST', '/api/userAuth/login'],
      ] as const) {
        const [reply] = await speak(
          `${method} ${path} HTTP/1.1\r\n${host}x-api-key: ${own.publishable}\r\n${name}: ${value}\r\nOrigin: https://a.test\r\nConnection: close\r\n\r\n`,
        );
        expect({ name, method, status: reply?.status }).not.toMatchObject({ status: 500 });
        expect(reply?.headers).not.toHaveProperty('x-evil');
        expect(reply?.headers['x-request-id']).toMatch(/^[\w.:-]{1,128}$/);
      }
    }
  });

  it('of an origin is the origin alone, only where it is admitted, and never a wildcard with credentials', async () => {
    const { project, publishable } = await buildProject(stage.app);
    await updateProject(stage.app, project.name, { allowedDomains: ['a.test'] });
    for (const origin of [
      'null',
      'https://a.test',
      'https://a.test https://b.test',
      'file://',
      'chrome-extension://x',
      'https://a.test%0d%0aX: y',
    ]) {
      const headers = { 'x-api-key': publishable, origin };
      const answer = await fire(stage, { method: 'GET', path: '/api/data/things', headers });
      const echoed = origin === 'https://a.test' ? origin : undefined;
      expect({ origin, echoed: answer.headers['access-control-allow-origin'] }).toEqual({ origin, echoed });
      expect(answer.headers.vary).toContain('Origin');
    }
  });

  it('of a host goes into no stored thing and no other client’s answer', async () => {
    const form = '--B\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nbytes\r\n--B--\r\n';
    const path = '/api/storage/upload';
    const headers = {
      host: 'evil.test',
      'x-forwarded-host': 'evil.test',
      'content-type': 'multipart/form-data; boundary=B',
    };
    const poisoned = await asSecret(stage, own)('POST', path, form, headers);
    expect(poisoned.status).toBe(201);
    const { path: stored } = JSON.parse(poisoned.text) as { path: string };
    const confirmed = await asSecret(stage, own)('POST', '/api/storage/upload-confirm', { filePath: stored, size: 5 });
    expect(JSON.parse(confirmed.text)).toMatchObject({ url: `${stage.url}/files/${stored}` });
  });

  const hosts = [
    '',
    '[',
    'a b',
    'a:b:c',
    'x:99999',
    '\u00ff',
    '%00',
    'a/../b',
    'a@b',
    '#',
    '?',
    '0x7f.1',
    'a'.repeat(3000),
  ];
  it.each(hosts)('the host %j breaks no route that speaks of addresses', async (host) => {
    const length = 'Content-Length: 2\r\nContent-Type: application/json\r\nConnection: close\r\n';
    for (const target of [
      'PUT /files/a/b',
      'GET /files/a/b',
      'POST /api/storage/upload-request',
      `GET /api/userAuth/social/github/start?key=${own.publishable}`,
      'GET /api/health',
      'PUT /files/a?signature=x',
    ]) {
      const [reply] = await speak(`${target} HTTP/1.1\r\nHost: ${host}\r\nx-api-key: ${own.secret}\r\n${length}\r\n{}`);
      expect({ target, status: reply?.status }).toMatchObject({
        status: expect.toSatisfy((status: number) => status >= 200 && status < 500) as number,
      });
    }
  });
});

describe('every answer', () => {
  it.each([
    ['GET', '/api/data/things'],
    ['GET', '/api/data/nothing'],
    ['GET', '/nowhere'],
    ['GET', '/files/a/b'],
    ['GET', '/api/health'],
    ['POST', '/api/userAuth/login'],
    ['GET', '/api/projects'],
    ['DELETE', '/api/health'],
  ])('(%s %s) tells browsers not to guess and not to frame, and nobody what it runs on', async (method, path) => {
    const { headers } = await fire(stage, { method, path, headers: { 'x-api-key': own.publishable } });
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'content-security-policy': "default-src 'none';frame-ancestors 'none'",
      'x-request-id': expect.any(String),
    });
    expect(headers).not.toHaveProperty('x-powered-by');
    expect(headers).not.toHaveProperty('server');
  });
});
