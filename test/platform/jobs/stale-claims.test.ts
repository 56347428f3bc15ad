import { afterEach, beforeEach, expect, it } from 'vitest';
import type { App } from '../../../src/app.js';
import { claimInTurn, claimJobs, type ClaimRequest } from '../../../src/platform/jobs/claim-jobs.js';
import { jobStore, type AnyJobDefinition, type JobRecord } from '../../../src/platform/jobs/job.js';
import { createFakeClock, type FakeClock } from '../../helpers/fake-clock.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';

let test: TestApp;
let clock: FakeClock;

beforeEach(async () => {
  clock = createFakeClock();
  test = await openTestApp({ clock });
});
afterEach(() => test.close());

/** The app, where something else happens between a worker's look at the queue and its claim. */
function between(happens: () => Promise<unknown>): App {
  const interrupt = (cursor: object): object =>
    new Proxy(cursor, {
      get(target, name) {
        const member = Reflect.get(target, name, target) as (...given: unknown[]) => unknown;
        if (typeof member !== 'function') return member;
        if (name !== 'toArray') return (...given: unknown[]) => interrupt(member.apply(target, given) as object);
        return async () => {
          const found = (await member.call(target)) as unknown[];
          if (found.length > 0) await happens();
          return found;
        };
      },
    });
  const watch = (store: object): object =>
    new Proxy(store, {
      get(target, name) {
        const member = Reflect.get(target, name, target) as (...given: unknown[]) => object;
        if (typeof member !== 'function') return member;
        return name === 'find' ? (...given: unknown[]) => interrupt(member.apply(target, given)) : member.bind(target);
      },
    });
  return {
    ...test.app,
    db: { ...test.app.db, collection: (name: string) => watch(test.app.db.collection(name)) },
  } as App;
}

const job: AnyJobDefinition<App> = {
  name: 'test.fenced',
  retry: { delaysMs: [60_000] },
  run: () => Promise.resolve(undefined),
};

/** As another worker leaves a job that it has run: to be tried again later. */
async function failElsewhere(): Promise<void> {
  await jobStore(test.app).updateOne(
    { state: 'queued', fence: 0 },
    { $set: { runAt: new Date(clock.now() + 60_000) }, $inc: { fence: 1, attempts: 1 } },
  );
}

const request = ({ pool }: JobRecord): ClaimRequest => ({
  ...{ workerId: 'w', pool, names: [job.name], leaseMs: 15_000, limit: 1, crowded: false },
});

it.each([
  [
    'the shared pool',
    true,
    (deps: App, record: JobRecord, begin: () => void) => claimJobs(deps, request(record), begin),
  ],
  [
    'a pool of turns',
    null,
    (deps: App, record: JobRecord, begin: () => void) =>
      claimInTurn(deps, request(record), { after: '', full: new Set() }, begin),
  ],
])('a job of %s that another worker has put back for later is not leased by an older look', async (_, told, claim) => {
  await test.app.jobs.enqueue(job, {}, { party: 'one' });
  const record = (await jobStore(test.app).findOne({})) as JobRecord;
  expect(record).toMatchObject({ state: 'queued', fence: 0, party: 'one' });
  let begun = 0;
  let looks = 0;
  const deps = between(async () => (looks++ === 0 ? failElsewhere() : undefined));
  // Whether somebody was faster, and whose job it was.
  expect(await claim(deps, record, () => void begun++)).toBe(told);
  expect(looks).toBe(1);
  expect(begun).toBe(0);
  expect(await jobStore(test.app).findOne({})).toMatchObject({ state: 'queued', fence: 1, attempts: 1 });
});
