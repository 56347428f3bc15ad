import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const OPEN = `
  const store = require('lmdb').open({ path: process.argv[1], noSubdir: true, keyEncoding: 'binary', encoding: 'binary', overlappingSync: false });
`;

const HOLD_LOCK = `${OPEN}
  store.transactionSync(() => {
    require('node:fs').writeSync(1, 'held');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
`;

// Where there is no /proc, it is believed that a process stops when it is told to.
const STOP_ANOTHER = `${OPEN}
  const { existsSync, readFileSync } = require('node:fs');
  const pid = Number(process.argv[2]);
  const stat = '/proc/' + pid + '/stat';
  store.transactionSync(() => {
    process.kill(pid, 'SIGSTOP');
    while (existsSync(stat) && !/\\) [TX]/.test(readFileSync(stat, 'utf8')));
  });
`;

const run = (script: string, dataDir: string, ...words: string[]): ChildProcess =>
  spawn(process.execPath, ['-e', script, join(dataDir, 'bsvc.mdb'), ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });

/**
 * Stops a process (SIGSTOP) while it does not hold the lock for writers: stopped in the middle of a write, it would
 * keep everybody from writing, which no part of the service can help.
 */
export async function stopBetweenWrites(dataDir: string, pid: number): Promise<void> {
  const stopper = run(STOP_ANOTHER, dataDir, String(pid));
  stopper.stdout!.resume();
  const [code] = (await once(stopper, 'close')) as [number | null];
  if (code !== 0) throw new Error(`the process ${pid} was not stopped`);
}

/** A process that holds the one lock for writers of a data directory's store until it is killed. */
export async function holdStoreLock(dataDir: string): Promise<ChildProcess> {
  const holder = run(HOLD_LOCK, dataDir);
  await once(holder.stdout!, 'data');
  return holder;
}
