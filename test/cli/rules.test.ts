import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { AccessMatrix } from '../../src/features/rule-tests/run-rule-tests.js';
import { openCliHome } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const EXAMPLES = join(import.meta.dirname, '../../templates/examples');
const home = use(openCliHome());
const inShop = (...argv: string[]) => home.bsvc(argv, { env: { BSVC_PROJECT: 'shop', PASSWORD: 'long enough' } });
expect(await home.bsvc(['project', 'create', 'shop'])).toMatchObject({ code: 0, stderr: '' });
await inShop(
  'collection',
  'add',
  'posts',
  '--public',
  '--flexible',
  '--field',
  'owner:String',
  '--field',
  'tags:Array(String)',
);
await inShop('user', 'create', '--email', 'ann@example.com', '--verified', '--password-env', 'PASSWORD');
const empty = use(openCliHome());

describe('bsvc rules test', () => {
  it.each(readdirSync(EXAMPLES).filter((name) => !name.includes('.')))('holds for the example %s', async (name) => {
    const file = join(EXAMPLES, name, 'rules.test.yaml');
    const { code, stdout, stderr } = await home.bsvc(['rules', 'test', file]);
    expect([code, stderr], stdout).toEqual([0, '']);
    expect(stdout).toMatch(/expectations are met/);
  });

  it('ends with 1 and says what was expected, leaving the store of the service alone', async () => {
    const declaration = {
      format: 'bsvc/1',
      projects: [{ name: 'shop', collections: [{ name: 'notes', fields: ['owner:String'], rules: { read: 'user' } }] }],
    };
    const tests = {
      format: 'bsvc-rules/1',
      users: { ada: null },
      documents: { notes: { one: { owner: '@ada' } } },
      expect: [
        { as: ['ada', 'anyone'], read: 'notes', sees: ['one'] },
        { as: 'ada', update: 'one', with: { owner: 'x' } },
        { as: 'ada', read: 'one', without: ['owner'] },
      ],
    };
    writeFileSync(join(home.dir, 'bsvc.yaml'), JSON.stringify(declaration));
    writeFileSync(join(home.dir, 'rules.test.json'), JSON.stringify(tests));
    const { code, stdout, stderr } = await home.bsvc(['rules', 'test', 'rules.test.json']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('3 of 4 expectations are not met')]);
    expect(stdout).toContain('anyone reads notes: expected sees one, but AUTH_REQUIRED');
    expect(stdout).toContain('ada updates one: expected ok, but RULE_REFUSED');
    expect(stdout).toContain('ada reads one: expected ok, but shows owner');
    expect((await inShop('collection', 'list', '--quiet')).stdout).not.toContain('notes');
    writeFileSync(join(home.dir, 'bad.json'), JSON.stringify({ ...tests, expect: [{ as: 'bob', read: 'one' }] }));
    const bad = await home.bsvc(['rules', 'test', 'bad.json']);
    expect([bad.code, bad.stderr]).toEqual([1, expect.stringContaining('there is no user "bob"')]);
  });
});

describe('bsvc rules test, as the server would answer', () => {
  const run = async (declaration: object, tests: object, env: Record<string, string> = {}) => {
    const projects = [{ name: 'shop', ...declaration }];
    writeFileSync(join(home.dir, 'bsvc.yaml'), JSON.stringify({ format: 'bsvc/1', projects }));
    writeFileSync(join(home.dir, 'rules.test.json'), JSON.stringify({ format: 'bsvc-rules/1', ...tests }));
    return home.bsvc(['rules', 'test', 'rules.test.json', '--json'], { env });
  };

  it('takes update operators', async () => {
    const outcome = await run(
      {
        collections: [
          {
            name: 'counters',
            fields: ['n:Number', 'tags:Array(String)', 'owner:String@fixed'],
            rules: { read: 'user', update: 'user', updateTo: 'doc.n = 1' },
          },
        ],
      },
      {
        users: { ada: null },
        documents: { counters: { one: { n: 0, owner: 'x' } } },
        expect: [
          { as: 'ada', update: 'one', with: { $inc: { n: 1 }, $push: { tags: 'new' } } },
          { as: 'ada', update: 'one', with: { $inc: { n: 2 } }, answers: 'RULE_REFUSED' },
          { as: 'ada', update: 'one', with: { n: 1, $unset: ['owner'] }, answers: 'FIELD_FIXED' },
        ],
      },
    );
    expect([outcome.code, outcome.stderr]).toEqual([0, '']);
  });

  it('judges the declaration by the settings of the server', async () => {
    const declaration = { webhooks: [{ url: 'http://127.0.0.1:9/x', events: ['*'] }], users: { fields: [] } };
    const tests = {
      users: { ada: null },
      documents: {},
      expect: [{ as: 'ada', read: 'none', answers: 'COLLECTION_NOT_FOUND' }],
    };
    expect((await run(declaration, tests)).stderr).toContain('BSVC_WEBHOOK_ALLOW_PRIVATE');
    expect(await run(declaration, tests, { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' })).toMatchObject({ code: 0 });
  });

  it('shows no update for those whose every update is refused', async () => {
    const outcome = await run(
      {
        collections: [
          {
            name: 'slots',
            fields: ['owner:String'],
            rules: { read: 'anyone', update: 'anyone', updateTo: 'doc.owner = user.id' },
          },
        ],
      },
      {
        users: { ada: null },
        documents: { slots: { one: { owner: 'x' } } },
        expect: [{ as: 'anyone', update: 'one', with: { owner: 'y' }, answers: 'AUTH_REQUIRED' }],
      },
    );
    const { matrix } = outcome.json<{ matrix: AccessMatrix[] }>();
    expect(matrix[0]!.documents[0]!.may).toEqual({ ada: ['read', 'update'], anyone: ['read'] });
  });
});

describe('bsvc rules check', () => {
  it('finds rules that stored documents violate, and what a file would loosen', async () => {
    const sound = await inShop('rules', 'check', '--data');
    expect([sound.code, sound.stderr], sound.stdout).toEqual([0, '']);
    expect(sound.stdout).toContain(
      'posts: everyone can read all documents. To close it: bsvc collection rls posts --project shop --server-only',
    );
    expect(sound.stdout).toContain(
      'sign-up: everyone can sign up with email and password. To close it: bsvc key revoke',
    );
    await inShop('collection', 'rls', 'posts', '--read', 'doc.owner = user.id');
    const file = join(home.dir, 'loose.json');
    const projects = [{ name: 'shop', collections: [{ name: 'posts', rules: { read: 'anyone' } }] }];
    writeFileSync(file, JSON.stringify({ format: 'bsvc/1', projects }));
    const loose = await inShop('rules', 'check', '-f', file);
    expect([loose.code, loose.stdout]).toEqual([
      1,
      expect.stringContaining('posts: rule read: doc.owner = user.id -> anyone'),
    ]);
    expect((await inShop('rules', 'check')).stdout).toContain('sound');
    const foreign = { format: 'bsvc/1', projects: [{ name: 'other', collections: [] }] };
    writeFileSync(file, JSON.stringify(foreign));
    expect((await inShop('rules', 'check', '-f', file)).stderr).toContain('declares no project "shop"');
  });

  it.each(readdirSync(EXAMPLES).filter((name) => !name.includes('.')))(
    'looks at a file where nothing is stored yet: the example %s',
    async (name) => {
      const file = join(EXAMPLES, name, 'bsvc.yaml');
      const { code, stdout, stderr } = await empty.bsvc(['rules', 'check', '-f', file]);
      expect([code, stdout, stderr]).toEqual([
        0,
        `The rules of ${name} as the file says are sound.\n`,
        expect.stringMatching(/^There is no database in .*: the file is checked on its own\.\n$/),
      ]);
      expect((await empty.bsvc(['project', 'list'])).stderr).toContain('There is no database');
    },
  );

  it('wants to know which project of a file it is, and names a mistake in one that is not stored', async () => {
    const write = (projects: object[]) => {
      writeFileSync(join(home.dir, 'fresh.json'), JSON.stringify({ format: 'bsvc/1', projects }));
      return (...words: string[]) => home.bsvc(['rules', 'check', '-f', 'fresh.json', ...words]);
    };
    const notes = { name: 'notes', fields: ['owner:String'], rules: { read: 'doc.owner = user.id' } };
    const project = { name: 'fresh', collections: [notes] };
    const two = write([project, { name: 'other' }]);
    expect(await two()).toMatchObject({ code: 2, stderr: expect.stringContaining('add --project <name>') as string });
    expect((await two('--project', 'fresh')).stdout).toContain('The rules of fresh as the file says are sound.');
    const wrong = await write([{ ...project, collections: [{ ...notes, rules: { read: 'doc.ownr = user.id' } }] }])();
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('doc.ownr')]);
  });

  it('looks at rules that are not saved yet, beside the stored documents', async () => {
    const check = (...argv: string[]) => inShop('rules', 'check', ...argv);
    await inShop(
      'collection',
      'add',
      'notes',
      '--public',
      '--flexible',
      '--field',
      'owner:String',
      '--field',
      'open:Boolean',
    );
    await inShop('collection', 'rls', 'notes', '--read', 'doc.open');
    await inShop('data', 'insert', 'notes', '{"owner":["a","b"]}');
    const wider = await check('notes', '--read', 'doc.open or doc.owner = user.id');
    expect([wider.code, wider.stdout]).toEqual([1, expect.stringContaining('loosens rule read: doc.open -> doc.open')]);
    const stricter = await check('notes', '--read', 'doc.open and doc.owner = user.id');
    expect([stricter.code, stricter.stdout]).toEqual([0, expect.stringContaining('The rules of notes are sound')]);
    const violation = await check('notes', '--read', 'doc.open and doc.owner = user.id', '--data');
    expect([violation.code, violation.stdout]).toEqual([1, expect.stringContaining('One stored document of "notes"')]);
    const mistaken = ['notes', '--read', 'user and doc.opn', '--update', 'doc.open = "yes"'];
    const wrong = await check(...mistaken);
    const lines = wrong.stdout.split('\n');
    expect(lines).toEqual([
      expect.stringMatching(/notes: .*read: .*opn.* \(at character 10\)$/),
      '  user and doc.opn',
      `${' '.repeat(11)}^`,
      expect.stringMatching(/notes: .*update: "yes" is no value .* \(at character 12\)$/),
      '  doc.open = "yes"',
      `${' '.repeat(13)}^`,
      '',
    ]);
    const { findings } = (await check(...mistaken, '--json')).json<{ findings: object[] }>();
    expect(findings.map((finding) => Object.keys(finding))).toEqual(
      findings.map(() => ['collection', 'code', 'message', 'details']),
    );
    expect((await check('--read', 'user')).code).toBe(2);
    const rules = { read: 'doc.open and doc.owner = user.id' };
    const file = join(home.dir, 'planned.json');
    const projects = [{ name: 'shop', collections: [{ name: 'notes', rules }] }];
    writeFileSync(file, JSON.stringify({ format: 'bsvc/1', projects }));
    const planned = await check('-f', file, '--data');
    expect([planned.code, planned.stdout]).toEqual([1, expect.stringContaining('One stored document of "notes"')]);
    const shown = (await inShop('collection', 'show', 'notes', '--json')).json<{ rules: { read: string } }>();
    expect(shown.rules.read).toBe('doc.open');
  });
});

describe('bsvc collection rls', () => {
  it('points at a mistake of a file that is applied or checked', async () => {
    const collections = [{ name: 'posts', rules: { read: 'user and doc.ownr = user.id' } }];
    writeFileSync(
      join(home.dir, 'bad.json'),
      JSON.stringify({ format: 'bsvc/1', projects: [{ name: 'shop', collections }] }),
    );
    for (const argv of [['apply'], ['rules', 'check']]) {
      const { code, stderr } = await inShop(...argv, '-f', 'bad.json');
      expect([code, ...stderr.split('\n').slice(1, 3)]).toEqual([
        1,
        '  user and doc.ownr = user.id',
        `${' '.repeat(11)}^`,
      ]);
    }
  });

  it('points at a mistake, of a long rule at what is around it', async () => {
    const set = async (read: string) => (await inShop('collection', 'rls', 'posts', '--read', read)).stderr.split('\n');
    expect((await set('doc.owner == user.id')).slice(1, 3)).toEqual(['  doc.owner == user.id', `${' '.repeat(12)}^`]);
    const [, shown, caret] = await set(`${'doc.owner = user.id or '.repeat(7)}doc.ownr = user.id`);
    expect(shown!.slice(caret!.indexOf('^'))).toBe('doc.ownr = user.id');
    expect(shown!.length).toBeLessThan(93);
  });
});

describe('looking as somebody', () => {
  it('is in the audit log, with the id of the user and how it ended', async () => {
    const look = (...argv: string[]) => inShop('data', ...argv);
    await inShop('collection', 'rls', 'posts', '--yes', '--read', 'doc.owner = user.id');
    expect((await look('query', 'posts', '--as', 'anyone')).stderr).toContain('Sign in first');
    expect((await look('query', 'posts', '--as', 'ann@example.com', '--explain')).code).toBe(0);
    expect((await look('query', 'posts', '--watch', '--once', '--as', 'ann@example.com')).code).toBe(0);
    expect((await look('query', 'posts')).code).toBe(0);
    const log = await home.bsvc(['audit', '--action', 'play as', '--json']);
    const ann = expect.stringMatching(/^[0-9a-f]{24}$/) as string;
    const acts = log.json<{ action: string; input: object; code: string | null }[]>();
    expect(acts.map(({ input, code }) => [input, code])).toEqual([
      [{ project: 'shop', collection: 'posts', as: ann }, null],
      [{ project: 'shop', collection: 'posts', as: ann }, null],
      [{ project: 'shop', collection: 'posts', as: 'anyone' }, 'AUTH_REQUIRED'],
    ]);
  });
});

describe('bsvc rules explain', () => {
  it('says what is left of a rule for somebody', async () => {
    const explain = (...argv: string[]) => inShop('rules', 'explain', 'posts', ...argv);
    const { stdout, stderr } = await explain('--as', 'ann@example.com');
    expect(stderr).toBe('');
    expect(stdout).toContain('? read: doc.owner = user.id');
    expect(stdout).toContain('- create: nobody');
    expect((await explain('--as', 'anyone')).stdout).toContain('A list is refused: AUTH_REQUIRED');
    expect((await explain('--id', '66f0c0ffee0ddba11c0de001')).code).toBe(2);
    expect((await explain('--as', 'bob@example.com')).stderr).toContain('no user');
  });
});
