import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addCollection, documentsName } from '../world/collections.js';
import { purgeTrash } from '../world/documents.js';
import { buildProject } from '../helpers/build-project.js';
import { listenToCommands } from '../helpers/command-log.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { use, useTestApp } from '../helpers/use.js';

const DAY_MS = 86_400_000;
const clock = createFakeClock();

/** Everything that is done to documents outside of transactions, whose writes name the `_id` alone. */
const commands = use(listenToCommands());
const test = await useTestApp({ clock });
const shop = await buildProject(test.app);
const fields = [
  { name: 'title', type: 'String' as const, required: true },
  { name: 'tags', type: 'Array' as const },
  { name: 'place', type: 'Object' as const },
  { name: 'next', type: 'Ref' as const, ref: 'posts' },
];
const { collection } = await addCollection(test.app, shop.project, { name: 'posts', mode: 'enforced', fields });
const stored = documentsName(collection);
const { _id: one } = await call('POST', '/api/data/posts', { title: 'one', place: { town: 'Oslo' } });
const { _id: two } = await call('POST', '/api/data/posts', { title: 'two', next: one, tags: ['a'] });
await call('POST', '/api/data/posts/bulk', [{ title: 'three' }, { title: 'four' }], { 'idempotency-key': 'once' });
await call('POST', '/api/data/posts/bulk', [{ title: 'five' }, { title: 6 }], {}, 400);
await call('PUT', `/api/data/posts/${one}`, { title: 'first', 'place.town': 'Bergen' });
await call('PUT', `/api/data/posts/${two}`, { tags: null, 'tags.0': 'b' }, {}, 400);
await call('GET', '/api/data/posts?populate=next&title_regex=^t&sort=-title');
await call('POST', '/api/data/posts/aggregate', {
  pipeline: [{ $lookup: { from: 'posts', localField: 'next', foreignField: '_id', as: 'follows' } }],
});
await call('DELETE', `/api/data/posts/${one}`);
await call('PATCH', `/api/data/posts/${one}/recover`);
await call('DELETE', `/api/data/posts/${two}`);
await call('DELETE', `/api/data/posts/${one}?permanent=true`);
clock.advance(40 * DAY_MS);
await purgeTrash(test.app, new AbortController().signal);

async function call(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  status?: number,
): Promise<{ _id: string }> {
  const reply = await fetch(test.url + path, {
    method,
    headers: { 'x-api-key': shop.secret, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await reply.text();
  if (status ? reply.status !== status : !reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
  return JSON.parse(text) as { _id: string };
}
interface Write {
  q: Record<string, unknown>;
  many: boolean;
  upsert: boolean;
}

/** Every change of a stored document, in one form. */
function writesTo(name: string): Write[] {
  const list = (key: string, command: string): Write[] =>
    commands
      .named(command)
      .filter(({ body }) => body[command] === name)
      .flatMap(({ body }) => body[key] as Record<string, unknown>[])
      .map(({ q, multi, limit, upsert }) => ({
        q: q as Record<string, unknown>,
        many: multi === true || limit === 0,
        upsert: upsert === true,
      }));
  const modified = commands
    .named('findAndModify', 'findandmodify')
    .filter(({ name: command, body }) => body[command] === name)
    .map(({ body }) => ({
      q: body.query as Record<string, unknown>,
      many: false,
      upsert: body.upsert === true,
    }));
  return [...list('updates', 'update'), ...list('deletes', 'delete'), ...modified];
}

/** Whether a filter names one `_id`, which is what leads to one shard. */
function namesOneId(filter: Record<string, unknown>): boolean {
  const { _id, $and } = filter as { _id?: object; $and?: Record<string, unknown>[] };
  if (_id !== undefined) return !Object.keys(_id).some((key) => key.startsWith('$')) || '$eq' in _id;
  return $and?.some(namesOneId) ?? false;
}

describe('documents sharded by hashed _id', () => {
  it('change by commands that name the _id, and by no upsert', () => {
    const writes = writesTo(stored);
    // The embedded engine decides about documents inside of its own transactions, without a command for each.
    expect(writes.length > 2).toBe(test.app.db.kind === 'mongodb');
    expect(writes.filter(({ q, many, upsert }) => many || upsert || !namesOneId(q))).toEqual([]);
  });

  it('have no unique index without unique fields', async () => {
    const indexes = await test.app.db.collection(stored).indexes();
    expect(indexes.filter(({ unique }) => unique)).toEqual([]);
  });
});

describe('collections that must stay on one shard', () => {
  it('are those with unique indexes, and the guide names them', async () => {
    const unique: string[] = [];
    for (const name of await test.app.db.listNames()) {
      const indexes = await test.app.db.collection(name).indexes();
      if (indexes.some((index) => index.unique)) unique.push(name);
    }
    expect(unique.sort()).toEqual([
      'change_log',
      'collections',
      'files',
      'jobs',
      'mail_templates',
      'operators',
      'projects',
      'schedules',
    ]);
    const guide = readFileSync(join(import.meta.dirname, '..', '..', 'templates', 'docs', 'mongodb.md'), 'utf8');
    expect(guide.replaceAll(/\s+/g, ' ')).toContain(unique.map((name) => `\`${name}\``).join(', '));
  });
});
