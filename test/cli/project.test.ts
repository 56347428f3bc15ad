import { describe, expect, it, vi } from 'vitest';
import { update } from '../../src/engine/commands/write/update.js';
import { EngineError } from '../../src/engine/errors.js';
import { openCliHome } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());

interface CreatedProject {
  project: { id: string; name: string; plan: string; createdAt: string };
  keys: { publishable: string; secret: string } | null;
  created: boolean;
}
type Key = { id: string; type: string; last4: string; live: boolean; expiresAt: string | null };

const create = async (name: string, ...more: string[]): Promise<CreatedProject> =>
  (await home.bsvc(['project', 'create', name, '--json', ...more])).json<CreatedProject>();

describe('BSVC_PROJECT', () => {
  it('does not name one that is to be deleted', async () => {
    await create('kept');
    const { code, stderr } = await home.bsvc(['project', 'delete', '--yes'], { env: { BSVC_PROJECT: 'kept' } });
    expect([code, stderr]).toEqual([2, expect.stringContaining('The argument <project> is missing') as string]);
    expect((await home.bsvc(['project', 'show', 'kept'])).code).toBe(0);
  });
});

describe('bsvc project create', () => {
  it('answers the project and one key of each type as one JSON value', async () => {
    const { code, stdout, stderr } = await home.bsvc(['project', 'create', 'made', '--plan', 'pro', '--json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({
      project: { id: expect.stringMatching(/^[0-9a-f]{24}$/) as string, name: 'made', plan: 'pro' },
      keys: {
        publishable: expect.stringMatching(/^pk_live_[\w-]{43}$/) as string,
        secret: expect.stringMatching(/^sk_live_[\w-]{43}$/) as string,
      },
      created: true,
    });
  });

  it('prints the bare id with --quiet', async () => {
    const { stdout } = await home.bsvc(['project', 'create', 'quiet one', '-q']);
    expect(stdout).toMatch(/^[0-9a-f]{24}\n$/);
  });

  it('refuses a second one of that name with exit 1, unless --if-not-exists', async () => {
    const first = await create('twice');
    const refused = await home.bsvc(['project', 'create', 'twice', '--json']);
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(/^bsvc: There is already a project "twice"/);
    expect(JSON.parse(refused.stderr.split('\n')[1]!)).toMatchObject({ success: false, code: 'PROJECT_EXISTS' });
    const again = await create('twice', '--if-not-exists');
    expect(again).toMatchObject({ project: { id: first.project.id }, keys: null, created: false });
  });

  it('makes one project of ten parallel runs with --if-not-exists', async () => {
    const runs = await Promise.all(Array.from({ length: 10 }, () => create('raced', '--if-not-exists')));
    expect(runs.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(runs.map(({ project }) => project.id)).size).toBe(1);
  });

  it('refuses a bad name with exit 1 and leaves nothing', async () => {
    const { code, stderr } = await home.bsvc(['project', 'create', '../x']);
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('A project name has') as string,
    });
  });
});

describe('bsvc project list, show, update, usage, delete', () => {
  it('finds a project by name and by id', async () => {
    const { project } = await create('found');
    const byName = await home.bsvc(['project', 'show', 'found', '--json']);
    const byId = await home.bsvc(['project', 'show', project.id, '--json']);
    expect(byName.json<{ id: string }>().id).toBe(project.id);
    expect(byId.stdout).toBe(byName.stdout);
    const listed = await home.bsvc(['project', 'list', '--quiet']);
    expect(listed.stdout.split('\n')).toContain(project.id);
    expect((await home.bsvc(['project', 'list'])).stdout).toMatch(new RegExp(`${project.id} +found +free`));
  });

  it('answers exit 1 for a project that does not exist', async () => {
    const { code, stdout, stderr } = await home.bsvc(['project', 'show', 'nowhere']);
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr: 'bsvc: There is no project "nowhere". "bsvc project list" shows them.\n',
    });
  });

  it('changes name, plan, allowed domains and limits; "plan" takes a limit back', async () => {
    await create('changed');
    const LIMITS = ['mail=7', 'database=50mb', 'storage=1000'].flatMap((limit) => ['--limit', limit]);
    const words = ['--plan', 'pro', '--allowed-domain', 'https://a.example', '--allowed-domain', '*.b.example'];
    const changed = await home.bsvc(['project', 'update', 'changed', '--json', ...words, ...LIMITS]);
    expect(changed.json()).toMatchObject({
      plan: 'pro',
      allowedDomains: ['https://a.example', '*.b.example'],
      limits: { mail: 7, database: 50 * 1024 * 1024, storage: 1000 },
    });
    const renamed = await home.bsvc([
      'project',
      'update',
      'changed',
      '--name',
      'renamed',
      '--limit',
      'mail=plan',
      '--limit',
      'database=plan',
      '--json',
    ]);
    expect(renamed.json()).toMatchObject({ name: 'renamed', plan: 'pro', limits: { storage: 1000 } });
  });

  it('shows each setting that was changed', async () => {
    await create('shown');
    const words = ['--publishable-uploads', 'on', '--mail-from', 'shop@example.com'];
    const changed = await home.bsvc(['project', 'update', 'shown', ...words]);
    expect(changed.stdout).toMatch(/uploads +publishable keys may upload[^]*mail from +shop@example\.com/);
    expect((await home.bsvc(['project', 'show', 'shown'])).stdout.startsWith(changed.stdout)).toBe(true);
  });

  it('shows what a project holds beside what its plan grants', async () => {
    await create('used');
    await home.bsvc(['collection', 'add', 'things', '--project', 'used', '--flexible']);
    await home.bsvc(['data', 'import', 'things', '-', '--format', 'ndjson', '--project', 'used'], {
      stdin: '{}\n{}\n',
    });
    const shown = (await home.bsvc(['project', 'show', 'used', '--json'])).json();
    expect(shown).toMatchObject({ plan: 'free', usage: { limits: { webhooks: 3 }, documents: 2 } });
  });

  it('deletes with --yes, and is exit 2 without an answer', async () => {
    await create('gone');
    expect((await home.bsvc(['project', 'delete', 'gone'])).code).toBe(2);
    expect((await home.bsvc(['project', 'delete', 'gone', '--yes'])).code).toBe(0);
    expect((await home.bsvc(['project', 'show', 'gone'])).code).toBe(1);
    expect((await home.bsvc(['project', 'delete', 'gone', '--yes'])).code).toBe(1);
  });
});

describe('bsvc key', () => {
  const keysOf = async (project: string): Promise<Key[]> =>
    (await home.bsvc(['key', 'list', '--project', project, '--json'])).json<Key[]>();

  it('shows a key once and afterwards only its last characters', async () => {
    await create('keyed');
    const made = await home.bsvc([
      'key',
      'create',
      '--project',
      'keyed',
      '--type',
      'secret',
      '--name',
      'import',
      '--quiet',
    ]);
    const value = made.stdout.trim();
    expect(value).toMatch(/^sk_live_[\w-]{43}$/);
    const listed = await home.bsvc(['key', 'list', '--project', 'keyed']);
    expect(listed.stdout).toContain(value.slice(-4));
    expect(listed.stdout).not.toContain(value.slice(0, -4));
    expect(listed.stdout).toMatch(/secret +\S{4} +active +- +import +/);
    expect(await keysOf('keyed')).toHaveLength(3);
  });

  it('rotates with a grace for the old keys of that type only', async () => {
    await create('rotated');
    const rotated = await home.bsvc(['key', 'rotate', '--type', 'secret', '--grace', '2h', '--json'], {
      env: { BSVC_PROJECT: 'rotated' },
    });
    expect(rotated.json()).toMatchObject({
      key: { type: 'secret' },
      value: expect.stringMatching(/^sk_live_/) as string,
    });
    const keys = await keysOf('rotated');
    expect(keys.map(({ type, live, expiresAt }) => [type, live, expiresAt !== null])).toEqual([
      ['publishable', true, false],
      ['secret', true, true],
      ['secret', true, false],
    ]);
    const kept = await home.bsvc(['key', 'rotate', '--type', 'secret', '--grace', '1h', '--project', 'rotated']);
    expect(kept.stdout).toContain('for 1h. One that has leaked ends at once with "bsvc key revoke <id>".\n');
    await home.bsvc(['key', 'rotate', '--type', 'secret', '--grace', '0s', '--project', 'rotated']);
    expect((await keysOf('rotated')).filter(({ type, live }) => type === 'secret' && live)).toHaveLength(1);
  });

  it('lets old keys live for a grace that no calendar holds', async () => {
    await create('patient');
    await home.bsvc(['key', 'rotate', '--type', 'secret', '--grace', '999999999999d', '--project', 'patient']);
    const keys = await keysOf('patient');
    expect(keys.map(({ live }) => live)).toEqual([true, true, true]);
    expect(keys.filter(({ expiresAt }) => expiresAt && Date.parse(expiresAt) > Date.now())).toHaveLength(1);
  });

  it('revokes by id, with --yes', async () => {
    await create('revoked');
    const [key] = await keysOf('revoked');
    expect((await home.bsvc(['key', 'revoke', key!.id, '--project', 'revoked'])).code).toBe(2);
    expect((await home.bsvc(['key', 'revoke', key!.id, '--project', 'revoked', '--yes'])).code).toBe(0);
    expect((await keysOf('revoked')).find(({ id }) => id === key!.id)!.live).toBe(false);
    expect((await home.bsvc(['key', 'revoke', '0'.repeat(24), '--project', 'revoked', '--yes'])).code).toBe(1);
  });
});

describe('BSVC_PROJECT', () => {
  it('comes from the env file too, and --project wins', async () => {
    await create('one');
    await create('two');
    const { writeFileSync } = await import('node:fs');
    writeFileSync(`${home.dir}/project.env`, 'BSVC_PROJECT=one\n');
    const show = async (...words: string[]) => {
      await home.bsvc(['collection', 'add', 'c1', '--flexible', '--project', 'one', '--if-not-exists']);
      return (await home.bsvc(['collection', 'list', '--quiet', '--env-file', 'project.env', ...words])).stdout;
    };
    expect(await show()).toContain('c1');
    expect(await show('--project', 'two')).not.toContain('c1');
  });
});

describe('bsvc audit', () => {
  it('records what changes something, and nothing that only looks', async () => {
    const bsvc = (...words: string[]) => home.bsvc(words, { env: { BSVC_PROJECT: 'looking', PW: 'long enough' } });
    await bsvc('project', 'create', 'looking');
    await bsvc('user', 'create', '--email', 'a@b.co', '--password-env', 'PW');
    await bsvc('project', 'export', '--out', 'looking.yaml');
    await bsvc('backup', '--out', 'looking.backup');
    const [{ id }] = (await bsvc('audit', '--limit', '1', '--json')).json<[{ id: string }]>();
    for (const look of [
      ['user', 'list', 'a@b.co'],
      ['collection', 'edit', 'users', '--add-field', 'nick:String', '--check'],
      ['apply', '-f', 'looking.yaml', '--dry-run'],
      ['restore', 'looking.backup', '--verify'],
      ['migrate', 'up', '--dry-run'],
      ['key', 'list'],
    ]) {
      expect({ look, ...(await bsvc(...look)) }).toMatchObject({ look, code: 0 });
    }
    expect((await bsvc('audit', '--limit', '1', '--json')).json()).toMatchObject([{ id }]);
    await bsvc('user', 'update', 'a@b.co', '--end-sessions', 'all');
    expect((await bsvc('audit', '--limit', '1', '--json')).json()).toMatchObject([{ action: 'user update' }]);
  });

  it('finds acts by the first word of their command, one a line whatever they were told', async () => {
    await create('of lines');
    await home.bsvc(['key', 'create', '--project', 'of lines', '--type', 'secret', '--name', 'two\nlines']);
    const { stdout } = await home.bsvc(['audit', '--action', 'key', '--project', 'of lines']);
    expect(stdout.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^at .*outcome$/),
      expect.stringMatching(/ key create .*name=two lines/),
    ]);
  });

  it('tells who did what, and how it ended', async () => {
    await create('audited');
    await home.bsvc(['project', 'create', 'audited']);
    const acts = (await home.bsvc(['audit', '--action', 'project create', '--limit', '2', '--json'])).json<object[]>();
    expect(acts).toMatchObject([
      { action: 'project create', input: { name: 'audited' }, outcome: 'failed', code: 'PROJECT_EXISTS' },
      { action: 'project create', input: { name: 'audited' }, outcome: 'done', code: null },
    ]);
    expect((acts[0] as { actor: string }).actor).toMatch(/^.+@.+$/);
  });

  it('takes any age', async () => {
    const acts = await home.bsvc(['audit', '--since', '999999999999d', '--json']);
    expect(acts.json<object[]>().length).toBeGreaterThan(0);
  });

  it('does not keep back what a command made when its end cannot be recorded', async () => {
    const run = update.run.bind(update);
    const spy = vi.spyOn(update, 'run').mockImplementation((call, body) => {
      if (body.update === 'audit_log') throw new EngineError(1, 'the log is broken');
      return run(call, body);
    });
    const { code, stderr, json } = await home.bsvc(['project', 'create', 'unrecorded', '--json']);
    spy.mockRestore();
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/^Warning: the audit log has no end of this act\./) as string,
    });
    expect(json<CreatedProject>().keys!.secret).toMatch(/^sk_live_/);
  });

  it('holds no key and no secret', async () => {
    const { keys } = await create('encrypted');
    const { stdout } = await home.bsvc(['audit', '--json', '--limit', '1000']);
    expect(stdout).not.toContain(keys!.secret.slice(10));
  });
});
