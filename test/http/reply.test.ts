import { once } from 'node:events';
import { request, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import Koa from 'koa';
import { afterEach, describe, expect, it } from 'vitest';
import { answerRequests } from '../../src/http/answer-requests.js';
import { addHeaders, keepConnections, replyEncoded, replyJson } from '../../src/http/replies/reply.js';
import { openLogger } from '../../src/platform/observe/logger.js';

const log = openLogger({ level: 'silent', format: 'json' });
let server: Server | undefined;
afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(null)));
});

/** Serves one answer for every path; its headers come in front of what the answer sets. */
async function serve(answer: Koa.Middleware): Promise<string> {
  const api = new Koa();
  api.use(
    answerRequests({ prepare: [(ctx) => addHeaders(ctx, 'x-own: common\r\nVary: Origin\r\n')], observe: [], log }),
  );
  api.use(answer);
  keepConnections(api, 5_000);
  server = api.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('replies', () => {
  it('are JSON with the headers that every reply has', async () => {
    const url = await serve((ctx) => replyJson(ctx, { text: 'Grüße' }, 201));
    const reply = await fetch(url);
    expect(reply.status).toBe(201);
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(reply.headers.get('content-length')).toBe(String(Buffer.byteLength('{"text":"Grüße"}')));
    expect(reply.headers.get('x-own')).toBe('common');
    expect(await reply.json()).toEqual({ text: 'Grüße' });
  });

  it('may have been encoded before, one character for each byte', async () => {
    const url = await serve((ctx) => replyEncoded(ctx, Buffer.from('{"text":"東京"}').toString('latin1')));
    expect(await (await fetch(url)).json()).toEqual({ text: '東京' });
  });

  it.each(['GET', 'HEAD'])('may be written when they are sent, with headers that come of it: %s', async (method) => {
    const url = await serve((ctx) =>
      replyEncoded(ctx, {
        write(out) {
          out.append('{"text":"Grüße"}');
          return 'ETag: "7"\r\n';
        },
      }),
    );
    const reply = await fetch(url, { method });
    expect(Object.fromEntries(reply.headers)).toMatchObject({ etag: '"7"', 'content-length': '18', 'x-own': 'common' });
    expect(await reply.text()).toBe(method === 'HEAD' ? '' : '{"text":"Grüße"}');
  });

  it('are an error when they cannot be written', async () => {
    const url = await serve((ctx) =>
      replyEncoded(ctx, {
        write(out) {
          out.append('{"half":');
          throw new Error('damaged');
        },
      }),
    );
    const reply = await fetch(url);
    expect(reply.status).toBe(500);
    expect(await reply.json()).toMatchObject({ code: 'INTERNAL' });
  });

  it('keep headers that the route has set itself', async () => {
    const url = await serve((ctx) => {
      ctx.set('x-own', 'route');
      ctx.vary('Accept');
      replyJson(ctx, {});
    });
    const { headers } = await fetch(url);
    expect(headers.get('x-own')).toBe('route');
    expect(headers.get('vary')).toBe('Accept, Origin');
  });

  it('of other kinds get them too', async () => {
    const url = await serve((ctx) => void (ctx.body = 'text'));
    const reply = await fetch(url);
    expect(reply.headers.get('x-own')).toBe('common');
    expect(await reply.text()).toBe('text');
  });

  it('are one part for their connection, headers and all', async () => {
    const url = await serve((ctx) => replyJson(ctx, { a: 1 }));
    let joined = 0;
    server!.on('connection', (socket: Socket) => {
      const join = socket._writev!.bind(socket);
      socket._writev = (parts, done) => {
        joined++;
        join(parts, done);
      };
    });
    expect(await (await fetch(url)).json()).toEqual({ a: 1 });
    expect(joined).toBe(0);
  });

  it('to HEAD tell the length and send nothing', async () => {
    const url = await serve((ctx) => replyJson(ctx, { a: 1 }));
    const reply = await fetch(url, { method: 'HEAD' });
    expect(reply.headers.get('content-length')).toBe('7');
    expect(await reply.text()).toBe('');
  });

  it('reach everybody else when a client has gone before the turn’s replies are sent', async () => {
    const waiting: (() => void)[] = [];
    const url = await serve(async (ctx) => {
      // All are answered in one turn, the first one to a connection that is cut in it.
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 3) for (const go of waiting) go();
      });
      replyJson(ctx, { path: ctx.path });
      if (ctx.path === '/gone') ctx.req.socket.destroy();
    });
    const gone = request(`${url}/gone`).end();
    const lost = once(gone, 'error');
    const replies = await Promise.all(['/a', '/b'].map(async (path) => (await fetch(url + path)).json()));
    expect(replies).toEqual([{ path: '/a' }, { path: '/b' }]);
    expect(((await lost) as [NodeJS.ErrnoException])[0].code).toBe('ECONNRESET');
  });
});
