import type { App } from './app.js';

export interface Worker {
  /** Takes no new work and resolves when what is under way has finished. */
  stop(): Promise<void>;
}

/** A piece of background work that runs every `everyMs`, in any one of the running workers. */
export interface Recurring {
  name: string;
  everyMs: number;
  run(app: App): Promise<void>;
}

/** All background work of the service, feature by feature. */
export const RECURRING: readonly Recurring[] = [];

/** Runs the background work until stopped; a failed run is logged and tried again at its next time. */
export function createWorker(app: App): Worker {
  const underWay = new Set<Promise<void>>();
  const timers = RECURRING.map((work) => {
    const start = (): void => {
      const run = work
        .run(app)
        .catch((error: unknown) => app.log.error({ err: error, work: work.name }, 'background work failed'));
      underWay.add(run);
      void run.finally(() => underWay.delete(run));
    };
    return setInterval(start, work.everyMs);
  });
  return {
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.all(underWay);
    },
  };
}
