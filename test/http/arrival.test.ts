import { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { createApi } from '../../src/api.js';
import { startServer } from '../../src/http/server.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { chunk, CHUNKED, chunked, CROWDED, cut, DECLARED, type Form, HONEST, TINY } from '../helpers/arrival-forms.js';
import { eventually } from '../helpers/eventually.js';
import { useTestApp } from '../helpers/use.js';

/** Pieces of bodies that got as far as the requests' own buffers. */
let pieces = 0;

const test = await useTestApp();
const { project, secret } = await buildProject(test.app);
await buildCollection(test.app, project, { name: 'things' });
const key = `x-api-key: ${secret}\r\n`;
const server = await startServer(createApi(test.app), '127.0.0.1', 0);
const push = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(IncomingMessage.prototype), 'push')!
  .value as IncomingMessage['push'];
vi.spyOn(IncomingMessage.prototype, 'push').mockImplementation(function (this: IncomingMessage, chunk, encoding) {
  if (chunk !== null) pieces++;
  return push.call(this, chunk, encoding);
});
afterAll(async () => {
  vi.restoreAllMocks();
  await server.stop(0);
});

/** As many bytes, or pieces, as a body of these tests has at least. */
const SIZE = 128 * 1024;
const json = (bytes: number): string => `{"t":"${'x'.repeat(bytes - 8)}"}`;
const MULTIPART = '--B\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n';

interface Target {
  name: string;
  /** Whether the body is read. */
  wants: boolean;
  head: string;
  body: (bytes: number) => string;
}

const at = (name: string, line: string, wants = false, headers = '', body = json): Target => ({
  name,
  wants,
  head: `${line} HTTP/1.1\r\nHost: x\r\n${headers}`,
  body,
});
const JSON_TYPE = 'Content-Type: application/json\r\n';
const targets = (): Target[] => [
  at('a document', 'POST /api/data/things', true, `${JSON_TYPE}${key}`),
  at('an aggregation', 'POST /api/data/things/aggregate', true, `${JSON_TYPE}${key}`, (bytes) =>
    JSON.stringify({ pipeline: [{ $match: { t: 'x'.repeat(bytes - 40) } }] }),
  ),
  at(
    'an upload',
    'POST /api/storage/upload',
    true,
    `Content-Type: multipart/form-data; boundary=B\r\n${key}`,
    (bytes) => `${MULTIPART}${'x'.repeat(bytes)}\r\n--B--\r\n`,
  ),
  at('a document without a key', 'POST /api/data/things', false, JSON_TYPE),
  at('a document of another type', 'POST /api/data/things', false, `Content-Type: text/plain\r\n${key}`),
  at('a list', 'GET /api/data/things', false, key),
  at('health', 'GET /api/health/live'),
  at('health by another method', 'POST /api/health/live'),
  at('metrics', 'GET /metrics'),
  at('the start', 'GET /'),
  at('the console', 'GET /console'),
  at('an unknown path', 'POST /api/nothing'),
  at('an unknown path outside of the API', 'PUT /nothing'),
  at('a preflight', 'OPTIONS /api/data/things', false, 'Origin: https://a.example\r\n'),
  at('the webhook of the mail provider', 'POST /api/mail/webhook', false, JSON_TYPE),
  at('an operator’s sign-in', 'POST /api/admin/session', false, JSON_TYPE),
  at('a file', 'PUT /files/a/b', false),
];

interface Outcome {
  reply: string;
  pieces: number;
}

async function send({ head, body }: Target, form: Form, bytes = SIZE): Promise<Outcome> {
  const text = body(bytes);
  let reply = '';
  let isClosed = false;
  const socket = connect(server.port, '127.0.0.1').setNoDelay(true);
  socket.setEncoding('latin1').on('data', (part: string) => (reply += part));
  // What is still to be written is of no use to anybody.
  socket.on('end', () => socket.destroy());
  socket.on('error', () => undefined).on('close', () => (isClosed = true));
  await new Promise((resolve) => socket.once('connect', resolve));
  pieces = 0;
  socket.write(`${head}${form.length(text)}Connection: close\r\n\r\n`);
  for (const write of form.writes(text)) {
    if (isClosed) break;
    if (!socket.write(write, 'latin1')) {
      await new Promise<void>((resolve) => {
        socket.once('drain', resolve).once('close', resolve);
      });
    } else {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  await eventually('the connection is closed', () => isClosed);
  return { reply, pieces };
}

/** Again where a machine that stood still for longer than the connection lingers has lost the answer. */
async function sendUntilAnswered(target: Target, form: Form): Promise<Outcome> {
  let outcome = await send(target, form);
  for (let again = 0; outcome.reply === '' && again < 2; again++) outcome = await send(target, form);
  return outcome;
}

/**
 * 64 pieces, one more for each 256 bytes and 25 a second, 200 of a body that nobody wants; a read of the socket that is
 * under way is not counted by the request.
 */
const MOST = 64 + SIZE / 256 + 200 + 25 * 30;

describe('a body in tiny pieces (decision 50)', () => {
  for (const form of TINY) {
    it(`is not read on anywhere: ${form.name}`, async () => {
      const read: string[] = [];
      for (const target of targets()) {
        const outcome = await sendUntilAnswered(target, form);
        if (outcome.pieces > MOST) read.push(`${target.name}: ${outcome.pieces} pieces`);
        if (!/^HTTP\/1\.1 [2-5]\d\d /.test(outcome.reply)) read.push(`${target.name}: no answer`);
        if (target.wants && form.length === CHUNKED && !outcome.reply.includes('BODY_IN_PIECES')) {
          read.push(`${target.name}: ${outcome.reply.slice(0, 60)}`);
        }
      }
      expect(read).toEqual([]);
    });
  }
});

describe('an ordinary body', () => {
  it.each(HONEST)('arrives $name', async (form) => {
    for (const target of targets().filter(({ wants }) => wants)) {
      const { reply } = await send(target, form);
      expect(`${target.name} ${reply.slice(0, 13)}`).toMatch(/ HTTP\/1\.1 20[01] $/);
    }
  });

  it('arrives however slowly it is typed', async () => {
    const request = at('a document', 'POST /api/data/things', true, `${JSON_TYPE}${key}`);
    let now = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    const body = json(400);
    const form: Form = {
      name: 'ten letters a second',
      length: CHUNKED,
      *writes() {
        for (const letter of body) {
          now += 100;
          yield chunk(letter);
        }
        yield '0\r\n\r\n';
      },
    };
    const { reply } = await send({ ...request, body: () => body }, form);
    vi.mocked(performance.now).mockRestore();
    expect(reply.slice(0, 13)).toBe('HTTP/1.1 201 ');
  });
});

describe('a body that nobody wants', () => {
  it('is read to 64 kB and answered, whatever is still to come', async () => {
    const read: string[] = [];
    for (const target of targets().filter(({ wants }) => !wants)) {
      for (const form of [HONEST[0]!, chunked('in chunks of 64 kB', 64 * 1024)]) {
        let bytes = 0;
        const counted = vi.mocked(IncomingMessage.prototype.push).getMockImplementation()!;
        vi.mocked(IncomingMessage.prototype.push).mockImplementation(function (this: IncomingMessage, part, encoding) {
          if (part !== null) bytes += (part as Buffer).length;
          return counted.call(this, part, encoding);
        });
        const { reply } = await send(target, form, 4 * 1024 ** 2);
        vi.mocked(IncomingMessage.prototype.push).mockImplementation(counted);
        // What was read before the answer: no more than a socket and a stream take at once.
        if (bytes > 64 * 1024 * 3) read.push(`${target.name} ${form.name}: ${bytes} bytes`);
        if (!/^HTTP\/1\.1 [2-5]\d\d /.test(reply)) read.push(`${target.name} ${form.name}: no answer`);
      }
    }
    expect(read).toEqual([]);
  });

  it('is not asked for from a client that waits to be told', async () => {
    const expecting = (target: Target): Target => ({ ...target, head: `${target.head}Expect: 100-continue\r\n` });
    /** Sends nothing before it is told to. */
    const waiting: Form = { name: 'waiting', length: DECLARED, writes: () => [] };
    for (const target of targets().filter(({ wants }) => !wants)) {
      const { reply } = await send(expecting(target), waiting, 1_000);
      expect(`${target.name} ${reply.slice(0, 9)}`).toBe(`${target.name} HTTP/1.1 `);
      expect(reply).not.toContain('100 Continue');
    }
    const [wanted] = targets();
    const body = json(1_000);
    const socket = connect(server.port, '127.0.0.1');
    let reply = '';
    socket.setEncoding('latin1').on('data', (part: string) => (reply += part));
    socket.write(`${expecting(wanted!).head}${DECLARED(body)}\r\n`);
    await eventually('it is told to go on', () => reply === 'HTTP/1.1 100 Continue\r\n\r\n');
    socket.write(body);
    await eventually('it is answered', () => reply.includes('HTTP/1.1 201 '));
    socket.destroy();
  });
});

describe('requests of many parts', () => {
  const speak = async (text: string): Promise<string> => {
    let reply = '';
    let isClosed = false;
    const socket = connect(server.port, '127.0.0.1');
    socket.setEncoding('latin1').on('data', (part: string) => (reply += part));
    socket.on('end', () => socket.destroy());
    socket.on('error', () => undefined).on('close', () => (isClosed = true));
    for (const part of cut(text, 64 * 1024)) socket.write(part, 'latin1');
    await eventually('the connection is closed', () => isClosed);
    return reply;
  };

  it.each(CROWDED)('are refused: %s', async (_what, text, status) => {
    expect(await speak(text)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });

  it('have no form chosen by a long list of what a client accepts', async () => {
    const typeOf = async (accept: string): Promise<string | null> =>
      (await fetch(`${server.url}/nothing`, { headers: { accept } })).headers.get('content-type');
    expect(await typeOf('text/html, */*;q=0.8')).toMatch(/^text\/html/);
    expect(await typeOf(`text/html, ${'a/b;q=0,'.repeat(1_900)}`)).toMatch(/^application\/json/);
    const encodingOf = async (encoding: string): Promise<string | null> =>
      (await fetch(`${server.url}/api/docs`, { headers: { 'accept-encoding': encoding } })).headers.get(
        'content-encoding',
      );
    expect(await encodingOf('gzip, br')).toBe('gzip');
    expect(await encodingOf(`gzip, ${'a;q=0,'.repeat(2_500)}`)).toBeNull();
  });
});
