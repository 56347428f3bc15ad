import { readdir, readFile, readlink } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.js';
import { startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

/**
 * Short, so that the test need not wait, but longer than a client that behaves takes on a busy machine; how late a
 * timeout may be noticed comes on top.
 */
const PATIENCE = {
  headersTimeoutMs: 6_000,
  silenceTimeoutMs: 7_000,
  requestTimeoutMs: 8_000,
  connectionsPerAddress: 1_000_000,
};
const CLOSED_WITHIN_MS = 45_000;
/**
 * What bad clients may cost beyond what the idle server needs: 100 of them with a megabyte each, and the garbage of
 * reading it.
 */
const MAX_GROWTH_BYTES = 400 * 1024 * 1024;

const sockets: Socket[] = [];
const dribbles: NodeJS.Timeout[] = [];

const dir = use(await openTempDir());
const argv = ['serve', '--demo', '--port', '0', '--no-worker'];
const service = use(await startService(argv, { BSVC_DATA_DIR: dir.path }, { constants: PATIENCE }));
const key = service.ready.demo!.keys.secret;
const post = (path: string, body: object): Promise<Response> =>
  fetch(service.ready.url + path, {
    method: 'POST',
    headers: { 'x-api-key': key, connection: 'close', 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const list = (): Promise<Response> =>
  fetch(`${service.ready.url}/api/data/posts?limit=5`, { headers: { 'x-api-key': key, connection: 'close' } });
expect((await post('/api/schemas', { name: 'large', mode: 'flexible' })).status).toBe(201);
expect((await post('/api/data/large', { text: 'a'.repeat(900_000) })).status).toBe(201);
for (let at = 0; at < 50; at++) expect((await list()).status).toBe(200);
const idleBytes = await residentBytes();
const idleConnections = await countConnections();
afterAll(async () => {
  for (const dribble of dribbles) clearInterval(dribble);
  for (const socket of sockets) socket.destroy();
});

/** What the server's process holds in memory, as the system sees it. */
async function residentBytes(): Promise<number> {
  const status = await readFile(`/proc/${service.ready.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)![1]) * 1024;
}

/**
 * Sockets that the server's process has open: a client that reads nothing does not notice that its connection was
 * closed.
 */
async function countConnections(): Promise<number> {
  const dir = `/proc/${service.ready.pid}/fd`;
  const targets = await Promise.all((await readdir(dir)).map((fd) => readlink(`${dir}/${fd}`).catch(() => '')));
  return targets.filter((target) => target.startsWith('socket:')).length;
}

/** The connections of clients that behave. */
const GOOD_CONNECTIONS = 5;
const allClosed = async (): Promise<boolean> => (await countConnections()) <= idleConnections + GOOD_CONNECTIONS;

/** A connection that sends `beginning`, then `drop` again and again, and reads nothing unless told to. */
function open(beginning: string, drop: string | null, reads = true): Socket {
  const { hostname, port } = new URL(service.ready.url);
  const socket = connect(Number(port), hostname, () => void socket.write(beginning));
  socket.on('error', () => undefined);
  if (reads) socket.resume();
  if (drop !== null) dribbles.push(setInterval(() => void (socket.destroyed || socket.write(drop)), 200));
  sockets.push(socket);
  return socket;
}

const head = (method: string, path: string, headers: string): string =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\n${headers}`;
const JSON_HEAD = 'Content-Type: application/json\r\n';
const FORM = 'Content-Type: multipart/form-data; boundary=B\r\nTransfer-Encoding: chunked\r\n\r\n';
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
const FILE = '--B\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n';

/** What slow clients do, and how many of each come at once. */
const SLOW: readonly [what: string, count: number, start: () => Socket][] = [
  ['say nothing at all', 100, () => open('', null)],
  ['stop in the middle of the request line', 100, () => open('GET /api/da', null)],
  ['send a header now and then', 200, () => open(head('GET', '/api/data/posts', ''), 'x-a: b\r\n')],
  ['send one long header bit by bit', 50, () => open(head('GET', '/api/data/posts', 'x-a: '), 'aaaa')],
  [
    'send a body bit by bit',
    100,
    () => open(head('POST', '/api/data/posts', `${JSON_HEAD}Content-Length: 1000000\r\n\r\n{"a":"`), 'a'),
  ],
  [
    'send almost a megabyte and stop',
    100,
    () =>
      open(
        head('POST', '/api/data/posts', `${JSON_HEAD}Content-Length: 1000000\r\n\r\n{"a":"${'a'.repeat(990_000)}`),
        null,
      ),
  ],
  [
    'send chunks of one byte',
    100,
    () => open(head('POST', '/api/data/posts', `${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\n`), chunk('[')),
  ],
  ['upload a file bit by bit', 50, () => open(head('POST', '/api/storage/upload', FORM) + chunk(FILE), chunk('a'))],
  [
    'promise a body and send none',
    100,
    () => open(head('POST', '/api/userAuth/login', `${JSON_HEAD}Content-Length: 10\r\n\r\n`), null),
  ],
  [
    'ask whether to go on, and do not',
    50,
    () => open(head('POST', '/api/data/posts', `${JSON_HEAD}Content-Length: 10\r\nExpect: 100-continue\r\n\r\n`), null),
  ],
  ['keep connections that they do not use', 50, () => open(head('GET', '/api/health/live', '\r\n'), null)],
  [
    'ask for much and read nothing',
    50,
    () => open(head('GET', '/api/data/posts?limit=1000', '\r\n').repeat(500), null, false),
  ],
];

describe('slow clients', () => {
  it.each(['come', 'come again'])(
    'of every kind %s: all are cut off, others are served meanwhile, memory stays bounded',
    async () => {
      const bad = SLOW.flatMap(([what, count, start]) =>
        Array.from({ length: count }, () => ({ what, socket: start() })),
      );
      await eventually('all are connected', () => bad.every(({ socket }) => !socket.connecting));
      const statuses: number[] = [];
      const serveOthers = async (): Promise<boolean> => {
        statuses.push((await list()).status);
        expect((await residentBytes()) - idleBytes).toBeLessThan(MAX_GROWTH_BYTES);
        return allClosed();
      };
      await eventually('all are closed', serveOthers, CLOSED_WITHIN_MS);
      // More at once than the server works on are told to come back; nobody is left without an answer.
      expect(statuses.filter((status) => ![200, 503].includes(status))).toEqual([]);
      expect(statuses).toContain(200);
      const open = bad
        .filter(({ what, socket }) => !socket.closed && !what.includes('read nothing'))
        .map(({ what }) => what);
      await eventually(`these have noticed: ${[...new Set(open)].join(', ')}`, () =>
        bad.every(({ what, socket }) => socket.closed || what.includes('read nothing')),
      );
      for (const dribble of dribbles.splice(0)) clearInterval(dribble);
      expect((await list()).status).toBe(200);
      expect(service.stderr()).not.toMatch(/"level":[56]0/);
    },
  );
});
