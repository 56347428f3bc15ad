import { Worker } from 'node:worker_threads';

export interface WatchdogOptions {
  /** The longest time without a turn of the main thread, in milliseconds; null watches only the parent. */
  patienceMs: number | null;
  /** How long a hanging process is left alone after that: none if it is supervised. */
  graceMs: number;
  /** Ends this process too when the one that started it has ended. */
  endWithParent: boolean;
  /** The format of the lines that say why. */
  format: 'json' | 'text';
}

/** What the two threads share: how often the main thread has had its turn, and whether it counts as hanging. */
const BEATS = 0;
const HANGS = 1;

const LOOK_MS = 1_000;

let shared: Int32Array | null = null;

/** True from when the watchdog found the main thread hanging until it has seen it run again. */
export function isHanging(): boolean {
  return shared !== null && Atomics.load(shared, HANGS) === 1;
}

/**
 * Watches this process from a thread of its own until the returned function is called. When the main thread hangs it
 * logs where, then kills the process (SIGKILL), at once or after `graceMs`, so that its starter starts it again. A
 * hanging thread cannot do that itself: it waits for a lock whose holder was killed, or never returns from a
 * computation. Time counts only in looks of the watching thread itself: a stopped process, a sleeping machine and a
 * clock that is moved do not count as hanging. With nothing to watch there is no thread, which takes 8 MB.
 */
export function startWatchdog({ patienceMs, graceMs, endWithParent, format }: WatchdogOptions): () => void {
  if (patienceMs === null && !endWithParent) return () => undefined;
  const seen = new Int32Array(new SharedArrayBuffer(8));
  shared = seen;
  const lookMs = Math.min(LOOK_MS, (patienceMs ?? Infinity) / 5);
  const parent = endWithParent ? process.ppid : null;
  const thread = new Worker(THREAD, {
    eval: true,
    // The thread takes none of this process's options of Node.
    execArgv: [],
    workerData: { shared: seen, lookMs, patienceMs, graceMs, parent, format, BEATS, HANGS },
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 },
  });
  thread.unref();
  const beating = setInterval(() => Atomics.add(seen, BEATS, 1), lookMs);
  beating.unref();
  return () => {
    clearInterval(beating);
    shared = null;
    void thread.terminate();
  };
}

// The lines go straight to the file of standard error, as a thread's own output goes by way of the main thread. Nobody
// may be reading there: it is not waited for. Where the main thread is, the inspector says, which is loaded only then;
// a thread that waits in native code does not answer it.
const THREAD = `
  const { write } = require('node:fs');
  const { workerData } = require('node:worker_threads');
  const { shared, lookMs, patienceMs, graceMs, parent, format, BEATS, HANGS } = workerData;
  const FRAMES = 12;
  const ASKED_MS = 2000;
  const end = () => process.kill(process.pid, 'SIGKILL');
  const log = (msg, more, then) => {
    const fields = { process: process.pid, hangsMs: Math.round(hangsMs), ...more };
    const line = format === 'text'
      ? [new Date().toISOString().slice(11, 23), 'fatal', msg, ...Object.entries(fields).map(([k, v]) => k + '=' + v)].join(' ')
      : JSON.stringify({ level: 60, time: Date.now(), ...fields, msg });
    write(2, line + '\\n', then);
  };
  const findPlace = (then) => {
    const answer = (place) => { const call = then; then = () => {}; call(place); };
    setTimeout(answer, ASKED_MS, 'in native code');
    try {
      const { Session } = require('node:inspector');
      const session = new Session();
      session.connectToMainThread();
      session.on('Debugger.paused', ({ params }) => {
        session.post('Debugger.resume', () => session.disconnect());
        answer(params.callFrames.slice(0, FRAMES)
          .map(({ functionName, url, location }) =>
            (functionName || 'anonymous') + ' ' + url.split('/').pop() + ':' + (location.lineNumber + 1)).join(' < '));
      });
      session.post('Debugger.enable');
      session.post('Debugger.pause');
    } catch (error) {
      answer('unknown (' + error.message + ')');
    }
  };
  const KILLED = 'the main thread hangs: the process ends itself, to be restarted (BSVC_WATCHDOG)';
  const LEFT = 'the main thread hangs: nothing is answered. As no supervisor is known to restart this process (BSVC_WATCHDOG), it is left alone for ' +
    Math.round(graceMs / 1000) + ' s before it ends itself';
  const reportAndExit = () => {
    isOver = true;
    log(KILLED, {}, end);
    setTimeout(end, 500);
  };
  let seen = 0;
  let hangsMs = 0;
  let isTold = false;
  let isOver = false;
  let lookedAt = performance.now();
  setInterval(() => {
    if (parent !== null && process.ppid !== parent) end();
    if (patienceMs === null || isOver) return;
    const now = performance.now();
    const sinceMs = now - lookedAt;
    lookedAt = now;
    const beat = Atomics.load(shared, BEATS);
    // Of a look that comes late no more counts than of one in time: this thread was kept from running, and so may have
    // been the other.
    hangsMs = beat === seen ? hangsMs + Math.min(sinceMs, lookMs) : 0;
    seen = beat;
    Atomics.store(shared, HANGS, hangsMs >= patienceMs ? 1 : 0);
    if (hangsMs < patienceMs) {
      isTold = false;
      return;
    }
    if (hangsMs >= patienceMs + graceMs) return reportAndExit();
    if (isTold) return;
    isTold = true;
    findPlace((at) => log(LEFT, { at }, () => {}));
  }, lookMs);
`;
