import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { MIGRATIONS } from '../../world/app.js';
import { beginRestore, endRestore } from '../../world/stored.js';
import { openCliHome } from '../../helpers/run-cli.js';
import { withApp } from '../../helpers/with-app.js';
import { use } from '../../helpers/use.js';

const home = use(openCliHome());
const keyFile = join(home.dir, 'data', 'secret.key');
const backup = join(home.dir, 'whole.backup');
const OTHER = 'another-master-key-of-forty-three-letters-x';

await home.bsvc(['project', 'create', 'shop']);
await home.bsvc(['collection', 'add', 'posts', '--project', 'shop', '--field', 't:String']);
const key = readFileSync(keyFile, 'utf8');
expect((await home.bsvc(['backup', '--out', backup])).code).toBe(0);
beforeEach(() => writeFileSync(keyFile, key));

/** What can happen to the key of a store that is in use. */
const LOSSES: readonly [what: string, lose: () => Record<string, string>, code: string][] = [
  ['that is missing', () => (rmSync(keyFile), {}), 'MASTER_KEY_MISSING'],
  ['that is empty', () => (writeFileSync(keyFile, ''), {}), 'MASTER_KEY_DAMAGED'],
  ['cut short', () => (writeFileSync(keyFile, key.slice(0, 9)), {}), 'MASTER_KEY_DAMAGED'],
  ['of another store', () => (writeFileSync(keyFile, OTHER), {}), 'MASTER_KEY_FOREIGN'],
  ['hidden by a setting', () => ({ BSVC_SECRET_KEY: OTHER }), 'MASTER_KEY_FOREIGN'],
];

const inShop = ['--project', 'shop'];
const COMMANDS: readonly (readonly string[])[] = [
  ['project', 'list'],
  ['project', 'create', 'second'],
  ['project', 'create', 'shop', '--if-not-exists'],
  ['key', 'create', '--type', 'secret', ...inShop],
  ['collection', 'list', ...inShop],
  ['data', 'export', 'posts', ...inShop],
  ['user', 'create', '--email', 'a@b.co', '--password-env', 'PASSWORD', ...inShop],
  ['secrets', 'rotate'],
  ['backup', '--out', 'unwanted.backup'],
  ['migrate'],
  ['serve', '--port', '0'],
  ['worker'],
];

describe.each(LOSSES)('a master key %s', (_what, lose, code) => {
  it.each(COMMANDS.map((words) => [words.join(' '), words] as const))('is refused by %s', async (_name, words) => {
    const env = { ...lose(), PASSWORD: 'correct horse battery' };
    const before = existsSync(keyFile) ? readFileSync(keyFile, 'utf8') : null;
    const stop = AbortSignal.timeout(90_000);
    const { code: exit, stderr } = await home.bsvc([...words, '--json'], { env, stop });
    expect({ exit, stderr }).toEqual({ exit: 1, stderr: expect.stringContaining(code) as string });
    expect(stderr).toMatch(/BSVC_SECRET_KEY|copy of the file/);
    expect(existsSync(keyFile) ? readFileSync(keyFile, 'utf8') : null).toBe(before);
    writeFileSync(keyFile, key);
    expect((await home.bsvc(['project', 'list', '--quiet'])).stdout.trim().split('\n')).toHaveLength(1);
  });

  it('is told by doctor as a line of its own, which makes no key', async () => {
    const env = lose();
    const before = existsSync(keyFile);
    const { code: exit, json } = await home.bsvc(['doctor', '--json'], { env });
    expect(exit).toBe(1);
    const { checks } = json<{ checks: { name: string; ok: boolean; detail: string }[] }>();
    expect(checks.find(({ name }) => name === 'master key')).toMatchObject({ ok: false });
    expect(existsSync(keyFile)).toBe(before);
  });

  it('is no hindrance to a restore, which brings the right one', async () => {
    const env = lose();
    const restored = await home.bsvc(['restore', backup, '--yes'], { env });
    if (env.BSVC_SECRET_KEY) {
      // A setting stands above what a backup brings.
      expect([restored.code, restored.stderr]).toEqual([1, expect.stringContaining('BSVC_SECRET_KEY') as string]);
      return;
    }
    expect([restored.code, restored.stderr]).toEqual([0, '']);
    expect((await home.bsvc(['project', 'list', '--quiet'])).code).toBe(0);
    expect(readFileSync(keyFile, 'utf8').trim()).toBe(key.trim());
  });
});

describe('a master key', () => {
  it('is tried by doctor on what is stored', async () => {
    const { json } = await home.bsvc(['doctor', '--json']);
    const { checks } = json<{ checks: { name: string }[] }>();
    expect(checks.find(({ name }) => name === 'master key')).toMatchObject({
      ok: true,
      detail: 'decrypts what is stored (checked with 1 secret)',
    });
  });

  it('is made by the first command that needs one, not by a look', async () => {
    const fresh = openCliHome();
    try {
      await fresh.bsvc(['doctor']);
      expect(existsSync(join(fresh.dir, 'data', 'secret.key'))).toBe(false);
      await fresh.bsvc(['project', 'create', 'first']);
      expect(existsSync(join(fresh.dir, 'data', 'secret.key'))).toBe(true);
    } finally {
      fresh.remove();
    }
  });

  it('may be given by the setting instead of the file, and exchanged with the old one behind it', async () => {
    const given = (value: string) => ({ env: { BSVC_SECRET_KEY: value } });
    const list = ['project', 'list', '--quiet'];
    rmSync(keyFile);
    expect((await home.bsvc(list, given(key))).code).toBe(0);
    expect((await home.bsvc(list, given(`${OTHER},${key}`))).code).toBe(0);
    expect((await home.bsvc(list, given(OTHER))).stderr).toContain('master key');
    expect((await home.bsvc(['secrets', 'rotate'], given(`${OTHER},${key}`))).code).toBe(0);
    expect((await home.bsvc(list, given(OTHER))).code).toBe(0);
    expect((await home.bsvc(list, given(key))).code).toBe(1);
    // Back again, for the other tests.
    expect((await home.bsvc(['secrets', 'rotate'], given(`${key},${OTHER}`))).code).toBe(0);
  });

  it('is asked for by a store of an older version too, which noted none', async () => {
    const env = { BSVC_DATA_DIR: join(home.dir, 'data') };
    await withApp(env, (app) => app.db.collection('encryption_keys').drop());
    rmSync(keyFile);
    expect((await home.bsvc(['project', 'list'])).stderr).toContain('secret.key is missing');
    writeFileSync(keyFile, key);
    expect((await home.bsvc(['project', 'list'])).code).toBe(0);
  });
});

describe('a store that waits for a migration', () => {
  const env = { BSVC_DATA_DIR: join(home.dir, 'data'), BSVC_DURABILITY: 'relaxed' };
  const last = MIGRATIONS.at(-1)!.id;
  const isApplied = () =>
    withApp(
      env,
      async ({ db }) => (await db.collection<{ _id: string }>('migrations').findOne({ _id: last })) !== null,
    );
  beforeEach(() =>
    withApp(env, async ({ db }) => {
      await db.collection<{ _id: string }>('migrations').deleteOne({ _id: last });
    }),
  );

  const ways = [['project', 'list'], ['migrate'], ['serve', '--port', '0'], ['serve', '--migrate', '--port', '0']];

  it.each(ways)('is not touched by %s %s %s with the key of another store', async (...words) => {
    writeFileSync(keyFile, OTHER);
    const { code, stderr } = await home.bsvc([...words, '--json'], { stop: AbortSignal.timeout(90_000) });
    expect([code, stderr]).toEqual([1, expect.stringContaining('MASTER_KEY_FOREIGN')]);
    writeFileSync(keyFile, key);
    expect(await isApplied()).toBe(false);
  });

  it.each(ways)('is not touched by %s %s %s while a restore is unfinished', async (...words) => {
    const run = await withApp(env, ({ db }) => beginRestore(db));
    const { code, stderr } = await home.bsvc([...words, '--json'], { stop: AbortSignal.timeout(90_000) });
    expect([code, stderr]).toEqual([1, expect.stringContaining('RESTORE_UNFINISHED')]);
    await withApp(env, ({ db }) => endRestore(db, run));
    expect(await isApplied()).toBe(false);
  });
});
