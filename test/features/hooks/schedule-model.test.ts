import { beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../../src/app.js';
import { addSchedule, setSchedule, type NewSchedule } from '../../../src/features/hooks/change-schedules.js';
import { readDueTimes } from '../../../src/features/hooks/schedule.js';
import { replanSchedules, startDueRuns } from '../../../src/features/hooks/run-schedules.js';
import { drainJobs } from '../../../src/worker.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import { createFakeClock, type FakeClock } from '../../helpers/fake-clock.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';
import { openRandom, type Random } from '../../helpers/random.js';
import { openWebhookReceiver, type WebhookReceiver } from '../../helpers/webhook-receiver.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = 60;

const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu'];
const CRONS = ['* * * * *', '*/7 * * * *', '0 * * * *', '15,45 1-3 * * *', '30 2 * * *', '0 3 * * *', '*/20 2 * * *'];

let test: TestApp;
let clock: FakeClock;
let receiver: WebhookReceiver;
let owner: TestProject;

beforeEach(async () => {
  clock = createFakeClock();
  test = await openTestApp({ clock, settings: { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
  receiver = await openWebhookReceiver();
  return async () => {
    await test.close();
    await receiver.close();
  };
});

/** What a schedule has to do, told by a reader of the clock who forgets nothing. */
class Model {
  readonly called = new Set<number>();
  readonly late = new Set<number>();
  #from: number;

  constructor(
    readonly input: NewSchedule,
    fromMs: number,
  ) {
    this.#from = fromMs;
  }

  #next(fromMs: number): number {
    const dueTimes = readDueTimes(this.input.cron, this.input.timeZone!);
    let at = dueTimes.after(fromMs)!;
    while (this.called.has(at)) at = dueTimes.after(at)!;
    return at;
  }

  look(nowMs: number): void {
    for (let at = this.#next(this.#from); at <= nowMs; at = this.#next(this.#from)) {
      const isMissed = nowMs - at > MINUTE;
      if (isMissed && this.input.missed === 'skip') {
        this.#from = nowMs - MINUTE - 1;
        continue;
      }
      this.called.add(at);
      if (isMissed) this.late.add(at);
      this.#from = isMissed ? nowMs : at;
    }
  }

  /** The clock was set back. */
  planAgain(nowMs: number): void {
    this.#from = nowMs;
  }
}

/** The app as a process has it that is killed at one of the writes. */
function dying(app: App, random: Random): App {
  const die = (): never => {
    throw new Error('killed');
  };
  const around =
    <Given extends unknown[], T>(run: (...given: Given) => Promise<T>) =>
    async (...given: Given): Promise<T> => {
      if (random.chance(0.15)) die();
      const answer = await run(...given);
      return random.chance(0.15) ? die() : answer;
    };
  const db = { ...app.db, transaction: around(app.db.transaction), transform: around(app.db.transform) };
  return { ...app, db: db as App['db'] };
}

/** Looks as several processes do, some of which are killed, and ends with what the next ones make up for. */
async function look(random: Random): Promise<void> {
  const { app } = test;
  const processes = Array.from({ length: 1 + random.below(3) }, () => (random.chance(0.5) ? dying(app, random) : app));
  await Promise.all(processes.map((each) => startDueRuns(each)));
  if (random.chance(0.3)) await Promise.all(processes.map((each) => drainJobs(each)));
  await startDueRuns(app);
  await drainJobs(app);
  // What failed for a killed process is tried again after a second.
  clock.advance(2 * SECOND);
  await drainJobs(app);
}

describe('schedules beside a model, with clock changes, downtime and kills', () => {
  it.each([20_261_129, 4_711, 57, 93_001, 12])('run once for each due time (seed %i)', async (seed) => {
    const random = openRandom(seed);
    owner = await buildProject(test.app);
    clock.advance(
      Date.parse(random.pick(['2026-03-28T20:00Z', '2026-10-24T20:00Z', '2026-04-04T08:00Z'])) - clock.now(),
    );
    const models: Model[] = [];
    for (let index = 0; index < 5; index++) {
      const missed = random.pick(['once', 'skip'] as const);
      const input = { name: `s${index}`, cron: random.pick(CRONS), timeZone: random.pick(ZONES), missed };
      await addSchedule(test.app, owner.project, { ...input, url: receiver.url });
      models.push(new Model(input, clock.now()));
    }
    const story: string[] = [];
    for (let step = 0; step < STEPS; step++) {
      const before = clock.now();
      const ms = chooseStep(random);
      clock.advance(ms);
      story.push(`${ms / SECOND}s`);
      if (ms < 0) {
        await replanSchedules(test.app);
        for (const model of models) model.planAgain(clock.now());
      }
      for (const model of models) model.look(clock.now());
      await look(random);
      if (random.chance(0.05)) {
        const model = random.pick(models);
        await setSchedule(test.app, owner.project, { ...model.input, url: receiver.url });
        model.planAgain(clock.now());
      }
      expectAsModelled(models, `seed ${seed}, from ${new Date(before).toISOString()}, steps ${story.join(' ')}`);
    }
    expect(models.some(({ called }) => called.size > 20)).toBe(true);
  });
});

/** Mostly the clock goes on evenly; now and then nobody is there for a while, or the machine's was wrong. */
function chooseStep(random: Random): number {
  if (random.chance(0.7)) return (1 + random.below(55)) * SECOND;
  if (random.chance(0.6)) return random.below(3_600) * SECOND;
  return random.pick([-HOUR - SECOND, -HOUR - 5 * MINUTE, -2 * HOUR, HOUR, 6 * HOUR, DAY]);
}

function expectAsModelled(models: readonly Model[], said: string): void {
  const ids = new Map<string, Set<string>>();
  const late = new Set<string>();
  for (const { event, headers } of receiver.received) {
    const run = `${String(event.name)} ${String(event.dueAt)}`;
    ids.set(run, (ids.get(run) ?? new Set()).add(headers['webhook-id'] as string));
    if (event.isLate) late.add(run);
  }
  const list = (pick: (model: Model) => Iterable<number>): string[] =>
    models.flatMap((model) => [...pick(model)].map((at) => `${model.input.name} ${new Date(at).toISOString()}`)).sort();
  const crons = models.map(({ input }) => `${input.cron} ${input.timeZone} ${input.missed}`);
  expect({ said, crons, runs: [...ids.keys()].sort() }).toEqual({ said, crons, runs: list(({ called }) => called) });
  expect({ said, late: [...late].sort() }).toEqual({ said, late: list(({ late: each }) => each) });
  // Whatever was called more than once, after a kill, has one id.
  expect([...ids.values()].every(({ size }) => size === 1)).toBe(true);
}
