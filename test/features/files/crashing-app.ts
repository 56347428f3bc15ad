import type { App } from '../../../src/app.js';
import type { Database } from '../../../src/platform/database/database.js';
import type { LocalStore } from '../../../src/platform/object-store/local-store.js';

export class Crash extends Error {
  constructor() {
    super('the process is dead');
  }
}

const CHANGES = new Set([
  'insertOne',
  'updateOne',
  'updateMany',
  'deleteOne',
  'deleteMany',
  'findOneAndUpdate',
  'findOneAndDelete',
  'transform',
  'transformTogether',
  'transaction',
  'put',
  'remove',
]);

export interface CrashingApp {
  app: App;
  /** Changes that were made so far. */
  changes(): number;
}

/**
 * The same app as a process that is killed right after its `after`-th change of stored data or files: from then on
 * nothing it does has any effect, what it does in its catch blocks included. `pause` comes before each of its steps.
 */
export function crashAfter(app: App, after: number, pause?: () => Promise<void>): CrashingApp {
  let changes = 0;
  const dead = (): boolean => changes >= after;
  const mortal = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, name) {
        const value: unknown = Reflect.get(object, name);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (dead()) throw new Crash();
          const call = (): unknown => (value as (...all: unknown[]) => unknown).apply(object, args);
          const isChange = CHANGES.has(String(name));
          if (!isChange && name !== 'findOne') return call();
          const result = pause ? pause().then(call) : call();
          if (!isChange) return result;
          return (result as Promise<unknown>).then((answer) => {
            changes++;
            if (dead()) throw new Crash();
            return answer;
          });
        };
      },
    });
  const { transform, transformTogether, transaction } = mortal(app.db);
  const db: Database = {
    ...app.db,
    ...{ transform, transformTogether, transaction },
    collection: ((name: string) => mortal(app.db.collection(name))) as never,
  };
  const files = { ...app.files, local: mortal<LocalStore>(app.files.local) };
  return { app: { ...app, db, files }, changes: () => changes };
}

export interface SleepingApp {
  app: App;
  /** Resolves when the sleeper stands before that step. */
  reached: Promise<void>;
  wake(): void;
}

/**
 * The same app as a process that falls asleep right before its `step`-th single read or change of a record, until it is
 * woken.
 */
export function sleepBefore(app: App, step: number): SleepingApp {
  let wake: () => void = () => undefined;
  let arrive: () => void = () => undefined;
  const woken = new Promise<void>((resolve) => (wake = resolve));
  const reached = new Promise<void>((resolve) => (arrive = resolve));
  let steps = 0;
  const pause = async (): Promise<void> => {
    if (++steps !== step) return;
    arrive();
    await woken;
  };
  return { app: crashAfter(app, Infinity, pause).app, reached, wake: () => wake() };
}

/**
 * Runs `act` in a process that dies after its first change, its second, and so on until it lives to the end; `check`
 * judges each. Tells how many deaths there were.
 */
export async function killAtEachChange<T>(
  dyingAfter: (changes: number) => App,
  prepare: () => Promise<T>,
  act: (mortal: App, prepared: T) => Promise<unknown>,
  check: (prepared: T, died: boolean) => Promise<void>,
): Promise<number> {
  for (let after = 1; ; after++) {
    const prepared = await prepare();
    let died = false;
    try {
      await act(dyingAfter(after), prepared);
    } catch (error) {
      if (!(error instanceof Crash)) throw error;
      died = true;
    }
    await check(prepared, died);
    if (!died) return after - 1;
  }
}
