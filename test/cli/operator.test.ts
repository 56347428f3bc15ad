import { describe, expect, it } from 'vitest';
import { openCliHome, type CliOptions } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const PASSWORD = 'correct horse battery';

await home.bsvc(['project', 'create', 'shop']);

interface Operator {
  id: string;
  email: string;
  role: string;
  projects: string[] | null;
}

const bsvc = (argv: string[], options: CliOptions = {}) =>
  home.bsvc(argv, { ...options, env: { BSVC_BCRYPT_COST: '4', ...options.env } });
const add = (email: string, ...more: string[]) =>
  bsvc(['operator', 'add', '--email', email, '--password-stdin', '--json', ...more], { stdin: `${PASSWORD}\n` });

describe('bsvc operator add', () => {
  it('adds an owner of everything, whose password is in no output', async () => {
    const added = await add(' Ann@Example.test ');
    expect(added).toMatchObject({ code: 0, stderr: '' });
    expect(added.json()).toEqual({
      operator: {
        id: expect.stringMatching(/^[0-9a-f]{24}$/) as string,
        email: 'ann@example.test',
        role: 'owner',
        projects: null,
        createdAt: expect.any(String) as string,
      },
      created: true,
    });
    const audit = await bsvc(['audit', '--action', 'operator', '--json']);
    expect(audit.stdout).toContain('Ann@Example.test');
    expect(added.stdout + audit.stdout).not.toContain(PASSWORD);
  });

  it('adds a viewer of some projects, by the name of the project', async () => {
    const shop = (await bsvc(['project', 'show', 'shop', '--quiet'])).stdout.trim();
    const added = await add('viewer@example.test', '--role', 'viewer', '--project', 'shop');
    expect(added.json<{ operator: Operator }>().operator).toMatchObject({ role: 'viewer', projects: [shop] });
    expect((await bsvc(['operator', 'list'])).stdout).toMatch(new RegExp(`viewer@example.test +viewer +only ${shop}`));
    expect((await add('nobody@example.test', '--project', 'nowhere')).code).toBe(1);
  });

  it('refuses a second one of that address with exit 1, unless --if-not-exists', async () => {
    await add('twice@example.test');
    const again = await add('TWICE@example.test');
    expect({ code: again.code, stdout: again.stdout }).toEqual({ code: 1, stdout: '' });
    expect(again.stderr).toMatch(/There is already an operator twice@example.test: remove it first/);
    const kept = await add('twice@example.test', '--if-not-exists', '--role', 'viewer');
    expect(kept.json()).toMatchObject({ operator: { role: 'owner' }, created: false });
  });

  it('makes one of five parallel runs', async () => {
    const runs = await Promise.all(Array.from({ length: 5 }, () => add('raced@example.test')));
    expect(runs.map(({ code }) => code).sort()).toEqual([0, 1, 1, 1, 1]);
  });

  it('is exit 0 for each of five parallel runs with --if-not-exists, one of which adds it', async () => {
    const runs = await Promise.all(Array.from({ length: 5 }, () => add('repeated@example.test', '--if-not-exists')));
    expect(runs.map(({ code, stderr }) => ({ code, stderr }))).toEqual(runs.map(() => ({ code: 0, stderr: '' })));
    const outcomes = runs.map((run) => run.json<{ operator: Operator; created: boolean }>());
    expect(outcomes.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(outcomes.map(({ operator }) => operator.id)).size).toBe(1);
  });

  it('is exit 2 for what is missing or unknown, exit 1 for what is refused', async () => {
    expect((await bsvc(['operator', 'add'])).code).toBe(2);
    expect((await bsvc(['operator', 'add', '--email', 'a@b.test'])).stderr).toMatch(/--password-stdin/);
    expect((await bsvc(['operator', 'add', '--email', 'a@b.test', '--role', 'god'])).code).toBe(2);
    expect((await add('not an address')).stderr).toMatch(/is not an e-mail address/);
    const short = await bsvc(['operator', 'add', '--email', 'a@b.test', '--password-env', 'PW'], { env: { PW: 'x' } });
    expect(short).toMatchObject({ code: 1, stderr: expect.stringMatching(/at least 6 bytes/) as string });
  });
});

describe('bsvc operator token --list', () => {
  const list = async (operator: string) =>
    (await bsvc(['operator', 'token', operator, '--list', '--json'])).json<{ id: string; console: boolean }[]>();

  it('lists tokens and sessions of one operator without anything that opens one, the newest first', async () => {
    await add('seen@example.test');
    const token = (await bsvc(['operator', 'token', 'seen@example.test', '--quiet'])).stdout.trim();
    const link = (await bsvc(['console', 'seen@example.test', '--no-open', '--quiet'])).stdout.trim();
    const { stdout } = await bsvc(['operator', 'token', 'seen@example.test', '--list']);
    expect(stdout).toMatch(/^id +used +ends +by +opened\n[0-9a-f]{24} +- +\S+ +token +\S+\n$/);
    expect(stdout).not.toContain(token);
    expect(stdout).not.toContain(link.split('/').at(-1));
  });

  it('ends one by its id, and all of them with the links to sign in; another operator keeps theirs', async () => {
    await add('ended@example.test');
    await add('kept@example.test');
    for (const operator of ['ended', 'ended', 'ended', 'kept']) {
      expect((await bsvc(['operator', 'token', `${operator}@example.test`])).code).toBe(0);
    }
    expect((await bsvc(['console', 'ended@example.test', '--no-open'])).code).toBe(0);
    const [first, ...others] = await list('ended@example.test');
    const one = await bsvc(['operator', 'token', 'ended@example.test', '--revoke', first!.id], { terminal: true });
    expect(one.stderr).toContain('1 session has ended.');
    expect(await list('ended@example.test')).toEqual(others);
    const foreign = await bsvc(['operator', 'token', 'kept@example.test', '--revoke', others[0]!.id]);
    expect(foreign).toMatchObject({
      code: 1,
      stderr: 'bsvc: The operator has no such session. "bsvc operator token --list" shows them.\n',
    });
    const all = await bsvc(['operator', 'token', 'ended@example.test', '--revoke', 'all'], { terminal: true });
    expect(all.stderr).toContain('3 sessions have ended.');
    expect(all.stdout).toBe('No active sessions.\n');
    expect(await list('kept@example.test')).toHaveLength(1);
  });
});

describe('bsvc operator add --replace-password', () => {
  it('gives another password, ends all sessions, and shows and records neither password', async () => {
    await add('changed@example.test');
    await bsvc(['operator', 'token', 'changed@example.test']);
    const words = ['operator', 'add', '--replace-password', '--email', 'changed@example.test'];
    const changed = await bsvc([...words, '--password-env', 'NEW'], { env: { NEW: 'incorrect horse' } });
    expect(changed).toMatchObject({
      code: 0,
      stdout: 'Operator changed@example.test has a new password; all sessions and tokens have ended.\n',
    });
    expect((await bsvc(['operator', 'token', 'changed@example.test', '--list', '--json'])).json()).toEqual([]);
    const audit = await bsvc(['audit', '--action', 'operator add', '--json']);
    expect(audit.stdout).toContain('changed@example.test');
    expect(audit.stdout).not.toMatch(/incorrect horse/);
    const short = await bsvc([...words, '--password-stdin'], { stdin: 'x' });
    expect(short).toMatchObject({ code: 1, stderr: expect.stringMatching(/at least 6 bytes/) as string });
    expect((await bsvc(words)).code).toBe(2);
    const nobody = [...words.slice(0, -1), 'nobody@example.test', '--password-stdin'];
    expect((await bsvc(nobody, { stdin: 'x' })).code).toBe(1);
  });
});

describe('bsvc operator token, list, remove', () => {
  it('gives out a token for scripts, and takes all tokens back with the operator', async () => {
    const { operator } = (await add('script@example.test')).json<{ operator: Operator }>();
    const token = await bsvc(['operator', 'token', 'script@example.test', '--quiet']);
    expect(token.stdout).toMatch(/^bsvc_op_[\w-]{43}\n$/);
    const dated = await bsvc(['operator', 'token', operator.id, '--ttl', '30d', '--json']);
    const { expiresAt } = dated.json<{ expiresAt: string }>();
    const days = (Date.parse(expiresAt) - Date.now()) / 86_400_000;
    expect(Math.round(days)).toBe(30);
    expect((await bsvc(['operator', 'token', operator.id, '--ttl', '3y'])).code).toBe(2);
    expect((await bsvc(['operator', 'token', operator.id, '--ttl', '400d'])).code).toBe(2);
    expect((await bsvc(['operator', 'list', '--json'])).stdout).not.toMatch(/bsvc_op_|passwordHash|\$2b\$/);
    expect((await bsvc(['operator', 'remove', operator.id])).code).toBe(2);
    const removed = await bsvc(['operator', 'remove', 'script@example.test', '--yes', '--json']);
    expect(removed.json()).toMatchObject({ id: operator.id });
    expect((await bsvc(['operator', 'token', operator.id])).stderr).toBe(
      `bsvc: There is no operator "${operator.id}". "bsvc operator list" shows them.\n`,
    );
    expect((await bsvc(['operator', 'remove', 'script@example.test', '--yes'])).code).toBe(1);
    const listed = (await bsvc(['operator', 'list', '--json'])).json<Operator[]>();
    expect(listed.map(({ email }) => email)).not.toContain('script@example.test');
  });
});
