import { Agent, request } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Context } from 'koa';
import { afterAll, expect, it } from 'vitest';
import { createApi } from '../../src/api.js';
import { admission } from '../../src/http/admission/admission.js';
import { startServer } from '../../src/http/server.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { useTestApp } from '../helpers/use.js';

const MEGABYTE = 1024 ** 2;
const BODY_CHARACTERS = 1_000_000;

const answered: Context[] = [];
const agent = new Agent({ keepAlive: true, maxSockets: 30 });
const test = await useTestApp();
const api = createApi(test.app);
api.middleware.unshift((ctx, next) => next().finally(() => answered.push(ctx)));
const server = await startServer(api, '127.0.0.1', 0);
const project = await buildProject(test.app);
const notes = await buildCollection(test.app, project.project, { name: 'notes' });
afterAll(async () => {
  agent.destroy();
  await server.stop(0);
});

/** Sends bodies at once, each on a connection that stays open; the statuses. */
function sendAll(bodies: readonly string[]): Promise<number[]> {
  const { port } = server;
  const headers = { 'content-type': 'application/json', 'x-api-key': project.secret };
  return Promise.all(
    bodies.map(
      (body) =>
        new Promise<number>((resolve, reject) => {
          const path = '/api/data/notes/aggregate';
          request({ agent, port, host: '127.0.0.1', path, method: 'POST', headers }, (reply) => {
            reply.resume().on('end', () => resolve(reply.statusCode!));
          })
            .on('error', reject)
            .end(body);
        }),
    ),
  );
}

const pipeline = (text: string): string => JSON.stringify({ pipeline: [{ $match: { title: text } }] });
const large = (letter: string): string => pipeline(letter.repeat(BODY_CHARACTERS));

it('bodies at once are worked on within the share of their address, and the others wait', async () => {
  const { work } = admission(test.app);
  let most = 0;
  let isOver = false;
  const looking = (async () => {
    for (; !isOver; await nextTurn()) most = Math.max(most, work.held);
  })();
  const statuses = await sendAll(Array.from({ length: 24 }, () => large('a')));
  isOver = true;
  await looking;
  expect(statuses).toEqual(Array(24).fill(200));
  expect(most).toBeGreaterThan(4 * MEGABYTE - 1);
  expect(most).toBeLessThanOrEqual(16 * MEGABYTE);
  expect(work.held).toBe(0);
});

it('a request that was answered or refused keeps no body, whatever still refers to it', async () => {
  answered.length = 0;
  const refused = `{"pipeline":[${'1,'.repeat(60_000)}1]}`;
  expect(await sendAll([refused, pipeline('x'), '{"pipeline":"x"}', '{"pipe'])).toEqual([413, 200, 400, 400]);
  expect(answered).toHaveLength(4);
  for (const { request: asked } of answered) expect((asked as { body?: unknown }).body).toBeUndefined();
});

it('a request whose reply was sent, or whose client left, keeps no reply either', async () => {
  const texts = Array.from({ length: 8 }, () => ({ title: 'a'.repeat(200_000) }));
  await placeDocuments(test.app, notes, texts);
  answered.length = 0;
  const ask = (path: string, method = 'GET'): Promise<Response> =>
    fetch(`${server.url}/api/data/notes${path}`, { method, headers: { 'x-api-key': project.secret } });
  for (const path of ['', '?limit=1', '?limit=0', '/changes', '/nobody']) await (await ask(path)).arrayBuffer();
  await ask('', 'HEAD');
  const left = await ask('');
  await left.body!.cancel();
  await eventually('everything is given back', () => test.app.replies.held === 0);
  expect(answered).toHaveLength(7);
  for (const ctx of answered as unknown as Record<symbol, unknown>[]) {
    const kept = Object.getOwnPropertySymbols(ctx).filter((symbol) => symbol.description === 'reply');
    expect(kept.map((symbol) => ctx[symbol])).toEqual([undefined]);
  }
});
