import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.js';
import { isAlive } from '../helpers/process-tree.js';
import { runOrThrow, startService, type RunningService } from '../helpers/run-binary.js';
import { holdStoreLock } from '../helpers/store-lock.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

const HANGS = 'the main thread hangs';
let dir: TempDir;
let env: Record<string, string>;
let service: RunningService | null;
beforeEach(async () => {
  dir = await openTempDir();
  service = null;
  env = {
    BSVC_DATA_DIR: dir.path,
    BSVC_LOG_LEVEL: 'error',
    BSVC_PROJECT: 'shop',
    BSVC_WATCHDOG: '3s',
  };
});
afterEach(async () => {
  await service?.stop('SIGKILL');
  await dir.remove();
});

describe.runIf(process.platform === 'linux')('the watchdog of a single bsvc serve', () => {
  it('ends the process by a signal and says why when its main thread waits for a lock that nobody frees', async () => {
    service = await startService(['serve', '--port', '0'], env);
    await runOrThrow(['project', 'create', 'shop'], env);
    await runOrThrow(['collection', 'add', 'notes', '--flexible'], env);
    const key = await runOrThrow(['key', 'create', '--type', 'secret', '--quiet'], env);
    const holder = await holdStoreLock(dir.path);
    try {
      const ended = once(service.process, 'close');
      const headers = { 'x-api-key': key, 'content-type': 'application/json', connection: 'close' };
      const write = fetch(`${service.ready.url}/api/data/notes`, { method: 'POST', headers, body: '{}' });
      await expect(write).rejects.toThrow();
      expect(await ended).toEqual([null, 'SIGKILL']);
      const line = service
        .stderr()
        .split('\n')
        .find((text) => text.includes(HANGS))!;
      expect(JSON.parse(line)).toMatchObject({ level: 60, process: service.ready.pid });
    } finally {
      holder.kill('SIGKILL');
    }
  });

  it('lets a process live that was stopped for longer than it may hang', async () => {
    service = await startService(['serve', '--port', '0'], env);
    const { pid, url } = service.ready;
    process.kill(pid, 'SIGSTOP');
    const stoppedAt = performance.now();
    await eventually('it has stood still for longer than that', () => performance.now() - stoppedAt > 7_000);
    process.kill(pid, 'SIGCONT');
    const goneOnAt = performance.now();
    await eventually('it has gone on for longer than that', async () => {
      expect((await fetch(`${url}/api/health/live`)).status).toBe(200);
      return performance.now() - goneOnAt > 4_000;
    });
    expect(service.stderr()).not.toContain(HANGS);
  });
});

/** A process whose main thread computes without end. */
const LOOP = `
  import { startWatchdog } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, '../../src/platform/processes/watchdog.ts')).href)};
  const [, patience, grace = '0'] = process.argv;
  startWatchdog({ patienceMs: Number(patience) || null, graceMs: Number(grace), endWithParent: false, format: 'text' });
  process.stdout.write('begun\\n', () => setImmediate(() => { for (;;); }));
`;
/** Processor time that the process has used, in seconds: its loop goes on. */
const spent = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[11]) / 100;

describe.runIf(process.platform === 'linux')('a watchdog', () => {
  const started: ChildProcess[] = [];
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
  });
  const loop = (...patience: string[]): ChildProcess => {
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', LOOP, ...patience]);
    // Unread, its end would never be told.
    child.stdout.resume();
    started.push(child);
    return child;
  };

  it('ends a process that computes without end', async () => {
    const child = loop('500');
    let stderr = '';
    child.stderr!.on('data', (text: Buffer) => (stderr += text.toString()));
    expect(await once(child, 'close')).toEqual([null, 'SIGKILL']);
    expect(stderr).toMatch(/^\d\d:\d\d:\d\d\.\d{3} fatal the main thread hangs.* process=\d+ hangsMs=\d+\n$/);
  });

  it('says first where it computes, and waits, where nobody starts it again', async () => {
    const child = loop('500', '3000');
    let stderr = '';
    child.stderr!.on('data', (text: Buffer) => (stderr += text.toString()));
    expect(await once(child, 'close')).toEqual([null, 'SIGKILL']);
    const [left, killed] = stderr.split('\n');
    expect(left).toMatch(/ fatal the main thread hangs: nothing is answered.* hangsMs=\d+ at=.*:\d+/);
    expect(left).not.toContain('native code');
    expect(Number(/hangsMs=(\d+)/.exec(killed!)![1])).toBeGreaterThanOrEqual(3_500);
  });

  it('that is switched off lets it compute', async () => {
    const child = loop('off');
    await once(child.stdout!, 'data');
    await eventually('it has computed for longer', () => spent(child.pid!) > 1);
    expect(isAlive(child.pid!)).toBe(true);
    expect(child.exitCode ?? child.signalCode).toBeNull();
  });
});
