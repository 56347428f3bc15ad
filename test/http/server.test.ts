import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import Koa from 'koa';
import { afterEach, describe, expect, it } from 'vitest';
import { answerRequests } from '../../src/http/answer-requests.js';
import { Admission } from '../../src/http/admission/admission.js';
import { startServer, type ClientTimeouts, type RunningServer } from '../../src/http/server.js';
import { openMetrics } from '../../src/platform/observe/metrics.js';
import { openLogger } from '../../src/platform/observe/logger.js';
import { eventually } from '../helpers/eventually.js';

const QUICK: ClientTimeouts = { headersMs: 200, requestMs: 400, silenceMs: 300, stallMs: 200 };
const log = openLogger({ level: 'silent', format: 'json' });
const open: RunningServer[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of open.splice(0)) await server.stop(0);
});

describe('connections of one address', () => {
  it('are bounded: one more is closed unread, and there is room again when one has ended', async () => {
    const api = new Koa();
    api.use((ctx) => void (ctx.body = { done: true }));
    let refusals = 0;
    const bounds = { ofAddress: 3, ofAll: null, onRejection: () => refusals++ };
    const server = await startServer(api, '127.0.0.1', 0, undefined, bounds);
    open.push(server);
    const ask = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
    const taken: Awaited<ReturnType<typeof speak>>[] = [];
    for (let at = 0; at < 3; at++) taken.push(await speak(server, ask));
    await eventually('they are answered', () => taken.every(({ heard }) => heard().includes('200 OK')));
    const refused = await speak(server, ask);
    await eventually('it is closed', () => refused.socket.closed);
    expect([refused.heard(), refusals]).toEqual(['', 1]);
    taken[0]!.socket.destroy();
    await eventually('there is room again', async () => {
      const { socket, heard } = await speak(server, ask);
      await eventually('an end', () => socket.closed || heard() !== '');
      return heard().includes('200 OK');
    });
  });
});

async function start(api: Koa, timeouts?: ClientTimeouts): Promise<RunningServer> {
  const server = await startServer(api, '127.0.0.1', 0, timeouts);
  open.push(server);
  return server;
}

/** A connection that sends `text` and keeps what comes back. */
async function speak(server: RunningServer, text: string): Promise<{ socket: Socket; heard: () => string }> {
  const socket = connect(server.port, '127.0.0.1');
  sockets.push(socket);
  let heard = '';
  socket.setEncoding('utf8').on('data', (part: string) => (heard += part));
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(text);
  return { socket, heard: () => heard };
}

/** An API whose requests stay until they are let go. */
function openGate(maxWaitMs?: number): { api: Koa; waiting: () => number; letGo: () => void } {
  const waiting: (() => void)[] = [];
  const api = new Koa();
  api.use(answerRequests({ prepare: [], observe: [], log }));
  const config = { maxInFlight: 2, bodyBudgetBytes: 2 ** 26 };
  const gate = new Admission({ config, log, metrics: openMetrics() }, maxWaitMs);
  let requests = 0;
  api.use(async (ctx, next) => {
    // Each of a client of its own: shares are tested below test/http/room.
    ctx.request.ip = `10.0.0.${++requests}`;
    ctx.state.caller = { project: { _id: { toHexString: () => ctx.ip } } };
    await gate.begin(ctx);
    return next();
  });
  api.use(async (ctx) => {
    if (ctx.path !== '/quick') await new Promise<void>((resolve) => waiting.push(resolve));
    ctx.body = { done: true };
  });
  return { api, waiting: () => waiting.length, letGo: () => waiting.splice(0).forEach((resolve) => resolve()) };
}

describe('slow clients', () => {
  it('that dribble headers are told 408 and cut', async () => {
    const { api } = openGate();
    const server = await start(api, { ...QUICK, silenceMs: 60_000 });
    const { socket, heard } = await speak(server, 'GET / HTTP/1.1\r\nHost: x\r\n');
    const dribble = setInterval(() => socket.write('x-a: b\r\n'), 30);
    await eventually('the connection is cut', () => socket.closed);
    clearInterval(dribble);
    expect(heard()).toMatch(/^HTTP\/1\.1 408 /);
    expect(heard()).toContain('"success":false');
  });

  it('that dribble a body are cut', async () => {
    const api = new Koa();
    api.use(async (ctx) => {
      for await (const part of ctx.req) void part;
    });
    api.silent = true;
    const head = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n';
    const { socket } = await speak(await start(api, QUICK), head);
    const dribble = setInterval(() => socket.write('x'), 30);
    await eventually('the connection is cut', () => socket.closed);
    clearInterval(dribble);
  });

  it('that say nothing are cut', async () => {
    const { api } = openGate();
    const { socket } = await speak(await start(api, QUICK), '');
    await eventually('the connection is cut', () => socket.closed);
  });

  it('are told 503 where it is the server that says nothing', async () => {
    const { api, waiting } = openGate();
    const { socket, heard } = await speak(await start(api, QUICK), 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await eventually('the connection is cut', () => socket.closed);
    expect([waiting(), heard().split('\r\n')[0]]).toEqual([1, 'HTTP/1.1 503 Service Unavailable']);
    expect(heard()).toContain('Retry-After: 1');
    expect(heard()).toContain('"code":"BUSY"');
  });

  it('do not keep others waiting', async () => {
    const { api } = openGate();
    const server = await start(api);
    for (let at = 0; at < 200; at++) await speak(server, 'POST / HTTP/1.1\r\nHost: x\r\nContent-Le');
    expect((await fetch(`${server.url}/quick`)).status).toBe(200);
  });
});

describe('more requests than a process works on', () => {
  it('are told 503 OVERLOADED with Retry-After until there is room', async () => {
    const { api, waiting, letGo } = openGate();
    const server = await start(api);
    const busy = [fetch(server.url), fetch(server.url)];
    await eventually('both are under way', () => waiting() === 2);
    const refused = await fetch(`${server.url}/quick`);
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await refused.json()).toMatchObject({ success: false, code: 'OVERLOADED' });
    letGo();
    expect((await Promise.all(busy)).map(({ status }) => status)).toEqual([200, 200]);
    await eventually('there is room', async () => (await fetch(`${server.url}/quick`)).status === 200);
  });

  it('wait for room, as many as may be under way, in the order of coming', async () => {
    const { api, waiting, letGo } = openGate(60_000);
    const server = await start(api);
    const busy = [fetch(server.url), fetch(server.url)];
    await eventually('both are under way', () => waiting() === 2);
    const left = await speak(server, 'GET /quick HTTP/1.1\r\nHost: x\r\n\r\n');
    const stays = await speak(server, 'GET /quick HTTP/1.1\r\nHost: x\r\n\r\n');
    const beyond = await speak(server, 'GET /quick HTTP/1.1\r\nHost: x\r\n\r\n');
    await eventually('the third is refused', () => beyond.heard().startsWith('HTTP/1.1 503'));
    left.socket.destroy();
    letGo();
    expect((await Promise.all(busy)).map(({ status }) => status)).toEqual([200, 200]);
    await eventually('the one that waited is answered', () => stays.heard().startsWith('HTTP/1.1 200'));
  });

  it('make room when their clients go away', async () => {
    const { api, waiting } = openGate();
    const server = await start(api);
    for (let at = 0; at < 2; at++) {
      const { socket } = await speak(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      await eventually('it is under way', () => waiting() === at + 1);
      socket.destroy();
    }
    await eventually('there is room', async () => (await fetch(`${server.url}/quick`)).status === 200);
  });
});

describe('requests that a client sends without waiting', () => {
  const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

  it('are worked on one after the other and answered in order', async () => {
    const { api, waiting, letGo } = openGate();
    const { heard } = await speak(await start(api), GET.repeat(3));
    for (let turn = 1; turn <= 3; turn++) {
      await eventually('one is under way', () => waiting() === 1);
      letGo();
      await eventually('it is answered', () => heard().split('"done":true').length === turn + 1);
    }
  });

  it('take no room any more when the client goes away', async () => {
    const { api, waiting, letGo } = openGate();
    const server = await start(api);
    for (let at = 0; at < 5; at++) {
      const { socket } = await speak(server, GET.repeat(20));
      await eventually('one is under way', () => waiting() === 1);
      socket.destroy();
      await eventually('there is room', async () => (await fetch(`${server.url}/quick`)).status === 200);
      letGo();
    }
  });

  it('are a hundred at most', async () => {
    const { api, waiting, letGo } = openGate();
    const { socket } = await speak(await start(api), GET.repeat(200));
    await eventually('the connection is cut', () => socket.closed);
    letGo();
    expect(waiting()).toBe(0);
  });
});

describe('a stopping server', () => {
  it('takes no more connections, lets what is under way finish and tells its client to close', async () => {
    const { api, waiting, letGo } = openGate();
    const server = await start(api);
    const reply = fetch(server.url);
    await eventually('it is under way', () => waiting() === 1);
    const stopped = server.stop(60_000);
    await eventually('nobody else gets in', () =>
      fetch(`${server.url}/quick`).then(
        () => false,
        () => true,
      ),
    );
    letGo();
    expect((await reply).headers.get('connection')).toBe('close');
    expect(await (await reply).json()).toEqual({ done: true });
    await stopped;
  });

  it('goes on serving while it drains', async () => {
    const { api, waiting, letGo } = openGate();
    const server = await start(api);
    // It drains until nobody is connected any more.
    const once = { headers: { connection: 'close' } };
    const reply = fetch(server.url, once);
    await eventually('it is under way', () => waiting() === 1);
    const stopped = server.stop(60_000, { drainMs: 60_000 });
    expect((await fetch(`${server.url}/quick`, once)).status).toBe(200);
    letGo();
    expect((await reply).status).toBe(200);
    await stopped;
  });

  it('cuts what does not finish in time', async () => {
    const { api, waiting } = openGate();
    const server = await start(api);
    const reply = fetch(server.url);
    await eventually('it is under way', () => waiting() === 1);
    await Promise.all([server.stop(50), expect(reply).rejects.toThrow()]);
  });

  it('does not wait for anybody when nobody is connected', async () => {
    const { api } = openGate();
    const server = await start(api);
    await server.stop(60_000, { drainMs: 60_000 });
    await expect(fetch(server.url)).rejects.toThrow();
  });
});
