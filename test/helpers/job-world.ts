import type { App } from '../../src/app.js';
import { jobStore, type AnyJobDefinition, type JobRecord } from '../../src/platform/jobs/job.js';
import { openRunner, type Runner, type RunnerOptions } from '../../src/platform/jobs/runner.js';
import { createFakeClock, type FakeClock } from './fake-clock.js';
import { openTestApp, type TestApp } from './open-test-app.js';

export type Definition = AnyJobDefinition<App>;

/** An app whose clock stands still, and workers of it that are stopped with it. */
export interface JobWorld {
  test: TestApp;
  clock: FakeClock;
  openWorker(definitions: Definition[], options?: Partial<RunnerOptions>, app?: App): Runner;
  /** The app with its own view of the database, away while `isAway` says so of what is called with what. */
  appWithout(isAway: (method: string, ...given: unknown[]) => boolean): App;
  allJobs(): Promise<JobRecord[]>;
  /** What the app has logged with that message. */
  logged(message: string): Record<string, unknown>[];
  close(): Promise<void>;
}

export async function openJobWorld(): Promise<JobWorld> {
  const clock = createFakeClock();
  const test = await openTestApp({ clock });
  const runners: Runner[] = [];
  return {
    test,
    clock,
    openWorker(definitions, options = {}, app = test.app) {
      const runner = openRunner(app, definitions, { concurrency: 10, ...options });
      runners.push(runner);
      return runner;
    },
    appWithout(isAway) {
      const collection = (name: string): unknown =>
        new Proxy(test.app.db.collection(name), {
          get:
            (store, method: string) =>
            (...given: unknown[]) => {
              if (isAway(method, ...given)) throw new Error('the database is away');
              return (Reflect.get(store, method) as (...all: unknown[]) => unknown).apply(store, given);
            },
        });
      return { ...test.app, db: { ...test.app.db, collection } as App['db'] };
    },
    allJobs: () => jobStore(test.app).find({}).toArray(),
    logged: (message) =>
      test.logLines.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ msg }) => msg === message),
    async close() {
      await Promise.all(runners.map((runner) => runner.stop(0)));
      await test.close();
    },
  };
}

export function defineJob(name: string, run: Definition['run'], more: Partial<Definition> = {}): Definition {
  return { name, retry: { delaysMs: [1_000, 10_000] }, run, ...more };
}

/** A promise with its switch. */
export function gate(): { opened: Promise<void>; open(): void } {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
