import cluster, { type Worker } from 'node:cluster';
import type { SendHandle } from 'node:child_process';
import { once } from 'node:events';
import { conflict } from '../../src/errors.js';
import type { App } from '../../src/app.js';
import { openProcessGroupHost } from '../../src/platform/processes/group-host.js';
import { groupCounterAnswers } from '../../src/platform/rate-limit/open-limits.js';

/** The longest time without a turn of the main thread, unless `BSVC_WATCHDOG` says another. */
export const HANG_MS = 30_000;

/** True if another `bsvc serve` started this process to share its port. */
export const isShare = (): boolean => cluster.isWorker;

/** Reports to the supervisor that this process is listening. */
export function notifyReady(url: string): void {
  process.send?.({ url });
}

export interface Processes {
  url: string;
  /** Asks all processes to stop and waits for their end. */
  stop(): Promise<void>;
}

/** The pause before a process that ended is replaced. */
const PAUSE_MS = 100;
/**
 * The longest pause before another try with a process that cannot start or ends itself soon after: short, so that the
 * service is quick to come back.
 */
const MAX_PAUSE_MS = 5_000;
const LONG_LIFE_MS = 10_000;
/** Signals by which a process ends itself when something is wrong with it: as good as an exit with a code. */
const OWN_SIGNALS = new Set(['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP', 'SIGSYS']);

/**
 * Starts this same command in `count` further processes that share one port, and replaces each that ends. Ready when
 * all of them listen; throws when one ends with a code before any was ready, after it has said itself why.
 */
export async function startProcesses(count: number, app: App): Promise<Processes> {
  const running = new Set<Worker>();
  const ready = new Set<Worker>();
  const pauses = new Set<NodeJS.Timeout>();
  const host = openHost(app);
  let stopping = false;
  let wasReady = false;
  let pauseMs = PAUSE_MS;
  /** Replacements that are started when another one is ready. */
  let waiting = 0;
  let onReady: (url: string) => void = () => undefined;
  let onFailure: (error: unknown) => void = () => undefined;

  const start = (): void => {
    const share = cluster.fork();
    const startedMs = performance.now();
    running.add(share);
    host.serve(share);
    passOnHandedOver(share, () => [...ready].find((other) => other !== share && other.isConnected()));
    share.on('message', ({ url }: { url?: string }) => {
      if (url === undefined) return;
      ready.add(share);
      wasReady = true;
      for (; waiting > 0; waiting--) start();
      onReady(url);
    });
    share.once('exit', (code, signal) => {
      running.delete(share);
      ready.delete(share);
      if (stopping) return;
      if (signal === null && !wasReady) {
        onFailure(conflict('PROCESS_ENDED', 'A serving process ended before it was ready: its message is above.'));
        return;
      }
      const endedItself = signal === null || OWN_SIGNALS.has(signal);
      const isQuick = endedItself && performance.now() - startedMs < LONG_LIFE_MS;
      if (!isQuick) pauseMs = PAUSE_MS;
      app.log.error({ process: share.process.pid, code, signal, pauseMs }, 'a serving process ended and is replaced');
      const pause = setTimeout(() => {
        pauses.delete(pause);
        // While none serves, one gets all there is of the machine: the first answer comes sooner than with several that
        // start at once.
        if (ready.size === 0 && running.size > 0) waiting++;
        else start();
      }, pauseMs);
      pauses.add(pause);
      if (isQuick) pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
    });
  };
  const stop = async (): Promise<void> => {
    stopping = true;
    for (const pause of pauses) clearTimeout(pause);
    const ended = [...running].map((share) => once(share, 'exit'));
    for (const share of running) share.process.kill('SIGTERM');
    await Promise.all(ended);
  };
  /** Resolves when that number is ready at once. */
  const whenReady = (wanted: number): Promise<string> =>
    new Promise((resolve, reject) => {
      onReady = (url) => {
        if (ready.size >= wanted) resolve(url);
      };
      onFailure = reject;
    });
  try {
    // The first one alone: what is wrong with the address is then said once.
    const first = whenReady(1);
    start();
    const url = await first;
    if (count > 1) {
      const all = whenReady(count);
      for (let at = 1; at < count; at++) start();
      await all;
    }
    return { url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function openHost({ limits, log, config }: App): ReturnType<typeof openProcessGroupHost> {
  const endStuck = (share: Worker): void => {
    log.error({ process: share.process.pid }, 'a serving process is stuck and is ended');
    share.process.kill('SIGKILL');
  };
  return openProcessGroupHost(groupCounterAnswers(limits.counter), endStuck, {
    stuckMs: config.watchdogMs ?? HANG_MS,
  });
}

interface HandedOver {
  cmd?: string;
  act?: string;
  seq?: number;
}

/**
 * Gives the connections that were handed to a process which died before it took them, stopped or stuck, to another one,
 * and closes them when there is none. Node forgets them, open: their clients would wait for ever.
 */
function passOnHandedOver({ process: share }: Worker, findOther: () => Worker | undefined): void {
  const handed = new Map<number, [HandedOver, SendHandle & { close(): void }]>();
  const send = share.send.bind(share) as (message: HandedOver, handle?: unknown, ...rest: unknown[]) => boolean;
  share.send = (message: unknown, handle?: unknown, ...rest: unknown[]) => {
    const given = message as HandedOver;
    if (given.act === 'newconn' && given.seq !== undefined && handle) {
      handed.set(given.seq, [given, handle as SendHandle & { close(): void }]);
    }
    return send(given, handle, ...rest);
  };
  share.on('internalMessage', ({ ack }: { ack?: number }) => ack !== undefined && handed.delete(ack));
  share.once('exit', () => {
    const other = findOther();
    for (const [message, handle] of handed.values()) {
      // Under the number by which Node still waits for the one who takes it.
      if (other) other.process.send(message, handle);
      else handle.close();
    }
  });
}
