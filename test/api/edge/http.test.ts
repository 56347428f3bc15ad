import { gzipSync } from 'node:zlib';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { revokeKey, updateProject } from '../../world/projects.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);
const collection = await buildCollection(test.app, owner.project);
const path = `/api/data/${collection.name}`;

const post = () => request(test.server).post(path).set('x-api-key', owner.secret);

describe('every error reply', () => {
  it('has one shape, with the request id of the header', async () => {
    const reply = await request(test.server).get('/api/nowhere');
    expect(reply.status).toBe(404);
    expect(reply.body).toEqual({
      success: false,
      data: {},
      message: 'No such endpoint: GET /api/nowhere. See /api/docs',
      error: reply.body.message,
      code: 'NOT_FOUND',
      requestId: reply.headers['x-request-id'],
      docs: '/api/docs/guides/data',
    });
    expect(reply.headers['content-type']).toMatch(/^application\/json/);
  });

  it('keeps a well-formed request id and replaces any other', async () => {
    const kept = await request(test.server).get('/api/nowhere').set('x-request-id', 'trace-1:a.b');
    expect(kept.body.requestId).toBe('trace-1:a.b');
    const replaced = await request(test.server).get('/api/nowhere').set('x-request-id', 'a b"<script>');
    expect(replaced.body.requestId).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('answers 405 with Allow for a known path and another method', async () => {
    const reply = await request(test.server).delete('/api/health');
    expect(reply.status).toBe(405);
    expect(reply.body.code).toBe('METHOD_NOT_ALLOWED');
    expect(reply.headers.allow).toBe('GET, HEAD, OPTIONS');
  });
});

describe('reading a JSON body', () => {
  const refused: [string, (call: request.Test) => request.Test, number, string][] = [
    ['malformed JSON', (call) => call.type('json').send('{"a":'), 400, 'INVALID_JSON'],
    ['a body in another format', (call) => call.type('form').send('a=1'), 400, 'INVALID_BODY'],
    ['an array where an object is required', (call) => call.send([1]), 400, 'INVALID_BODY'],
    ['a number where an object is required', (call) => call.type('json').send('5'), 400, 'INVALID_BODY'],
    ['null where an object is required', (call) => call.type('json').send('null'), 400, 'INVALID_BODY'],
    ['no body at all', (call) => call, 400, 'INVALID_BODY'],
    ['more than 1 MiB', (call) => call.send({ text: 'x'.repeat(2 * 1024 * 1024) }), 413, 'BODY_TOO_LARGE'],
    [
      '40 levels of nesting',
      (call) => call.type('json').send('{"a":'.repeat(40) + '1' + '}'.repeat(40)),
      400,
      'INVALID_BODY',
    ],
    [
      '100,000 levels of nesting',
      (call) => call.type('json').send('['.repeat(100_000) + ']'.repeat(100_000)),
      413,
      'TOO_MANY_VALUES',
    ],
    ['broken gzip', (call) => call.type('json').set('Content-Encoding', 'gzip').send('not gzip'), 400, 'INVALID_JSON'],
    [
      'an unknown encoding',
      (call) => call.type('json').set('Content-Encoding', 'zstd').send('{}'),
      400,
      'INVALID_JSON',
    ],
  ];
  it.each(refused)('refuses %s', async (_what, send, status, code) => {
    const reply = await send(post());
    expect([reply.status, reply.body.code]).toEqual([status, code]);
    expect(reply.body.success).toBe(false);
  });

  it('refuses a gzip bomb by its unpacked size', async () => {
    const bomb = gzipSync(JSON.stringify({ text: 'x'.repeat(50 * 1024 * 1024) }));
    const answer = await fetch(test.url + path, {
      method: 'POST',
      headers: { 'x-api-key': owner.secret, 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: bomb,
    });
    expect(answer.status).toBe(413);
  });
});

describe('the header x-api-key', () => {
  const refused: [string, string | undefined, string][] = [
    ['is missing', undefined, 'API_KEY_MISSING'],
    ['is not in the form of a key', 'hello', 'API_KEY_INVALID'],
    ['has the wrong prefix', `xk_live_${'a'.repeat(43)}`, 'API_KEY_INVALID'],
    ['is unknown', `sk_live_${'a'.repeat(43)}`, 'API_KEY_INVALID'],
  ];
  it.each(refused)('is answered 401 when it %s', async (_what, key, code) => {
    const call = request(test.server).get(path);
    if (key) call.set('x-api-key', key);
    const reply = await call;
    expect([reply.status, reply.body.code]).toEqual([401, code]);
  });

  it('is answered 401 from the moment the key is revoked', async () => {
    const { project, secret } = await buildProject(test.app);
    const call = () => request(test.server).get('/api/data/none').set('x-api-key', secret);
    expect((await call()).status).toBe(404);
    await revokeKey(test.app, project, project.keys[1]!.id.toHexString());
    expect((await call()).body.code).toBe('API_KEY_INVALID');
  });
});

describe('CORS and the domain allowlist', () => {
  const origin = 'https://app.example.com';

  it('answers a preflight without a key', async () => {
    const reply = await request(test.server)
      .options(path)
      .set('Origin', origin)
      .set('Access-Control-Request-Method', 'POST')
      .set('Access-Control-Request-Headers', 'baggage,content-type,sentry-trace,traceparent,x-api-key');
    expect(reply.status).toBe(204);
    expect(reply.headers['access-control-allow-origin']).toBe(origin);
    expect(reply.headers['access-control-allow-credentials']).toBe('true');
    expect(reply.headers['access-control-allow-methods']).toBe('GET,POST,PUT,PATCH,DELETE,OPTIONS');
    // Monitoring adds headers of its own to the requests of a page.
    expect(reply.headers['access-control-allow-headers']).toBe(
      'baggage,content-type,sentry-trace,traceparent,x-api-key',
    );
    expect(reply.headers.vary).toContain('Origin');
  });

  it('echoes an admitted origin, on errors too', async () => {
    const reply = await request(test.server)
      .get('/api/data/none')
      .set('x-api-key', owner.publishable)
      .set('Origin', origin);
    expect(reply.status).toBe(404);
    expect(reply.headers['access-control-allow-origin']).toBe(origin);
    const exposed = reply.headers['access-control-expose-headers']!.split(',');
    expect(exposed).toEqual(expect.arrayContaining(['x-request-id', 'etag', 'content-range', 'accept-ranges']));
  });

  const entries: [string, string, boolean][] = [
    ['https://app.example.com', 'https://app.example.com', true],
    ['https://app.example.com', 'http://app.example.com', false],
    ['app.example.com', 'http://app.example.com', true],
    ['app.example.com', 'https://app.example.com:8443', true],
    ['app.example.com', 'https://evil-app.example.com', false],
    ['*.example.com', 'https://app.example.com', true],
    ['*.example.com', 'https://a.b.example.com', true],
    ['*.example.com', 'https://example.com', false],
    ['*.example.com', 'https://example.com.evil.test', false],
    ['*.example.com', 'null', false],
    ['localhost:3000', 'http://localhost:3000', true],
    ['localhost:3000', 'http://localhost:3001', false],
    ['*.example.com:8443', 'https://app.example.com:8443', true],
    ['*.example.com:8443', 'https://app.example.com', false],
    ['https://app.example.com:443', 'https://app.example.com', true],
    ['http://app.example.com:443', 'https://app.example.com', false],
    ['app.example.com:443', 'https://app.example.com', true],
    ['app.example.com:443', 'http://app.example.com', false],
  ];
  it.each(entries)('with the entry %s treats %s as admitted: %s', async (entry, from, admitted) => {
    const { project, publishable, secret } = await buildProject(test.app);
    await updateProject(test.app, project.name, { allowedDomains: [entry] });
    const reply = await request(test.server).get('/api/data/none').set('x-api-key', publishable).set('Origin', from);
    expect(reply.body.code).toBe(admitted ? 'COLLECTION_NOT_FOUND' : 'ORIGIN_NOT_ALLOWED');
    expect(reply.headers['access-control-allow-origin']).toBe(admitted ? from : undefined);
    const server = await request(test.server).get('/api/data/none').set('x-api-key', secret);
    expect(server.body.code).toBe('COLLECTION_NOT_FOUND');
  });
});

describe('GET /api/health', () => {
  it('answers the state of the dependencies', async () => {
    const reply = await request(test.server).get('/api/health');
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({
      status: 'ok',
      version: expect.any(String),
      dependencies: { database: 'connected' },
    });
    expect(new Date(reply.body.timestamp).toISOString()).toBe(reply.body.timestamp);
  });

  it('answers 503 when the database is gone, while /live goes on', async () => {
    const other = await useTestApp();
    await other.app.close();
    const reply = await request(other.server).get('/api/health');
    expect([reply.status, reply.body.status, reply.body.dependencies.database]).toEqual([503, 'error', 'disconnected']);
    const ready = await request(other.server).get('/api/health/ready');
    expect([ready.status, ready.body]).toEqual([503, { status: 'disconnected' }]);
    expect((await request(other.server).get('/api/health/live')).status).toBe(200);
  });
});
