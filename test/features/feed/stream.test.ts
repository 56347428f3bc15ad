import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import type { Caller } from '../../../src/features/access/caller.js';
import { EventBytes } from '../../../src/features/feed/streams/batch.js';
import { Stream } from '../../../src/features/feed/streams/stream.js';

it('a stream goes on after a batch without events', async () => {
  const server = createServer((_request, response) => {
    response.flushHeaders();
    const stream = new Stream(response, {} as Caller, null, Infinity);
    for (const text of ['event: one\n\n', '', 'event: two\n\n']) stream.write(new EventBytes(text));
    stream.end({ code: 'OVER' });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const [reply] = (await once(get({ port: (server.address() as AddressInfo).port }), 'response')) as [IncomingMessage];
  let text = '';
  for await (const part of reply.setEncoding('utf8')) text += part as string;
  expect(text).toBe('event: one\n\nevent: two\n\nevent: end\ndata: {"code":"OVER","retryAfterMs":0}\n\n');
  server.close();
});
