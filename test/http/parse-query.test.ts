import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { openKoa } from '../../src/http/koa.js';
import { parseQuery } from '../../src/http/koa.js';
import { watchEventLoop } from '../helpers/event-loop.js';
import { listen } from '../helpers/listen.js';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';

const NAMES = ['a', 'b', '__proto__', 'constructor', '', 'a b', 'ä', '%zz', 'a[b]'];

it('gives each parameter by its name, and a list for one that is given more than once', () => {
  const random = openRandom(openSeed('query strings'));
  for (let round = 0; round < 2_000; round++) {
    const text = Array.from({ length: random.below(12) }, () => {
      const name = random.pick([random.pick(NAMES), encodeURIComponent(random.pick(NAMES))]);
      return random.chance(0.8) ? `${name}=${random.below(3)}` : name;
    }).join('&');
    const expected = new URLSearchParams(text);
    const query = parseQuery(text);
    expect(new Set(Object.keys(query))).toEqual(new Set(expected.keys()));
    for (const name of new Set(expected.keys())) {
      const values = expected.getAll(name);
      expect(Object.getOwnPropertyDescriptor(query, name)!.value).toEqual(values.length > 1 ? values : values[0]);
    }
  }
});

it.each([
  ['the same name', (): string => 'a'],
  ['other names', (n: number): string => n.toString(36)],
  ['empty names', (): string => '='],
])('takes no more than a turn for as many parameters as a request may have: %s', async (_what, nameOf) => {
  const koa = openKoa((error) => {
    throw error;
  });
  koa.use((ctx) => (ctx.body = { parameters: Object.keys(ctx.query).length }));
  const server = await listen(createServer(koa.callback()));
  // Node refuses headers of more than 16 KiB, the request line among them.
  const names = Array.from({ length: 16_384 }, (_, n) => nameOf(n));
  const text = names.join('&').slice(0, 15_000);
  await fetch(`${server.url}/?a=1`);
  const loop = watchEventLoop();
  const { status } = await fetch(`${server.url}/?${text}`);
  const tookMs = loop.longestMs();
  loop.stop();
  await server.close();
  expect(status).toBe(200);
  expect(tookMs).toBeLessThan(50);
});
