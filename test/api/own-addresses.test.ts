import { createHmac } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import supertest, { type Test } from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import { listCalls } from '../world/hooks.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use, useTestApp } from '../helpers/use.js';
import { bearer, openUserClient } from '../helpers/user-client.js';

let owner: TestProject;

const folder = use(await openTempDir());
const settings = { BSVC_HOOKS_DIR: folder.path, BSVC_RATE_LIMIT: 'off', BSVC_BCRYPT_COST: '4' };
const test = await useTestApp({ settings });
test.app.ownCode.serveAt(test.url);
beforeEach(async () => {
  owner = await buildProject(test.app);
});

/** The project's file with these handlers, as the text of an object's members. */
async function handling(members: string, { head = '', file = 'shop.mjs', of = owner } = {}): Promise<void> {
  const dir = join(folder.path, of.project.name);
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, file), `${head}\nexport default { ${members} };\n`);
}

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete' | 'head';
const call = (method: Method, path: string, headers: Record<string, string> = {}): Test =>
  supertest(test.url)
    [method](`/api/run/${path}`)
    .set({ 'x-api-key': owner.publishable, ...headers });
const withoutKey = (method: Method, path: string): Test => supertest(test.url)[method](`/api/run/${path}`);

describe('an address of a file', () => {
  it('answers with what its handler returns, of what was sent', async () => {
    await handling(`
      'POST /quote': ({ request, caller }) => ({
        status: 201, headers: { 'x-shop': 'ours', ETag: '"1"' },
        body: { cents: request.body.quantity * 700, by: caller, query: request.query, method: request.method },
      }),
      'GET /shop/hello': () => ({ body: 'Hello' }),
      'PUT /nothing': () => undefined,
      'DELETE /response': () => Response.json({ gone: true }, { status: 202 }),
      'PATCH /bytes': ({ request }) => ({ body: request.rawBody, headers: { 'content-type': 'image/png' } }),
      'GET /moved': () => ({ status: 303, headers: { location: 'https://shop.example/thanks' } }),`);
    const quote = await call('post', 'quote?a=1&b=2&b=3').send({ quantity: 2 }).expect(201);
    expect(quote.body).toEqual({
      cents: 1400,
      by: { userId: null, roles: [], ip: '127.0.0.1' },
      query: { a: '1', b: ['2', '3'] },
      method: 'POST',
    });
    expect(quote.headers).toMatchObject({ 'x-shop': 'ours', etag: '"1"', 'cache-control': 'no-store' });
    expect((await call('get', 'shop/hello').expect(200)).text).toBe('Hello');
    expect((await call('head', 'shop/hello').expect(200)).headers['content-length']).toBe('5');
    expect((await call('put', 'nothing').expect(204)).text).toBe('');
    expect((await call('delete', 'response').expect(202)).body).toEqual({ gone: true });
    const bytes = Buffer.from([0, 255, 10, 13]);
    const echoed = await call('patch', 'bytes').set('content-type', 'image/png').send(bytes).buffer(true);
    expect(echoed.body).toEqual(bytes);
    expect((await call('get', 'moved').redirects(0).expect(303)).headers.location).toBe('https://shop.example/thanks');
  });

  it('acts as its caller under the rules, and as the project by itself', async () => {
    await buildCollection(test.app, owner.project, { name: 'prices', rules: 'server-only' as never });
    await supertest(test.url).post('/api/data/prices').set('x-api-key', owner.secret).send({ each: 3 }).expect(201);
    await handling(`
      'GET /prices': async ({ caller, api }) => {
        const mine = await api.as(caller).collection('prices').list().then(() => 'seen', (error) => error.code);
        const { items } = await api.collection('prices').list();
        return { body: { each: items[0].each, mine, userId: caller.userId } };
      },`);
    const { accessToken, user } = (await openUserClient(test, owner.publishable).signUp()).body as {
      accessToken: string;
      user: { _id: string };
    };
    const { body } = await call('get', 'prices', bearer(accessToken)).expect(200);
    expect(body).toEqual({ each: 3, mine: 'READ_BLOCKED', userId: user._id });
  });

  it('is unknown, known by another method, or in need of a key', async () => {
    await call('get', 'quote').expect(404);
    await handling(`'POST /quote': () => ({ body: 1 })`);
    expect((await call('get', 'quotes').expect(404)).body).toMatchObject({ code: 'RUN_NOT_FOUND' });
    expect((await call('get', 'quote').expect(405)).headers.allow).toBe('OPTIONS, POST');
    const project = owner.project.name;
    expect((await withoutKey('post', 'quote').expect(401)).body).toMatchObject({ code: 'API_KEY_MISSING' });
    await withoutKey('post', 'quote').query({ project }).expect(401);
    await withoutKey('post', 'quote').query({ project: 'nobody' }).expect(404);
    // Nobody reaches the files of another project.
    const other = await buildProject(test.app);
    await handling(`'POST /theirs': () => ({ body: 1 })`, { of: other });
    await call('post', 'theirs').expect(404);
  });

  it('is public where its file says so: for a payment service, which signs the very bytes', async () => {
    await handling(
      `'POST /paid': { public: true, handle: async ({ request, caller, api }) => {
        const expected = createHmac('sha256', 'shared').update(request.rawBody).digest('hex');
        if (request.headers['x-signature'] !== expected) return { status: 422, body: 'Bad signature' };
        await api.collection('payments').insert({ id: request.body.id });
        return { body: { by: caller.userId, query: request.query } };
      } },`,
      { head: `import { createHmac } from 'node:crypto';` },
    );
    await buildCollection(test.app, owner.project, { name: 'payments', rules: 'server-only' as never });
    const body = '{"id":  "pay_1", "note": "é"}';
    const signature = createHmac('sha256', 'shared').update(body).digest('hex');
    const send = (signed: string): Test =>
      withoutKey('post', 'paid')
        .query({ project: owner.project._id.toHexString(), event: 'x' })
        .set({ 'content-type': 'application/json', 'x-signature': signed })
        .send(body);
    expect((await send(signature).expect(200)).body).toEqual({ by: null, query: { event: 'x' } });
    await send('00').expect(422);
    await withoutKey('post', 'paid').set('x-api-key', 'sk_live_x').expect(401);
    const stored = await supertest(test.url).get('/api/data/payments').set('x-api-key', owner.secret);
    expect((stored.body as { data: { total: number } }).data.total).toBe(1);
  });

  it('may write what a hook is asked about, and is not called by a hook', async () => {
    await handling(`'POST /book': () => ({ body: 'x' })`);
    const deeper = await call('post', 'book', { 'bsvc-hook-depth': '1' }).expect(400);
    expect(deeper.body).toMatchObject({ code: 'HOOK_DEPTH' });
  });

  it('is in the log with its status and time, and nothing of what was answered', async () => {
    await handling(
      `'GET /hello': () => ({ body: 'secret words' }), 'GET /bad': () => { throw new Error('no stock'); }`,
    );
    await call('get', 'hello').expect(200);
    await call('get', 'bad').expect(503);
    await test.app.backgroundTasks.idle();
    const calls = await listCalls(test.app, owner.project._id, 10);
    expect(calls.map(({ event, state }) => `${event} ${state}`).sort()).toEqual([
      'GET /bad failed',
      'GET /hello delivered',
    ]);
    expect(JSON.stringify(calls)).not.toContain('secret words');
    expect(JSON.stringify(calls)).toContain('no stock');
  });
});

it('calls that wait for the start of own code are no more at once than others', async () => {
  await handling(`count: () => ({})`);
  const dir = join(folder.path, owner.project.name);
  const open = () => Promise.resolve({ dir, env: {}, memoryMb: 128, key: owner.secret });
  const one = { handler: 'shop.mjs#count', payload: '{}', timeoutMs: 10_000, depth: 0 };
  for (const [isAwaited, most] of [
    [false, 32],
    [true, 64],
  ] as const) {
    test.app.ownCode.restart(owner.project._id.toHexString());
    const calls = Array.from({ length: 100 }, () =>
      test.app.ownCode.call(owner.project._id.toHexString(), open, { ...one, isAwaited }),
    );
    const settled = await Promise.allSettled(calls);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(most);
  }
});

describe('what a handler may not answer', () => {
  it.each([
    ['a cookie', `{ headers: { 'set-cookie': 'bsvc_console=stolen' } }`],
    ['a cookie in a Response', `new Response('', { headers: { 'set-cookie': 'a=b' } })`],
    ['a policy of its own', `{ headers: { 'content-security-policy': "script-src *" } }`],
    ['types that are sniffed', `{ headers: { 'X-Content-Type-Options': 'none' } }`],
    ['origins', `{ headers: { 'access-control-allow-origin': '*' } }`],
    ['a second header in the first', `{ headers: { 'x-a': 'a\\r\\nset-cookie: b=c' } }`],
    ['a name with a line end', `{ headers: { 'x-a\\r\\nset-cookie': 'b=c' } }`],
    ['a length', `{ headers: { 'content-length': '1' }, body: 'long' }`],
    ['a file for the web server to send', `{ headers: { 'x-accel-redirect': '/etc/passwd' } }`],
    ['the emptying of a browser', `{ headers: { 'clear-site-data': '"*"' } }`],
    ['a wider service worker', `{ headers: { 'service-worker-allowed': '/' } }`],
    ['a script', `{ headers: { 'content-type': 'text/javascript' }, body: 'alert(1)' }`],
    ['a style', `{ headers: { 'content-type': 'Text/CSS' }, body: '*{}' }`],
    ['a status that is none', `{ status: 42 }`],
    ['an interim status', `{ status: 101 }`],
    ['a status in words', `{ status: 'ok' }`],
    ['a status without a body and without an end', `{ status: 205 }`],
    ['too many headers', `{ headers: Object.fromEntries(Array.from({ length: 40 }, (_, at) => ['x-' + at, ''])) }`],
    ['a header that is too long', `{ headers: { 'x-a': 'a'.repeat(5000) } }`],
    ['too much', `{ body: 'x'.repeat(1024 * 1024 + 1) }`],
    ['far too much', `{ body: 'x'.repeat(8 * 1024 * 1024) }`],
    ['a value without its form', `42`],
    ['an object without its form', `{ price: 3 }`],
    ['what is no JSON', `{ body: { n: 1n } }`],
  ])('is %s', async (_what, returned) => {
    await handling(`'GET /evil': () => (${returned})`);
    const { body, headers } = await call('get', 'evil').expect(503);
    expect(body).toMatchObject({ code: 'HOOK_FAILED' });
    expect(headers['set-cookie']).toBeUndefined();
    await supertest(test.url).get('/api/health').expect(200);
  });

  it('is too large, for this one call alone', async () => {
    await handling(
      `
      'GET /large': () => ({ body: 'x'.repeat(3 * 1024 * 1024) }),
      'GET /slow': async () => { await call; return { body: 'kept' }; },
      'GET /go': () => { go(); return {}; },`,
      { head: 'let go; const call = new Promise((resolve) => (go = resolve));' },
    );
    const slow = call('get', 'slow').then(({ text }) => text);
    expect((await call('get', 'large').expect(503)).body).toMatchObject({ code: 'HOOK_FAILED' });
    await call('get', 'go').expect(204);
    expect(await slow).toBe('kept');
  });

  it('is a part of a file that cannot be loaded whole', async () => {
    await handling(`'GET /first': () => ({ body: 1 }), 'GET /second': 2`);
    await call('get', 'first').expect(404);
  });

  it('is a page with rights at the console’s origin', async () => {
    await handling(
      `'GET /page': () => ({ headers: { 'content-type': 'text/html' }, body: '<script>alert(1)</script>' })`,
    );
    const { headers } = await call('get', 'page').expect(200);
    expect(headers['content-type']).toBe('text/html');
    expect(headers['content-security-policy']).toBe("default-src 'none'; sandbox; frame-ancestors 'none'");
    expect(headers['x-content-type-options']).toBe('nosniff');
  });
});

describe('what a caller may not send', () => {
  it('is more than 1 MiB, or JSON that is broken or not UTF-8', async () => {
    await handling(`'POST /in': ({ request }) => ({ body: { got: request.body.length } })`);
    await call('post', 'in')
      .set('content-type', 'text/plain')
      .send('x'.repeat(1024 * 1024 + 1))
      .expect(413);
    const json = (bytes: Buffer): Test =>
      call('post', 'in')
        .set('content-type', 'application/json')
        .serialize(() => bytes as never)
        .send({});
    for (const broken of [Buffer.from('{"a":'), Buffer.from('"ü"', 'latin1')]) {
      expect((await json(broken).expect(400)).body).toMatchObject({ code: 'INVALID_JSON' });
    }
    const marked = await json(Buffer.from('\ufeff"abc"'));
    expect(marked.body).toEqual({ got: 3 });
    const packed = call('post', 'in').set({ 'content-type': 'application/json', 'content-encoding': 'gzip' });
    expect((await packed.send('no gzip').expect(400)).body).toMatchObject({ code: 'INVALID_BODY' });
  });

  it('are cookies, keys and tokens of others to own code', async () => {
    await handling(`'GET /headers': ({ request }) => ({ body: request.headers })`);
    const sent = { cookie: 'bsvc_console=operator', 'x-refresh-token': 'r', 'x-own': 'o', __proto__: 'p' };
    const { body } = await call('get', 'headers', sent).expect(200);
    expect(body).toMatchObject({ 'x-own': 'o' });
    for (const hidden of ['cookie', 'x-api-key', 'x-refresh-token']) expect(body).not.toHaveProperty(hidden);
  });

  it('is what no path names', async () => {
    await handling(`'GET /a': () => ({ body: 'a' })`);
    for (const path of ['a/', '%61', '../run/a/..', 'a%2f', 'constructor', '__proto__', 'a?project=b&project=c']) {
      const { status } = await call('get', path);
      expect([path, path.startsWith('a?') ? 200 : 404]).toEqual([path, status]);
    }
    await call('get', '').expect(404);
  });
});
