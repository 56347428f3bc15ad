import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { insert } from '../../src/engine/commands/write/insert.js';
import { unavailable } from '../world/app.js';
import { openCliHome } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const SECRETS = { SHOP_GOOGLE_CLIENT_SECRET: 'google’s secret', SHOP_127_0_0_1_AUTHORIZATION: 'Bearer hook' };
const settings = { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' };
const env = { ...settings, ...SECRETS };
const bsvc = (argv: string[]) => home.bsvc(argv, { env });

const WHOLE = `# yaml-language-server: $schema=./bsvc.schema.json
format: bsvc/1
projects:
  - name: shop
    plan: pro
    allowedDomains: [https://shop.example]
    limits: { mail: 100 }
    storage: { publishableUploads: true }
    users:
      fields: ["name:String", "username:String&", { name: role, type: String, protected: true }]
    collections:
      - name: orders
        fields: ["number:Number!&", "customer:Ref(users)", { name: code, type: String, nocase: true }]
        rls: { mode: private, ownerField: customer }
    mail:
      from: Shop <shop@shop.example>
      templates:
        - name: welcome
          subject: Hello {{name}}
          text: |
            Hello {{name}},
            good to have you.
    webhooks:
      - url: http://127.0.0.1:9/orders
        events: [orders.insert, orders.update]
        description: to the warehouse
      - url: http://127.0.0.1:9/quiet
        events: ["*"]
        enabled: false
        headers: { Authorization: { env: SHOP_127_0_0_1_AUTHORIZATION } }
    signIn:
      providers:
        - name: google
          clientId: shop
          clientSecret: { env: SHOP_GOOGLE_CLIENT_SECRET }
          redirectUrls: [https://shop.example/in]
`;

interface Change {
  action: string;
  kind: string;
  name: string;
  what?: string[];
  secret?: string;
}

async function apply(text: string, ...words: string[]): Promise<Change[]> {
  writeFileSync(join(home.dir, 'bsvc.yaml'), text);
  const outcome = await bsvc(['apply', '-f', 'bsvc.yaml', '--json', ...words]);
  if (outcome.code !== 0) throw new Error(outcome.stderr);
  return outcome.json<{ changes: Change[] }>().changes;
}

describe('the file of bsvc apply', () => {
  it('is bsvc.yaml of the directory, unless another is named', async () => {
    expect(await bsvc(['apply', '--dry-run'])).toMatchObject({
      code: 2,
      stderr: 'bsvc: There is no bsvc.yaml here: name the file with -f <file>.\n',
    });
    writeFileSync(join(home.dir, 'bsvc.yaml'), 'format: bsvc/1\nprojects:\n  - name: here\n');
    expect(await bsvc(['apply', '--dry-run'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('project here') as string,
    });
  });
});

describe('bsvc apply of everything a project has', () => {
  it('makes it at once, and nothing the second time', async () => {
    const planned = await apply(WHOLE, '--dry-run');
    expect(planned.map(({ action, kind, name }) => `${action} ${kind} ${name}`)).toEqual([
      'add project shop',
      'add provider shop/google',
      'add collection shop/orders',
      'change collection shop/users',
      'add template shop/welcome',
      'add webhook shop/http://127.0.0.1:9/orders',
      'add webhook shop/http://127.0.0.1:9/quiet',
    ]);
    const made = await apply(WHOLE);
    expect(made.flatMap(({ secret }) => secret ?? [])).toEqual([
      expect.stringMatching(/^whsec_/) as string,
      expect.stringMatching(/^whsec_/) as string,
    ]);
    expect(await apply(WHOLE)).toEqual([]);
    const [users, hooks, template, project] = await Promise.all(
      [
        ['collection', 'show', 'users', '--project', 'shop'],
        ['webhook', 'list', '--project', 'shop'],
        ['mail', 'template', 'list', 'welcome', '--project', 'shop'],
        ['project', 'show', 'shop'],
      ].map(async (words) => (await bsvc([...words, '--json'])).stdout),
    );
    expect(JSON.parse(users!)).toMatchObject({
      fields: [{ name: 'email' }, { name: 'password' }, { name: 'name' }, { name: 'username' }, { name: 'role' }],
    });
    expect(JSON.parse(hooks!)).toMatchObject([{ enabled: true, description: 'to the warehouse' }, { enabled: false }]);
    expect(template).toContain('good to have you');
    expect(project).toContain('https://shop.example');
  });

  it('is what project export writes of it: applied, that changes nothing', async () => {
    const exported = await bsvc(['project', 'export', 'shop']);
    for (const part of [
      'shop@shop.example',
      'good to have you',
      'to the warehouse',
      'role:String@protected',
      'code:String@nocase',
      'mail: 100',
    ])
      expect(exported.stdout).toContain(part);
    expect(await apply(exported.stdout, '--prune')).toEqual([]);
    const names = Object.keys(SECRETS).join(', ');
    // Of a store where the project is not yet it makes the same, once there are its secrets.
    const other = openCliHome();
    writeFileSync(join(other.dir, 'bsvc.yaml'), exported.stdout);
    for (const words of [['apply'], ['apply', '--dry-run']]) {
      expect(await other.bsvc(words, { env: settings })).toMatchObject({
        code: 1,
        stderr: `bsvc: The environment variables ${names} are not set: set them or write them into .env.\n`,
      });
    }
    const lines = Object.entries(SECRETS).map(([name, value]) => `${name}="${value}"\n`);
    writeFileSync(join(other.dir, '.env'), lines.join(''));
    const applied = await other.bsvc(['apply'], { env: settings });
    expect(applied).toMatchObject({ code: 0, stderr: '' });
    for (const value of Object.values(SECRETS)) expect(exported.stdout + applied.stdout).not.toContain(value);
    expect((await other.bsvc(['project', 'export', 'shop'], { env })).stdout).toBe(exported.stdout);
    const twice = ['webhook', 'add', '--project', 'shop', '--url', 'http://127.0.0.1:9/quiet', '--events', '*'];
    expect((await other.bsvc(twice, { env })).code).toBe(0);
    expect(await other.bsvc(['project', 'export', 'shop'], { env })).toMatchObject({
      code: 0,
      stdout: exported.stdout,
      stderr: 'Warning: 1 webhook is not in the file: of those with one address it has the oldest.\n',
    });
    other.remove();
  });

  it.each([
    [
      'cannot be',
      "fields: ['a:String', { name: b, type: String, default: 1 }]",
      /^bsvc: wrong\.yaml:6: collection second: Invalid field: b /,
    ],
    [
      'has a rule that names nothing',
      "fields: ['a:String']\n        rules: { read: doc.b = user.id }",
      /^bsvc: wrong\.yaml:6: collection second: /,
    ],
  ])('names file, line and collection of one that %s, and changes nothing', async (_what, declared, message) => {
    const text = `format: bsvc/1\nprojects:\n  - name: wrong\n    collections:\n      - { name: first, fields: ['a:String'] }\n      - name: second\n        ${declared}\n`;
    writeFileSync(join(home.dir, 'wrong.yaml'), text);
    const { code, stderr } = await bsvc(['apply', '-f', 'wrong.yaml']);
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)]);
    expect((await bsvc(['project', 'show', 'wrong'])).code).toBe(1);
  });

  it('shows drift of every kind with + ~ - and leads back', async () => {
    const hooks = (await bsvc(['webhook', 'list', '--project', 'shop', '--json'])).json<
      { id: string; url: string }[]
    >();
    const [first, second] = [hooks[0]!, hooks[1]!];
    await bsvc(['webhook', 'edit', first.id, '--project', 'shop', '--events', 'orders.delete']);
    await bsvc(['webhook', 'remove', second.id, '--project', 'shop', '--yes']);
    await bsvc(['webhook', 'add', '--project', 'shop', '--url', 'http://127.0.0.1:9/later', '--events', '*']);
    await bsvc(['mail', 'template', 'set', 'welcome', '--project', 'shop', '--subject', 'Hi']);
    await bsvc(['project', 'update', 'shop', '--publishable-uploads', 'off', '--mail-from', 'none']);
    await bsvc(['collection', 'edit', 'users', '--project', 'shop', '--drop-field', 'role']);
    await bsvc(['collection', 'rls', 'orders', '--project', 'shop', '--off', '--yes']);
    const template = join(home.dir, 'body.txt');
    writeFileSync(template, 'Hi');
    await bsvc(['mail', 'template', 'set', 'welcome', '--project', 'shop', '--subject', 'Hi', '--text', template]);
    writeFileSync(join(home.dir, 'bsvc.yaml'), WHOLE);
    const { stdout } = await bsvc(['apply', '-f', 'bsvc.yaml', '--dry-run', '--prune']);
    expect(stdout).toBe(`~ project shop
    mail sender: the service’s -> Shop <shop@shop.example>
    publishable uploads: off -> on
~ collection shop/orders
    access: public -> private by customer
~ collection shop/users
    + role
~ template shop/welcome
    ~ subject
    ~ text
~ webhook shop/http://127.0.0.1:9/orders
    events: orders.delete -> orders.insert, orders.update
+ webhook shop/http://127.0.0.1:9/quiet
- webhook shop/http://127.0.0.1:9/later

Nothing was changed (--dry-run).
`);
    expect((await bsvc(['apply', '-f', 'bsvc.yaml', '--prune'])).code).toBe(2);
    await apply(WHOLE, '--prune', '--yes');
    expect(await apply(WHOLE, '--prune')).toEqual([]);
  });

  it('leaves alone what the file does not mention', async () => {
    expect(await apply('format: bsvc/1\nprojects: [{ name: shop }]', '--prune')).toEqual([]);
    expect(await apply('format: bsvc/1\nprojects: [{ name: shop, mail: {}, storage: {} }]', '--prune')).toEqual([]);
  });

  it('drops a field whose rule names a set, and that set’s collection, with --prune', async () => {
    const members = '{ name: members, fields: ["team:String!", "user:String!"], access: server-only }';
    const level = '"level:Number@write(doc.team in members[user = user.id].team)"';
    const teams = (fields: string, ...others: string[]): string =>
      `format: bsvc/1\nprojects: [{ name: teams, collections: [${[
        `{ name: cards, fields: ["team:String", ${fields}], rules: { read: user, update: user } }`,
        ...others,
      ].join(', ')}] }]`;
    const whole = teams(`${level}, "title:String"`, members);
    await apply(whole);
    expect(await apply(whole, '--prune')).toEqual([]);
    // The rule needs the collection, so the one cannot go without the other.
    writeFileSync(join(home.dir, 'half.yaml'), teams(`${level}, "title:String"`));
    const half = await bsvc(['apply', '-f', 'half.yaml', '--prune', '--yes']);
    expect([half.code, half.stderr]).toEqual([1, expect.stringContaining('members')]);
    const changes = await apply(teams('"title:String"'), '--prune', '--yes');
    expect(changes.map(({ action, name }) => `${action} ${name}`).sort()).toEqual([
      'change teams/cards',
      'drop teams/members',
    ]);
    expect(await apply(teams('"title:String"'), '--prune')).toEqual([]);
  });

  it('drops templates and webhooks that an empty list does not name, with --prune', async () => {
    const none = 'format: bsvc/1\nprojects: [{ name: shop, mail: { templates: [] }, webhooks: [] }]';
    expect(await apply(none)).toEqual([]);
    const dropped = await apply(none, '--prune', '--yes');
    expect(dropped.map(({ action, kind }) => `${action} ${kind}`)).toEqual([
      'drop template',
      'drop webhook',
      'drop webhook',
    ]);
  });

  it.each([
    ['webhooks: [{ url: "no url", events: ["*"] }]', 'is no url'],
    ['webhooks: [{ url: "https://a.example", events: [orders.explode] }]', 'is not an event'],
    ['webhooks: [{ url: "https://a.example", events: ["*"] }, { url: "https://a.example/", events: ["*"] }]', 'twice'],
    ['mail: { templates: [{ name: a, subject: x, text: x }, { name: a, subject: x, text: x }] }', 'twice'],
    ['users: { fields: ["email:String!&"] }', 'not declared'],
    ['users: { fields: [] }\n    collections: [{ name: users }]', 'twice'],
    ['users: { fields: ["a:Strng"] }', 'expected a type'],
    ['allowedDomains: ["https://a.example/path"]', 'is not an origin'],
    ['mail: { from: "nobody" }', 'default sender must be an address'],
    ['plan: free\n  - name: "../x"', 'A project name has'],
  ])('refuses %s before anything is changed', async (text, message) => {
    const projects = `projects:\n  - name: early\n  - name: other\n    ${text}\n`;
    writeFileSync(join(home.dir, 'bad.yaml'), `format: bsvc/1\n${projects}`);
    const { code, stderr } = await bsvc(['apply', '-f', 'bad.yaml']);
    expect((await bsvc(['apply', '-f', 'bad.yaml', '--dry-run'])).code).toBe(code);
    expect((await bsvc(['project', 'show', 'early'])).code).toBe(1);
    expect({ refused: code > 0, stderr }).toEqual({
      refused: true,
      stderr: expect.stringContaining(message) as string,
    });
    expect((await bsvc(['project', 'show', 'other'])).code).toBe(1);
  });

  /** Runs `work` when so many projects have been made; those of the rehearsal come first. */
  function onProject(count: number, work: () => void): { mockRestore(): void } {
    const run = insert.run.bind(insert);
    let made = 0;
    return vi.spyOn(insert, 'run').mockImplementation((call, body) => {
      if (body.insert === 'projects' && ++made === count) work();
      return run(call, body);
    });
  }

  it('shows the secrets it made although a later step failed, and continues from there', async () => {
    writeFileSync(join(home.dir, 'half.yaml'), 'format: bsvc/1\nprojects: [{ name: half1 }, { name: half2 }]');
    const spy = onProject(4, () => {
      throw unavailable('DATABASE_UNAVAILABLE', 'The database is away');
    });
    const { code, stderr, json } = await bsvc(['apply', '-f', 'half.yaml', '--json']);
    spy.mockRestore();
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('The database is away') as string });
    expect(json()).toMatchObject({
      applied: false,
      changes: [{ name: 'half1', keys: { secret: expect.stringMatching(/^sk_/) as string } }, { name: 'half2' }],
    });
    const again = await bsvc(['apply', '-f', 'half.yaml', '--quiet']);
    expect(again.stdout.split('\n')).toEqual([
      'add project half2',
      expect.stringMatching(/^pk_live_/),
      expect.stringMatching(/^sk_live_/),
      '',
    ]);
  });

  it('shows the secrets it made although it was interrupted, and stops there', async () => {
    const stop = new AbortController();
    const spy = onProject(3, () => stop.abort('SIGINT'));
    writeFileSync(join(home.dir, 'two.yaml'), 'format: bsvc/1\nprojects: [{ name: cut1 }, { name: cut2 }]');
    const outcome = await home.bsvc(['apply', '-f', 'two.yaml', '--json'], { stop: stop.signal });
    spy.mockRestore();
    expect({ code: outcome.code, stderr: outcome.stderr.split('\n')[0] }).toEqual({
      code: 130,
      stderr: 'bsvc: Interrupted.',
    });
    expect(outcome.json()).toMatchObject({
      applied: false,
      changes: [{ name: 'cut1', keys: { secret: expect.stringMatching(/^sk_/) as string } }, { name: 'cut2' }],
    });
    expect((await bsvc(['project', 'show', 'cut1'])).code).toBe(0);
    expect((await bsvc(['project', 'show', 'cut2'])).code).toBe(1);
  });

  it.each([
    [
      '    users: { fields: ["a:String"] }\n    collections:\n      - { name: x, fields: ["a:String", "b:Strng!"] }',
      2,
      'bsvc: bsvc.yaml:6: collection x: projects.0.collections.0.fields.1: Bad field spec: expected a type: String, Number, Boolean, Date, Object, Array, Ref (at character 3). The form is name:Type[!][&][=default].\n  b:Strng!\n    ^\n',
    ],
    [
      '    users: { fields: ["a"] }',
      2,
      'bsvc: bsvc.yaml:4: projects.0.users.fields.0: Bad field spec: expected ":" and a type after the name "a" (at the end).',
    ],
    [
      '    colections: []',
      1,
      'bsvc: bsvc.yaml:4: Validation failed: projects.0 must not contain "colections": it may have',
    ],
    [
      '    plan: free\n    collections:\n      - name: x\n        fields: []\n        acess: {}',
      1,
      'bsvc: bsvc.yaml:8: collection x: Validation failed: projects.0.collections.0 must not contain "acess": it may',
    ],
    ['    plan: gold', 1, 'bsvc: bsvc.yaml:4: Validation failed: projects.0.plan must be one of free, pro.'],
    ['   plan: [}', 1, 'bsvc: bsvc.yaml cannot be read: '],
    ['    plan: !secret pro', 1, 'bsvc: bsvc.yaml cannot be read: Unresolved tag: !secret'],
  ])('is refused with the place of a mistake: %s', async (lines, code, said) => {
    writeFileSync(join(home.dir, 'bsvc.yaml'), `format: bsvc/1\nprojects:\n  - name: shop\n${lines}\n`);
    const refused = await bsvc(['apply', '-f', 'bsvc.yaml']);
    expect(refused).toMatchObject({ code, stdout: '' });
    expect(refused.stderr.slice(0, said.length)).toBe(said);
  });

  it('is refused with the word that its format has to be', async () => {
    writeFileSync(join(home.dir, 'bsvc.yaml'), '# Mine\nformat: 1\nprojects: []\n');
    const { stderr } = await bsvc(['apply', '-f', 'bsvc.yaml']);
    expect(stderr).toMatch(/^bsvc: bsvc\.yaml:2: Validation failed: format must be bsvc\/1\. /);
  });

  it('has a JSON Schema for editors that the whole file fits and mistakes do not', () => {
    const schema = JSON.parse(
      readFileSync(join(import.meta.dirname, '..', '..', 'templates', 'bsvc.schema.json'), 'utf8'),
    ) as object;
    const fits = new Ajv({ strict: false }).compile(schema);
    expect(fits(parse(WHOLE))).toBe(true);
    expect(fits(parse(WHOLE.replace('webhooks:', 'webhook:')))).toBe(false);
    expect(fits(parse(WHOLE.replace('plan: pro', 'plan: gold')))).toBe(false);
    expect(fits(parse(WHOLE.replace('"name:String"', '"name"')))).toBe(false);
  });
});

describe('changes of a collection in a declaration', () => {
  const file = (changes: string): string => `format: bsvc/1
projects:
  - name: feeds
    collections:
      - name: posts
        fields: ["title:String"]
        changes: ${changes}
`;

  it('are kept as it says, shown as drift, and exported again', async () => {
    expect(await apply(file('{ keep: 7d }'))).toMatchObject([{ action: 'add' }, { action: 'add' }]);
    expect(await apply(file('{ keep: 14d }'), '--dry-run')).toMatchObject([{ what: ['changes: kept 7d -> kept 14d'] }]);
    expect(await apply(file('{ keep: 168h }'))).toEqual([]);
    expect(await apply(file('{ keep: 7d }'))).toEqual([]);
    const exported = await bsvc(['project', 'export', 'feeds']);
    expect(exported.stdout).toMatch(/keep: 7d/);
    expect(await apply(file('{ on: false }'))).toMatchObject([{ what: ['changes: kept 7d -> off, kept 7d'] }]);
    const shown = await bsvc(['collection', 'show', 'posts', '--project', 'feeds', '--json']);
    expect(shown.json()).toMatchObject({ changes: { on: false, keepMs: 604_800_000 } });
    const watched = await bsvc(['data', 'query', 'posts', '--project', 'feeds', '--watch', '--once']);
    expect(watched.stderr).toContain('not kept');
  });

  it.each(['{ keep: 7 days }', '{ keep: 0s }', '{}', 'on', '{ kept: 7d }'])('refuses %s', async (changes) => {
    await expect(apply(file(changes))).rejects.toThrow();
  });
});

describe('constraints that stored documents break', () => {
  const file = (fields: string): string => `format: bsvc/1
projects:
  - name: narrow
    collections:
      - name: posts
        fields: ${fields}
`;

  it('change nothing, unless they are for new writes', async () => {
    await apply(file('["n:Number", "of:Ref(posts)"]'));
    const nobody = '0'.repeat(24);
    const stored = await bsvc(['data', 'insert', 'posts', `{"n":-1,"of":"${nobody}"}`, '--project', 'narrow']);
    expect(stored).toMatchObject({ code: 0 });
    for (const fields of ['["n:Number{min:0}"]', '["of:Ref(posts){check}"]']) {
      await expect(apply(file(fields))).rejects.toThrow('1 stored document does not fit the constraints of "posts"');
      expect(await apply(file(fields), '--for-new-writes')).toMatchObject([{ action: 'change' }]);
      expect(await apply(file(fields))).toEqual([]);
    }
    const refused = await bsvc(['data', 'insert', 'posts', `{"of":"${nobody}"}`, '--project', 'narrow']);
    expect(refused.stderr).toContain('of must be the id of a document in "posts"');
    const exported = await bsvc(['project', 'export', 'narrow']);
    expect(exported.stdout).toContain('check');
  });
});

it('a mark that makes unique values equal is told by a rehearsal, and is kept once it can be', async () => {
  const file = (field: string): string =>
    `format: bsvc/1\nprojects:\n  - name: cased\n    collections: [{ name: people, fields: ["${field}"] }]\n`;
  await apply(file('email:String&'));
  const insert = (email: string) => bsvc(['data', 'insert', 'people', `{"email":"${email}"}`, '--project', 'cased']);
  for (const email of ['Ann', 'ANN']) expect(await insert(email)).toMatchObject({ code: 0 });
  for (const words of [['--dry-run'], []]) {
    await expect(apply(file('email:String&@nocase'), ...words)).rejects.toThrow('"ann" is in 2 documents');
  }
  const found = await bsvc(['data', 'query', 'people', '--filter', 'email=ANN', '--project', 'cased', '--json']);
  const { items } = found.json<{ items: { _id: string }[] }>();
  await bsvc(['data', 'delete', 'people', items[0]!._id, '--project', 'cased']);
  expect(await apply(file('email:String&@nocase'))).toMatchObject([{ what: ['~ email'] }]);
  expect(await insert('ann')).toMatchObject({ code: 1 });
  await expect(apply(file('email:String&'))).rejects.toThrow('email: no longer unique without regard to case');
});

describe('what cannot be applied', () => {
  const file = (...lines: string[]): string =>
    `format: bsvc/1\nprojects:\n  - name: fresh\n    ${lines.join('\n    ')}\n`;
  const collection = (rest: string): string =>
    file('collections:', `  - { name: things, fields: ["x:String"], ${rest} }`);

  /** Each is refused by a dry run as by the run itself, and neither leaves anything behind. */
  it.each([
    ['a unique list of one field', collection('uniques: [[x]]')],
    ['a unique list of an unknown field', collection('uniques: [[x, y]]')],
    ['an index of an unknown field', collection('indexes: [y]')],
    ['an index of places of a text', collection('indexes: ["x:2dsphere"]')],
    ['a reference to nowhere', file('collections: [{ name: things, fields: ["of:Ref(nowhere)"] }]')],
    ['a list of references to nowhere', file('collections: [{ name: things, fields: ["of:Array(Ref(nowhere))"] }]')],
    ['a reference of users to nowhere', file('users: { fields: ["of:Ref(nowhere)"] }')],
    ['a nested reference to nowhere', file('collections: [{ name: things, fields: ["in:Object{of:Ref(nowhere)}"] }]')],
    [
      'references that hold and let go',
      file(
        'collections:',
        '  - { name: a, fields: ["b:Ref(b){check,onDelete:trash}"] }',
        '  - { name: b, fields: ["x:String"] }',
        '  - { name: c, fields: ["a:Ref(a){check,onDelete:restrict}"] }',
      ),
    ],
    ['a rule of an unknown field', collection('rules: { read: "doc.y = user.id" }')],
    ['a rule of an unknown set', collection('rules: { read: "doc.x in nowhere[user = user.id].x" }')],
    ['a webhook of an unknown collection', file('webhooks: [{ url: "https://a.example", events: [nope.insert] }]')],
    ['a webhook that is not https', file('webhooks: [{ url: "ftp://a.example", events: ["*"] }]')],
    [
      'more webhooks than the plan has',
      file('webhooks:', ...[1, 2, 3, 4].map((n) => `  - { url: "https://${n}.example", events: ["*"] }`)),
    ],
    ['an owner field that has a name of the service’s', collection('rls: { mode: private, ownerField: createdAt }')],
    ['a template without a text', file('mail: { templates: [{ name: welcome, subject: x }] }')],
    ['a sender that is none', file('mail: { from: nobody }')],
  ])('is told before anything is done: %s', async (_name, text) => {
    writeFileSync(join(home.dir, 'refused.yaml'), text);
    const dry = await bsvc(['apply', '-f', 'refused.yaml', '--dry-run']);
    const real = await bsvc(['apply', '-f', 'refused.yaml', '--yes']);
    expect([dry.code, dry.stdout]).toEqual([1, '']);
    expect([real.code, real.stderr, real.stdout]).toEqual([dry.code, dry.stderr, '']);
    expect((await bsvc(['project', 'show', 'fresh'])).code).toBe(1);
  });

  /** What stored documents do not admit; each change begins at the same collection. */
  it.each([
    ['a constraint', '["n:Number{max:1}", "s:String", "p:Object", "l:Array", "m:Array"]', ''],
    ['a unique field', '["n:Number", "s:String&", "p:Object", "l:Array", "m:Array"]', ''],
    ['fields that are unique together', null, 'uniques: [[n, s]]'],
    ['a checked reference', '["n:Number", "s:Ref(stored){check}", "p:Object", "l:Array", "m:Array"]', ''],
    ['an index of places', null, 'indexes: ["p:2dsphere"]'],
    ['an index of two lists', null, 'indexes: ["l,m"]'],
  ])('is told by a dry run, and changes nothing: %s', async (_name, fields, rest) => {
    const before = '["n:Number", "s:String", "p:Object", "l:Array", "m:Array"]';
    const text = (declared: string, more: string): string =>
      `format: bsvc/1\nprojects: [{ name: full, collections: [{ name: stored, fields: ${declared}, ${more} }] }]`;
    await apply(text(before, 'indexes: []'), '--prune');
    const documents = '[{"n":2,"s":"a","p":{"x":1},"l":[1,2],"m":[1,2]},{"n":2,"s":"a"}]';
    for (const document of JSON.parse(documents) as object[]) {
      await bsvc(['data', 'insert', 'stored', JSON.stringify(document), '--project', 'full']);
    }
    writeFileSync(join(home.dir, 'full.yaml'), text(fields ?? before, rest));
    const dry = await bsvc(['apply', '-f', 'full.yaml', '--dry-run']);
    const real = await bsvc(['apply', '-f', 'full.yaml', '--yes']);
    expect([dry.code, dry.stdout, dry.stderr]).toEqual([1, '', real.stderr]);
    expect(await apply(text(before, 'indexes: []'))).toEqual([]);
    await bsvc(['project', 'delete', 'full', '--yes']);
  });
});
