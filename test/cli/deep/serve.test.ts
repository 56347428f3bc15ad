import { once } from 'node:events';
import { readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.js';
import { runBinary, startService, type RunningService } from '../../helpers/run-binary.js';
import { openTempDir } from '../../helpers/temp-dir.js';
import { use } from '../../helpers/use.js';

const running: RunningService[] = [];
const env = (): Record<string, string> => ({ BSVC_DATA_DIR: dir.path, BSVC_PROJECT: 'shop', BSVC_LOG_LEVEL: 'warn' });
const serve = async (...words: string[]): Promise<RunningService> => {
  const service = await startService(['serve', '--port', '0', ...words], env());
  running.push(service);
  return service;
};
const bsvc = (...words: string[]) => runBinary(words, { env: env() });

const dir = use(await openTempDir());
afterEach(async () => {
  for (const service of running.splice(0)) await service.stop('SIGKILL');
});

describe('bsvc serve --demo', () => {
  it('fills an empty store with a project, posts and keys that work, once', async () => {
    const first = await serve('--demo');
    const { demo } = first.ready as unknown as { demo: { keys: { publishable: string }; link: string } };
    const reply = await fetch(`${first.ready.url}/api/data/posts?limit=3`, {
      headers: { 'x-api-key': demo.keys.publishable },
    });
    expect(await reply.json()).toMatchObject({ success: true, data: { total: 10, limit: 3 } });
    const enter = () =>
      fetch(`${first.ready.url}/api/admin/login/link`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-bsvc-console': '1', 'sec-fetch-site': 'same-origin' },
        body: JSON.stringify({ link: demo.link }),
      });
    expect([(await enter()).status, (await enter()).status]).toEqual([200, 401]);
    expect(await first.stop()).toBe(0);
    const second = await serve('--demo');
    expect(Object.keys(second.ready)).toEqual(['url', 'pid']);
  });

  it('prints the address and a line to paste for a person', async () => {
    const other = await openTempDir();
    const outcome = await runBinary(['serve', '--demo', '--port', '0'], {
      env: { BSVC_DATA_DIR: other.path },
      onStart: (child) => child.stdout!.once('data', () => child.kill('SIGTERM')),
    });
    expect(outcome.code).toBe(0);
    expect(outcome.stdout).toMatch(
      /^bsvc is listening on http:\/\/localhost:\d+\nDocumentation: http:\/\/localhost:\d+\/api\/docs\nConsole: http:\/\/localhost:\d+\/console\/#\/enter\/bsvc_link_[\w-]{43}\n/,
    );
    expect(outcome.stdout).toMatch(
      / {2}curl -w '\\n' -H 'x-api-key: pk_live_[\w-]{43}' 'http:\/\/localhost:\d+\/api\/data\/posts/,
    );
    const again = await runBinary(['serve', '--demo', '--port', '0'], {
      env: { BSVC_DATA_DIR: other.path },
      onStart: (child) => child.stdout!.once('data', () => child.kill('SIGTERM')),
    });
    expect(again.stdout).toMatch(/\nConsole: http:\/\/localhost:\d+\/console\/#\/enter\/bsvc_link_[\w-]{43}\n/);
    expect(again.stdout).toContain(`export BSVC_DATA_DIR='${other.path}'`);
    await other.remove();
  });

  it.each([
    { name: 'empty', options: [] },
    { name: 'demo', options: ['--demo'] },
  ])('writes one JSON value a line with BSVC_LOG_FORMAT=json ($name)', async ({ options }) => {
    const other = await openTempDir();
    const { stdout, stderr } = await runBinary(['serve', '--port', '0', ...options], {
      env: { BSVC_DATA_DIR: other.path, BSVC_LOG_FORMAT: 'json' },
      onStart: (child) => child.stdout!.once('data', () => child.kill('SIGTERM')),
    });
    const lines = `${stdout}${stderr}`.trimEnd().split('\n');
    const messages = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
    expect(messages).toContain('bsvc is listening');
    await other.remove();
  });

  it('says on an empty store what to do next', async () => {
    const other = await openTempDir();
    const { stdout } = await runBinary(['serve', '--port', '0'], {
      env: { BSVC_DATA_DIR: other.path },
      onStart: (child) => child.stdout!.once('data', () => child.kill('SIGTERM')),
    });
    expect(stdout).toContain('bsvc project create shop');
    await other.remove();
  });
});

describe('bsvc serve', () => {
  it('is named by commands at the port that it took', async () => {
    const { port } = new URL((await serve()).ready.url);
    expect((await bsvc('project', 'create', 'shop')).code).toBe(0);
    const provider = [
      '--client-id',
      'id',
      '--client-secret-env',
      'BSVC_PROJECT',
      '--redirect-url',
      'https://a.test/in',
    ];
    for (const [words, named] of [
      [['collection', 'add', 'cards', '--field', 'title:String'], `http://localhost:${port}/api/data/cards`],
      [
        ['user', 'social', 'set', 'github', ...provider],
        `http://localhost:${port}/api/userAuth/social/github/callback`,
      ],
    ] as const) {
      const { stdout, stderr } = await bsvc(...words);
      expect([stderr, stdout]).toEqual(['', expect.stringContaining(named) as string]);
    }
  });

  it('stops with exit 0 on SIGTERM, on SIGINT and on SIGHUP', async () => {
    expect(await (await serve()).stop('SIGTERM')).toBe(0);
    expect(await (await serve()).stop('SIGHUP')).toBe(0);
    expect(await (await serve('--no-worker')).stop('SIGINT')).toBe(0);
  });

  it.each(['serve', 'worker'])('%s ends with exit 3 when its data directory is gone, and says why', async (what) => {
    const other = await openTempDir();
    const data = join(other.path, 'data');
    const service = await startService([what], { BSVC_DATA_DIR: data, BSVC_PORT: '0', BSVC_LOG_LEVEL: 'warn' });
    running.push(service);
    const ended = once(service.process, 'exit');
    await rename(data, join(other.path, 'elsewhere'));
    const [code, signal] = (await ended) as [number | null, string | null];
    const named = expect.stringContaining(join(data, 'bsvc.mdb')) as string;
    expect({ code, signal, stderr: service.stderr() }).toEqual({ code: 3, signal: null, stderr: named });
    await other.remove();
  });

  it('is exit 1 when the port is taken, and names it', async () => {
    const { ready } = await serve();
    const { port } = new URL(ready.url);
    const { code, stderr } = await bsvc('serve', '--port', port);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(port) as string });
  });

  it('takes what commands do into effect within a second, while it runs', async () => {
    const { ready } = await serve();
    await bsvc('project', 'create', 'shop', '--if-not-exists');
    const secret = (await bsvc('key', 'create', '--type', 'secret', '--quiet')).stdout.trim();
    const other = (await bsvc('key', 'create', '--type', 'secret', '--quiet')).stdout.trim();
    const call = async (path: string, key: string, body?: object): Promise<{ status: number; body: object }> => {
      const reply = await fetch(`${ready.url}/api/data/${path}`, {
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
      });
      return { status: reply.status, body: (await reply.json()) as object };
    };
    expect((await call('notes', secret)).status).toBe(404);

    await bsvc('collection', 'add', 'notes', '--field', 'n:Number!');
    expect((await call('notes', secret, { n: 1 })).status).toBe(201);
    expect((await call('notes', secret, { n: 2, extra: true })).status).toBe(400);

    await bsvc('collection', 'edit', 'notes', '--add-field', 'extra:Boolean');
    await within(async () => (await call('notes', secret, { n: 2, extra: true })).status === 201);

    await runBinary(['data', 'import', 'notes', '-', '--format', 'ndjson'], { env: env(), stdin: '{"n":3}\n' });
    expect((await call('notes', secret)).body).toMatchObject({ data: { total: 3 } });

    expect((await call('notes', other)).status).toBe(200);
    const keys = JSON.parse((await bsvc('key', 'list', '--json')).stdout) as { id: string; last4: string }[];
    const { id } = keys.find(({ last4 }) => other.endsWith(last4))!;
    await bsvc('key', 'revoke', id, '--yes');
    await within(async () => (await call('notes', other)).status === 401);

    await bsvc('collection', 'drop', 'notes', '--yes');
    await within(async () => (await call('notes', secret)).status === 404);

    await bsvc('project', 'delete', 'shop', '--yes');
    await within(async () => (await call('notes', secret)).status === 401);
  });
});

describe('bsvc serve --processes', () => {
  // The processes are looked up in /proc.
  it.runIf(process.platform === 'linux')(
    'shares one port among processes, replaces one that dies, and stops all of them',
    async () => {
      const { ready, stop, stderr } = await serve('--processes', '2');
      const health = async (): Promise<number> => (await fetch(`${ready.url}/api/health`)).status;
      expect(await health()).toBe(200);
      const shares = await childrenOf(ready.pid);
      expect(shares).toHaveLength(2);
      process.kill(shares[0]!, 'SIGKILL');
      await eventually('it is replaced', async () => {
        const now = await childrenOf(ready.pid);
        return now.length === 2 && !now.includes(shares[0]!) && (await health()) === 200;
      });
      expect(stderr()).toContain('is replaced');
      expect(await stop()).toBe(0);
      expect(await childrenOf(ready.pid)).toEqual([]);
    },
  );

  it('says once what is wrong with the address', async () => {
    const { ready } = await serve();
    const { code, stderr } = await bsvc('serve', '--processes', '2', '--port', new URL(ready.url).port);
    expect(code).toBe(1);
    expect(stderr.match(/is already taken/g)).toHaveLength(1);
  });
});

describe('a second bsvc serve on one data directory', () => {
  it('says in its log that limits are counted twice, and no later one does when both are gone', async () => {
    const said = ({ stderr }: RunningService): boolean => stderr().includes('counts rate limits for itself');
    const first = await serve('--no-worker');
    const second = await serve('--no-worker');
    await eventually('it is said', () => said(second));
    expect(said(first)).toBe(false);
    // One of them in order, the other as by a crash.
    expect(await first.stop('SIGTERM')).toBe(0);
    await second.stop('SIGKILL');
    const third = await serve('--no-worker');
    expect(await third.stop('SIGTERM')).toBe(0);
    expect(said(third)).toBe(false);
  });
});

describe('a running bsvc serve', () => {
  it('is where commands beside it say that the service is, as long as it runs', async () => {
    await bsvc('project', 'create', 'shop', '--if-not-exists');
    const { ready, stop } = await serve();
    const address = `http://localhost:${new URL(ready.url).port}`;
    const add = (name: string) => bsvc('collection', 'add', name, '--flexible');
    expect((await add('beside')).stdout).toContain(` ${address}/api/data/beside`);
    await stop('SIGTERM');
    expect((await add('alone')).stdout).toContain(' http://localhost:4000/api/data/alone');
  });

  it('tells a second one on its port of that alone', async () => {
    const { ready } = await serve();
    const { code, stdout, stderr } = await bsvc('serve', '--port', new URL(ready.url).port);
    expect([code, stdout, stderr.split('\n')]).toEqual([
      1,
      '',
      [expect.stringMatching(/^bsvc: Port \d+ is already/), ''],
    ]);
  });
});

describe('bsvc worker', () => {
  it('tells when it is ready and stops with exit 0', async () => {
    const worker = await startService(['worker'], env());
    running.push(worker);
    expect(worker.ready).toEqual({ pid: worker.process.pid });
    expect(await worker.stop()).toBe(0);
  });

  it('answers health and metrics, and nothing else, on a port of its own when it is given one', async () => {
    const worker = await startService(['worker', '--port', '0'], {
      ...env(),
      BSVC_ADMIN_TOKEN: 'admin-token-of-workers',
    });
    running.push(worker);
    const ask = (path: string) =>
      fetch(worker.ready.url + path, { headers: { authorization: 'Bearer admin-token-of-workers' } });
    expect((await ask('/api/health/ready')).status).toBe(200);
    expect(await (await ask('/api/health')).json()).toMatchObject({ status: 'ok' });
    expect(await (await ask('/metrics')).text()).toContain('bsvc_jobs{state="queued"}');
    expect((await fetch(`${worker.ready.url}/metrics`)).status).toBe(401);
    expect((await ask('/api/data/notes')).status).toBe(404);
    expect(await worker.stop()).toBe(0);
  });
});

async function childrenOf(pid: number): Promise<number[]> {
  const found: number[] = [];
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = await readFile(`/proc/${entry}/stat`, 'utf8').catch(() => '');
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(parent) === pid && state !== 'Z') found.push(Number(entry));
  }
  return found;
}

/** As soon as the contract promises. */
const within = (condition: () => Promise<boolean>) => eventually('it takes effect', condition, 1000);
