import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { createApi, startServer } from '../../../world/app.js';
import { eventually } from '../../../helpers/eventually.js';
import { openRandom } from '../../../helpers/random.js';
import { drawSome } from '../../../helpers/runs.js';
import { openSeed } from '../../../helpers/seed.js';
import { use } from '../../../helpers/use.js';
import { fill, ROUTE_TABLE, type RouteRow } from '../routes-table.js';
import { buildEstate, openStage, passFor } from '../stage.js';

const stage = use(await openStage());
const own = await buildEstate(stage);
const server = await startServer(createApi(stage.app), '127.0.0.1', 0);
afterAll(async () => {
  await server.stop(0);
});

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'multipart/form-data; boundary=B';
/** More than a socket and a stream take at once, so that some of it is still under way when it is refused. */
const BULKY = 400_000;
/** Not to be guessed by a decompressor, so that it stays bulky. */
const noise = randomBytes(BULKY);
const part = (name: string): string =>
  `--B\r\nContent-Disposition: form-data; name="${name}"; filename="a.txt"\r\n\r\n`;

/** What inflates to much more than any route takes, followed by enough for the connection to be busy with. */
const bomb = (compress: (bytes: Buffer) => Buffer): Buffer =>
  compress(
    Buffer.concat([Buffer.from('["'), Buffer.alloc(16 * 1024 * 1024, 'a'), Buffer.from(noise.toString('base64'))]),
  );

interface Refusable {
  what: string;
  type: string;
  encoding?: string;
  body: Buffer;
  /** Announced instead of the body's own length. */
  length?: number;
}

const BODIES: readonly Refusable[] = [
  { what: 'a gzip bomb', type: JSON_TYPE, encoding: 'gzip', body: bomb(gzipSync) },
  { what: 'a deflate bomb', type: JSON_TYPE, encoding: 'deflate', body: bomb(deflateSync) },
  {
    what: 'a brotli bomb',
    type: JSON_TYPE,
    encoding: 'br',
    body: bomb((bytes) => brotliCompressSync(bytes, { params: { 1: 1 } })),
  },
  { what: 'gzip that is none', type: JSON_TYPE, encoding: 'gzip', body: noise },
  {
    what: 'gzip that breaks',
    type: JSON_TYPE,
    encoding: 'gzip',
    body: Buffer.concat([gzipSync(noise).subarray(0, 1000), noise]),
  },
  {
    what: 'gzip with something behind it',
    type: JSON_TYPE,
    encoding: 'gzip',
    body: Buffer.concat([gzipSync('{}'), noise]),
  },
  { what: 'an unknown encoding', type: JSON_TYPE, encoding: 'miracle', body: noise },
  { what: 'too much JSON', type: JSON_TYPE, body: Buffer.alloc(1_500_000, ' ') },
  { what: 'no JSON', type: JSON_TYPE, body: noise },
  { what: 'another type', type: 'text/plain', body: noise },
  { what: 'a form without a file', type: FORM_TYPE, body: Buffer.concat([Buffer.from(part('other')), noise]) },
  {
    what: 'a form with two files',
    type: FORM_TYPE,
    body: Buffer.from(`${part('file')}a\r\n${part('file')}${noise.toString('base64')}\r\n--B--\r\n`),
  },
  { what: 'no form', type: FORM_TYPE, body: noise },
  { what: 'a form that is zipped', type: FORM_TYPE, encoding: 'gzip', body: gzipSync(noise) },
];

/** Each route meets some of them. */
const random = openRandom(openSeed('refused bodies'));

interface Heard {
  socket: Socket;
  text(): string;
  isClosed(): boolean;
}

async function open(): Promise<Heard> {
  let text = '';
  let closed = false;
  const socket = connect(server.port, '127.0.0.1');
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece));
  socket.on('error', () => undefined).on('close', () => (closed = true));
  await new Promise((resolve) => socket.once('connect', resolve));
  return { socket, text: () => text, isClosed: () => closed };
}

const NEXT = 'GET /api/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
const replies = (text: string): number => text.match(/HTTP\/1\.1 [2-5]\d\d /g)?.length ?? 0;

/**
 * Sends the body whole, waits for the reply, and asks for something else on the same connection unless the reply said
 * that it closes.
 */
async function sendAndGoOn(row: RouteRow, refused: Refusable, chunked: boolean): Promise<string> {
  const headers = {
    ...fill(row.headers ?? {}, own.names),
    ...passFor(row.pass, own),
    'content-type': refused.type,
    ...(refused.encoding && { 'content-encoding': refused.encoding }),
    ...(chunked
      ? { 'transfer-encoding': 'chunked' }
      : { 'content-length': String(refused.length ?? refused.body.length) }),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
  const heard = await open();
  heard.socket.write(
    `${row.method} ${fill(row.path, { ...own.names, key: own.publishable })} HTTP/1.1\r\nHost: x\r\n${lines.join('')}\r\n`,
  );
  if (chunked) heard.socket.write(`${refused.body.length.toString(16)}\r\n`);
  heard.socket.write(refused.body);
  if (chunked) heard.socket.write('\r\n0\r\n\r\n');
  await eventually('there is a reply', () => heard.text().includes('\r\n\r\n') || heard.isClosed());
  const [head] = heard.text().split('\r\n\r\n') as [string];
  if (head === '') return 'cut without an answer';
  if (/^connection: close$/im.test(head)) {
    await eventually('it closes', () => heard.isClosed());
    return 'fine';
  }
  heard.socket.write(NEXT);
  await eventually('the next one is answered', () => replies(heard.text()) > 1 || heard.isClosed());
  heard.socket.destroy();
  return replies(heard.text()) > 1 ? 'fine' : 'closed without a word';
}

describe('a connection whose request had a body that was refused', () => {
  it.each(ROUTE_TABLE.map((row) => [`${row.method} ${row.path}`, row] as const))(
    'answers the next request or was announced closed: %s',
    async (_title, row) => {
      const told = await Promise.all(
        drawSome(random, BODIES, 4).flatMap((refused) =>
          [false, true].map(async (chunked) => {
            const outcome = await sendAndGoOn(row, refused, chunked);
            return outcome === 'fine' ? [] : [`${refused.what}${chunked ? ', in chunks' : ''}: ${outcome}`];
          }),
        ),
      );
      expect(told.flat()).toEqual([]);
    },
  );

  it('is announced closed where more is on its way than is worth reading, and the answer arrives', async () => {
    const row = ROUTE_TABLE.find(({ path }) => path === '/api/admin/login')!;
    const huge = { what: 'a gigabyte', type: JSON_TYPE, body: Buffer.alloc(5_000_000, ' '), length: 1_000_000_000 };
    const heard = await open();
    heard.socket.write(
      `POST ${row.path} HTTP/1.1\r\nHost: x\r\ncontent-type: ${huge.type}\r\ncontent-length: ${huge.length}\r\n\r\n`,
    );
    heard.socket.write(huge.body);
    await eventually('there is a reply', () => heard.text().includes('BODY_TOO_LARGE'));
    expect(heard.text()).toMatch(/^connection: close$/im);
    // What follows is part of the body, whatever it looks like, and no request.
    heard.socket.end(NEXT);
    await eventually('it closes', () => heard.isClosed());
    expect(replies(heard.text())).toBe(1);
  });
});
