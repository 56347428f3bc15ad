import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';

/** How long the event loop was kept in one go, since the watch began. */
export interface LoopWatch {
  /**
   * Milliseconds of the main thread's processor time, so that what else the machine does, and other threads, do not
   * count.
   */
  longestMs(): number;
  stop(): void;
}

/**
 * Watches by a timer that is due in every round of the event loop: what passes between two of its calls is one turn of
 * somebody.
 */
export function watchEventLoop(): LoopWatch {
  let longest = 0;
  let cpu = mainThreadMs();
  let wall = performance.now();
  const look = (): void => {
    const [cpuNow, wallNow] = [mainThreadMs(), performance.now()];
    longest = Math.max(longest, Math.min(cpuNow - cpu, wallNow - wall));
    [cpu, wall] = [cpuNow, wallNow];
  };
  const timer = setInterval(look, 1);
  return {
    longestMs() {
      look();
      return longest;
    },
    stop: () => clearInterval(timer),
  };
}

/** Processor time of this process's main thread where the system tells it, else of the whole process. */
function mainThreadMs(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'latin1').split(' ', 1)[0]) / 1e6;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}
