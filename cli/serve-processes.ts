import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { conflict } from '../src/errors.js';
import type { Logger } from '../src/platform/logger.js';

/** Whether this process was started by another `bsvc serve` to share its port. */
export const isShare = (): boolean => cluster.isWorker;

/** Tells the process that started this one that it is listening. */
export function tellReady(url: string): void {
  process.send?.({ url });
}

export interface Processes {
  url: string;
  /** Tells all of them to stop and waits for their end. */
  stop(): Promise<void>;
}

/** One that ends this soon after its start is not started again at once. */
const RESTART_PAUSE_MS = 1000;

/**
 * Starts this same command in `count` further processes that share one port, and replaces each that dies. Ready when all of them listen; throws
 * when one ends before, after it has said itself why.
 */
export async function startProcesses(count: number, log: Logger): Promise<Processes> {
  const running = new Set<Worker>();
  const pauses = new Set<NodeJS.Timeout>();
  let stopping = false;
  const start = (): Worker => {
    const share = cluster.fork();
    running.add(share);
    share.once('exit', (code, signal) => {
      running.delete(share);
      if (stopping) return;
      log.error({ process: share.process.pid, code, signal }, 'a serving process ended and is replaced');
      const pause = setTimeout(() => {
        pauses.delete(pause);
        start();
      }, RESTART_PAUSE_MS);
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
  const ready = once(share, 'message').then(([message]) => (message as { url: string }).url);
  const ended = once(share, 'exit').then(() => {
    throw conflict('PROCESS_ENDED', 'A serving process ended before it was ready: its message is above.');
  });
  return Promise.race([ready, ended]);
}
