import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.js';
import { startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const MB = 1024 * 1024;
const CONNECTIONS = 24;
/** The budget and what reading and encoding need beside it; without a budget it was 1,100 MB. */
const MAX_GROWTH_BYTES = 400 * MB;

const sockets: Socket[] = [];

const dir = use(await openTempDir());
const argv = ['serve', '--demo', '--port', '0', '--no-worker'];
const env = { BSVC_DATA_DIR: dir.path, BSVC_ADMIN_TOKEN: 'the-admin-token-of-this-test' };
const service = use(await startService(argv, env, { constants: { stallTimeoutMs: 1_000 } }));
const admin: Record<string, string> = { authorization: 'Bearer the-admin-token-of-this-test' };
const key = service.ready.demo!.keys.secret;
const post = (path: string, body: object): Promise<Response> =>
  fetch(service.ready.url + path, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
expect((await post('/api/schemas', { name: 'scans', mode: 'flexible' })).status).toBe(201);
for (let at = 0; at < 17; at++)
  expect((await post('/api/data/scans', { at, text: 'a "quoted" text '.repeat(55_000) })).status).toBe(201);
expect((await list()).items).toHaveLength(16);
const idleBytes = await residentBytes();
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
});

async function list(): Promise<{ items: unknown[] }> {
  const reply = await fetch(`${service.ready.url}/api/data/scans?limit=16`, { headers: { 'x-api-key': key } });
  return ((await reply.json()) as { data: { items: unknown[] } }).data;
}

async function residentBytes(): Promise<number> {
  const status = await readFile(`/proc/${service.ready.pid}/status`, 'utf8');
  // What is mapped of the data file is the system's to take back.
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(status)![1]) * 1024;
}

/** Sends a request on a connection of its own and reads nothing of the reply. */
function askAndWait(method: string, path: string, body = ''): Socket {
  const { hostname, port } = new URL(service.ready.url);
  const head = [
    `${method} ${path} HTTP/1.1`,
    'Host: x',
    `x-api-key: ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  const socket = connect(Number(port), hostname, () => socket.write(`${head.join('\r\n')}\r\n\r\n${body}`));
  socket.on('error', () => undefined);
  sockets.push(socket);
  return socket;
}

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${service.ready.url}/metrics`, { headers: admin })).text();
  return Number(new RegExp(`^${name}(?:{[^}]*})? (\\S+)$`, 'm').exec(text)?.[1]);
}

/** Requests under way; the one that asks for the number does not count. */
const underWay = (): Promise<number> => metric('bsvc_http_requests_in_flight');

const KINDS: readonly [what: string, start: () => Socket][] = [
  ['lists', () => askAndWait('GET', '/api/data/scans?limit=16')],
  ['lists by cursor', () => askAndWait('GET', '/api/data/scans?limit=15&cursor=start')],
  ['selected fields', () => askAndWait('GET', '/api/data/scans?limit=15&cursor=start&fields=text')],
  ['aggregations', () => askAndWait('POST', '/api/data/scans/aggregate', '{"pipeline":[{"$limit":15}]}')],
];

describe('clients that ask for large replies and do not read them', () => {
  it.each(KINDS)(
    '(%s) cost bounded memory, others are served, and their connections are ended',
    async (_what, start) => {
      for (let at = 0; at < CONNECTIONS; at++) start();
      await eventually('they have been heard', async () => (await underWay()) > 0);
      let most = 0;
      const look = async (): Promise<boolean> => {
        expect((await fetch(`${service.ready.url}/api/health/live`)).status).toBe(200);
        most = Math.max(most, (await residentBytes()) - idleBytes);
        return (await underWay()) <= 0;
      };
      await eventually('all have ended', look);
      expect(most).toBeLessThan(MAX_GROWTH_BYTES);
      expect(await metric('bsvc_http_reply_bytes_held')).toBe(0);
      expect((await list()).items).toHaveLength(16);
    },
  );
});
