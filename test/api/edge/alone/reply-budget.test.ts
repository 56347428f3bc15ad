import { connect, type Socket } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { createApi, startServer } from '../../../world/app.js';
import { buildCollection, buildProject, placeDocuments, type TestProject } from '../../../helpers/build-project.js';
import { watchEventLoop } from '../../../helpers/event-loop.js';
import { eventually } from '../../../helpers/eventually.js';
import { useTestApp } from '../../../helpers/use.js';

const DOCUMENTS = 16;
const CONNECTIONS = 40;
const BUDGET_BYTES = 64 * 1024 ** 2;
const MAX_DELAY_MS = 100;
/** How often the event loop is watched, if need be. */
const MEASURES = 3;
/** What stands in for a MongoDB runs in this process, and its work would count. */
const DATABASE_IS_HERE = process.env.BSVC_TEST_TRANSPORT === 'wire';
const PATIENCE = { headersMs: 10_000, requestMs: 60_000, silenceMs: 60_000, stallMs: 60_000 };

const KINDS: readonly [what: string, head: string, body: string][] = [
  ['changes', 'GET /api/data/scans/changes', ''],
  ['lists', 'GET /api/data/scans?limit=16', ''],
  ['lists by cursor', 'GET /api/data/scans?limit=15&cursor=start', ''],
  ['selected fields', 'GET /api/data/scans?limit=15&cursor=start&fields=text', ''],
  ['aggregations', 'POST /api/data/scans/aggregate', '{"pipeline":[{"$limit":15}]}'],
];

async function fillProject(): Promise<TestProject> {
  const owner = await buildProject(test.app);
  const scans = await buildCollection(test.app, owner.project, { name: 'scans', mode: 'flexible' });
  const text = 'a "quoted" text '.repeat(60_000);
  await placeDocuments(
    test.app,
    scans,
    Array.from({ length: DOCUMENTS }, (_, n) => ({ n, text })),
  );
  return owner;
}

const test = await useTestApp({ constants: { replyBudgetBytes: BUDGET_BYTES }, settings: { BSVC_TRUST_PROXY: '1' } });
const server = await startServer(createApi(test.app), '127.0.0.1', 0, PATIENCE);
const other = await fillProject();
const greedy = await fillProject();
// What is loaded and compiled with the first of a kind is not what this is about.
for (const [, head, body] of KINDS) {
  const [method, path] = head.split(' ') as [string, string];
  const headers = { 'x-api-key': other.secret, 'content-type': 'application/json' };
  const reply = await fetch(server.url + path, { method, headers, ...(body !== '' && { body }) });
  expect((await reply.arrayBuffer()).byteLength).toBeGreaterThan(4_000_000);
}
afterAll(async () => {
  await server.stop(0);
});

const get = (owner: TestProject, path: string): Promise<Response> =>
  fetch(server.url + path, { headers: { 'x-api-key': owner.secret } });

/** As a visitor with the publishable key, from an address. */
const from = (address: string): string => `x-forwarded-for: ${address}\r\nx-api-key: ${greedy.publishable}`;

/** Clients of one kind that ask and read nothing, with work done while they hold what they were given. */
async function whileNobodyReads(
  head: string,
  body: string,
  work: () => Promise<void>,
  whose = `x-api-key: ${greedy.secret}`,
): Promise<void> {
  const sockets: Socket[] = Array.from({ length: CONNECTIONS }, () => {
    const socket = connect(server.port, '127.0.0.1', () => {
      const length = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
      socket.write(`${head} HTTP/1.1\r\nHost: x\r\n${whose}\r\n${length}\r\n${body}`);
    });
    socket.on('error', () => undefined);
    return socket;
  });
  try {
    await eventually('replies are under way', () => test.app.replies.held > 0);
    await work();
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  await eventually('everything is given back', () => test.app.replies.held === 0);
}

describe('large replies that nobody reads', () => {
  it.each(KINDS)('(%s) leave room for another project, health and the event loop', async (_what, head, body) => {
    let read = new ArrayBuffer(0);
    const before = process.memoryUsage().arrayBuffers;
    let peak = 0;
    const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage().arrayBuffers - before)), 1);
    // A turn that is too long by what it does is so each time; one of much garbage is not.
    let longestMs = Infinity;
    for (let measured = 0; measured < MEASURES && longestMs >= MAX_DELAY_MS; measured++) {
      const watch = watchEventLoop();
      await whileNobodyReads(head, body, async () => {
        expect((await get(greedy, '/api/health/live')).status).toBe(200);
        const list = await get(other, '/api/data/scans?limit=16');
        expect(list.status).toBe(200);
        read = await list.arrayBuffer();
        expect(test.app.replies.held).toBeLessThan(100 * 1024 * 1024);
      });
      watch.stop();
      longestMs = Math.min(longestMs, watch.longestMs());
    }
    clearInterval(timer);
    if (!DATABASE_IS_HERE) expect(longestMs).toBeLessThan(MAX_DELAY_MS);
    // What is read is bounded as it is read: of forty pages there is never more than the budget and as much garbage.
    if (!DATABASE_IS_HERE) expect(peak).toBeLessThan(2 * BUDGET_BYTES);
    // Only now, since it takes a while itself.
    const { data } = JSON.parse(Buffer.from(read).toString()) as { data: { items: unknown[] } };
    expect(data.items).toHaveLength(DOCUMENTS);
  });

  it('of one visitor are held one at a time, and another address of the same project is answered', async () => {
    const near = from('192.0.2.1');
    const work = async (): Promise<void> => {
      const list = await fetch(`${server.url}/api/data/scans?limit=16`, {
        headers: { 'x-forwarded-for': '192.0.2.2', 'x-api-key': greedy.publishable },
      });
      expect(list.status).toBe(200);
      await list.arrayBuffer();
      // A page is larger than an eighth of this budget, so it is all that its address holds.
      expect(test.app.replies.held).toBeLessThan(BUDGET_BYTES / 4);
    };
    await whileNobodyReads('GET /api/data/scans?limit=16', '', work, near);
  });

  it('do not delay small replies of the same project, and answer 503 to large ones', async () => {
    await whileNobodyReads('GET /api/data/scans?limit=16', '', async () => {
      expect((await get(greedy, '/api/data/scans?limit=16&fields=n')).status).toBe(200);
      const refused = await get(greedy, '/api/data/scans?limit=16');
      expect(refused.status).toBe(503);
      expect(refused.headers.get('retry-after')).toBe('1');
      expect(await refused.json()).toMatchObject({ success: false, code: 'BUSY' });
    });
  });
});

describe('a large reply', () => {
  it('comes in parts, with the same content as small pages', async () => {
    const list = await get(other, '/api/data/scans?limit=16&sort=n');
    expect(list.headers.get('content-length')).toBeNull();
    const { data, ...envelope } = (await list.json()) as { data: { items: object[]; total: number } };
    expect(envelope).toEqual({ success: true, message: 'Documents fetched' });
    expect(data).toMatchObject({ total: DOCUMENTS, limit: 16, page: 1, nextCursor: null });
    const single = data.items.map(async ({ _id }: { _id?: string }) =>
      (await get(other, `/api/data/scans/${_id}`)).json(),
    );
    expect(data.items).toEqual(await Promise.all(single));
  });

  it('has no body for HEAD', async () => {
    const reply = await fetch(`${server.url}/api/data/scans?limit=16`, {
      method: 'HEAD',
      headers: { 'x-api-key': other.secret },
    });
    expect([reply.status, await reply.text()]).toEqual([200, '']);
    await eventually('everything is given back', () => test.app.replies.held === 0);
  });

  it('of a client that stops reading is cut after a while, and one that reads slowly gets all of it', async () => {
    const quick = await startServer(createApi(test.app), '127.0.0.1', 0, { ...PATIENCE, stallMs: 300 });
    const head = `GET /api/data/scans?limit=16 HTTP/1.1\r\nHost: x\r\nx-api-key: ${other.secret}\r\nConnection: close\r\n\r\n`;
    const still = connect(quick.port, '127.0.0.1', () => still.write(head));
    still.on('error', () => undefined);
    let bytes = 0;
    const slow = connect(quick.port, '127.0.0.1', () => slow.write(head));
    slow.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      slow.pause();
      setImmediate(() => slow.resume());
    });
    await eventually('the slow one has ended', () => slow.closed);
    expect(bytes).toBeGreaterThan(DOCUMENTS * 960_000);
    await eventually('everything is given back', () => test.app.replies.held === 0);
    still.destroy();
    await quick.stop(0);
  });
});
