import { createServer } from 'node:http';
import Router from '@koa/router';
import Koa, { type Context } from 'koa';
import { makeDocument } from './http-cases.js';

/*
 * The floor below every server of this kind, in a process of its own: Koa with its router, which reads bodies and
 * answers constants. Run by http.ts.
 */

const row = {
  _id: 'a'.repeat(24),
  ...makeDocument(12, 1),
  isDeleted: false,
  deletedAt: null,
  createdAt: new Date(),
  updatedAt: new Date(),
};
const list = {
  success: true,
  data: { items: Array.from({ length: 20 }, () => row), total: 50, page: 1, limit: 20 },
  message: 'Documents',
};

const router = new Router({ prefix: '/api/data' });
router.get('/:collectionName', (ctx) => {
  ctx.body = list;
});
router.get('/:collectionName/:id', (ctx) => {
  ctx.body = row;
});
router.post('/:collectionName', answerBody);
router.patch('/:collectionName/:id', answerBody);

const server = createServer(new Koa().use(router.routes()).callback());
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number };
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}`, pid: process.pid }));
});
process.on('SIGTERM', () => process.exit(0));

async function answerBody(ctx: Context): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of ctx.req) parts.push(part as Buffer);
  ctx.body = { ...row, ...(JSON.parse(Buffer.concat(parts).toString()) as object) };
}
