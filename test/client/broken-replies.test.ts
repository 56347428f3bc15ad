import { describe, expect, it } from 'vitest';
import { ApiError, type Client, type UntypedProject, createClient } from '../world/client.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const shop = await buildProject(test.app);
await buildCollection(test.app, shop.project, { name: 'posts' });

const open = (fetch: typeof globalThis.fetch, retries: number): Client<UntypedProject> =>
  createClient({ url: test.url, key: shop.secret, fetch, retries });

/** A reply whose body ends in the middle. */
function brokenOff(status: number, headers?: Headers): Response {
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('{"succ'));
      controller.error(new TypeError('terminated'));
    },
  });
  return new Response(body, { status, ...(headers && { headers }) });
}

const ID = 'a'.repeat(24);
const CALLS: Record<string, (api: Client<UntypedProject>) => Promise<unknown>> = {
  list: (api) => api.collection('posts').list(),
  iterate: (api) => api.collection('posts').iterate().next(),
  count: (api) => api.collection('posts').count(),
  get: (api) => api.collection('posts').get(ID),
  insert: (api) => api.collection('posts').insert({}),
  insertMany: (api) => api.collection('posts').insertMany([{}]),
  update: (api) => api.collection('posts').update(ID, { n: 1 }),
  remove: (api) => api.collection('posts').remove(ID),
  recover: (api) => api.collection('posts').recover(ID),
  aggregate: (api) => api.collection('posts').aggregate([]),
  changes: (api) => api.collection('posts').changes(),
  signIn: (api) => api.auth.signIn({ email: 'a@example.test', password: 'secret word' }),
  me: (api) => api.auth.me(),
  upload: (api) => api.files.upload(new Blob(['x'])),
  removeFile: (api) => api.files.remove('x'),
  send: (api) => api.mail.send({ to: 'a@example.test' }),
};
const BODIES: readonly (string | null)[] = ['null', '5', '"text"', '[]', '', '<html>', null];

describe('whatever comes in place of a reply of the service', () => {
  it.each(Object.keys(CALLS))('%s throws an ApiError', async (name) => {
    const replies: [what: string, make: () => Response][] = [200, 400, 502].flatMap((status) => [
      ...BODIES.filter((body) => status >= 400 || body === '' || body === '<html>').map(
        (body): [string, () => Response] => [`${status} ${body}`, () => new Response(body, { status })],
      ),
      [`${status} broken off`, () => brokenOff(status)],
    ]);
    for (const [what, make] of replies) {
      const error: unknown = await CALLS[name]!(open(() => Promise.resolve(make()), 0)).catch(
        (thrown: unknown) => thrown,
      );
      expect(error, what).toBeInstanceOf(ApiError);
      expect([0, 200, 400, 502], what).toContain((error as ApiError).status);
    }
  });
});

it('a reply that breaks off is asked for again, and a write is done once', async () => {
  let left = 0;
  const api = open(async (address, init) => {
    const response = await fetch(address, init);
    if (left-- <= 0) return response;
    await response.arrayBuffer();
    return brokenOff(response.status, response.headers);
  }, 6);
  const posts = api.collection('posts');
  const cut = <T>(work: () => Promise<T>): Promise<T> => {
    left = 1;
    return work();
  };
  const { _id } = await cut(() => posts.insert({ of: 'cut' }));
  await cut(() => posts.insertMany([{ of: 'cut' }]));
  expect(await cut(() => posts.count({ of: 'cut' }))).toBe(2);
  expect(await cut(() => posts.update(_id, { n: 1 }))).toMatchObject({ n: 1 });
  await cut(() => posts.remove(_id));
  expect(await cut(() => posts.recover(_id))).toMatchObject({ _id });
});

it('a moment in Retry-After counts as the seconds until then', async () => {
  const moment = new Date(Date.now() + 3_600_000).toUTCString();
  const api = open(() => Promise.resolve(new Response('', { status: 503, headers: { 'retry-after': moment } })), 6);
  const error: unknown = await api
    .collection('posts')
    .list()
    .catch((thrown: unknown) => thrown);
  expect((error as ApiError).retryAfter).toBeGreaterThan(3000);
});
