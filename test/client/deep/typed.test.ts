import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ObjectId } from 'bson';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Collection, Field } from '../../world/collections.js';
import { describeCollections, writeTypeFile } from '../../world/projects.js';
import { compile, compileMeasured } from '../../helpers/compile.js';
import { estateCollections } from '../../helpers/estate.js';
import { buildLargeProject } from '../../helpers/large-project.js';

/** What users of the client get: its built declarations. */
const CLIENT = readFileSync(join(import.meta.dirname, '../../../dist/client/client.d.ts'), 'utf8');

const HEAD = `import { createClient, ApiError, type Client } from './client.js';
import type { Project, PostsDocument, PeopleDocument } from './project.js';
declare const api: Client<Project>;
declare const id: string;
const posts = api.collection('posts');
`;

const FITS = `
export const made: Client<Project> = createClient<Project>({ url: '', key: '' });
export const untyped = createClient({ url: '', key: '' }).collection('anything').list({ filter: { x_gt: 1 } });
export async function read() {
  const { items, nextCursor } = await posts.list({
    filter: {
      title: 'x', views_gt: 3, live: true, publishedAt_lt: new Date(), createdAt_gte: '2026-01-01', tags_in: ['a'],
      author_in: [id], 'meta.score_lte': 5, 'meta.deep.er': false, meta_exists: true, title_regex: '^a', title_startswith: 'a',
      'free.anything_gt': 3, 'parts.person': id, mixed: 1, _id_ne: id, related: id,
    },
    sort: ['-views', 'meta.score', '-createdAt'], limit: 10,
  });
  const all: PostsDocument[] = items;
  const next: string | null = nextCursor;
  const [part] = (await posts.list({ fields: ['title', 'views'] })).items;
  const title: string = part!.title;
  const views: number | undefined = part!.views;
  const [full] = (await posts.list({ populate: ['author', 'category', 'related', 'meta.editor', 'parts.person'] })).items;
  const { author, category, related, meta, parts } = full!;
  if (typeof author !== 'string') { const name: string | undefined = author.name; void name; }
  if (category && typeof category !== 'string') { const name: string = category.name; void name; }
  for (const each of related ?? []) if (typeof each !== 'string') { const t: string = each.title; void t; }
  const editor = meta?.editor;
  if (editor && typeof editor !== 'string') { const p: PeopleDocument | object = editor; void p; }
  const person = parts?.[0]?.person;
  if (person && typeof person !== 'string') { const x: string = person._id; void x; }
  for await (const post of posts.iterate({ filter: { live: true }, populate: ['author'] })) void post.title;
  void [all, next, title, views, await posts.count({ views: 1 }), await posts.get(id, { fields: ['slug'] })];
}
export async function write() {
  const post: PostsDocument = await posts.insert({ title: '', author: id, publishedAt: new Date() });
  await posts.insertMany([{ title: '', author: id }]);
  await posts.update(post._id, { 'meta.score': 1, slug: null, 'free.x.y': 1 });
  await posts.update(post._id, {
    title: '', $inc: { views: 1, 'meta.score': -1 }, $push: { tags: 'x', related: { $each: [id], $slice: -5 } },
    $addToSet: { tags: { $each: ['y'] } }, $pull: { tags: { $in: ['x'] } }, $max: { publishedAt: new Date() }, $unset: ['slug', 'meta.deep.er'],
  }, { ifMatch: post });
  await api.collection('loose').update(post._id, { whatever: 1, $inc: { any: 1 }, $push: { list: 'x' }, $unset: ['z'] });
  await api.batch((b) => {
    b.collection('notes').insert({ _id: id, text: '' });
    b.collection('posts').update(id, { title: '', $inc: { views: 1 } }, { ifMatch: post });
    b.collection('posts').remove(id);
  });
  const changed: number = await posts.updateMatching({ live: true }, { $inc: { views: 1 } }, { confirm: 3 });
  await posts.removeMatching({ views_lt: changed }, { confirm: 3, permanent: true });
  await api.collection('notes').insert({ text: '' });
  await api.collection('loose').insert({ kind: '', whatever: [1] });
  await api.collection('loose').list({ filter: { whatever_gt: 1, size: 1 }, sort: '-whatever' });
  const totals: { _id: string }[] = await posts.aggregate<{ _id: string }>([{ $group: { _id: '$slug' } }]);
  return totals;
}
export async function live() {
  const stop: () => void = posts.follow({ filter: { live: true } }, (event) => {
    if (event.type === 'upsert') { const t: string = event.document.title; void t; }
    else if (event.type === 'error') { const e: ApiError = event.error; void e; }
  });
  posts.follow.set({ filter: { live: true }, sort: '-views', fields: ['title'] }, (list) => list.map(({ title }) => title.length));
  posts.follow.set({ sort: ['-views', 'title'], limit: 20, populate: ['author'] }, ([first]) => {
    if (first && typeof first.author !== 'string') { const of: string | undefined = first.author.name; void of; }
  });
  posts.follow({ populate: ['category'], limit: 5 }, (event) => {
    if (event.type === 'upsert' && typeof event.document.category === 'object') { const n: string = event.document.category.name; void n; }
  });
  const user = await api.auth.signUp({ email: '', password: '', name: '' });
  const role: string | undefined = user.role;
  await api.auth.updateProfile({ name: null, email: '', password: '', currentPassword: '' });
  await api.auth.changePassword({ currentPassword: '', newPassword: '', totp: '' });
  const name: string | undefined = (await api.auth.publicProfile('x')).name;
  const attached = await api.files.upload(new Blob([]), { attach: { collection: 'posts', id } });
  const links: (string | null)[] = await api.files.links([attached.path]);
  void [links, stop, role, name, await api.files.upload(new Blob([]), { onProgress: (sent) => sent })];
}
`;

/** Field, type, operator, collection, required, sort, populate, fields: one mistake a line. */
const REFUSED = [
  "posts.list({ filter: { titel: 'x' } });",
  'posts.list({ filter: { title: 1 } });',
  "posts.list({ filter: { views: '1' } });",
  "posts.list({ filter: { views_gt: '1' } });",
  "posts.list({ filter: { views_regex: '1' } });",
  "posts.list({ filter: { views_startswith: '1' } });",
  'posts.list({ filter: { views_like: 1 } });',
  'posts.list({ filter: { live_gt: true } });',
  "posts.list({ filter: { title_in: 'a,b' } });",
  'posts.list({ filter: { tags_in: [1] } });',
  "posts.list({ filter: { title_exists: 'true' } });",
  'posts.list({ filter: { publishedAt: 1 } });',
  'posts.list({ filter: { meta: {} } });',
  "posts.list({ filter: { 'meta.scores': 1 } });",
  "posts.list({ filter: { 'meta.score': 'x' } });",
  'posts.list({ filter: { isDeleted: true } });',
  "posts.list({ sort: 'titel' });",
  "posts.list({ sort: '+title' });",
  "posts.list({ sort: ['views', 'titel'] });",
  "posts.list({ fields: ['titel'] });",
  "posts.list({ populate: ['title'] });",
  "posts.list({ populate: ['anything'] });",
  'posts.list({ limits: 1 });',
  "posts.list({ fields: ['title'] }).then(({ items }) => items[0]!.views);",
  "posts.list({ populate: ['category'] }).then(({ items }) => items[0]!.category!.nam);",
  'posts.list().then(({ items }) => items[0]!.author.name);',
  "api.collection('post');",
  "api.collection('users');",
  'posts.insert({ author: id });',
  'posts.update(id, { $inc: { title: 1 } });',
  "posts.update(id, { $inc: { views: '1' } });",
  'posts.update(id, { $inc: { view: 1 } });',
  'posts.update(id, { $push: { tags: 1 } });',
  "posts.update(id, { $push: { title: 'x' } });",
  'posts.update(id, { $pull: { tags: { $in: [1] } } });',
  'posts.update(id, { $max: { live: true } });',
  "posts.update(id, { $unset: ['title'] });",
  "posts.update(id, { $rename: { title: 'x' } });",
  "api.batch((b) => b.collection('post'));",
  'posts.updateMatching({ live: true }, { $inc: { view: 1 } }, { confirm: 3 });',
  "posts.updateMatching({ live: true }, { title: '' });",
  "api.batch((b) => b.collection('notes').insert({ texts: '' }));",
  "posts.insert({ title: '', author: id, vews: 1 });",
  "posts.insert({ title: '', author: id, views: '1' });",
  "posts.insertMany([{ title: '' }]);",
  "posts.update(id, { titel: '' });",
  'posts.update(id, { title: null });',
  "posts.update(id, { 'meta.score': '1' });",
  "api.collection('notes').update(id, { userId: id });",
  "api.collection('loose').list({ filter: { size: 'x' } });",
  "posts.follow({ filter: { titel: '' } }, () => undefined);",
  "posts.follow.set({ sort: 'titel' }, () => undefined);",
  "posts.follow.set({ populate: ['title'] }, () => undefined);",
  "posts.follow({ limit: '5' }, () => undefined);",
  "posts.changes({ filter: { views: '1' } });",
  "api.auth.signUp({ email: '' });",
  "api.auth.signUp({ email: '', password: '', role: 'admin' });",
  "api.mail.send({ subject: '' });",
];

const program = async (collections: Collection[]) => ({
  'test/typed/client.d.ts': CLIENT,
  'test/typed/project.d.ts': await writeTypeFile(describeCollections('shop', collections, { isPublic: false })),
});

describe('the client with the types of a project', () => {
  let complaints: string[];
  beforeAll(async () => {
    const mistakes = REFUSED.map((line, at) => [`test/typed/refused-${at}.ts`, `${HEAD}void ${line}\nexport {};\n`]);
    complaints = compile({
      ...(await program(estateCollections())),
      'test/typed/fits.ts': HEAD + FITS,
      ...Object.fromEntries(mistakes),
    });
  });

  it('takes what fits', () => {
    expect(complaints.filter((line) => !line.startsWith('test/typed/refused-'))).toEqual([]);
  });

  it('refuses each mistake before it runs', () => {
    const refused = new Set(complaints.map((line) => Number(/refused-(\d+)/.exec(line)?.[1])));
    expect(REFUSED.filter((_, at) => !refused.has(at))).toEqual([]);
  });

  it('takes every field and Ref of a collection however few there are, and no other', async () => {
    const [posts] = estateCollections();
    const collections = [0, 1, 2, 3].map((count): Collection => {
      const names = ['one', 'two', 'three'].slice(0, count);
      const refs = names.map((name) => ({ name, type: 'Ref' as const, ref: 'c1' }));
      const fields = count === 0 ? [{ name: 'plain', type: 'String' as const }] : refs;
      return { ...posts!, _id: new ObjectId(), name: `c${count}`, mode: 'enforced', fields, rls: null };
    });
    const call = (name: string, options: string): string => `void api.collection('${name}').list({ ${options} });`;
    const all = collections.flatMap(({ name, fields }) => {
      const known = fields.map((field) => field.name);
      return ['one', 'two', 'three', 'plain'].flatMap((field) => [
        { line: call(name, `fields: ['${field}']`), fits: known.includes(field) },
        { line: call(name, `sort: '-${field}', filter: { ${field}: id }`), fits: known.includes(field) },
        { line: call(name, `populate: ['${field}']`), fits: known.includes(field) && field !== 'plain' },
      ]);
    });
    const head = HEAD.replace(/import type .*|const posts = .*/g, '').replace(
      'declare const api',
      "import type { Project } from './project.js';\ndeclare const api",
    );
    const files = all.map(({ line }, at) => [`test/typed/few-${at}.ts`, `${head}${line}\nexport {};\n`]);
    const told = compile({ ...(await program(collections)), ...Object.fromEntries(files) });
    const refused = new Set(told.map((line) => Number(/few-(\d+)/.exec(line)?.[1])));
    expect(all.filter(({ fits }, at) => fits === refused.has(at)).map(({ line }) => line)).toEqual([]);
  });

  it('knows what rules and marks of fields leave to a publishable key', async () => {
    const [posts] = estateCollections();
    const plain = { ...posts!, mode: 'enforced' as const, rls: null };
    const text = (name: string, marks: Partial<Field>): Field => ({ name, type: 'String', ...marks });
    const collections: Collection[] = [
      {
        ...plain,
        _id: new ObjectId(),
        name: 'cards',
        fields: [
          text('owner', { required: true, stamp: 'user.id', fixed: true }),
          text('board', { required: true, fixed: true }),
          text('editor', { required: true, stamp: 'user.id' }),
          text('title', { required: true }),
          text('key', { hidden: true }),
          text('note', { required: true, read: 'doc.owner = user.id' }),
        ],
        rules: { read: 'anyone', create: 'user', update: 'user', delete: 'nobody' },
      },
      {
        ...plain,
        _id: new ObjectId(),
        name: 'ledger',
        fields: [text('line', {})],
        rules: { read: 'nobody', create: 'nobody', update: 'nobody', delete: 'nobody' },
      },
    ];
    const lines: { line: string; fits: 'both' | 'public' | 'secret' }[] = [
      { line: "cards.insert({ board: '', title: '' })", fits: 'public' },
      { line: "cards.insert({ board: '', title: '', owner: '', editor: '', note: '' })", fits: 'both' },
      { line: "cards.update(id, { title: '', editor: '' })", fits: 'both' },
      { line: "cards.update(id, { board: '' })", fits: 'secret' },
      { line: "cards.update(id, { owner: '' })", fits: 'secret' },
      { line: "cards.update(id, { key: '' })", fits: 'secret' },
      { line: 'cards.get(id).then(({ owner, editor }) => owner.length + editor.length)', fits: 'both' },
      { line: 'cards.get(id).then(({ note }) => note.length)', fits: 'secret' },
      { line: "api.collection('ledger').list()", fits: 'secret' },
    ];
    const head = `import type { Client } from './client.js';
import type { Project } from './project.js';
declare const api: Client<Project>;
declare const id: string;
export const cards = api.collection('cards');
`;
    for (const isPublic of [true, false]) {
      const files = lines.map(({ line }, at) => [`test/typed/mark-${at}.ts`, `${head}void ${line};\nvoid id;\n`]);
      const complaints = compile({
        'test/typed/client.d.ts': CLIENT,
        'test/typed/project.d.ts': await writeTypeFile(describeCollections('shop', collections, { isPublic })),
        ...Object.fromEntries(files),
      });
      const refused = new Set(complaints.map((line) => Number(/mark-(\d+)/.exec(line)?.[1])));
      const wanted = lines.flatMap(({ fits }, at) =>
        fits === 'both' || fits === (isPublic ? 'public' : 'secret') ? [] : [at],
      );
      expect(
        [...refused].sort((a, b) => a - b),
        complaints.join('\n'),
      ).toEqual(wanted);
    }
  });

  it('is light: every collection of 60 with 25 fields listed and written makes less than 450 types each', async () => {
    const { types, head, calls } = await buildLargeProject();
    const { complaints, instantiations } = compileMeasured({
      'test/typed/client.d.ts': CLIENT,
      'test/typed/project.d.ts': types,
      'test/typed/use.ts': head + calls,
    });
    expect(complaints).toEqual([]);
    expect(instantiations).toBeLessThan(60 * 450);
  });
});
