import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AnyJobDefinition } from '../../../src/platform/jobs/job.js';
import { openJobQueue } from '../../../src/platform/jobs/job-queue.js';
import { openRunner } from '../../../src/platform/jobs/runner.js';
import type { PubSub } from '../../../src/platform/processes/hints.js';
import type { App } from '../../../src/app.js';
import { eventually } from '../../helpers/eventually.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';

let test: TestApp;
beforeEach(async () => {
  test = await openTestApp();
});
afterEach(() => test.close());

it('a worker that pauses runs what is enqueued at once, not after its pause', async () => {
  let ran = 0;
  const job: AnyJobDefinition<App> = {
    name: 'test.wake',
    retry: { delaysMs: [60_000] },
    run() {
      ran++;
      return Promise.resolve();
    },
  };
  let looks = 0;
  // A look that fails is followed by the longest pause, which is an hour: without being woken, nothing would run.
  const deps = Object.create(test.app, {
    db: {
      get() {
        if (looks++ === 0) throw new Error('the database is away');
        return test.app.db;
      },
    },
  }) as App;
  const runner = openRunner(deps, [job], { concurrency: 1, idleMs: 3_600_000 });
  runner.start();
  await eventually('the first look', () => looks > 0);
  await test.app.jobs.enqueue(job, {});
  await eventually('it runs', () => ran > 0);
  await runner.stop(1_000);
  expect(ran).toBe(1);
});

describe('the processes of one service', () => {
  /** What a process hears of the others, and how often it speaks. */
  function openSignals(): { signals: PubSub; sent: string[]; hear: (text: string) => void } {
    const sent: string[] = [];
    const listeners: ((text: string) => void)[] = [];
    return {
      signals: { send: (text) => void sent.push(text), on: (listener) => void listeners.push(listener) },
      sent,
      hear: (text) => listeners.forEach((listener) => listener(text)),
    };
  }
  const job: AnyJobDefinition<App> = { name: 'test.told', retry: { delaysMs: [] }, run: () => Promise.resolve() };

  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  it('are told of many jobs in a row by one word, and of later ones by another', async () => {
    const { signals, sent } = openSignals();
    const jobs = openJobQueue(test.app.db, test.app.clock, signals);
    for (let n = 0; n < 3; n++) await jobs.enqueue(job, {});
    expect(sent).toHaveLength(0);
    vi.advanceTimersByTime(10);
    expect(sent).toHaveLength(1);
    vi.advanceTimersByTime(60_000);
    jobs.wake();
    vi.advanceTimersByTime(10);
    expect(sent).toHaveLength(2);
  });

  it('wake their workers by that word and no other, and tell nobody of it again', () => {
    const [here, there] = [openSignals(), openSignals()];
    const jobs = openJobQueue(test.app.db, test.app.clock, here.signals);
    openJobQueue(test.app.db, test.app.clock, there.signals).wake();
    vi.advanceTimersByTime(10);
    let woken = 0;
    const stop = jobs.onWake(() => void woken++);
    here.hear('something else');
    expect(woken).toBe(0);
    here.hear(there.sent[0]!);
    expect(woken).toBe(1);
    vi.advanceTimersByTime(10);
    expect(here.sent).toEqual([]);
    stop();
    here.hear(there.sent[0]!);
    expect(woken).toBe(1);
  });
});
