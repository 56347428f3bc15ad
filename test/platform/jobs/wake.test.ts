import { afterEach, beforeEach, expect, it } from 'vitest';
import type { AnyJobDefinition } from '../../../src/platform/jobs/job.js';
import { openRunner } from '../../../src/platform/jobs/runner.js';
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
