import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { openTestApp } from '../helpers/open-test-app.js';
import { openCliHome } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const inShop = (...argv: string[]) => home.bsvc(argv, { env: { BSVC_PROJECT: 'shop' } });
const file = join(home.dir, 'bsvc.d.ts');

await home.bsvc(['project', 'create', 'shop']);
await inShop('collection', 'add', 'posts', '--field', 'title:String!');

describe('bsvc generate types', () => {
  it('prints the types, or writes them to --out', async () => {
    const { code, stdout } = await inShop('generate', 'types');
    expect([code, stdout.includes('export interface PostsDocument')]).toEqual([0, true]);
    const written = await inShop('generate', 'types', '--out', 'bsvc.d.ts');
    expect([written.code, written.stdout]).toEqual([0, 'Wrote bsvc.d.ts from the collections of shop.\n']);
    expect(readFileSync(file, 'utf8')).toBe(stdout);
  });

  it('exits 1 with --check when the file is stale, edited or missing, and writes nothing', async () => {
    const check = () => inShop('generate', 'types', '--out', 'bsvc.d.ts', '--check');
    expect(await check()).toMatchObject({ code: 0, stdout: 'bsvc.d.ts is up to date.\n' });
    const before = readFileSync(file, 'utf8');
    await inShop('collection', 'edit', 'posts', '--add-field', 'views:Number');
    const stale = await check();
    expect(stale.code).toBe(1);
    expect(stale.stderr).toContain('Renew it: bsvc generate types --project shop --out bsvc.d.ts');
    expect(readFileSync(file, 'utf8')).toBe(before);
    await inShop('generate', 'types', '--out', 'bsvc.d.ts');
    expect((await check()).code).toBe(0);
    writeFileSync(file, `${readFileSync(file, 'utf8')} `);
    expect((await check()).code).toBe(1);
    expect((await inShop('generate', 'types', '--out', 'other.d.ts', '--check')).stderr).toContain(
      'There is no other.d.ts yet',
    );
    expect(existsSync(join(home.dir, 'other.d.ts'))).toBe(false);
    expect((await inShop('generate', 'types', '--check')).code).toBe(2);
  });

  it('adds the types of own code with --hooks', async () => {
    const asked = ['generate', 'types', '--hooks', '--out', 'hooks.d.ts'];
    expect(await inShop(...asked)).toMatchObject({ code: 0 });
    expect(readFileSync(join(home.dir, 'hooks.d.ts'), 'utf8')).toMatch(/interface PostsDocument.*type Handlers</s);
    expect(await inShop(...asked, '--check')).toMatchObject({ code: 0 });
    expect((await inShop('generate', 'openapi', '--hooks')).code).toBe(2);
  });

  it('refuses a secret key that would not be used', async () => {
    const unused = [[], ['--key', 'publishable'], ['--url', 'http://127.0.0.1:9', '--key', 'pk_x']];
    for (const options of unused) {
      const refused = await inShop('generate', 'types', '--secret-key-env', 'SHOP_KEY', ...options);
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('go with --url, and without --key')]);
    }
  });
});

describe('bsvc generate types --key', () => {
  it('writes and checks what that key is shown, from the database and from a running server alike', async () => {
    const served = await openTestApp();
    try {
      const { project, publishable, secret } = await buildProject(served.app);
      await buildCollection(served.app, project, {
        name: 'staff',
        fields: [
          { name: 'name', type: 'String' },
          { name: 'wage', type: 'Number', hidden: true },
        ],
      });
      const env = { BSVC_DATA_DIR: served.dataDir, SHOP_KEY: secret };
      const bsvc = (...argv: string[]) => home.bsvc(['generate', 'types', ...argv], { env });
      for (const [kind, key] of [
        ['publishable', ['--key', publishable]],
        ['secret', ['--secret-key-env', 'SHOP_KEY']],
      ] as const) {
        const asked = ['--url', served.url, ...key, '--out', `${kind}.d.ts`];
        expect(await bsvc(...asked)).toMatchObject({ code: 0 });
        expect(readFileSync(join(home.dir, `${kind}.d.ts`), 'utf8').includes('wage')).toBe(kind === 'secret');
        expect(await bsvc(...asked, '--check')).toMatchObject({ code: 0 });
        const stored = ['--project', project.name, '--out', `${kind}.d.ts`, '--check'];
        expect(await bsvc(...stored, '--key', kind)).toMatchObject({ code: 0 });
        const other = kind === 'secret' ? 'publishable' : 'secret';
        expect((await bsvc(...stored, '--key', other)).code).toBe(1);
      }
      const seen = await bsvc('--url', served.url, '--key', secret);
      expect([seen.code, seen.stderr]).toEqual([2, expect.stringContaining('--secret-key-env')]);
      const refused = await bsvc('--url', served.url, '--key', 'pk_live_none');
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('answered 401')]);
    } finally {
      await served.close();
    }
    const away = await home.bsvc(['generate', 'types', '--url', 'http://127.0.0.1:9', '--key', 'pk_live_x']);
    expect([away.code, away.stderr]).toEqual([3, expect.stringContaining('check the address')]);
    expect((await home.bsvc(['generate', 'types', '--url', 'http://127.0.0.1:9'])).code).toBe(2);
    expect((await inShop('generate', 'types', '--key', 'pk_live_x')).code).toBe(2);
  });
});

describe('bsvc generate openapi, json-schema', () => {
  it('write what the server answers under the same names', async () => {
    const document = (await inShop('generate', 'openapi', '--json')).json<{ paths: object }>();
    expect(Object.keys(document.paths)).toContain('/api/data/posts/{id}');
    await inShop('generate', 'openapi', '--out', 'openapi.json');
    expect(JSON.parse(readFileSync(join(home.dir, 'openapi.json'), 'utf8'))).toEqual(document);
    const { $defs } = (await inShop('generate', 'json-schema', '--json')).json<{ $defs: object }>();
    expect(Object.keys($defs)).toEqual(expect.arrayContaining(['PostsDocument', 'PostsInsert', 'UsersPublic']));
  });
});
