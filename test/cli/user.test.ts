import { describe, expect, it } from 'vitest';
import { openCliHome, type CliOptions, type CliOutcome } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const PASSWORD = 'from standard input';
await home.bsvc(['project', 'create', 'shop']);

const bsvc = (argv: string[], options: CliOptions = {}): Promise<CliOutcome> =>
  home.bsvc(argv, { ...options, env: { BSVC_PROJECT: 'shop', BSVC_BCRYPT_COST: '4', ...options.env } });
const create = (email: string, ...more: string[]): Promise<CliOutcome> =>
  bsvc(['user', 'create', '--email', email, '--password-stdin', '--json', ...more], { stdin: `${PASSWORD}\n` });

interface Account {
  _id: string;
  email: string;
  emailVerified: boolean;
  disabled: boolean;
  hasPassword: boolean;
}

describe('bsvc user create', () => {
  it('answers the account without its password', async () => {
    const { code, stdout, stderr, json } = await create('Ann@Example.com', '--verified', '--field', 'name=Ann');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(json<{ user: Account; created: boolean }>()).toMatchObject({
      user: { email: 'ann@example.com', name: 'Ann', emailVerified: true, disabled: false, hasPassword: true },
      created: true,
    });
    expect(stdout).not.toContain(PASSWORD);
    expect(stdout).not.toContain('$2b$');
  });

  it('refuses a second one with exit 1, unless --if-not-exists', async () => {
    await create('bob@example.com');
    const refused = await create('bob@example.com');
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(/^bsvc: There is already an account with this e-mail address/);
    const again = await create('bob@example.com', '--if-not-exists');
    expect(again.json<{ created: boolean }>()).toMatchObject({ created: false });
  });

  it('is exit 0 for each of five parallel runs with --if-not-exists, one of which creates it', async () => {
    const runs = await Promise.all(Array.from({ length: 5 }, () => create('raced@example.com', '--if-not-exists')));
    expect(runs.map(({ code, stderr }) => ({ code, stderr }))).toEqual(runs.map(() => ({ code: 0, stderr: '' })));
    const outcomes = runs.map((run) => run.json<{ user: Account; created: boolean }>());
    expect(outcomes.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(outcomes.map(({ user }) => user._id)).size).toBe(1);
  });

  it('is exit 2 without a password where nobody can be asked, and never takes one as an argument', async () => {
    const missing = await bsvc(['user', 'create', '--email', 'c@example.com']);
    expect(missing.code).toBe(2);
    expect(missing.stderr).toMatch(/--password-stdin/);
    expect((await bsvc(['user', 'create', '--email', 'c@example.com', '--password', 'x'])).code).toBe(2);
  });

  it('takes the password from an environment variable', async () => {
    const { code } = await bsvc(['user', 'create', '--email', 'env@example.com', '--password-env', 'PW'], {
      env: { PW: PASSWORD },
    });
    expect(code).toBe(0);
  });

  it('explains what the schema refuses', async () => {
    expect((await create('nobody')).stderr).toMatch(/"nobody" is not an e-mail address/);
    expect((await create('d@example.com', '--field', 'shoe=44')).stderr).toMatch(/shoe is not a field/);
    const exposed = await create('d@example.com', '--field', 'password="seen by all"');
    expect({ code: exposed.code, stderr: exposed.stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('A password is never an argument') as string,
    });
    expect((await create('d@example.com', '--field', 'shoe')).code).toBe(2);
  });
});

describe('bsvc collection edit users', () => {
  it('adds fields, and warns when any user could set one that grants something', async () => {
    const edited = await bsvc([
      'collection',
      'edit',
      'users',
      '--add-field',
      'role:String',
      '--add-field',
      'age:Number',
    ]);
    expect(edited.code).toBe(0);
    expect(edited.stderr).toMatch(/^Warning: every user can set "role" on itself/);
    expect(edited.stderr).not.toMatch(/age/);
    const guarded = await bsvc(['collection', 'edit', 'users', '--set-field', 'role:String@protected']);
    expect({ code: guarded.code, stderr: guarded.stderr }).toEqual({ code: 0, stderr: '' });
    const made = await create('eve@example.com', '--field', 'role=admin', '--field', 'age=36');
    expect(made.json<{ user: Account }>().user).toMatchObject({ role: 'admin', age: 36 });
  });

  it('checks stored accounts against what they are stored as', async () => {
    const fits = await bsvc(['collection', 'edit', 'users', '--add-field', 'nick:String', '--check', '--json']);
    expect([fits.code, fits.json<{ violations: number }>().violations]).toEqual([0, 0]);
    const violations = await bsvc(['collection', 'edit', 'users', '--add-field', 'nick:String!', '--check']);
    expect(violations.code).toBe(1);
    expect(violations.stdout).toMatch(/nick is required\s/);
    expect(violations.stdout).not.toMatch(/password|emailVerified/);
  });

  it.each([
    ['drop the address', ['--drop-field', 'email']],
    ['make the address optional', ['--set-field', 'email:String&']],
    ['make addresses repeatable', ['--set-field', 'email:String!']],
    ['make the password public', ['--set-field', 'password:String!@public']],
    ['declare emailVerified', ['--add-field', 'emailVerified:Boolean']],
    ['become flexible', ['--mode', 'flexible']],
  ])('refuses to %s', async (_what, change) => {
    const { code, stderr } = await bsvc(['collection', 'edit', 'users', ...change]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^bsvc: /);
  });

  it('refuses to drop, rename or guard the collection, or to take its name', async () => {
    for (const argv of [
      ['drop', 'users', '--yes'],
      ['edit', 'users', '--name', 'people'],
      ['rls', 'users', '--mode', 'private'],
      ['add', 'usersX', '--flexible'],
    ]) {
      expect((await bsvc(['collection', ...argv])).code).toBe(1);
    }
    const listed = await bsvc(['collection', 'list', '--json']);
    expect(listed.json<{ name: string }[]>().map(({ name }) => name)).toContain('users');
  });
});

describe('bsvc user', () => {
  it('lists accounts, newest first, by the beginning of their address', async () => {
    await create('list-a@example.com');
    await create('list-b@example.com');
    const { json } = await bsvc(['user', 'list', '--email', 'LIST-', '--json']);
    expect(json<Account[]>().map(({ email }) => email)).toEqual(['list-b@example.com', 'list-a@example.com']);
    const searched = await bsvc(['user', 'list', '--search', 'IST-A', '--json']);
    expect(searched.json<Account[]>().map(({ email }) => email)).toEqual(['list-a@example.com']);
    const quiet = await bsvc(['user', 'list', '--email', 'list-', '--limit', '1', '-q']);
    expect(quiet.stdout).toMatch(/^[0-9a-f]{24}\n$/);
  });

  it('closes, opens and deletes an account by id or address', async () => {
    const { user } = (await create('close@example.com')).json<{ user: Account }>();
    const disabled = await bsvc(['user', 'update', user._id, '--disable', '--json']);
    expect(disabled.json<Account>()).toMatchObject({ email: 'close@example.com', disabled: true });
    const enabled = await bsvc(['user', 'update', 'close@example.com', '--enable', '--json']);
    expect(enabled.json<Account>()).toMatchObject({ disabled: false });
    expect((await bsvc(['user', 'delete', 'close@example.com'])).code).toBe(2);
    expect((await bsvc(['user', 'delete', 'close@example.com', '--yes'])).code).toBe(0);
    const gone = await bsvc(['user', 'update', 'close@example.com', '--disable']);
    expect([gone.code, gone.stderr]).toEqual([
      1,
      'bsvc: The project has no user "close@example.com". "bsvc user list" shows them.\n',
    ]);
  });

  it('shows and changes roles', async () => {
    await create('roles@example.com');
    const update = (...words: string[]) => bsvc(['user', 'update', 'roles@example.com', ...words]);
    const roles = async (...words: string[]) => {
      if (words.length > 0) expect((await update(...words)).code).toBe(0);
      return (await bsvc(['user', 'list', 'roles@example.com', '--json'])).json<{ roles: string[] }>().roles;
    };
    expect(await roles()).toEqual([]);
    expect(await roles('--add-role', 'editor', '--add-role', 'team:7')).toEqual(['editor', 'team:7']);
    expect(await roles('--remove-role', 'editor', '--add-role', 'guest')).toEqual(['team:7', 'guest']);
    expect(await roles('--no-roles', '--add-role', 'owner')).toEqual(['owner']);
    const bad = await update('--add-role', 'Chief');
    expect([bad.code, bad.stderr]).toEqual([1, expect.stringContaining('roles must be a list') as string]);
    expect((await update('--add-role', 'a', '--remove-role', 'a')).code).toBe(2);
    expect((await update('--disable', '--enable')).code).toBe(2);
    expect((await update()).code).toBe(2);
  });

  it('sets a password', async () => {
    await create('pw@example.com');
    const update = ['user', 'update', 'pw@example.com'];
    const set = await bsvc([...update, '--password-stdin'], { stdin: 'another one\n' });
    expect([set.code, set.stdout]).toEqual([0, expect.stringContaining('has a new password') as string]);
    const short = await bsvc([...update, '--password-stdin', '--add-role', 'late'], { stdin: 'abc\n' });
    expect(short.code).toBe(1);
    expect((await bsvc(['user', 'list', 'pw@example.com', '--json'])).json()).toMatchObject({ roles: [] });
    expect((await bsvc([...update, '--replace-password'])).code).toBe(2);
  });

  it('shows and ends sessions', async () => {
    await create('session@example.com');
    expect((await bsvc(['user', 'list', 'session@example.com', '--json'])).json()).toMatchObject({ sessions: [] });
    for (const which of ['x', 'others']) {
      expect((await bsvc(['user', 'update', 'session@example.com', '--end-sessions', which])).code).toBe(1);
    }
    expect((await bsvc(['user', 'update', 'session@example.com', '--end-sessions', 'all'])).code).toBe(0);
  });

  it('never writes a password into the audit log', async () => {
    const { stdout } = await bsvc(['audit', '--json']);
    expect(stdout).toContain('user create');
    expect(stdout).not.toContain(PASSWORD);
  });
});

describe('bsvc user social', () => {
  it('keeps providers, whose secret is never shown', async () => {
    const secret = 'the client secret';
    const set = await bsvc(
      [
        'user',
        'social',
        'set',
        'google',
        '--client-id',
        'c',
        '--redirect-url',
        'https://a.example/in',
        '--client-secret-stdin',
        '--json',
      ],
      { stdin: secret },
    );
    expect(set.code).toBe(0);
    const listed = await bsvc(['user', 'social', 'list', '--json']);
    expect(listed.json<{ name: string }[]>()).toMatchObject([
      { name: 'google', issuer: 'https://accounts.google.com' },
    ]);
    expect(set.stdout + listed.stdout).not.toContain(secret);
    expect((await bsvc(['user', 'social', 'remove', 'google', '--yes'])).code).toBe(0);
    expect((await bsvc(['user', 'social', 'remove', 'google', '--yes'])).code).toBe(1);
  });
});

describe('bsvc secrets rotate', () => {
  it('answers the new key’s id', async () => {
    const { code, stdout } = await bsvc(['secrets', 'rotate', '--tokens', '-q']);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^[\w-]{12}\n$/) as string]);
  });
});
