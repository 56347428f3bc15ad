/*
 * Loaded into the process under attack: notes in a file how much processor time its main thread spent between two looks
 * of a timer. Time that the machine gave to others does not count.
 */
const { openSync, readSync, writeSync } = require('node:fs');

const path = process.env.STALLS_FILE;
if (path !== undefined && require('node:worker_threads').isMainThread) {
  const stalls = openSync(path, 'a');
  const schedule = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
  const buffer = Buffer.alloc(64);
  const spentMs = () => Number(buffer.toString('latin1', 0, readSync(schedule, buffer, 0, 64, 0)).split(' ')[0]) / 1e6;
  let before = spentMs();
  setInterval(() => {
    const now = spentMs();
    if (now - before > 20) writeSync(stalls, `${(now - before).toFixed(1)}\n`);
    before = now;
  }, 5).unref();
}
