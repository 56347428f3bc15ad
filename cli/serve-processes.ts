import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { Worker as Thread } from 'node:worker_threads';
import { conflict } from '../src/errors.js';
import type { App } from '../src/app.js';
import { openSiblingHost } from '../src/platform/siblings.js';

/** Whether this process was started by another `bsvc serve` to share its port. */
export const isShare = (): boolean => cluster.isWorker;

/**
 * Ends this process when the one that started it has died. Node does so too, but in the main thread, which may just then wait for the store's lock: when all who
 * held it were killed at once, nobody may ever wake it.
 */
export function endWithSupervisor(): void {
  const watch = new Thread(WATCH, { eval: true, workerData: process.ppid });
  watch.unref();
}

const WATCH = `
  const { workerData: supervisor } = require('node:worker_threads');
  setInterval(() => {
    if (process.ppid !== supervisor) process.kill(process.pid, 'SIGKILL');
  }, 1000);
`;

/** Tells the process that started this one that it is listening. */
export function tellReady(url: string): void {
  process.send?.({ url });
}

export interface Processes {
  url: string;
  /** Tells all of them to stop and waits for their end. */
  stop(): Promise<void>;
}

/** A process that ends is replaced after this pause, which doubles with each that did not live for long. Never so long that killing one by one makes the service slow to come back. */
const FIRST_PAUSE_MS = 250;
const MOST_PAUSE_MS = 5_000;
const LONG_LIFE_MS = 10_000;

/**
 * Starts this same command in `count` further processes that share one port, and replaces each that dies. Ready when all of them listen; throws
 * when one ends before, after it has said itself why.
 */
export async function startProcesses(count: number, app: App): Promise<Processes> {
  const running = new Set<Worker>();
  const pauses = new Set<NodeJS.Timeout>();
  const host = openSiblingHost(app.limits.counter, (share) => {
    app.log.error({ process: share.process.pid }, 'a serving process is stuck and is ended');
    share.process.kill('SIGKILL');
  });
  let stopping = false;
  let pauseMs = FIRST_PAUSE_MS;
  const start = (): Worker => {
    const share = cluster.fork();
    const startedMs = performance.now();
    running.add(share);
    host.serve(share);
    share.once('exit', (code, signal) => {
      running.delete(share);
      if (stopping) return;
      app.log.error({ process: share.process.pid, code, signal }, 'a serving process ended and is replaced');
      if (performance.now() - startedMs > LONG_LIFE_MS) pauseMs = FIRST_PAUSE_MS;
      const pause = setTimeout(() => {
        pauses.delete(pause);
        start();
      }, pauseMs);
      pauseMs = Math.min(2 * pauseMs, MOST_PAUSE_MS);
      pauses.add(pause);
    });
    return share;
  };
  const stop = async (): Promise<void> => {
    stopping = true;
    for (const pause of pauses) clearTimeout(pause);
    const ended = [...running].map((share) => once(share, 'exit'));
    for (const share of running) share.process.kill('SIGTERM');
    await Promise.all(ended);
  };
  try {
    // The first one alone: what is wrong with the address is then said once.
    const url = await whenReady(start());
    await Promise.all(Array.from({ length: count - 1 }, () => whenReady(start())));
    return { url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function whenReady(share: Worker): Promise<string> {
  const ready = new Promise<string>((resolve) => {
    share.on('message', ({ url }: { url?: string }) => {
      if (url !== undefined) resolve(url);
    });
  });
  const ended = once(share, 'exit').then(() => {
    throw conflict('PROCESS_ENDED', 'A serving process ended before it was ready: its message is above.');
  });
  return Promise.race([ready, ended]);
}
