import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const shop = await buildProject(test.app);

const message = (body: unknown): string => (body as { message: string }).message;

describe('GET /', () => {
  it('answers a browser with a page that leads to the documentation', async () => {
    const { status, headers, text } = await request(test.server)
      .get('/')
      .set('Accept', 'text/html,application/xhtml+xml,*/*;q=0.8');
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    for (const [, path] of text.matchAll(/(?:href)="([^"]+)"/g)) await request(test.server).get(path!).expect(200);
    expect(text).toContain('href="/api/docs"');
  });

  it('answers programs with JSON', async () => {
    const { body } = await request(test.server).get('/').expect(200);
    expect(body).toMatchObject({ service: 'bsvc', docs: '/api/docs' });
  });

  it('leads a browser that has a wrong address to the start, and gives programs the error', async () => {
    const html = 'text/html,application/xhtml+xml,*/*;q=0.8';
    const page = await request(test.server).get('/nothing/here').set('Accept', html).expect(404);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.text).toContain('href="/api/docs"');
    for (const [path, accept] of [
      ['/nothing', '*/*'],
      ['/api/nothing', html],
    ] as const) {
      const { body } = await request(test.server).get(path).set('Accept', accept).expect(404);
      expect(body).toMatchObject({ success: false, code: 'NOT_FOUND' });
    }
  });

  it('leaves unknown paths unknown', async () => {
    await request(test.server).get('/nothing').expect(404);
    await request(test.server).post('/').expect(405);
  });
});

describe('a key', () => {
  const ask = (key: string | undefined) => {
    const asked = request(test.server).get('/api/data/posts');
    return key === undefined ? asked : asked.set('x-api-key', key);
  };

  it.each([
    ['cut short', () => shop.publishable.slice(0, -1)],
    ['with more behind it', () => `${shop.publishable}x`],
    ['invented', () => 'pk_live_wrong'],
    ['of another service', () => 'foo'],
  ])('that is %s is 401 API_KEY_INVALID and told to be copied whole', async (_, key) => {
    const { body } = await ask(key()).expect(401);
    expect(body).toMatchObject({ code: 'API_KEY_INVALID' });
    expect(message(body)).toContain('Copy all of it');
  });

  it.each([undefined, '', ' '])('that is %j is 401 API_KEY_MISSING', async (key) => {
    expect((await ask(key).expect(401)).body).toMatchObject({ code: 'API_KEY_MISSING' });
  });

  it('that may not upload names the setting', async () => {
    const { body } = await request(test.server)
      .post('/api/storage/upload')
      .set('x-api-key', shop.publishable)
      .attach('file', Buffer.from('a'), 'a.txt')
      .expect(403);
    expect(body).toMatchObject({ code: 'SECRET_KEY_REQUIRED' });
    expect(message(body)).toContain('--publishable-uploads on');
  });
});

describe('a mistake in a request', () => {
  it('in a filter is answered with what may have been meant', async () => {
    const { name } = await buildCollection(test.app, shop.project, { fields: [{ name: 'title', type: 'String' }] });
    const ask = async (query: string): Promise<string> =>
      message((await request(test.server).get(`/api/data/${name}?${query}`).set('x-api-key', shop.publishable)).body);
    expect(await ask('titel=x')).toContain('did you mean "title"?');
    expect(await ask('title_like=x')).toMatch(/"title" can be followed by .*_regex/);
    expect(await ask('colour=x')).toMatch(/in the filter "colour"$/);
  });

  it.each([
    ['{"title": "a", }', 15],
    ['{"title": x}', 10],
    ['{"title": tru}', 10],
    ['hello', 0],
    ['{"title": "a"', 13],
  ])('in JSON is answered with its place: %s', async (text, place) => {
    const { body } = await request(test.server)
      .post('/api/data/posts')
      .set({ 'x-api-key': shop.secret, 'content-type': 'application/json' })
      .send(text)
      .expect(400);
    expect(message(body)).toBe(`The body is not valid JSON (at position ${place})`);
  });
});

describe('GET /api/schemas/:collectionName', () => {
  it('also has the shape that the hosted service’s SDK reads', async () => {
    const { name } = await buildCollection(test.app, shop.project, {
      fields: [
        { name: 'title', type: 'String', required: true },
        { name: 'author', type: 'Ref', ref: 'users' },
      ],
    });
    const { body } = await request(test.server).get(`/api/schemas/${name}`).set('x-api-key', shop.publishable);
    expect((body as { data: { collection: unknown } }).data.collection).toEqual({
      name,
      model: [
        { key: 'title', type: 'String', required: true, unique: false },
        { key: 'author', type: 'Ref', required: false, unique: false, ref: 'users' },
      ],
    });
  });
});

describe('a rate limit', () => {
  it('names its setting in the refusal and once in the log; reading the documentation does not count', async () => {
    const limited = await useTestApp({ settings: { BSVC_RATE_LIMIT: '3/15m', BSVC_AUTH_RATE_LIMIT: 'off' } });
    const get = (path: string) => request(limited.server).get(path);
    for (let at = 0; at < 5; at++) {
      for (const path of ['/', '/api/docs', '/api/docs/page.css', '/api/openapi.json']) await get(path).expect(200);
    }
    for (let at = 0; at < 3; at++) await get('/api/data/posts').expect(401);
    for (let at = 0; at < 3; at++) {
      const { body } = await get('/api/data/posts').expect(429);
      expect(body).toMatchObject({
        message: 'Too many requests: please try again later',
        details: [{ field: 'BSVC_RATE_LIMIT', message: expect.stringContaining('3 requests') as string }],
      });
    }
    expect(limited.logLines.filter((line) => line.includes('BSVC_RATE_LIMIT'))).toHaveLength(1);
  });
});

describe('the API’s document', () => {
  it('says of every object whether it may hold more than it names', async () => {
    const { body } = await request(test.server).get('/api/openapi.json');
    const silent: string[] = [];
    const look = (value: unknown, place: string): void => {
      if (typeof value !== 'object' || value === null) return;
      const { type, maxProperties, additionalProperties, allOf } = value as Record<string, unknown>;
      if (type === 'object' && maxProperties !== 0 && !allOf && additionalProperties === undefined) silent.push(place);
      for (const [key, part] of Object.entries(value))
        if (key !== 'examples' && key !== 'example') look(part, `${place}.${key}`);
    };
    look(body, '');
    expect(silent).toEqual([]);
    const { NewDocument } = (body as { components: { schemas: Record<string, unknown> } }).components.schemas;
    expect(NewDocument).toMatchObject({ additionalProperties: true });
  });
});
