import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openEngine } from '../world/engine.js';
import { openCliHome, type CliOptions } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const inShop = (argv: string[], options: CliOptions = {}) =>
  home.bsvc(argv, { ...options, env: { BSVC_PROJECT: 'shop', ...options.env } });
await home.bsvc(['project', 'create', 'shop']);

interface Shown {
  id: string;
  name: string;
  mode: string;
  fields: { name: string }[];
  rls: object;
  indexes: string[];
}
const show = async (name: string): Promise<Shown> =>
  (await inShop(['collection', 'show', name, '--json'])).json<Shown>();

describe('bsvc collection add', () => {
  it('registers a collection with the fields of its specs', async () => {
    const { code, stdout } = await inShop([
      ...[
        'collection',
        'add',
        'posts',
        '--field',
        'title:String!',
        '--field',
        'slug:String&',
        '--field',
        'views:Number=0',
      ],
      ...['--rls', 'public-read', '--owner-field', 'authorId', '--index', 'views', '--json'],
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      collection: {
        id: expect.stringMatching(/^[0-9a-f]{24}$/) as string,
        name: 'posts',
        mode: 'enforced',
        fields: [
          { name: 'title', type: 'String', required: true },
          { name: 'slug', type: 'String', unique: true },
          { name: 'views', type: 'Number', default: 0 },
        ],
        rls: { enabled: true, mode: 'public-read', ownerField: 'authorId' },
        indexes: ['views'],
      },
      created: true,
    });
  });

  it('takes the fields from a file, as objects or as specs', async () => {
    writeFileSync(join(home.dir, 'fields.json'), JSON.stringify([{ name: 'a', type: 'String' }, 'b:Number!']));
    writeFileSync(join(home.dir, 'fields.yaml'), 'mode: flexible\nfields:\n  - a:String\n  - b:Number!\n');
    await inShop(['collection', 'add', 'fromjson', '--schema', 'fields.json']);
    await inShop(['collection', 'add', 'fromyaml', '--schema', 'fields.yaml']);
    const fields = [
      { name: 'a', type: 'String' },
      { name: 'b', type: 'Number', required: true },
    ];
    expect(await show('fromjson')).toMatchObject({ mode: 'enforced', fields });
    expect(await show('fromyaml')).toMatchObject({ mode: 'flexible', fields });
  });

  it.each([
    [
      ['collection', 'add', 'empty', '--schema', 'empty.json'],
      'EMPTY_SCHEMA',
      'At least one field is required. Declare one with --field title:String!, or store any JSON object with --flexible.',
    ],
    [['collection', 'add', 'no spaces', '--flexible'], 'INVALID_NAME', 'A collection name has'],
    [['collection', 'add', 'users', '--flexible'], 'USERS_BLOCKED', 'users'],
    [['collection', 'add', 'x', '--field', '_id:String'], 'VALIDATION_FAILED', '_id'],
    [['collection', 'add', 'x', '--schema', 'absent.json'], 'FILE_MISSING', 'absent.json'],
  ])('refuses %j with exit 1', async (argv, code, text) => {
    writeFileSync(join(home.dir, 'empty.json'), '[]');
    const outcome = await inShop([...argv, '--json']);
    expect({ code: outcome.code, stdout: outcome.stdout }).toEqual({ code: 1, stdout: '' });
    const [line, json] = outcome.stderr.split('\n');
    expect(line).toContain(text);
    expect(JSON.parse(json!)).toMatchObject({ success: false, code });
  });

  it('says once why stored documents do not fit a constraint, however many', async () => {
    await inShop(['collection', 'add', 'rows', '--field', 'state:String']);
    for (const state of ['a', 'b', 'c']) await inShop(['data', 'insert', 'rows', JSON.stringify({ state })]);
    const refused = await inShop(['collection', 'edit', 'rows', '--set-field', 'state:String{enum:open}']);
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^bsvc: 3 stored documents .* new writes only; state must be one of open\.\n$/),
    });
  });

  it('points into a bad spec of a file, with its place', async () => {
    writeFileSync(join(home.dir, 'bad.json'), '["a:String", "b:Strng"]');
    const one = await inShop(['collection', 'add', 'x', '--schema', 'bad.json']);
    expect(one).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^bsvc: bad\.json: fields\.1: Bad field spec/),
    });
  });

  it('changes nothing with --if-not-exists when there is one', async () => {
    await inShop(['collection', 'add', 'kept', '--field', 'a:String']);
    expect((await inShop(['collection', 'add', 'kept', '--field', 'b:String'])).code).toBe(1);
    const again = await inShop(['collection', 'add', 'kept', '--field', 'b:String', '--if-not-exists', '--json']);
    expect(again.code).toBe(0);
    expect(again.json()).toMatchObject({ created: false, collection: { fields: [{ name: 'a' }] } });
  });
});

describe('bsvc collection list and show', () => {
  it('prints tables for people and names with --quiet', async () => {
    await inShop(['collection', 'add', 'listed', '--field', 'meta:Object{lang:String!,tags:Array(Ref(posts))}']);
    expect((await inShop(['collection', 'list', '--quiet'])).stdout.split('\n')).toContain('listed');
    expect((await inShop(['collection', 'show', 'listed'])).stdout).toContain(
      'Object{lang:String!,tags:Array(Ref(posts))}',
    );
    expect((await inShop(['collection', 'show', 'absent'])).code).toBe(1);
  });
});

describe('bsvc collection show', () => {
  it('names the indexes that reads lacked, and the words that add them to those that are there', async () => {
    await inShop(['collection', 'add', 'slow', '--flexible', '--index', 'taken']);
    const at = new Date();
    const unindexed = ['status,-views', 'taken'].map((index) => ({ shape: index, index, at }));
    const engine = openEngine({ dataDir: join(home.dir, 'data'), durability: 'relaxed' });
    await engine.db('bsvc').collection('collections').updateOne({ name: 'slow' }, { $set: { unindexed } });
    await engine.close();
    const { stdout } = await inShop(['collection', 'show', 'slow']);
    expect(stdout).toContain('because no index fits: status,-views\n');
    expect(stdout).toContain('bsvc collection edit slow --index taken --index status,-views');
    expect(stdout).toMatch(/stored indexes:\n {2}\w+: [\d.]+ KB/);
    expect((await inShop(['collection', 'show', 'slow', '--json'])).json()).toMatchObject({
      indexBytes: { active_createdAt: expect.any(Number) as number },
      suggestedIndexes: ['status,-views'],
    });
  });
});

describe('bsvc collection edit', () => {
  it('adds, changes and drops fields, and sets the mode', async () => {
    await inShop(['collection', 'add', 'edited', '--field', 'a:String', '--field', 'b:String']);
    const words = ['--add-field', 'c:Number', '--set-field', 'a:String!', '--drop-field', 'b', '--index', 'c'];
    const edited = await inShop(['collection', 'edit', 'edited', ...words, '--json']);
    expect(edited.json()).toMatchObject({
      fields: [
        { name: 'a', type: 'String', required: true },
        { name: 'c', type: 'Number' },
      ],
      indexes: ['c'],
    });
    expect((await inShop(['collection', 'edit', 'edited', '--mode', 'flexible', '--json'])).json()).toMatchObject({
      mode: 'flexible',
    });
  });

  it.each([
    [['--add-field', 'a:Number'], 'FIELD_EXISTS'],
    [['--set-field', 'z:Number'], 'FIELD_NOT_FOUND'],
    [['--drop-field', 'z'], 'FIELD_NOT_FOUND'],
    [['--drop-field', 'a'], 'EMPTY_SCHEMA'],
  ])('refuses %j with exit 1', async (words, code) => {
    await inShop(['collection', 'add', 'firm', '--field', 'a:String', '--if-not-exists']);
    const outcome = await inShop(['collection', 'edit', 'firm', ...words, '--json']);
    expect(outcome.code).toBe(1);
    expect(JSON.parse(outcome.stderr.split('\n')[1]!)).toMatchObject({ code });
  });

  it('reports with --check the invalid documents, and changes nothing', async () => {
    await inShop(['collection', 'add', 'checked', '--field', 'a:String', '--field', 'n:Number']);
    const stdin = '{"a":"x","n":1}\n{"n":2}\n{"a":"x"}\n';
    await inShop(['data', 'import', 'checked', '-', '--format', 'ndjson'], { stdin });
    const check = async (spec: string) => {
      const { code, stdout } = await inShop([
        'collection',
        'edit',
        'checked',
        '--set-field',
        spec,
        '--check',
        '--json',
      ]);
      const { checked, violations, examples } = JSON.parse(stdout) as {
        checked: number;
        violations: number;
        examples: { message: string }[];
      };
      return { code, checked, violations, why: examples.map(({ message }) => message) };
    };
    expect(await check('a:String!')).toEqual({
      code: 1,
      checked: 3,
      violations: 1,
      why: ['a is required'],
    });
    expect(await check('n:Date')).toMatchObject({ code: 1, violations: 2 });
    expect(await check('a:String&')).toMatchObject({
      code: 1,
      violations: 1,
      why: [expect.stringContaining('unique')],
    });
    expect(await check('a:String&@nocase')).toMatchObject({ code: 1, violations: 1 });
    await inShop(['data', 'import', 'checked', '-', '--format', 'ndjson'], { stdin: '{"a":"X"}\n' });
    expect(await check('a:String&')).toMatchObject({ violations: 1 });
    expect(await check('a:String&@nocase')).toMatchObject({ violations: 2 });
    expect(await check('n:Number=4')).toMatchObject({ code: 0, violations: 0 });
    expect(await show('checked')).toMatchObject({ fields: [{ name: 'a' }, { name: 'n' }] });
  });
});

describe('bsvc collection rls, rename, drop', () => {
  it('switches row-level security on and off, keeping the owner field', async () => {
    await inShop(['collection', 'add', 'guarded', '--flexible']);
    const set = async (...words: string[]) =>
      (await inShop(['collection', 'rls', 'guarded', ...words, '--json'])).json<Shown>().rls;
    expect(await set('--mode', 'private')).toEqual({ enabled: true, mode: 'private', ownerField: 'userId' });
    expect(await set('--mode', 'private', '--owner-field', 'by')).toMatchObject({ ownerField: 'by' });
    expect(await set('--mode', 'public-read')).toEqual({ enabled: true, mode: 'public-read', ownerField: 'by' });
    expect(await set('--off')).toEqual({ enabled: false });
  });

  it('renames without touching the documents', async () => {
    await inShop(['collection', 'add', 'before', '--flexible']);
    await inShop(['data', 'import', 'before', '-', '--format', 'ndjson'], { stdin: '{"a":1}\n' });
    expect((await inShop(['collection', 'edit', 'before', '--name', 'after'])).code).toBe(0);
    for (const words of [['--changes', 'off'], ['--add-field', 'a:String'], ['--check']]) {
      expect((await inShop(['collection', 'edit', 'after', '--name', 'x', ...words])).code).toBe(2);
    }
    expect((await inShop(['data', 'export', 'after'])).stdout).toContain('"a":1');
    expect((await inShop(['collection', 'show', 'before'])).code).toBe(1);
  });

  it('drops with --yes only', async () => {
    await inShop(['collection', 'add', 'dropped', '--flexible']);
    expect((await inShop(['collection', 'drop', 'dropped'])).code).toBe(2);
    expect((await show('dropped')).name).toBe('dropped');
    expect((await inShop(['collection', 'drop', 'dropped', '--yes'])).code).toBe(0);
    expect((await inShop(['collection', 'drop', 'dropped', '--yes'])).code).toBe(1);
  });
});

describe('bsvc apply', () => {
  const file = (text: string): string => {
    writeFileSync(join(home.dir, 'bsvc.yaml'), text);
    return 'bsvc.yaml';
  };
  it.each([
    ['projects: []', 'format is required'],
    ['format: bsvc/2\nprojects: []', 'format'],
    ['format: bsvc/1\nprojects: [{ name: a, colour: red }]', 'must not contain "colour"'],
    ['format: bsvc/1\nprojects: [{ name: a }, { name: a }]', 'declared twice'],
    ['format: [', 'cannot be read'],
    ['rules: {read: "staff" in user.roles}', 'stands in single quotes'],
  ])('refuses the file %j', async (text, message) => {
    const { code, stderr } = await home.bsvc(['apply', '-f', file(text)]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(message) as string });
  });

  it('leaves the rule of a collection alone when the file says nothing of it', async () => {
    const diary = (rest: string): string =>
      file(`format: bsvc/1\nprojects:\n  - name: blog\n    collections:\n      - name: diary\n${rest}`);
    const text = "        fields: ['text:String!', 'userId:String'";
    const rls = async (): Promise<unknown> =>
      (await home.bsvc(['collection', 'show', 'diary', '--project', 'blog', '--json'])).json<{ rls: unknown }>().rls;
    const closed = { enabled: true, mode: 'private', ownerField: 'userId' };
    const rule = '        rls: { mode: private, ownerField: userId }\n';
    await home.bsvc(['apply', '-f', diary(`${text}, 'drift:String']\n${rule}`)]);
    const { stdout } = await home.bsvc(['apply', '-f', diary(`${text}, 'mood:String']\n`)]);
    expect(stdout).toBe('~ collection blog/diary\n    + mood\n\nDone.\n');
    expect(await rls()).toEqual(closed);

    const refused = await home.bsvc(['apply', '-f', diary('        rls: off\n')]);
    expect({ code: refused.code, stderr: refused.stderr }).toEqual({
      code: 2,
      stderr:
        'bsvc: Loosens in project blog: diary: access: private by userId -> public. Nothing was changed: agree with --yes.\n',
    });
    expect(await rls()).toEqual(closed);
    const pruned = await home.bsvc(['apply', '-f', diary(`${text}]\n`), '--prune']);
    expect(pruned.stdout).toContain('    - drift\n    - mood\n\nValues of dropped fields stay stored');
    const opened = await home.bsvc(['apply', '-f', diary('        rls: off\n'), '--yes', '--json']);
    expect(opened.json()).toMatchObject({
      changes: [{ loosens: ['access: private by userId -> public'] }],
      applied: true,
    });
    expect(await rls()).toEqual({ enabled: false });
  });

  it('takes what project export wrote, and changes nothing', async () => {
    await home.bsvc(['project', 'export', 'blog', '--out', 'exported.yaml']);
    expect(readFileSync(join(home.dir, 'exported.yaml'), 'utf8')).toBe(`format: bsvc/1
projects:
  - name: blog
    plan: free
    allowedDomains:
      - "*"
    storage:
      publishableUploads: false
    signIn:
      providers: []
    users:
      fields:
        - name:String
    collections:
      - name: diary
        mode: enforced
        fields:
          - text:String!
          - userId:String
        access: public
        indexes: []
    mail:
      from: null
      templates: []
    webhooks: []
`);
    expect(statSync(join(home.dir, 'exported.yaml')).mode & 0o777).toBe(0o600);
    expect((await home.bsvc(['project', 'export', 'blog'])).stdout).toBe(
      readFileSync(join(home.dir, 'exported.yaml'), 'utf8'),
    );
    for (const words of [[], ['--prune']])
      expect((await home.bsvc(['apply', '-f', 'exported.yaml', ...words])).stdout).toContain('Nothing to change');
  });

  it('prints the JSON Schema of the file', async () => {
    const { stdout } = await home.bsvc(['apply', '--schema']);
    expect(JSON.parse(stdout)).toMatchObject({ title: 'bsvc.yaml', properties: { format: { const: 'bsvc/1' } } });
  });
});

describe('bsvc collection rls', () => {
  it('tells a mistake in a rule before it asks about loosening', async () => {
    await inShop(['collection', 'add', 'lists', '--field', 'owner:String', '--server-only']);
    const { code, stderr } = await inShop(['collection', 'rls', 'lists', '--read', 'doc.owner = user.idd']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('there is no user.idd')]);
    expect(stderr).not.toContain('--yes');
    const asked = await inShop(['collection', 'rls', 'lists', '--read', 'doc.owner = user.id']);
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('--yes')]);
  });
});
