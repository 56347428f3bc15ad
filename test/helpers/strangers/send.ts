import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { CountedForm } from '../arrival-forms.js';

/**
 * One request as strangers send it. In any part of it `{n}` is another number each time, `{token}` and `{document}` are
 * those of the user who sends it.
 */
export interface Shot {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}

/** A request cut off at a stage of its way, sent byte by byte, or whose reply is never read. */
export type Stage = 'headers' | 'body' | 'drip' | 'unread';

let addresses = 0;
export const nextAddress = (): string => `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses++ & 255}`;

/** A user's access token, and a document of this user. */
export interface Identity {
  token: string;
  document: string;
}

let sent = 0;
function filled({ method, path, headers, body }: Shot, { token, document }: Identity): Shot {
  const n = `${process.pid}x${sent++}`;
  const fill = (text: string): string =>
    text.replaceAll('{n}', n).replaceAll('{token}', token).replaceAll('{document}', document);
  return {
    method,
    path: fill(path),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, fill(value)])),
    body: fill(body),
  };
}

const NOBODY: Identity = { token: '', document: '0'.repeat(24) };
const CUT_AFTER = 5_000;
const DRIP_MS = 50;
const AWAITED_MS = 800;

const agent = new Agent({ keepAlive: true, maxSockets: 60 });

export function send(
  url: string,
  shot: Shot,
  address: string,
  identity: Identity = NOBODY,
): Promise<{ status: number; text: string; ms: number }> {
  const { method, path, headers, body } = filled(shot, identity);
  const begin = performance.now();
  return new Promise((resolve) => {
    const done = (status: number, text: string): void => resolve({ status, text, ms: performance.now() - begin });
    const length = body === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const outgoing = request(
      url + path,
      { method, agent, timeout: 60_000, headers: { ...length, ...headers, 'x-forwarded-for': address } },
      (reply) => {
        let text = '';
        reply.setEncoding('utf8').on('data', (part: string) => (text.length < 10_000 ? (text += part) : undefined));
        // A stream goes on: that it has begun is its answer.
        if (String(reply.headers['content-type']).startsWith('text/event-stream')) {
          reply.destroy();
          done(reply.statusCode!, text);
        }
        reply.on('end', () => done(reply.statusCode!, text));
        reply.on('error', () => done(0, text));
      },
    );
    outgoing.on('timeout', () => outgoing.destroy());
    outgoing.on('error', (error) => done(0, error.message));
    outgoing.end(body);
  });
}

/** Sends a request up to a stage and keeps its connection until it is destroyed. */
export function sendUpTo(url: string, shot: Shot, address: string, stage: Stage, identity: Identity): Socket {
  const { method, path, headers, body } = filled(shot, identity);
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).on('error', () => undefined);
  socket.pause();
  const isCut = stage === 'body' || stage === 'drip';
  const whole = !isCut ? body : body === '' ? '{"a":"' : body.slice(0, CUT_AFTER);
  const declared = isCut ? Buffer.byteLength(whole) + 5_000 : Buffer.byteLength(whole);
  const length = { 'content-type': 'application/json', 'content-length': `${declared}` };
  const head = headOf(method, path, { ...headers, 'x-forwarded-for': address, ...(declared > 0 && length) });
  if (stage === 'drip') drip(socket, `${head}\r\n`, whole);
  else socket.write(stage === 'headers' ? head : `${head}\r\n${whole}`);
  return socket;
}

/** The lines of a head, without the empty one behind them. */
function headOf(method: string, path: string, headers: Record<string, string>): string {
  const lines = Object.entries({ host: 'x', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}`;
}

/** Sends a request with a body in a form of arriving; the status, 0 for none, and how many of its events were sent. */
export async function sendAs(
  url: string,
  shot: Shot,
  address: string,
  form: CountedForm,
  identity: Identity,
): Promise<{ status: number; events: number }> {
  const { method, path, headers, body } = filled(shot, identity);
  const json = { 'content-type': 'application/json', connection: 'close' };
  const head = headOf(method, path, { ...headers, ...json, 'x-forwarded-for': address });
  const writes = [...form.writes(body)];
  const sent = await write(url, [`${head}${form.length(body)}\r\n`, ...writes]);
  // Of one write so many events as of all, by its length.
  const events = form.events(body) * (sent.bytes / writes.reduce((sum, part) => sum + part.length, head.length));
  return { status: sent.status, events: Math.round(events) };
}

/** Writes one part after the other until all are written or the service has closed the connection, then its status. */
export async function write(url: string, parts: Iterable<string>): Promise<{ status: number; bytes: number }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setNoDelay(true);
  let reply = '';
  let isClosed = false;
  socket.setEncoding('latin1').on('data', (part: string) => (reply += part));
  socket.on('end', () => socket.destroy()).on('error', () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      isClosed = true;
      resolve();
    });
  });
  await Promise.race([closed, new Promise((resolve) => socket.once('connect', resolve))]);
  for (const part of parts) {
    if (isClosed) break;
    if (socket.write(part, 'latin1')) await new Promise((resolve) => setImmediate(resolve));
    else await Promise.race([closed, new Promise((resolve) => socket.once('drain', resolve))]);
  }
  await closed;
  return { status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(reply)?.[1] ?? 0), bytes: socket.bytesWritten };
}

/** Sends the head, then the body byte by byte until the connection is destroyed. */
function drip(socket: Socket, head: string, body: string): void {
  socket.write(head);
  let at = 0;
  const timer = setInterval(() => socket.write(body[at++ % body.length]!), DRIP_MS);
  socket.once('close', () => clearInterval(timer));
}

/** Whether the service goes on waiting for the rest of a request that was sent up to a stage. */
export async function isAwaited(url: string, shot: Shot, address: string, identity: Identity): Promise<boolean> {
  const socket = sendUpTo(url, shot, address, 'body', identity);
  let isAnswered = false;
  socket.once('data', () => (isAnswered = true)).once('close', () => (isAnswered = true));
  socket.resume();
  await wait(AWAITED_MS);
  socket.destroy();
  return !isAnswered;
}
