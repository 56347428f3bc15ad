import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import bcrypt from 'bcrypt';
import Database from 'libsql';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { foreignId } from '../../cli/formats/foreign/foreign-document.js';
import { Documents } from '../../src/engine/storage/documents.js';
import { HIDDEN_FIELD } from '../../src/features/collections/fields/field.js';
import { requireProject } from '../world/projects.js';
import { logIn } from '../../src/features/users/sign-in/log-in.js';
import { findUserByEmail } from '../../src/features/users/user-store.js';
import { openCliHome, type CliOptions } from '../helpers/run-cli.js';
import { withApp } from '../helpers/with-app.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const ENV = { BSVC_BCRYPT_COST: '4' };
let made = 0;

/** A fresh project and a runner in it. */
async function openProject() {
  const name = `p${++made}`;
  const bsvc = (argv: string[], options: CliOptions = {}) =>
    home.bsvc(argv, { ...options, env: { ...ENV, BSVC_PROJECT: name, ...options.env } });
  await bsvc(['project', 'create', name]);
  const documents = async (collection: string): Promise<Record<string, unknown>[]> => {
    const { stdout } = await bsvc(['data', 'query', collection, '--sort', 'createdAt', '--limit', '1000', '--json']);
    return (JSON.parse(stdout) as { items: Record<string, unknown>[] }).items;
  };
  /** The scheme of the stored hash before and after signing in, or the code of the refusal. */
  const signIn = (email: string, password: string): Promise<string | [string, string]> =>
    withApp({ BSVC_DATA_DIR: join(home.dir, 'data'), BSVC_DURABILITY: 'relaxed', ...ENV }, async (app) => {
      const project = await requireProject(app, name);
      const scheme = async (): Promise<string> => {
        const user = await findUserByEmail(app, project._id, email);
        return user?.[HIDDEN_FIELD].passwordHash?.split('$')[1] ?? 'none';
      };
      const before = await scheme();
      try {
        await logIn(app, project, { email, password }, { ip: '192.0.2.1', userAgent: '' });
      } catch (error) {
        return (error as { code: string }).code;
      }
      return [before, await scheme()];
    });
  return { bsvc, documents, signIn };
}

const file = (name: string, content: string): string => {
  writeFileSync(join(home.dir, name), content);
  return name;
};

const lines = (values: unknown[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join('');
const idOf = (id: string): string => foreignId(id).toHexString();

/** The published example of Firebase's scrypt. */
const HASH_CONFIG = `hash_config {
  algorithm: SCRYPT,
  base64_signer_key: jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==,
  base64_salt_separator: Bw==,
  rounds: 8,
  mem_cost: 14,
}`;
const SIGNER_KEY = /base64_signer_key: (.*),/.exec(HASH_CONFIG)![1]!;
const FIREBASE_USER = {
  localId: 'AbC123',
  email: 'ann@example.com',
  emailVerified: true,
  displayName: 'Ann',
  photoUrl: 'https://example.com/ann.png',
  passwordHash: 'lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
  salt: '42xEC+ixf3L2lw==',
  createdAt: '1600000000000',
};

describe('bsvc data import users --from firebase', () => {
  it('signs in with the password of the published example, by bcrypt from then on', async () => {
    const { bsvc, signIn } = await openProject();
    file('hash.txt', HASH_CONFIG);
    const users = [
      FIREBASE_USER,
      { localId: 'phone', phoneNumber: '+491' },
      { localId: 'x', email: 'off@example.com', disabled: true },
    ];
    file('fb.json', JSON.stringify({ kind: 'x', users }, null, 2));
    const words = ['data', 'import', 'users', 'fb.json', '--from', 'firebase', '--hash-config', 'hash.txt', '--json'];
    const dry = await bsvc([...words, '--dry-run']);
    expect(dry.json()).toMatchObject({ dryRun: true, stored: 2, present: 0 });
    expect(await signIn('ann@example.com', 'user1password')).toBe('INVALID_CREDENTIALS');
    const first = await bsvc(words);
    expect(first.code).toBe(1);
    expect(first.json()).toMatchObject({
      stored: 2,
      present: 0,
      rejected: [{ message: 'the user has no email address' }],
      undeclared: ['photoUrl'],
    });
    expect(await signIn('ann@example.com', 'user2password')).toBe('INVALID_CREDENTIALS');
    expect(await signIn('ann@example.com', 'user1password')).toEqual(['firebase-scrypt', '2b']);
    expect(await signIn('ann@example.com', 'user1password')).toEqual(['2b', '2b']);
    // What is there stays: the password as bcrypt too.
    expect((await bsvc(words)).json()).toMatchObject({ stored: 0, present: 2 });
    expect(await signIn('ann@example.com', 'user1password')).toEqual(['2b', '2b']);
    const [off, ann] = (await bsvc(['user', 'list', '--json'])).json<Record<string, unknown>[]>();
    expect(ann).toMatchObject({ _id: idOf('AbC123'), name: 'Ann', emailVerified: true, disabled: false });
    expect(ann!.createdAt).toBe('2020-09-13T12:26:40.000Z');
    expect(off).toMatchObject({ email: 'off@example.com', disabled: true, hasPassword: false });
  });

  it('keeps the signer key nowhere, and says what a missing one costs', async () => {
    const { bsvc } = await openProject();
    file('fb.json', JSON.stringify({ users: [FIREBASE_USER] }));
    const outcome = await bsvc(['data', 'import', 'users', 'fb.json', '--from', 'firebase', '--json']);
    expect(outcome.json()).toMatchObject({
      stored: 1,
      withoutPassword: [{ count: 1, reason: 'no --hash-config was given' }],
    });
    file('hash.txt', HASH_CONFIG);
    const other = await openProject();
    await other.bsvc(['data', 'import', 'users', 'fb.json', '--from', 'firebase', '--hash-config', 'hash.txt']);
    const audit = await other.bsvc(['audit', '--json']);
    expect(audit.stdout).toContain('data import');
    expect(audit.stdout).not.toContain(SIGNER_KEY);
  });

  it.each([
    ['another algorithm', HASH_CONFIG.replace('SCRYPT', 'BCRYPT'), /is not SCRYPT/],
    ['no signer key', HASH_CONFIG.replace(/ {2}base64_signer.*\n/, ''), /there is no base64_signer_key/],
  ])('refuses parameters with %s', async (_, config, message) => {
    const { bsvc } = await openProject();
    file('fb.json', JSON.stringify({ users: [FIREBASE_USER] }));
    file('bad.txt', config);
    const outcome = await bsvc([
      'data',
      'import',
      'users',
      'fb.json',
      '--from',
      'firebase',
      '--hash-config',
      'bad.txt',
    ]);
    expect({ code: outcome.code, stderr: outcome.stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(message) as string,
    });
  });
});

describe('bsvc data import users of bcrypt hashes', () => {
  it('takes them over as they are, whichever letter they bear', async () => {
    const { bsvc, signIn } = await openProject();
    const hash = await bcrypt.hash('sesame 1', 5);
    const supabase = {
      id: '7d0f7a52-0c3e-4d1e-9a53-6f5b1c1f9a01',
      email: 'Sue@Example.com',
      encrypted_password: hash.replace('$2b$', '$2a$'),
      email_confirmed_at: '2024-01-02T03:04:05.678901+00:00',
      raw_user_meta_data: { full_name: 'Sue', sub: 'x', plan: 'pro' },
      created_at: '2024-01-02 03:04:05.678901+00',
      banned_until: null,
    };
    const argon = { ...supabase, id: 'b', email: 'argon@example.com', encrypted_password: '$argon2id$v=19$m=1$a$b' };
    const gone = { ...supabase, id: 'c', email: 'gone@example.com', deleted_at: '2024-01-02T00:00:00Z' };
    file('sb.ndjson', lines([supabase, argon, gone]));
    const outcome = await bsvc(['data', 'import', 'users', 'sb.ndjson', '--from', 'supabase', '--json']);
    expect(outcome.json()).toMatchObject({
      stored: 2,
      undeclared: ['plan'],
      withoutPassword: [{ count: 1, reason: 'it is not a bcrypt hash' }],
      rejected: [{ line: 3, message: 'the account was deleted in Supabase' }],
    });
    const parse = {
      _id: 'k3yF0oBar1',
      username: 'pat@example.com',
      _hashed_password: hash.replace('$2b$', '$2y$'),
      emailVerified: true,
      _created_at: { $date: '2023-01-01T00:00:00.000Z' },
      _rperm: ['*'],
      _session_token: 'r:1',
    };
    file('parse.ndjson', lines([parse]));
    expect((await bsvc(['data', 'import', 'users', 'parse.ndjson', '--from', 'parse', '--json'])).json()).toMatchObject(
      {
        stored: 1,
        undeclared: ['username'],
      },
    );
    expect(await signIn('sue@example.com', 'sesame 1')).toEqual(['2b', '2b']);
    expect(await signIn('pat@example.com', 'sesame 1')).toEqual(['2b', '2b']);
    expect(await signIn('argon@example.com', 'sesame 1')).toBe('INVALID_CREDENTIALS');
  });
});

/** A data.db as PocketBase of either generation writes it. */
function pocketBase(name: string, generation: '0.22' | '0.23', posts: number): string {
  const database = new Database(join(home.dir, name));
  database.pragma('journal_mode = WAL');
  const fieldColumn = generation === '0.22' ? 'schema' : 'fields';
  const field = (spec: Record<string, unknown>): Record<string, unknown> => {
    const { name: own, type, required = false, ...options } = spec;
    return { id: String(own), name: own, type, required, ...(generation === '0.22' ? { options } : options) };
  };
  database.exec(`
    CREATE TABLE _collections (id TEXT, system BOOLEAN, type TEXT, name TEXT, ${fieldColumn} JSON);
    CREATE TABLE users (id TEXT, email TEXT, verified BOOLEAN, tokenKey TEXT, name TEXT, boss TEXT,
      ${generation === '0.22' ? 'passwordHash' : 'password'} TEXT, created TEXT, updated TEXT);
    CREATE TABLE posts (id TEXT, title TEXT, views NUMERIC, live BOOLEAN, at TEXT, author TEXT, tags JSON, kind TEXT,
      extra JSON, mixed JSON, picture TEXT, also JSON, created TEXT, updated TEXT);
    CREATE TABLE tags (id TEXT, label TEXT, created TEXT, updated TEXT);
    CREATE VIEW seen AS SELECT id FROM posts;
  `);
  const account = ['email', 'verified', 'tokenKey', 'password'].map((own) => field({ name: own, type: 'text' }));
  const collections: [string, string, boolean, Record<string, unknown>[]][] = [
    ['_superusers', 'auth', true, []],
    ['users', 'auth', false, [...account, field({ name: 'name', type: 'text' })]],
    ['seen', 'view', false, []],
    [
      'posts',
      'base',
      false,
      [
        field({ name: 'title', type: 'text', required: true }),
        field({ name: 'views', type: 'number' }),
        field({ name: 'live', type: 'bool', required: true }),
        field({ name: 'at', type: 'date' }),
        field({ name: 'author', type: 'relation', collectionId: 'id-users', maxSelect: 1 }),
        field({ name: 'tags', type: 'relation', collectionId: 'id-tags', maxSelect: 5 }),
        field({ name: 'kind', type: 'select', maxSelect: 1, values: ['news', 'blog'] }),
        field({ name: 'extra', type: 'json' }),
        field({ name: 'mixed', type: 'json' }),
        field({ name: 'picture', type: 'file', maxSelect: 1 }),
        field({ name: 'also', type: 'select', maxSelect: 2, values: ['a', 'b'] }),
      ],
    ],
    ['tags', 'base', false, [field({ name: 'label', type: 'text' })]],
  ];
  // One commit for all of them, or each waits for the disk.
  database.exec('BEGIN');
  const put = database.prepare('INSERT INTO _collections VALUES (?, ?, ?, ?, ?)');
  for (const [own, type, system, fields] of collections) {
    put.run(`id-${own}`, system ? 1 : 0, type, own, JSON.stringify(fields));
  }
  const at = '2024-05-01 10:00:00.123Z';
  const hash = bcrypt.hashSync('pocket pass', 4).replace('$2b$', '$2a$');
  database
    .prepare('INSERT INTO users VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)')
    .run('u1', 'una@example.com', 1, 'k', 'Una', '', hash, at, at);
  for (const tag of ['t1', 't2']) database.prepare('INSERT INTO tags VALUES (?, ?, ?, ?)').run(tag, tag, at, at);
  const post = database.prepare(`INSERT INTO posts VALUES (${Array(14).fill('?').join(', ')})`);
  for (let i = 0; i < posts; i++) {
    const id = `post${String(i).padStart(5, '0')}`;
    const row = [id, `Post ${i}`, i, i % 2, at, 'u1', '["t1","t2"]', 'news', '{"a":1}', i % 2 ? '[1]' : '{"b":2}'];
    post.run(...row, 'x.png', '["a"]', at, at);
  }
  post.run('post99999', 'Bare', 0, 0, '', '', '[]', '', 'null', '', '', '[]', at, at);
  database.exec('COMMIT');
  database.close();
  return name;
}

describe('data import --from pocketbase', () => {
  it.each(['0.22', '0.23'] as const)('takes over all collections of version %s with ids and Refs', async (version) => {
    const { bsvc, documents, signIn } = await openProject();
    const path = pocketBase(`pb-${version}.db`, version, 3);
    const words = ['data', 'import', '--from', 'pocketbase', path];
    const dry = await bsvc([...words, '--dry-run', '--json']);
    expect({ code: dry.code, stderr: dry.stderr }).toEqual({ code: 0, stderr: '' });
    expect(dry.json()).toMatchObject({
      dryRun: true,
      collections: [
        { name: 'posts', created: true, stored: 4, rejectedCount: 0, notes: ['file names only'] },
        { name: 'tags', created: true, stored: 2, rejectedCount: 0, notes: [] },
      ],
    });
    expect((await bsvc(['collection', 'list', '--json'])).stdout).not.toContain('posts');
    const table = await bsvc([...words, '--dry-run']);
    expect(table.stdout).toMatch(/collection +registered +would be stored +there already +refused +notes/);
    expect((await bsvc([...words, '--old-id', 'pbId'])).code).toBe(0);
    const all = await documents('posts');
    expect(all).toHaveLength(4);
    expect(all.find(({ title }) => title === 'Post 1')).toMatchObject({
      _id: idOf('post00001'),
      pbId: 'post00001',
      views: 1,
      live: true,
      at: '2024-05-01T10:00:00.123Z',
      author: idOf('u1'),
      tags: [idOf('t1'), idOf('t2')],
      kind: 'news',
      extra: { a: 1 },
      mixed: '[1]',
      picture: 'x.png',
      also: ['a'],
      createdAt: '2024-05-01T10:00:00.123Z',
    });
    const bare = all.find(({ title }) => title === 'Bare')!;
    expect(Object.keys(bare)).not.toEqual(expect.arrayContaining(['author']));
    const { collection } = (await bsvc(['collection', 'show', 'posts', '--json'])).json<{
      collection?: Record<string, unknown>;
    }>();
    const shown = JSON.stringify(collection ?? (await bsvc(['collection', 'show', 'posts', '--json'])).json());
    expect(shown).toContain('"ref":"users"');
    const users = await bsvc(['data', 'import', 'users', path, '--from', 'pocketbase', '--json']);
    expect(users.json()).toMatchObject({ stored: 1, rejectedCount: 0 });
    expect((await bsvc(['user', 'list', '--json'])).json<unknown>()).toMatchObject([{ _id: idOf('u1'), name: 'Una' }]);
    expect(await signIn('una@example.com', 'pocket pass')).toEqual(['2b', '2b']);
  });

  it('goes on after it was ended, and leaves alone what has been changed since', async () => {
    const { bsvc, documents } = await openProject();
    const path = pocketBase('long.db', '0.23', 1200);
    const words = ['data', 'import', '--from', 'pocketbase', path, '--json'];
    const stop = new AbortController();
    let count = 0;
    const store = Documents.prototype.insert;
    const spy = vi.spyOn(Documents.prototype, 'insert').mockImplementation(function (this: Documents, to, ...given) {
      // The first of the second batch.
      if (to.ns.includes('.documents_') && ++count === 501) stop.abort('SIGINT');
      store.call(this, to, ...given);
    });
    const ended = await bsvc(words, { stop: stop.signal });
    spy.mockRestore();
    expect({ code: ended.code, stderr: ended.stderr.split('\n')[0] }).toEqual({
      code: 130,
      stderr:
        'bsvc: Interrupted. 1000 stored. Run it again to continue: documents that are already present stay as they are.',
    });
    const id = idOf('post00001');
    await bsvc(['data', 'update', 'posts', '{"title":"changed here"}', id]);
    const again = await bsvc(words);
    expect(again.json()).toMatchObject({
      collections: [
        { name: 'posts', stored: 201, present: 1000 },
        { name: 'tags', stored: 2, present: 0 },
      ],
    });
    expect((await bsvc(['data', 'query', 'posts', id, '--json'])).json()).toMatchObject({ title: 'changed here' });
    expect((await bsvc(['data', 'query', 'posts', '--count', '--json'])).stdout).toContain('1201');
    expect(await documents('tags')).toHaveLength(2);
  });

  it('takes one collection under another name, and says what is no PocketBase', async () => {
    const { bsvc, documents } = await openProject();
    const path = pocketBase('named.db', '0.23', 1);
    expect((await bsvc(['data', 'import', 'labels', path, '--from', 'pocketbase', '--source', 'tags'])).code).toBe(0);
    expect((await documents('labels')).map(({ label }) => label)).toEqual(['t1', 't2']);
    const unknown = await bsvc(['data', 'import', 'nothing', path, '--from', 'pocketbase']);
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('It has: posts, tags') as string });
    const text = await bsvc(['data', 'import', file('text.db', 'no database'), '--from', 'pocketbase']);
    expect(text).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cannot be read as a SQLite file') as string,
    });
    const empty = new Database(join(home.dir, 'other.db'));
    empty.exec('CREATE TABLE a (b)');
    empty.close();
    for (const [source, collection] of [
      ['firebase', 'users'],
      ['parse', 'users'],
      ['firestore', 'posts'],
    ] as const) {
      const mistaken = await bsvc(['data', 'import', collection, 'other.db', '--from', source]);
      expect(mistaken).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('--from pocketbase reads one') as string,
      });
    }
    const other = await bsvc(['data', 'import', 'other.db', '--from', 'pocketbase']);
    expect(other.stderr).toContain('has no PocketBase collections');
  });
});

describe('data import --from lines of other services', () => {
  let project: Awaited<ReturnType<typeof openProject>>;
  beforeAll(async () => {
    project = await openProject();
    const fields = [
      'text:String',
      'author:Ref(users)',
      'likes:Number',
      'at:Date',
      'place:Object',
      'post:Ref',
      'old:String',
    ];
    const words = ['collection', 'add', 'comments', ...fields.flatMap((field) => ['--field', field])];
    expect((await project.bsvc(words)).stderr).toBe('');
  });

  it('reads every kind of value of Firestore, references and subcollections', async () => {
    const path = (rest: string): string => `projects/p/databases/(default)/documents/${rest}`;
    const full = {
      name: path('posts/p1/comments/c1'),
      fields: {
        text: { stringValue: 'Hello' },
        author: { referenceValue: path('users/AbC123') },
        likes: { integerValue: '7' },
        at: { timestampValue: '2024-05-01T10:00:00.123456Z' },
        place: { geoPointValue: { latitude: 52.5, longitude: 13.4 } },
      },
      createTime: '2024-05-01T10:00:00.000001Z',
      updateTime: '2024-05-02T10:00:00Z',
    };
    const plain = {
      name: path('comments/c2'),
      fields: { author: { stringValue: 'AbC123' }, text: { nullValue: null } },
    };
    const other = { name: path('posts/p1'), fields: {} };
    const wrong = { name: path('comments/c3'), fields: { text: { strangeValue: 1 } } };
    const large = { name: path('comments/c4'), fields: { likes: { integerValue: '9007199254740993' } } };
    file('fs.ndjson', lines([full, plain, other, wrong, large]));
    const words = ['data', 'import', 'comments', 'fs.ndjson', '--from', 'firestore'];
    const more = ['--parent', 'post', '--old-id', 'old', '--json'];
    const outcome = (await project.bsvc([...words, ...more])).json<{ collections: [Record<string, unknown>] }>();
    expect(outcome.collections[0]).toMatchObject({ stored: 2, present: 0, rejectedCount: 2 });
    expect(outcome.collections[0].rejected).toMatchObject([
      { line: 4, message: '"strangeValue" is not a type of Firestore value' },
      { line: 5, message: 'likes: 9007199254740993 has more digits than a Number holds: declare a String for it' },
    ]);
    const stored = await project.documents('comments');
    expect(stored.find(({ old }) => old === 'c1')).toMatchObject({
      // Unique below one document only, so made of the whole path.
      _id: idOf('posts/p1/comments/c1'),
      text: 'Hello',
      author: idOf('AbC123'),
      likes: 7,
      at: '2024-05-01T10:00:00.123Z',
      place: { type: 'Point', coordinates: [13.4, 52.5] },
      post: idOf('p1'),
      createdAt: '2024-05-01T10:00:00.000Z',
      updatedAt: '2024-05-02T10:00:00.000Z',
    });
    expect(stored.find(({ old }) => old === 'c2')).toMatchObject({ author: idOf('AbC123') });
  });

  it('reads moments as PostgreSQL writes them, in whatever zone this machine is, and refuses other text', async () => {
    const row = { text: 'moment', created_at: '2024-01-01T00:00:00+00:00' };
    file(
      'moments.ndjson',
      lines([
        { ...row, id: 't1', at: '2024-05-01T10:00:00.123456', created_at: '2024-01-02 03:04:05.6+00' },
        { ...row, id: 't2', at: '2024-05-01 10:00:00+05:30' },
        { ...row, id: 't3', at: '2024-05-01' },
        { ...row, id: 't4', created_at: 'yesterday' },
        { ...row, id: 't5', at: '2024-05-01T25:00:00' },
      ]),
    );
    const outcome = await project.bsvc([
      'data',
      'import',
      'comments',
      'moments.ndjson',
      '--from',
      'supabase',
      '--json',
    ]);
    expect(outcome.json()).toMatchObject({
      collections: [
        {
          stored: 3,
          rejected: [
            { line: 4, message: 'createdAt must be a Date' },
            { line: 5, message: expect.stringContaining('at must be a Date') as string },
          ],
        },
      ],
    });
    const stored = await project.documents('comments');
    const at = (id: string): unknown => stored.find(({ _id }) => _id === idOf(id));
    expect(at('t1')).toMatchObject({ at: '2024-05-01T10:00:00.123Z', createdAt: '2024-01-02T03:04:05.600Z' });
    expect(at('t2')).toMatchObject({ at: '2024-05-01T04:30:00.000Z' });
    expect(at('t3')).toMatchObject({ at: '2024-05-01T00:00:00.000Z' });
  });

  it('reads rows of Supabase and documents of Parse', async () => {
    file(
      'rows.ndjson',
      lines([{ id: 12, text: 'row', author: 'uuid-1', likes: null, created_at: '2024-01-01T00:00:00+00:00' }]),
    );
    const rows = await project.bsvc(['data', 'import', 'comments', 'rows.ndjson', '--from', 'supabase', '--json']);
    expect(rows.json()).toMatchObject({ collections: [{ stored: 1, rejectedCount: 0 }] });
    const parse = {
      _id: 'Zx9',
      text: 'parse',
      _p_author: '_User$k3yF0oBar1',
      at: { $date: { $numberLong: '1700000000000' } },
      likes: { $numberInt: '3' },
      _wperm: [],
    };
    file('parse-data.json', JSON.stringify(parse));
    const documents = await project.bsvc([
      'data',
      'import',
      'comments',
      'parse-data.json',
      '--from',
      'parse',
      '--json',
    ]);
    expect(documents.json()).toMatchObject({ collections: [{ stored: 1, rejectedCount: 0 }] });
    const stored = await project.documents('comments');
    expect(stored.find(({ text }) => text === 'row')).toMatchObject({
      _id: idOf('12'),
      author: idOf('uuid-1'),
      createdAt: '2024-01-01T00:00:00.000Z',
    });
    expect(stored.find(({ text }) => text === 'parse')).toMatchObject({
      _id: idOf('Zx9'),
      author: idOf('k3yF0oBar1'),
      at: '2023-11-14T22:13:20.000Z',
      likes: 3,
    });
  });
});

describe('what other programs export', () => {
  let project: Awaited<ReturnType<typeof openProject>>;
  const collections: Record<string, string[]> = {
    notes: ['title:String!', 'stars:Number', 'at:Date', 'tags:Array(String)'],
    authors: ['name:String'],
    posts: ['title:String', 'author_id:Ref(authors)', 'big:String', 'price:Number'],
    likes: ['by:String', 'post:Ref'],
  };
  beforeAll(async () => {
    project = await openProject();
    for (const [name, fields] of Object.entries(collections)) {
      await project.bsvc(['collection', 'add', name, ...fields.flatMap((field) => ['--field', field])]);
    }
    await project.bsvc(['collection', 'add', 'loose', '--flexible']);
  });
  const load = async (collection: string, name: string, text: string | object[], words: string[] = []) => {
    file(name, typeof text === 'string' ? text : lines(text));
    const outcome = await project.bsvc(['data', 'import', collection, name, ...words, '--json']);
    interface Report {
      inserted?: number;
      stored?: number;
      rejected: { line: number; message: string }[];
      notes?: { field: string; message: string; count: number; line: number }[];
      changed?: { field: string; message: string; count: number; line: number }[];
      collections?: Report[];
    }
    const whole = outcome.json<Report>();
    const { rejected, ...report } = whole.collections?.[0] ?? whole;
    const stored = report.inserted ?? report.stored;
    return { stored, rejected, notes: report.changed ?? report.notes ?? [], code: outcome.code };
  };
  const get = async (collection: string, id: string): Promise<Record<string, unknown>> =>
    (await project.bsvc(['data', 'query', collection, id, '--json'])).json();
  const hex = (n: number): string => `66f1a2b3c4d5e6f7081900${10 + n}`;

  it('the hosted service: a list under the name of the collection, with what Mongoose keeps', async () => {
    const times = { createdAt: '2026-05-01T10:00:00.000Z', updatedAt: '2026-05-02T10:00:00.000Z' };
    const state = { isDeleted: false, deletedAt: null, ...times, __v: 0, schemaVersion: 1 };
    const row = (n: number): string => `    ${JSON.stringify({ _id: hex(n), title: `T${n}`, stars: n, ...state })}`;
    const text = `{\n  "notes": [\n${[1, 2].map(row).join(',\n')}\n  ]\n}\n`;
    const { stored, notes } = await load('notes', 'notes_export_1.json', text);
    expect({ stored, notes }).toMatchObject({
      stored: 2,
      notes: [
        { field: '__v', count: 2, line: 3 },
        { field: 'schemaVersion', count: 2, line: 3 },
      ],
    });
    expect(await get('notes', hex(1))).toMatchObject({ title: 'T1', stars: 1, ...times });
    const csv = `_id,title,stars,isDeleted,deletedAt,createdAt,updatedAt,__v\n${hex(3)},T3,3,true,${times.updatedAt},${times.createdAt},${times.updatedAt},0\n`;
    expect(await load('notes', 'notes.csv', csv)).toMatchObject({ stored: 0, rejected: [{ line: 2 }] });
    expect(await load('notes', 'notes.csv', csv.replace(',__v', '').replace(/,0\n$/, '\n'))).toMatchObject({
      stored: 1,
    });
    const loose = JSON.stringify({ posts: [{ title: 'x' }] });
    expect(await load('loose', 'posts.json', loose)).toMatchObject({
      stored: 0,
      rejected: [{ message: expect.stringContaining('--source') as string }],
    });
    expect(await load('loose', 'posts.json', loose, ['--source', 'posts'])).toMatchObject({ stored: 1 });
  });

  it('mongoexport: Extended JSON 2 relaxed and canonical, and 1, as lines and as an array', async () => {
    const id = (n: number): string => `55a0f42f20a4d760b5fc305${n}`;
    const forms = [
      { _id: { $oid: id(1) }, title: 'relaxed', at: { $date: '2009-04-01T00:00:00.000-0700' }, stars: 5 },
      {
        _id: { $oid: id(2) },
        title: 'canonical',
        at: { $date: { $numberLong: '1238569200000' } },
        stars: { $numberInt: '5' },
      },
      { _id: { $oid: id(3) }, title: 'one', at: { $date: 1238569200000 }, stars: { $numberLong: '5' } },
      {
        _id: { $oid: id(4) },
        title: 'decimal',
        at: { $date: '2009-04-01T07:00:00Z' },
        stars: { $numberDecimal: '5.0' },
      },
    ];
    expect(await load('notes', 'm.json', forms.slice(0, 2))).toMatchObject({ stored: 2, notes: [] });
    expect(await load('notes', 'array.json', JSON.stringify(forms.slice(2)))).toMatchObject({ stored: 2 });
    for (const n of [1, 2, 3, 4]) {
      expect(await get('notes', id(n))).toMatchObject({ at: '2009-04-01T07:00:00.000Z', stars: 5 });
    }
    const lost = [
      { title: 'binary', tags: [{ $binary: { base64: 'aGk=', subType: '00' } }] },
      { title: 'old binary', tags: [{ $binary: 'aGk=', $type: '00' }] },
      { title: 'uuid', tags: [{ $binary: { base64: 'ASNFZ4mrze8BI0VniavN7w==', subType: '04' } }] },
      { title: 'long', stars: { $numberLong: '9007199254740993' } },
      { title: 'nan', stars: { $numberDouble: 'NaN' } },
      { title: 'pattern', tags: [{ $regularExpression: { pattern: 'a', options: '' } }] },
      { title: 'far', at: { $date: { $numberLong: '999999999999999' } } },
      { title: 'time', at: { $timestamp: { t: 1, i: 1 } } },
    ];
    expect(await load('notes', 'lost.ndjson', lost)).toMatchObject({
      stored: 3,
      notes: [{ field: 'tags', count: 2, line: 1, message: 'binary data, stored as base64 text' }],
      rejected: [4, 5, 6, 7, 8].map((line) => ({
        line,
        message: expect.stringMatching(/^(stars|tags|at): /) as string,
      })),
    });
  });

  it('mongoexport with ids that are no ObjectIds, and with references by them', async () => {
    const authors = [
      { _id: 7, name: 'Ada' },
      { _id: { $numberLong: '9007199254740997' }, name: 'Bob' },
    ];
    expect(await load('authors', 'ma.json', authors, ['--from', 'mongodb'])).toMatchObject({ stored: 2 });
    const posts = [{ _id: 'p1', title: 'x', author_id: { $numberInt: '7' } }];
    expect(await load('posts', 'mp.json', posts, ['--from', 'mongodb'])).toMatchObject({ stored: 1 });
    expect(await get('posts', idOf('p1'))).toMatchObject({ author_id: idOf('7') });
    expect(await get('authors', idOf('9007199254740997'))).toMatchObject({ name: 'Bob' });
    const csv = '_id,name\nObjectId(55a0f42f20a4d760b5fc3059),Eve\n';
    expect(await load('authors', 'ma.csv', csv, ['--from', 'mongodb'])).toMatchObject({ stored: 1 });
    expect(await get('authors', '55a0f42f20a4d760b5fc3059')).toMatchObject({ name: 'Eve' });
    expect((await load('authors', 'plain.json', [{ _id: 8 }])).rejected[0]!.message).toContain('--from mongodb');
  });

  it('Supabase: int8 keys however long, numbers that lose digits, and the CSV of its editor', async () => {
    const from = ['--from', 'supabase'];
    const authors =
      '{"id":1,"name":"Ada"}\n{"id":9007199254740993,"name":"Bob"}\n{"id":9007199254740992,"name":"Cy"}\n';
    expect(await load('authors', 'a.ndjson', authors, from)).toMatchObject({ stored: 3 });
    const posts =
      '[{"id":1,"title":"a","author_id":1},\n{"id":2,"title":"b","author_id":9007199254740993,"big":9007199254740995},\n' +
      '{"id":3,"title":"c","author_id":null,"price":12345678901.12345678901}]';
    expect(await load('posts', 'p.json', posts, from)).toMatchObject({
      stored: 2,
      rejected: [{ line: 3, message: expect.stringContaining('price: 12345678901.12345678901') as string }],
    });
    expect(await get('posts', idOf('1'))).toMatchObject({ author_id: idOf('1') });
    expect(await get('posts', idOf('2'))).toMatchObject({
      author_id: idOf('9007199254740993'),
      big: '9007199254740995',
    });
    const csv = 'id,title,author_id,price,created_at\n4,"",1,1.5,2024-01-02 03:04:05.6+00\n5,,,,\n';
    expect(await load('posts', 'p.csv', csv, from)).toMatchObject({ stored: 2 });
    expect(await get('posts', idOf('4'))).toMatchObject({ title: '', author_id: idOf('1'), price: 1.5 });
    expect(Object.keys(await get('posts', idOf('5')))).not.toContain('title');
  });

  it('Firestore: documents of the same id below several others, own times, a page and a query', async () => {
    const path = (rest: string): string => `projects/p/databases/(default)/documents/${rest}`;
    const times = { createTime: '2024-01-31T12:30:00Z', updateTime: '2024-02-01T12:30:00Z' };
    const like = (at: string, fields: object = {}) => ({ name: path(at), fields, ...times });
    const page = { documents: [like('posts/A/likes/u1'), like('posts/B/likes/u1')], nextPageToken: 'x' };
    const from = ['--from', 'firestore', '--parent', 'post'];
    expect(await load('likes', 'page.json', JSON.stringify(page, null, 2), from)).toMatchObject({ stored: 2 });
    const query = [{ document: like('posts/B/likes/u2'), readTime: times.createTime }];
    expect(await load('likes', 'query.json', JSON.stringify(query), from)).toMatchObject({ stored: 1 });
    const own = { timestampValue: '2020-01-01T00:00:00Z' };
    const loose = [
      like('loose/a', {
        createdAt: own,
        _id: { stringValue: 'x' },
        deep: { mapValue: { fields: { n: { nullValue: null } } } },
      }),
      like('loose/b', { createdAt: { integerValue: '7' } }),
    ];
    expect(await load('loose', 'own.ndjson', loose, ['--from', 'firestore'])).toMatchObject({
      stored: 2,
      notes: [
        { field: '_id', count: 1, line: 1 },
        { field: 'createdAt', count: 1, line: 2 },
      ],
    });
    expect(await get('loose', idOf('a'))).toMatchObject({ createdAt: '2020-01-01T00:00:00.000Z', deep: { n: null } });
    expect(await get('loose', idOf('b'))).toMatchObject({ createdAt: '2024-01-31T12:30:00.000Z' });
  });

  it('Parse: what its dashboard exports', async () => {
    const row = {
      objectId: 'k3yF0oBar1',
      title: 'x',
      at: { __type: 'Date', iso: '2024-01-01T00:00:00.000Z' },
      tags: ['a'],
      ACL: { '*': { read: true } },
      createdAt: '2023-01-01T00:00:00.000Z',
    };
    for (const [name, text] of [
      ['dash.json', JSON.stringify([row])],
      ['old.json', JSON.stringify({ results: [{ ...row, objectId: 'other' }] })],
    ] as const) {
      expect(await load('notes', name, text, ['--from', 'parse'])).toMatchObject({
        stored: 1,
        rejected: [],
        notes: [{ field: 'ACL', count: 1 }],
      });
    }
    const { at, createdAt } = await get('notes', idOf('k3yF0oBar1'));
    expect([at, createdAt]).toEqual(['2024-01-01T00:00:00.000Z', '2023-01-01T00:00:00.000Z']);
  });
});
