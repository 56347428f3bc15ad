import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { ObjectId } from 'bson';
import { MongoClient } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { MIGRATIONS } from '../../world/app.js';
import { withAuditEntry } from '../../world/operators.js';
import { beginRestore, usageStore } from '../../world/stored.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { startMailProviderDouble } from '../../helpers/mail-provider-double.js';
import { openTestApp } from '../../helpers/open-test-app.js';
import { startService } from '../../helpers/run-binary.js';
import { openCliHome, runCli } from '../../helpers/run-cli.js';
import { use } from '../../helpers/use.js';

const home = use(openCliHome());

interface Checks {
  ok: boolean;
  checks: { name: string; ok: boolean; detail: string; hint: string | null }[];
}

const find = (stdout: string, name: string) =>
  (JSON.parse(stdout) as Checks).checks.find((check) => check.name === name)!;

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

describe('bsvc doctor', () => {
  it('is well before the first use, and changes nothing', async () => {
    const fresh = openCliHome();
    const { code, stdout } = await fresh.bsvc(['doctor', '--json']);
    expect({ code, ok: (JSON.parse(stdout) as Checks).ok }).toEqual({ code: 0, ok: true });
    expect((await fresh.bsvc(['doctor'])).stdout).toContain('does not exist yet');
    fresh.remove();
  });

  it('checks settings, data directory, database, migrations and indexes', async () => {
    await home.bsvc(['project', 'create', 'shop']);
    await home.bsvc(['collection', 'add', 'posts', '--project', 'shop', '--field', 'a:String&']);
    const { code, stdout } = await home.bsvc(['doctor', '--json']);
    const { ok, checks } = JSON.parse(stdout) as Checks;
    expect({ code, ok }).toEqual({ code: 0, ok: true });
    expect(checks.map(({ name }) => name)).toEqual([
      'node',
      'settings',
      'data directory',
      'database',
      'data file',
      'kept',
      'master key',
      'migrations',
      'indexes',
      'changes',
      'access',
      'rules',
      'clock',
      'backups',
      'cache',
      'limits',
      'mail',
      'console',
    ]);
  });

  it.each([
    [
      {},
      ['without a user 100 requests in 15 minutes', '20 sign-ins in 15 minutes', 'each signed-in user 3000 requests'],
    ],
    [{ BSVC_AUTH_RATE_LIMIT: '500/1h' }, ['500 sign-ins in 1 hour (BSVC_AUTH_RATE_LIMIT), shared by everyone behind']],
    [
      { BSVC_RATE_LIMIT: 'off', BSVC_AUTH_RATE_LIMIT: 'off' },
      ['without a user any number', 'any number of sign-ins', 'each signed-in user any number of requests'],
    ],
  ])('says what the limits mean for those behind one address: %j', async (env, said) => {
    const { stdout } = await home.bsvc(['doctor', '--json'], { env });
    for (const part of said) expect(find(stdout, 'limits').detail).toContain(part);
  });

  it.each([
    [{}, 'on this machine only', null],
    [{ BSVC_HOST: '0.0.0.0' }, 'listens on 0.0.0.0, and no HTTPS address is set', 'unencrypted'],
    [{ BSVC_HOST: '::', BSVC_PUBLIC_URL: 'http://api.example.com' }, 'no HTTPS address is set', 'unencrypted'],
    [{ BSVC_HOST: '0.0.0.0', BSVC_PUBLIC_URL: 'https://api.example.com' }, 'https://api.example.com/console', null],
  ])('warns of a console that is reached over a network without https: %j', async (env, detail, hint) => {
    const { code, stdout } = await home.bsvc(['doctor', '--json'], { env });
    const check = find(stdout, 'console');
    expect([code, check.ok, check.detail]).toEqual([0, true, expect.stringContaining(detail)]);
    expect(check.hint).toEqual(hint && expect.stringContaining(hint));
  });

  it('says nothing of a console that is off', async () => {
    const { stdout } = await home.bsvc(['doctor', '--json'], { env: { BSVC_HOST: '0.0.0.0', BSVC_CONSOLE: 'off' } });
    expect(find(stdout, 'console')).toBeUndefined();
  });

  it('names the projects whose cookies do not count on other sites, as they admit every origin', async () => {
    const env = { BSVC_CROSS_SITE_COOKIES: 'true' };
    const open = await home.bsvc(['doctor', '--json'], { env });
    expect([open.code, find(open.stdout, 'cross-site cookies')]).toEqual([
      1,
      {
        name: 'cross-site cookies',
        ok: false,
        detail: 'they do not count for projects that admit every origin (*): shop',
        hint: 'Name the origins of its pages: bsvc project update shop --allowed-domain https://app.example.com',
      },
    ]);
    await home.bsvc(['project', 'update', 'shop', '--allowed-domain', 'https://app.example.com']);
    const named = await home.bsvc(['doctor', '--json'], { env });
    expect([named.code, find(named.stdout, 'cross-site cookies').ok]).toEqual([0, true]);
  });

  it('asks Redis, and is exit 3 when it does not answer', async () => {
    const refused = await home.bsvc(['doctor', '--json'], { env: { REDIS_URL: 'redis://127.0.0.1:1' } });
    expect(refused.code).toBe(3);
    // The table says it; no line of a log does before it.
    const [line, json, ...others] = refused.stderr.trim().split('\n');
    expect([line, JSON.parse(json!), others]).toEqual([
      'bsvc: Unhealthy: cache. The report says what to do.',
      { success: false, code: 'UNHEALTHY', message: 'Unhealthy: cache. The report says what to do.' },
      [],
    ]);
    expect(find(refused.stdout, 'cache')).toMatchObject({
      ok: false,
      detail: expect.stringContaining('ECONNREFUSED') as string,
      hint: expect.stringContaining('REDIS_URL') as string,
    });
    const redis = createServer((socket) => {
      // Enough of the protocol for a PING: one answer for each command of a packet.
      socket.on('data', (text) => socket.write('+PONG\r\n'.repeat(String(text).match(/^\*\d/gm)?.length ?? 0)));
    });
    const port = await listen(redis);
    const { stdout } = await home.bsvc(['doctor', '--json'], { env: { REDIS_URL: `redis://127.0.0.1:${port}` } });
    redis.close();
    expect(find(stdout, 'cache')).toMatchObject({ ok: true, detail: 'Redis answers' });
  });

  it('says why a Redis refuses', async () => {
    const redis = createServer((socket) => {
      socket.on('data', () => socket.write('-WRONGPASS invalid username-password pair or user is disabled.\r\n'));
    });
    const port = await listen(redis);
    const env = { REDIS_URL: `redis://:guess@127.0.0.1:${port}` };
    const { code, stdout } = await home.bsvc(['doctor', '--json'], { env });
    redis.close();
    expect([code, find(stdout, 'cache').detail]).toEqual([
      3,
      'Redis does not answer (WRONGPASS invalid username-password pair or user is disabled.)',
    ]);
  });

  it('tries the key of the mail provider, or the mail server, and sends nothing', async () => {
    const provider = await startMailProviderDouble();
    const env = { RESEND_API_KEY: 're_good', RESEND_BASE_URL: provider.url, BSVC_MAIL_FROM: 'a@b.example' };
    const good = await home.bsvc(['doctor', '--json'], { env });
    expect(find(good.stdout, 'mail')).toMatchObject({
      ok: true,
      detail: expect.stringContaining('a@b.example') as string,
    });
    await provider.close();
    const gone = await home.bsvc(['doctor', '--json'], { env });
    expect({ code: gone.code, mail: find(gone.stdout, 'mail') }).toMatchObject({ code: 1, mail: { ok: false } });
    const smtp = await home.bsvc(['doctor', '--json'], { env: { BSVC_SMTP_URL: 'smtp://127.0.0.1:1' } });
    expect(find(smtp.stdout, 'mail')).toMatchObject({
      ok: false,
      hint: expect.stringContaining('BSVC_SMTP_URL') as string,
    });
  });

  it('tells that the clock stands before what was stored last', async () => {
    const late = openCliHome();
    const app = await openTestApp({
      settings: { BSVC_DATA_DIR: join(late.dir, 'data') },
      clock: createFakeClock(Date.now() + 3_600_000),
    });
    await withAuditEntry(app.app, { actor: 'a', action: 'key create', input: {} }, () => Promise.resolve());
    await app.close();
    const { code, stdout } = await late.bsvc(['doctor', '--json']);
    expect({ code, clock: find(stdout, 'clock') }).toMatchObject({ code: 1, clock: { ok: false } });
    late.remove();
  });

  it('is not well while a restore has not ended, and says what to do', async () => {
    const half = openCliHome();
    const { app, close } = await openTestApp({ settings: { BSVC_DATA_DIR: join(half.dir, 'data') } });
    await beginRestore(app.db);
    await close();
    const { code, stdout } = await half.bsvc(['doctor', '--json']);
    expect({ code, database: find(stdout, 'database') }).toMatchObject({
      code: 1,
      database: { ok: false, detail: expect.stringContaining('run "bsvc restore" again') as string },
    });
    half.remove();
  });

  it('records with --fix that it was there, and leaves no trace without', async () => {
    await home.bsvc(['doctor']);
    expect((await home.bsvc(['audit', '--action', 'doctor', '--json'])).json()).toEqual([]);
    await home.bsvc(['doctor', '--fix']);
    expect((await home.bsvc(['audit', '--action', 'doctor', '--json'])).json()).toMatchObject([{ outcome: 'done' }]);
  });

  it('corrects with --fix how much storage a project uses', async () => {
    const restored = openCliHome();
    await restored.bsvc(['project', 'create', 'shop']);
    const { app, close } = await openTestApp({ settings: { BSVC_DATA_DIR: join(restored.dir, 'data') } });
    const [{ id }] = (await restored.bsvc(['project', 'list', '--json'])).json<[{ id: string }]>();
    const usage = { _id: new ObjectId(id), bytes: 12_345, revision: 0 };
    await usageStore(app).insertOne(usage);
    await close();
    const { stdout } = await restored.bsvc(['doctor', '--fix', '--json']);
    expect(find(stdout, 'storage').detail).toContain('corrected shop: 0 bytes instead of');
    const shown = (await restored.bsvc(['project', 'show', 'shop', '--json'])).json();
    expect(shown).toMatchObject({ usage: { storage: { bytes: 0 } } });
    restored.remove();
  });

  it('says whether the wire protocol is answered, which serve opens', async () => {
    const socket = join(home.dir, 'wire.sock');
    const env = { BSVC_DATA_DIR: join(home.dir, 'data'), BSVC_ENGINE_LISTEN: `unix:${socket}`, BSVC_LOG_LEVEL: 'warn' };
    expect(find((await home.bsvc(['doctor', '--json'], { env })).stdout, 'wire protocol').detail).toContain('closed');
    const service = await startService(['serve', '--port', '0', '--no-worker'], env);
    expect(find((await home.bsvc(['doctor', '--json'], { env })).stdout, 'wire protocol').detail).toContain('open at');
    const client = await MongoClient.connect(`mongodb://${encodeURIComponent(socket)}`);
    expect(await client.db('bsvc').collection('projects').countDocuments({ name: 'shop' })).toBe(1);
    await client.close();
    expect(await service.stop()).toBe(0);
    const foreign = await home.bsvc(['serve', '--port', '0'], { env: { BSVC_ENGINE_LISTEN: '0.0.0.0:0' } });
    expect({ code: foreign.code, stderr: foreign.stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining('loopback only') as string,
    });
  });

  it('says what to do about a wrong setting', async () => {
    const { code, stdout, stderr } = await home.bsvc(['doctor', '--json'], { env: { BSVC_PORT: 'x' } });
    const { ok, checks } = JSON.parse(stdout) as Checks;
    expect({ code, ok }).toEqual({ code: 1, ok: false });
    expect(checks.at(-1)).toMatchObject({
      name: 'settings',
      ok: false,
      detail: expect.stringContaining('BSVC_PORT') as string,
    });
    expect(stderr).toContain('Unhealthy: settings');
  });

  it('warns of a data directory that others can read', async () => {
    const open = openCliHome();
    mkdirSync(join(open.dir, 'data'));
    chmodSync(join(open.dir, 'data'), 0o755);
    const { code, stdout } = await open.bsvc(['doctor']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining('chmod 700') as string });
    open.remove();
  });

  it('is exit 3 when the database cannot be reached', async () => {
    const env = { MONGODB_URI: 'mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100', BSVC_SECRET_KEY: 'k'.repeat(32) };
    const { code, stdout } = await home.bsvc(['doctor', '--json'], { env });
    expect(code).toBe(3);
    expect(find(stdout, 'database')).toMatchObject({ ok: false });
  });
});

describe('bsvc migrate', () => {
  it('has nothing to do on an embedded store that was used', async () => {
    const ids = MIGRATIONS.map(({ id }) => id);
    await home.bsvc(['project', 'list']);
    const status = await home.bsvc(['migrate', 'status', '--json']);
    expect(status.json()).toEqual({ applied: ids, pending: [], unknown: [] });
    expect((await home.bsvc(['migrate', '--json'])).json()).toEqual({ applied: [], pending: [] });
  });

  it('tells with --dry-run what it would do, and does it once', async () => {
    const ids = MIGRATIONS.map(({ id }) => id);
    const fresh = openCliHome();
    expect((await fresh.bsvc(['migrate', 'up', '--dry-run', '--json'])).json()).toEqual({ applied: [], pending: ids });
    expect((await fresh.bsvc(['migrate', 'up', '--json'])).json()).toEqual({ applied: ids, pending: [] });
    expect((await fresh.bsvc(['migrate', 'up', '--json'])).json()).toEqual({ applied: [], pending: [] });
    fresh.remove();
  });
});

describe('bsvc service install', () => {
  it('writes units that run this installation on this data', async () => {
    const words = ['service', 'install', '--out', 'units', '--worker', '--env-file', 'my.env', '--json'];
    writeFileSync(join(home.dir, 'my.env'), '');
    const { code, stdout } = await home.bsvc(words);
    const dir = join(home.dir, 'units');
    expect({ code, answer: JSON.parse(stdout) as object }).toEqual({
      code: 0,
      answer: { files: [join(dir, 'bsvc.service'), join(dir, 'bsvc-worker.service')] },
    });
    const server = readFileSync(join(dir, 'bsvc.service'), 'utf8');
    expect(server).toMatch(
      /^ExecStart=\S*node -- \S+\/bin\/bsvc\.js serve --no-worker --data-dir \S+\/data --env-file \S+\/my\.env$/m,
    );
    expect(server).not.toMatch(/\{\w+\}/);
    expect(readFileSync(join(dir, 'bsvc-worker.service'), 'utf8')).toMatch(/^ExecStart=.* worker --data-dir/m);
  });

  it('writes HTTPS and a front end with them, as the guide shows', async () => {
    const words = ['service', 'install', '--out', 'app', '--domain', 'App.example.com', '--public', 'dist', '--spa'];
    const { json } = await home.bsvc([...words, '--json']);
    const dir = join(home.dir, 'app');
    expect(json()).toEqual({ files: [join(dir, 'bsvc.service'), join(dir, 'Caddyfile')] });
    const unit = readFileSync(join(dir, 'bsvc.service'), 'utf8');
    expect(unit).toContain('\nEnvironment=BSVC_PUBLIC_URL=https://app.example.com BSVC_TRUST_PROXY=1\n');
    expect(unit).toContain(` serve --public ${join(home.dir, 'dist')} --spa --data-dir `);
    const guide = readFileSync(join(import.meta.dirname, '../../../templates/docs/deploy.md'), 'utf8');
    expect(guide).toContain(`\`\`\`caddyfile\n${readFileSync(join(dir, 'Caddyfile'), 'utf8')}\`\`\``);
    expect((await home.bsvc(['service', 'install', '--domain', 'https://app.example.com'])).code).toBe(2);
  });

  it('does not replace a unit that somebody changed, unless --force', async () => {
    const file = join(home.dir, 'units', 'bsvc.service');
    expect((await home.bsvc(['service', 'install', '--out', 'units', '--worker', '--env-file', 'my.env'])).code).toBe(
      0,
    );
    writeFileSync(file, '# mine\n');
    expect((await home.bsvc(['service', 'install', '--out', 'units'])).code).toBe(1);
    expect(readFileSync(file, 'utf8')).toBe('# mine\n');
    expect((await home.bsvc(['service', 'install', '--out', 'units', '--force'])).code).toBe(0);
  });

  it.runIf(process.getuid?.() === 0)(
    'gives system units a user of their own that writes to its data alone',
    async () => {
      const { stdout } = await home.bsvc(['service', 'install', '--print', '--user', 'shop']);
      const lines = stdout.split('\n');
      for (const line of ['User=shop', 'ProtectSystem=strict', 'NoNewPrivileges=true', 'CapabilityBoundingSet='])
        expect(lines).toContain(line);
      expect(stdout).toMatch(new RegExp(`^ReadWritePaths=${join(home.dir, 'data')}$`, 'm'));
    },
  );

  const judge = spawnSync('systemd-analyze', ['--version']).status === 0;
  it.runIf(judge)('writes units that systemd takes as they are', async () => {
    expect((await home.bsvc(['service', 'install', '--out', 'judged', '--worker'])).code).toBe(0);
    for (const file of ['bsvc.service', 'bsvc-worker.service']) {
      const { status, stderr } = spawnSync('systemd-analyze', ['verify', join(home.dir, 'judged', file)], {
        encoding: 'utf8',
      });
      expect({ file, status, stderr }).toEqual({ file, status: 0, stderr: '' });
    }
  });

  it('quotes what systemd would split or expand', async () => {
    const { stdout } = await runCli(['service', 'install', '--print', '--data-dir', '/srv/a b/50%$x'], {
      cwd: home.dir,
    });
    expect(stdout).toContain('--data-dir "/srv/a b/50%%$$x"');
  });
});
