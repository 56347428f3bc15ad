import { createServer } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listen, type Listening } from '../listen.js';
import { throwViolations } from '../reply-violations.js';
import { watchReplies } from '../watch-replies.js';

const ID = '66f0c0ffee0ddba11c0de001';
const ERROR = {
  success: false,
  data: {},
  message: 'No',
  error: 'No',
  code: 'DOCUMENT_NOT_FOUND',
  requestId: 'r',
  docs: '/',
};
const DOCUMENT = {
  _id: ID,
  title: 'Hello',
  isDeleted: false,
  deletedAt: null,
  createdAt: '2026-11-21T08:00:00.000Z',
  updatedAt: '2026-11-21T08:00:00.000Z',
};

let server: Listening;
let answer: { status: number; type?: string; body: string; unnamed?: boolean; cached?: boolean; limits?: boolean };

async function watch(hasLimits: boolean): Promise<void> {
  const watched = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      response.writeHead(answer.status, {
        'content-type': answer.type ?? 'application/json; charset=utf-8',
        ...(!answer.unnamed && { 'x-request-id': 'r' }),
        ...(!answer.cached && { 'cache-control': 'no-store' }),
        ...(answer.limits && { 'RateLimit-Limit': '9', 'RateLimit-Remaining': '8', 'RateLimit-Reset': '7' }),
      });
      response.write(answer.body.slice(0, 10));
      response.end(answer.body.slice(10));
    });
  });
  watchReplies(watched, hasLimits);
  server = await listen(watched);
}
beforeEach(() => watch(false));
afterEach(() => server.close());

async function exchange(
  status: number,
  body: unknown,
  call: {
    method?: string;
    path?: string;
    sent?: unknown;
    type?: string;
    unnamed?: boolean;
    cached?: boolean;
    limits?: boolean;
  } = {},
): Promise<void> {
  answer = {
    status,
    body: typeof body === 'string' ? body : JSON.stringify(body),
    type: call.type,
    unnamed: call.unnamed,
    cached: call.cached,
    limits: call.limits,
  };
  const reply = await fetch(server.url + (call.path ?? `/api/data/posts/${ID}`), {
    method: call.method ?? 'GET',
    ...(call.sent !== undefined && {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(call.sent),
    }),
  });
  await reply.text();
}

describe('what compares the API’s tests with its document', () => {
  it('accepts what is described', async () => {
    await exchange(200, DOCUMENT);
    await exchange(404, ERROR);
    await exchange(201, DOCUMENT, { method: 'POST', path: '/api/data/posts', sent: { title: 'Hello' } });
    await exchange(404, { ...ERROR, code: 'NOT_FOUND' }, { path: '/api/nowhere' });
    expect(throwViolations).not.toThrow();
  });

  const refused: [string, Parameters<typeof exchange>, RegExp][] = [
    ['a status', [204, ''], /GET .*204: the status is not described/],
    ['a missing field', [200, { title: 'Hello' }], /required property '_id'/],
    ['a wrong type', [200, { ...DOCUMENT, isDeleted: 'no' }], /\/isDeleted must be boolean/],
    ['a code', [404, { ...ERROR, code: 'SURPRISE' }], /code SURPRISE is not described/],
    ['an additional field of an error', [404, { ...ERROR, stack: 'at' }], /additional properties.*stack/],
    ['a content type', [200, '<html>', { type: 'text/html' }], /content type text\/html is not described/],
    ['a header', [200, DOCUMENT, { unnamed: true }], /the header x-request-id is missing/],
    ['a reply that caches may keep', [200, DOCUMENT, { cached: true }], /the header Cache-Control is missing/],
    ['an operation', [200, {}, { path: '/api/nowhere' }], /there is no such operation/],
    ['an error of no operation', [404, { message: 'No' }, { path: '/api/nowhere' }], /required property 'success'/],
    [
      'a request that was taken',
      [
        200,
        { success: true, data: [], message: 'Done' },
        { method: 'POST', path: '/api/data/posts/aggregate', sent: {} },
      ],
      /the request .*'pipeline'/,
    ],
    [
      'a request without a body that was taken',
      [201, DOCUMENT, { method: 'POST', path: '/api/data/posts' }],
      /a body is described as required/,
    ],
    ['a parameter that was taken', [200, DOCUMENT, { path: `/api/data/posts/${ID}?meta=perhaps` }], /parameter meta/],
    ['a part of a path that was taken', [200, DOCUMENT, { path: `/api/data/posts/12` }], /path parameter id/],
  ];
  it.each(refused)('tells of %s that is not', async (_what, call, told) => {
    await exchange(...call);
    expect(throwViolations).toThrow(told);
    expect(throwViolations).not.toThrow();
  });

  it('wants limits to be told of where they are described and there are any, and nowhere else', async () => {
    await exchange(200, DOCUMENT, { limits: true });
    expect(throwViolations).toThrow(/RateLimit-Limit is not described, or nothing is limited/);
    await server.close();
    await watch(true);
    await exchange(200, DOCUMENT, { limits: true });
    await exchange(404, ERROR, { limits: true });
    await exchange(200, { status: 'ok' }, { path: '/api/health/live' });
    expect(throwViolations).not.toThrow();
    await exchange(200, DOCUMENT);
    expect(throwViolations).toThrow(/the header RateLimit-Limit is missing/);
    await exchange(404, ERROR);
    expect(throwViolations).toThrow(/the header RateLimit-Reset is missing/);
    await exchange(200, { status: 'ok' }, { path: '/api/health/live', limits: true });
    expect(throwViolations).toThrow(/RateLimit-Limit is not described/);
    // Refused before it was counted.
    await exchange(503, { ...ERROR, code: 'OVERLOADED' });
    expect(throwViolations).not.toThrow();
  });
});
