import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.js';
import { findFreePort } from '../helpers/listen.js';
import { send, startLoad } from '../helpers/load.js';
import { childrenOf, isAlive } from '../helpers/process-tree.js';
import { runOrThrow, startService, type RunningService } from '../helpers/run-binary.js';
import { holdStoreLock } from '../helpers/store-lock.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

let dir: TempDir;
const running: RunningService[] = [];
beforeEach(async () => {
  dir = await openTempDir();
});
afterEach(async () => {
  for (const service of running.splice(0)) await service.stop('SIGTERM');
  await dir.remove();
});

const env = (more: Record<string, string> = {}): Record<string, string> => ({
  BSVC_DATA_DIR: dir.path,
  BSVC_LOG_LEVEL: 'error',
  BSVC_PROJECT: 'shop',
  ...more,
});
const serve = async (processes: number, more: Record<string, string> = {}, port = 0): Promise<RunningService> => {
  const service = await startService(['serve', '--port', String(port), '--processes', String(processes)], env(more));
  running.push(service);
  return service;
};
const bsvc = (...words: string[]): Promise<string> => runOrThrow(words, env());

describe('bsvc serve --processes 4', () => {
  let service: RunningService;
  let store: TempDir;
  beforeAll(async () => {
    store = await openTempDir();
    const settings = {
      BSVC_DATA_DIR: store.path,
      BSVC_LOG_LEVEL: 'error',
      BSVC_RATE_LIMIT: '100/15m',
      BSVC_TRUST_PROXY: '1',
      BSVC_ADMIN_TOKEN: 'admin-token-for-metrics',
    };
    service = await startService(['serve', '--port', '0', '--processes', '4'], settings);
  });
  afterAll(async () => {
    await service.stop('SIGTERM');
    await store.remove();
  });

  it('meets a rate limit exactly', async () => {
    const statuses: number[] = [];
    const headers = { 'x-forwarded-for': '203.0.113.1' };
    // A new connection each, so that all processes get their share.
    const client = async (): Promise<void> => {
      for (let at = 0; at < 20; at++) statuses.push(await send(`${service.ready.url}/api/data/x`, false, headers));
    };
    await Promise.all(Array.from({ length: 16 }, client));
    expect(statuses.filter((status) => status === 401)).toHaveLength(100);
    expect(statuses.filter((status) => status === 429)).toHaveLength(220);
  });

  it('answers /metrics for all of them, whichever is asked', async () => {
    const { ready } = service;
    for (let at = 0; at < 20; at++) await send(`${ready.url}/api/health/live`, false, {});
    const headers = { authorization: 'Bearer admin-token-for-metrics', connection: 'close' };
    const line = 'bsvc_http_request_duration_seconds_count{method="GET",route="/api/health/live",status="200"} 20\n';
    // One that is too busy to answer within a second is left out.
    for (let at = 0; at < 4; at++)
      await eventually('all are counted', async () =>
        (await (await fetch(`${ready.url}/metrics`, { headers })).text()).includes(line),
      );
  });

  it('refuses a revoked key everywhere within a second', async () => {
    const beside = (...words: string[]): Promise<string> => runOrThrow(words, env({ BSVC_DATA_DIR: store.path }));
    await beside('project', 'create', 'shop');
    await beside('collection', 'add', 'notes', '--field', 'n:Number');
    const key = await beside('key', 'create', '--type', 'secret', '--quiet');
    let address = 0;
    const list = (): Promise<number> =>
      send(`${service.ready.url}/api/data/notes`, false, {
        'x-api-key': key,
        'x-forwarded-for': `198.51.100.${++address % 250}`,
      });
    expect(await Promise.all(Array.from({ length: 16 }, list))).toEqual(Array(16).fill(200));
    const keys = JSON.parse(await beside('key', 'list', '--json')) as { id: string; last4: string }[];
    await beside('key', 'revoke', keys.find(({ last4 }) => key.endsWith(last4))!.id, '--yes');
    const refused = async (): Promise<boolean> =>
      (await Promise.all(Array.from({ length: 16 }, list))).every((status) => status === 401);
    await eventually('no process takes it', refused, 1000);
  });

  it.runIf(process.platform === 'linux')(
    'fails no request when one of its processes is killed, but for those under way there',
    async () => {
      const { ready, stderr } = service;
      const load = startLoad(`${ready.url}/api/health/live`, { clients: 8 });
      await eventually('there is load', () => load.replies() > 100);
      process.kill(childrenOf(ready.pid)[0]!, 'SIGKILL');
      await eventually('its replacement is started', () => stderr().includes('is replaced'));
      const before = load.replies();
      await eventually('the others serve on', () => load.replies() > before + 100);
      load.stop();
      const { failed, statuses } = await load.ended;
      expect(failed.length).toBeLessThanOrEqual(8);
      expect(Object.keys(statuses)).toEqual(['200']);
    },
  );
});

/** Connections to a port of this machine, as Linux lists them on the side of the clients. */
function countConnections(port: string): number {
  const remote = `0100007F:${Number(port).toString(16).toUpperCase().padStart(4, '0')}`;
  const ESTABLISHED = '01';
  const rows = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((row) => row.trim().split(/\s+/));
  return rows.filter((row) => row[2] === remote && row[3] === ESTABLISHED).length;
}

const FUTEX = '202 ';
const waitsForLock = (pid: number): boolean => readFileSync(`/proc/${pid}/syscall`, 'utf8').startsWith(FUTEX);

describe.runIf(process.platform === 'linux' && process.arch === 'x64')('bsvc serve --processes 2, killed', () => {
  it('leaves no process behind, even when they wait for a lock of the store that nobody frees', async () => {
    const { ready } = await serve(2);
    await bsvc('project', 'create', 'shop');
    await bsvc('collection', 'add', 'notes', '--flexible');
    const key = await bsvc('key', 'create', '--type', 'secret', '--quiet');
    const shares = childrenOf(ready.pid);
    expect(shares).toHaveLength(2);
    const holder = await holdStoreLock(dir.path);
    try {
      const headers = { 'x-api-key': key, 'content-type': 'application/json', connection: 'close' };
      const writes = Array.from({ length: 8 }, () =>
        fetch(`${ready.url}/api/data/notes`, { method: 'POST', headers, body: '{}' }).catch(() => null),
      );
      await eventually('all of them wait for the lock', () => shares.every(waitsForLock));
      process.kill(ready.pid, 'SIGKILL');
      await eventually('they end', () => !shares.some(isAlive));
      await Promise.all(writes);
    } finally {
      holder.kill('SIGKILL');
    }
  });
});

describe.runIf(process.platform === 'linux')('bsvc serve --processes 2, whose processes end', () => {
  /** The pauses after which ended processes were replaced, as the log tells. */
  const pauses = ({ stderr }: RunningService): number[] =>
    [...stderr().matchAll(/"pauseMs":(\d+)/g)].map(([, ms]) => Number(ms));
  /** On a busy machine a start takes long. */
  const answers = async (url: string): Promise<boolean> =>
    (await send(`${url}/api/health/live`, false, {}).catch(() => 0)) === 200;

  it('starts although they are killed while they start', async () => {
    const killed = new Set<number>();
    const service = await startService(['serve', '--port', '0', '--processes', '2'], env(), {
      onStart: (child) => {
        const watch = setInterval(() => {
          for (const share of childrenOf(child.pid!)) {
            if (killed.size >= 3 || killed.has(share)) continue;
            killed.add(share);
            process.kill(share, 'SIGKILL');
          }
          if (killed.size >= 3) clearInterval(watch);
        }, 10);
        child.once('exit', () => clearInterval(watch));
      },
    });
    running.push(service);
    // On a busy machine one may be ready before it is seen, and then be killed.
    await eventually('three were killed', () => killed.size === 3);
    await eventually('each is replaced', () => pauses(service).length === 3);
    await eventually('there are others that answer', () => answers(service.ready.url));
    expect(pauses(service)).toEqual([100, 100, 100]);
  });

  it('replaces those that are killed without making them wait, however often', async () => {
    const service = await serve(2, {}, await findFreePort());
    for (let round = 1; round <= 2; round++) {
      const shares = childrenOf(service.ready.pid);
      for (const share of shares) process.kill(share, 'SIGKILL');
      await eventually('they are gone', () => !shares.some(isAlive));
      await eventually('there are others that answer', () => answers(service.ready.url));
      await eventually('there are as many', () => childrenOf(service.ready.pid).length === 2);
    }
    expect(pauses(service).length).toBeGreaterThanOrEqual(4);
    expect(new Set(pauses(service))).toEqual(new Set([100]));
  });

  it('gives the connections that one was given which is stopped to another, so that no client notices', async () => {
    const service = await serve(2, { BSVC_WATCHDOG: '6s' }, await findFreePort());
    const [stopped] = childrenOf(service.ready.pid) as [number];
    process.kill(stopped, 'SIGSTOP');
    // It is given one of them, and the others go on by the other process.
    const requests = Array.from({ length: 8 }, () => send(`${service.ready.url}/api/health/live`, false, {}));
    expect(await Promise.all(requests)).toEqual(Array.from({ length: 8 }, () => 200));
    await eventually('it was ended', () => !isAlive(stopped));
    expect(service.stderr()).toContain('is stuck and is ended');
  });

  it('ends the connections that all of those had been given, so that no client waits for ever', async () => {
    const service = await serve(2, {}, await findFreePort());
    const shares = childrenOf(service.ready.pid);
    // They take nothing any more: what the supervisor gives them stays on the way.
    for (const share of shares) process.kill(share, 'SIGSTOP');
    const requests = Array.from({ length: 8 }, () =>
      send(`${service.ready.url}/api/health/live`, false, {}).catch((error: Error) => error.message),
    );
    const connected = (): number => countConnections(new URL(service.ready.url).port);
    await eventually('the connections stand', () => connected() >= 8);
    for (const share of shares) process.kill(share, 'SIGKILL');
    // Cut where no process was there any more, answered where a new one was there already.
    const ends = await Promise.all(requests);
    expect(ends.filter((end) => typeof end === 'number' && end !== 200)).toEqual([]);
    await eventually('there are others that answer', () => answers(service.ready.url));
  });

  it('tries those that cannot start ever more rarely, and serves again when they can', async () => {
    const service = await serve(2, {}, await findFreePort());
    const key = join(dir.path, 'secret.key');
    renameSync(key, `${key}.away`);
    writeFileSync(key, '');
    for (const share of childrenOf(service.ready.pid)) process.kill(share, 'SIGKILL');
    await eventually('the pause grows', () => pauses(service).some((ms) => ms >= 400));
    expect(service.process.exitCode).toBeNull();
    renameSync(`${key}.away`, key);
    await eventually('they serve again', () => answers(service.ready.url));
  });
});
