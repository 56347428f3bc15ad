import { connect, type Socket } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { createApi, startServer } from '../../../world/app.js';
import { eventually } from '../../../helpers/eventually.js';
import { use } from '../../../helpers/use.js';
import { fill, ROUTE_TABLE, type RouteRow } from '../routes-table.js';
import { buildEstate, openStage, passFor } from '../stage.js';

/** Short, so that the test need not wait; only what the client does in between keeps the silence from counting. */
const PATIENCE = { headersMs: 1_000, requestMs: 2_000, silenceMs: 20_000, stallMs: 1_000 };
const DROP_MS = 200;

const sockets: Socket[] = [];
const dribbles: NodeJS.Timeout[] = [];

const stage = use(await openStage());
const own = await buildEstate(stage);
const server = await startServer(createApi(stage.app), '127.0.0.1', 0, PATIENCE);
afterAll(async () => {
  for (const dribble of dribbles) clearInterval(dribble);
  for (const socket of sockets) socket.destroy();
  await server.stop(0);
});

interface Slow {
  what: string;
  /** What comes behind the headers that let the request in. */
  rest: string;
  /** What is sent again and again. */
  drop: string;
}

const FILE = '--B\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n';
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
const WAYS: readonly Slow[] = [
  { what: 'header after header', rest: '', drop: 'x-a: b\r\n' },
  { what: 'a header that does not end', rest: 'x-a: ', drop: 'a' },
  {
    what: 'JSON of a length',
    rest: 'Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"a":"',
    drop: 'a',
  },
  {
    what: 'JSON in chunks',
    rest: 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
    drop: chunk(' '),
  },
  {
    what: 'zipped JSON',
    rest: 'Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 100000\r\n\r\n\x1f\x8b\x08\0',
    drop: '\0',
  },
  {
    what: 'a form',
    rest: `Content-Type: multipart/form-data; boundary=B\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(FILE)}`,
    drop: chunk('a'),
  },
];

function start(row: RouteRow, { rest, drop }: Slow): Socket {
  const { 'content-type': _type, ...headers } = { ...fill(row.headers ?? {}, own.names), ...passFor(row.pass, own) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const path = fill(row.path, { ...own.names, key: own.publishable });
  const socket = connect(server.port, '127.0.0.1', () =>
    socket.write(`${row.method} ${path} HTTP/1.1\r\nHost: x\r\n${lines.join('')}${rest}`, 'latin1'),
  );
  socket.on('error', () => undefined).resume();
  dribbles.push(setInterval(() => void (socket.writable && socket.write(drop, 'latin1')), DROP_MS));
  sockets.push(socket);
  return socket;
}

describe('a request that arrives bit by bit', () => {
  it.each(WAYS.map((way) => [way.what, way] as const))('(%s) is cut in time on every route', async (_what, way) => {
    const open = ROUTE_TABLE.map((row) => ({ route: `${row.method} ${row.path}`, socket: start(row, way) }));
    const left = (): string[] => open.filter(({ socket }) => !socket.closed).map(({ route }) => route);
    await eventually('all are cut', () => left().length === 0, 30_000).catch(() => undefined);
    expect(left()).toEqual([]);
    for (const dribble of dribbles.splice(0)) clearInterval(dribble);
  });
});
