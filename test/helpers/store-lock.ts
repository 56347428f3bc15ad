import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const HOLD_LOCK = `
  const store = require('lmdb').open({ path: process.argv[1], noSubdir: true, keyEncoding: 'binary', encoding: 'binary', overlappingSync: false });
  store.transactionSync(() => {
    require('node:fs').writeSync(1, 'held');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
`;

/** A process that holds the one lock for writers of a data directory's store until it is killed. */
export async function holdStoreLock(dataDir: string): Promise<ChildProcess> {
  const holder = spawn(process.execPath, ['-e', HOLD_LOCK, join(dataDir, 'bsvc.mdb')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  return holder;
}
