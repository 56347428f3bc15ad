import { Worker } from 'node:worker_threads';

export interface WatchdogOptions {
  /** The longest time without a turn of the main thread, in milliseconds; null watches only the parent. */
  patienceMs: number | null;
  /** Ends this process too when the one that started it has ended. */
  endWithParent: boolean;
  /** The format of the line that says why. */
  format: 'json' | 'text';
}

const LOOK_MS = 1_000;

/**
 * Watches this process from a thread of its own until the returned function is called: kills it (SIGKILL) when the main
 * thread hangs, so that its starter starts it again. A hanging thread cannot do that itself: it waits for a lock
 * whose holder was killed, or never returns from a computation. Time counts only in looks of the watching thread
 * itself: a stopped process, a sleeping machine and a clock that is moved do not count as hanging.
 */
export function startWatchdog({ patienceMs, endWithParent, format }: WatchdogOptions): () => void {
  const beats = new Int32Array(new SharedArrayBuffer(4));
  const lookMs = Math.min(LOOK_MS, (patienceMs ?? Infinity) / 5);
  const thread = new Worker(THREAD, {
    eval: true,
    // The thread takes none of this process's options of Node.
    execArgv: [],
    workerData: { beats, lookMs, patienceMs, parent: endWithParent ? process.ppid : null, format },
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 },
  });
  thread.unref();
  const beating = setInterval(() => Atomics.add(beats, 0, 1), lookMs);
  beating.unref();
  return () => {
    clearInterval(beating);
    void thread.terminate();
  };
}

// The line goes straight to the file of standard error, as a thread's own output goes by way of the main thread. Nobody
// may be reading there: it is not waited for.
const THREAD = `
  const { write } = require('node:fs');
  const { workerData } = require('node:worker_threads');
  const { beats, lookMs, patienceMs, parent, format } = workerData;
  const MESSAGE = 'the main thread hangs: the process ends itself, to be restarted (BSVC_WATCHDOG)';
  const end = () => process.kill(process.pid, 'SIGKILL');
  const tellAndEnd = () => {
    const line = format === 'text'
      ? new Date().toISOString().slice(11, 23) + ' fatal ' + MESSAGE + ' process=' + process.pid + ' hangsMs=' + Math.round(hangsMs)
      : JSON.stringify({ level: 60, time: Date.now(), process: process.pid, hangsMs: Math.round(hangsMs), msg: MESSAGE });
    write(2, line + '\\n', end);
    setTimeout(end, 500);
  };
  let seen = 0;
  let hangsMs = 0;
  let lookedAt = performance.now();
  setInterval(() => {
    if (parent !== null && process.ppid !== parent) end();
    if (patienceMs === null || hangsMs >= patienceMs) return;
    const now = performance.now();
    const sinceMs = now - lookedAt;
    lookedAt = now;
    const beat = Atomics.load(beats, 0);
    if (beat !== seen) hangsMs = 0;
    // Of a look that comes late no more counts than of one in time: this thread was kept from running, and so may have
    // been the other.
    else hangsMs += Math.min(sinceMs, lookMs);
    seen = beat;
    if (hangsMs >= patienceMs) tellAndEnd();
  }, lookMs);
`;
