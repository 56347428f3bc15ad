import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import Koa from 'koa';
import { afterEach, expect, it } from 'vitest';
import { Admission } from '../../src/http/admission/admission.js';
import { openLogger } from '../../src/platform/observe/logger.js';
import { openMetrics } from '../../src/platform/observe/metrics.js';
import { startServer, type RunningServer } from '../../src/http/server.js';
import { eventually } from '../helpers/eventually.js';

const BUSY = 30;
const NEW = 200;
const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

let server: RunningServer;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.stop(0);
});

/** A client that asks as soon as it is connected; `again`: and whenever it is answered. */
function ask(again: boolean, path = '/'): Socket {
  const socket = connect(server.port, '127.0.0.1');
  sockets.push(socket);
  socket.write(GET.replace('/', path));
  socket.on('data', () => again && socket.write(GET));
  socket.on('error', () => undefined);
  return socket;
}

it('lets all clients in at once that connect to a busy server', async () => {
  const api = new Koa();
  const answered = { old: 0, new: 0 };
  api.use((ctx) => {
    answered[ctx.path === '/new' ? 'new' : 'old']++;
    ctx.body = 'x'.repeat(1_000);
  });
  server = await startServer(api, '127.0.0.1', 0);
  for (let at = 0; at < BUSY; at++) ask(true);
  await eventually('everybody is busy', () => answered.old > BUSY * 10);
  answered.old = 0;
  const late = Array.from({ length: NEW }, () => ask(false, '/new'));
  await Promise.all(late.map((socket) => once(socket, 'data')));
  // One a turn of the event loop, each would have waited for another round of all others.
  expect(answered.old).toBeLessThan((BUSY * NEW) / 8);
});

it('works for nobody who left while others were let in', async () => {
  const api = new Koa();
  const config = { maxInFlight: 1_000, bodyBudgetBytes: 2 ** 26 };
  const gate = new Admission({ config, log: openLogger({ level: 'silent', format: 'json' }), metrics: openMetrics() });
  api.use(async (ctx, next) => {
    await gate.begin(ctx);
    return next();
  });
  api.use((ctx) => void (ctx.body = 'x'));
  server = await startServer(api, '127.0.0.1', 0);
  for (let round = 0; round < 20; round++) {
    const leaving = Array.from({ length: 20 }, () => ask(false));
    await once(leaving.at(-1)!, 'connect');
    for (const socket of leaving) socket.resetAndDestroy();
  }
  const last = ask(false);
  await once(last, 'data');
  await eventually('nothing is under way', () => gate.inFlight.held === 0);
});
