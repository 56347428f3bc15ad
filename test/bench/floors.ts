import { createServer } from 'node:http';
import Router from '@koa/router';
import Koa from 'koa';

/*
 * The two floors that the service is measured against, each in a process of its own: `node:http` and Koa with its
 * router, answering constants. Run by http.ts: floors.ts <node|koa>
 */

const row = {
  _id: 'a'.repeat(24),
  title: 'x'.repeat(330),
  views: 12,
  isDeleted: false,
  deletedAt: null,
  createdAt: new Date(),
  updatedAt: new Date(),
};
const list = {
  success: true,
  data: { items: Array.from({ length: 20 }, () => row), total: 20, page: 1, limit: 20 },
  message: '',
};

const listen = { node: listenNode, koa: listenKoa }[process.argv[2] as 'node' | 'koa'];
const server = listen();
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number };
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}`, pid: process.pid }));
});
process.on('SIGTERM', () => process.exit(0));

function listenNode() {
  const body = JSON.stringify(row);
  return createServer((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(body);
  });
}

function listenKoa() {
  const router = new Router({ prefix: '/api/data' });
  router.get('/:collectionName', (ctx) => {
    ctx.body = list;
  });
  router.get('/:collectionName/:id', (ctx) => {
    ctx.body = row;
  });
  return createServer(new Koa().use(router.routes()).callback());
}
