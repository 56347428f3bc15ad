import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import Database from 'libsql';
import { describe, expect, it } from 'vitest';
import { runBinary, runOrThrow, startService } from '../helpers/run-binary.js';
import { eventually } from '../helpers/eventually.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const ROOT = resolve(import.meta.dirname, '..', '..');
const ADMIN_TOKEN = 'admin-token-of-closed-collections';
const MARKER = 'only-for-the-server';
const FIELDS = [{ name: 'title', type: 'String' }];

const dir = use(await openTempDir());
const env: Record<string, string> = {
  BSVC_DATA_DIR: join(dir.path, 'data'),
  BSVC_LOG_LEVEL: 'error',
  BSVC_ADMIN_TOKEN: ADMIN_TOKEN,
  BSVC_BCRYPT_COST: '4',
  BSVC_PROJECT: 'shop',
};
const service = use(await startService(['serve', '--port', '0'], env));
const made = JSON.parse(await runOrThrow(['project', 'create', 'shop', '--json'], env)) as {
  project: { id: string };
  keys: { publishable: string; secret: string };
};
const project: { id: string; publishable: string; secret: string } = { id: made.project.id, ...made.keys };
const account = { email: 'stranger@example.com', password: 'correct horse battery' };
const signedUp = await send('POST', '/api/userAuth/signup', { key: project.publishable }, account);
const user = (JSON.parse(signedUp.text) as { accessToken: string }).accessToken;

async function send(
  method: string,
  path: string,
  { key, token }: { key?: string | undefined; token?: string | undefined },
  body?: unknown,
): Promise<{ status: number; text: string }> {
  const reply = await fetch(service.ready.url + path, {
    method,
    headers: {
      ...(key !== undefined && { 'x-api-key': key }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: reply.status, text: await reply.text() };
}

const operator = (method: string, path: string, body: unknown) =>
  send(method, `/api/projects/${project.id}${path}`, { token: ADMIN_TOKEN }, body);
const command = (...words: string[]) => runOrThrow(words, env);

function file(name: string, content: unknown): string {
  const path = join(dir.path, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

/**
 * The ways in which a collection is made, by the module that leads to it: each without a word about access. A new
 * module that leads to `addCollection` has to be added here.
 */
const WAYS: Readonly<Record<string, ((name: string) => Promise<unknown>) | 'says its access'>> = {
  'cli/commands/collection.ts': async (name) => {
    await command('collection', 'add', name, '--flexible');
    await command('collection', 'add', `${name}_schema`, '--schema', file(`${name}.json`, FIELDS));
  },
  'cli/commands/apply.ts': (name) =>
    command(
      ...['apply', '-f'],
      file(
        `${name}.yaml`,
        `format: bsvc/1\nprojects:\n  - { name: shop, collections: [{ name: ${name}, fields: ['title:String'] }] }\n`,
      ),
    ),
  'cli/commands/data/import-foreign.ts': (name) => {
    const path = join(dir.path, `${name}.db`);
    const database = new Database(path);
    const fields = JSON.stringify([{ name: 'title', type: 'text', id: 't' }]);
    database.exec(
      `create table _collections (id text, name text, type text, system boolean, fields text, created text);
       insert into _collections values ('c1', '${name}', 'base', false, '${fields}', '');
       create table ${name} (id text, title text);
       insert into ${name} values ('aaaaaaaaaaaaaaa', '${MARKER}');`,
    );
    database.close();
    return command('data', 'import', '--from', 'pocketbase', path);
  },
  'src/features/documents/schema-routes.ts': (name) =>
    send('POST', '/api/schemas', { key: project.secret }, { name, fields: FIELDS }),
  'src/features/management/collection-routes.ts': (name) =>
    operator('POST', '/collections', { name, fields: FIELDS, rls: null, rules: null }),
  'src/features/management/schema-routes.ts': (name) =>
    operator('PUT', '/schema', { format: 'bsvc-schema/1', collections: [{ name, fields: FIELDS }] }),
  'cli/commands/serve.ts': 'says its access',
  // A project of the file in a database that is thrown away.
  'cli/commands/rules.ts': 'says its access',
};

/** Commands and routes that import `addCollection`, through whatever modules. */
function findWays(): string[] {
  const sources = ['src', 'cli'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.startsWith('console'))
      .map((name) => join(ROOT, folder, name)),
  );
  const importers = new Map<string, string[]>();
  for (const source of sources) {
    for (const [, to] of readFileSync(source, 'utf8').matchAll(
      /^(?:import|\} from|export .*from) .*?'(\.[^']+)\.js';$/gm,
    )) {
      const target = `${resolve(source, '..', to!)}.ts`;
      importers.set(target, [...(importers.get(target) ?? []), source]);
    }
  }
  const ways = new Set<string>();
  const seen = new Set<string>();
  const climb = (module: string): void => {
    for (const importer of importers.get(module) ?? []) {
      if (seen.has(importer)) continue;
      seen.add(importer);
      const name = relative(ROOT, importer);
      if (name.startsWith('cli/commands/') || name.endsWith('-routes.ts')) ways.add(name);
      else climb(importer);
    }
  };
  climb(join(ROOT, 'src/features/collections/add-collection.ts'));
  return [...ways];
}

describe('a collection about whose access nothing was said', () => {
  it('is made in the ways that are listed here, and only by addCollection', () => {
    const isWay = (name: string): boolean => name in WAYS;
    expect(findWays().filter((name) => !isWay(name))).toEqual([]);
    expect(Object.keys(WAYS).filter((name) => !findWays().includes(name))).toEqual([]);
  });

  const made = Object.entries(WAYS).flatMap(([way, make], at) =>
    make === 'says its access' ? [] : [{ way, make, at }],
  );
  it.each(made)('made by $way shows a stranger nothing', async ({ make, at }) => {
    const name = `closed${at}`;
    await make(name);
    const path = `/api/data/${name}`;
    const stored = await send('POST', path, { key: project.secret }, { title: MARKER });
    expect(stored.status).toBe(201);
    const id = (JSON.parse(stored.text) as { _id: string })._id;
    const refs = `refs${at}`;
    await command('collection', 'add', refs, '--public', '--field', `to:Ref(${name})`);
    expect((await send('POST', `/api/data/${refs}`, { key: project.secret }, { to: id })).status).toBe(201);
    const lookup = { $lookup: { from: name, localField: 'to', foreignField: '_id', as: 'found' } };
    const reads: [string, string, unknown?][] = [
      ['GET', path],
      ['GET', `${path}/${id}`],
      ['GET', `${path}?count=true`],
      ['GET', `${path}?cursor=start`],
      ['GET', `${path}?title=${MARKER}&include_deleted=true`],
      ['GET', `${path}/changes`],
      ['POST', '/api/realtime', { subscriptions: [{ collection: name }] }],
      ['POST', `${path}/aggregate`, { pipeline: [{ $match: {} }] }],
      ['POST', `/api/data/${refs}/aggregate`, { pipeline: [lookup] }],
      ['POST', `/api/data/${refs}/aggregate`, { pipeline: [{ $unionWith: name }] }],
      ['GET', `/api/data/${refs}?populate=to`],
      ['GET', `/api/schemas/${name}`],
    ];
    for (const token of [undefined, user]) {
      for (const [method, from, body] of reads) {
        const { status, text } = await send(method, from, { key: project.publishable, token }, body);
        expect([from, status, text.includes(MARKER)]).toEqual([from, 403, false]);
      }
      for (const [method, to] of [
        ['POST', path],
        ['PATCH', `${path}/${id}`],
        ['DELETE', `${path}/${id}`],
      ] as const) {
        const { status } = await send(method, to, { key: project.publishable, token }, { title: 'mine' });
        expect([to, status]).toEqual([to, 403]);
      }
    }
    const types = await send('GET', '/api/schemas/types.d.ts', { key: project.publishable });
    expect(types.status).toBe(200);
    expect(types.text).not.toMatch(new RegExp(`(interface|type) ${name}\\b`, 'i'));
  });

  it('tells who is refused the command that opens it', async () => {
    await command('collection', 'add', 'asked', '--flexible');
    const refused = await send('GET', '/api/data/asked', { key: project.publishable });
    const { message } = JSON.parse(refused.text) as { message: string };
    const words = /bsvc (collection rls asked --public)/.exec(message)![1]!.split(' ');
    expect((await runBinary(words, { env })).code).toBe(2);
    await command(...words, '--yes');
    // The service learns within a second of what another process has changed.
    await eventually('the collection is open', async () => {
      const { status } = await send('GET', '/api/data/asked', { key: project.publishable });
      return status === 200 || null;
    });
    expect((await send('POST', '/api/data/asked', { key: project.publishable }, {})).status).toBe(403);
  });

  it('is written with its access by exports, which make the same again', async () => {
    for (const [access, ...words] of [
      ['public', '--public'],
      ['public-read', '--rls', 'public-read'],
      ['private', '--rls', 'private', '--owner-field', 'by'],
      ['server-only'],
    ] as const) {
      const name = `exported_${access.replace('-', '_')}`;
      const added = JSON.parse(await command('collection', 'add', name, '--flexible', ...words, '--json')) as object;
      expect(added).toMatchObject({ collection: { access } });
      expect(await command('project', 'export')).toMatch(new RegExp(`- name: ${name}\\n[^-]*access: ${access}\\n`));
    }
    const exported = file('all.yaml', (await command('project', 'export')).replace('name: shop', 'name: copy'));
    await command('apply', '-f', exported);
    const listed = async (name: string): Promise<object[]> =>
      (JSON.parse(await command('collection', 'list', '--project', name, '--json')) as Record<string, unknown>[]).map(
        ({ name: collection, access, rls, rules }) => ({ collection, access, rls, rules }),
      );
    expect(await listed('copy')).toEqual(await listed('shop'));
  });
});
