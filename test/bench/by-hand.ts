import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import Router from '@koa/router';
import Koa, { type Context } from 'koa';
import { type BenchDocument, GROUP, makeDocument } from './http-cases.js';

/*
 * What somebody would write by hand for one collection: Koa with its router over better-sqlite3, with a key, a check of
 * the body, an index and prepared statements; no users, rules, webhooks, limits or log. Run by http.ts:
 * by-hand.ts <folder of better-sqlite3> <data file> <documents> <key>
 */

interface Statement {
  get(...values: unknown[]): unknown;
  all(...values: unknown[]): unknown[];
  run(...values: unknown[]): { changes: number };
}
interface Sqlite {
  pragma(text: string): void;
  exec(text: string): void;
  prepare(text: string): Statement;
}

const [folder, file, documents, key] = process.argv.slice(2) as [string, string, string, string];
const load = createRequire(join(folder, 'x.js'));
const Database = load('better-sqlite3') as new (file: string) => Sqlite;
const db = new Database(file);
// As the service: a commit is on the disk before it is answered.
db.pragma('journal_mode = WAL');
db.pragma('synchronous = FULL');
db.exec(`CREATE TABLE IF NOT EXISTS posts (id TEXT PRIMARY KEY, title TEXT NOT NULL, body TEXT, author TEXT,
  status TEXT, grp REAL, views REAL, rating REAL, pinned INTEGER, tags TEXT, due TEXT, created TEXT NOT NULL,
  updated TEXT NOT NULL); CREATE INDEX IF NOT EXISTS by_group ON posts (grp, created DESC)`);
const one = db.prepare('SELECT * FROM posts WHERE id = ?');
const page = db.prepare('SELECT * FROM posts WHERE grp = ? ORDER BY created DESC LIMIT 20');
const total = db.prepare('SELECT count(*) AS total FROM posts WHERE grp = ?');
const insert = db.prepare(`INSERT INTO posts VALUES (${Array(13).fill('?').join(', ')}) RETURNING *`);
const change = db.prepare('UPDATE posts SET views = ?, updated = ? WHERE id = ? RETURNING *');
fill();

const router = new Router({ prefix: '/api/data/posts' });
router.use(async (ctx, next) => {
  if (ctx.get('x-api-key') !== key) ctx.throw(401);
  await next();
});
router.get('/', (ctx) => {
  const group = Number(ctx.query.group);
  const { total: count } = total.get(group) as { total: number };
  ctx.body = {
    success: true,
    data: { items: page.all(group).map(toDocument), total: count, page: 1, limit: 20 },
    message: 'Documents',
  };
});
router.get('/:id', (ctx) => {
  const row = one.get(ctx.params.id);
  if (!row) ctx.throw(404);
  ctx.body = toDocument(row);
});
router.post('/', async (ctx) => {
  const body = (await readBody(ctx)) as Partial<BenchDocument>;
  if (!isDocument(body)) return ctx.throw(400);
  ctx.status = 201;
  ctx.body = toDocument(insert.get(...toRow(body, new Date().toISOString())));
});
router.patch('/:id', async (ctx) => {
  const { views } = await readBody(ctx);
  if (typeof views !== 'number') ctx.throw(400);
  const row = change.get(views, new Date().toISOString(), ctx.params.id);
  if (!row) ctx.throw(404);
  ctx.body = toDocument(row);
});

const server = new Koa().use(router.routes()).listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number };
  const ids = (db.prepare('SELECT id FROM posts WHERE grp >= 0 LIMIT 1000').all() as { id: string }[]).map(
    ({ id }) => id,
  );
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}`, pid: process.pid, ids }));
});
process.on('SIGTERM', () => process.exit(0));

function fill(): void {
  if ((db.prepare('SELECT count(*) AS total FROM posts').get() as { total: number }).total > 0) return;
  db.exec('BEGIN');
  const now = new Date().toISOString();
  for (let index = 0; index < Number(documents); index++)
    insert.run(...toRow(makeDocument(index, Math.floor(index / GROUP)), now));
  db.exec('COMMIT');
}

async function readBody(ctx: Context): Promise<Record<string, unknown>> {
  const parts: Buffer[] = [];
  for await (const part of ctx.req) parts.push(part as Buffer);
  return JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>;
}

function isDocument(body: Partial<BenchDocument>): body is BenchDocument {
  return (
    typeof body.title === 'string' &&
    [body.body, body.author, body.status].every((each) => typeof each === 'string') &&
    [body.group, body.views, body.rating].every((each) => typeof each === 'number') &&
    typeof body.pinned === 'boolean' &&
    Array.isArray(body.tags) &&
    !Number.isNaN(Date.parse(String(body.due)))
  );
}

function toRow(one: BenchDocument, now: string): unknown[] {
  const id = randomBytes(12).toString('hex');
  const { title, body, author, status, group, views, rating, pinned, tags, due } = one;
  return [id, title, body, author, status, group, views, rating, Number(pinned), JSON.stringify(tags), due, now, now];
}

function toDocument(row: unknown): object {
  const { id, title, body, author, status, grp, views, rating, pinned, tags, due, created, updated } = row as Record<
    string,
    unknown
  >;
  return {
    _id: id,
    title,
    body,
    author,
    status,
    group: grp,
    views,
    rating,
    pinned: pinned === 1,
    tags: JSON.parse(String(tags)) as unknown,
    due,
    isDeleted: false,
    deletedAt: null,
    createdAt: created,
    updatedAt: updated,
  };
}
