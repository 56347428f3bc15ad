import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type JobRecord, SCHEDULES } from '../world/jobs.js';
import { jobStore } from '../world/stored.js';
import { cpuSeconds } from '../bench/process-cost.js';
import { buildProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { canMoveClocks, openMovedClock, type MovedClock } from '../helpers/moved-clock.js';
import { startService, type RunningService } from '../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';
import { bearer, buildEmail, PASSWORD } from '../helpers/user-client.js';
import { withApp } from '../helpers/with-app.js';

const DAY = 86_400;
/**
 * Each schedule makes one run of cold code, as it would by and by: 0.3 seconds on a quiet machine, 0.7 beside other
 * tests. Walking the missed ticks took 2 seconds for a day and 30 for a month.
 */
const MAX_CPU_SECONDS = 1;

let dir: TempDir;
let clock: MovedClock;
let service: RunningService;
let env: Record<string, string>;

beforeEach(async () => {
  if (!canMoveClocks) return;
  dir = await openTempDir();
  clock = openMovedClock(dir.path);
  env = { BSVC_DATA_DIR: `${dir.path}/data`, BSVC_LOG_LEVEL: 'error', BSVC_DURABILITY: 'relaxed' };
  service = await startService(['serve', '--port', '0'], { ...env, ...clock.env });
});
afterEach(async () => {
  if (!canMoveClocks) return;
  await service.stop();
  await dir.remove();
});

const cpu = (): number => {
  const { user, system } = cpuSeconds(service.ready.pid);
  return user + system;
};
/**
 * The scheduled runs that the service stored at or after a moment of its clock, by name, with the tick that each is
 * for.
 */
const runsSince = (ms: number): Promise<{ name: string; tickMs: number; state: string }[]> =>
  withApp(env, async (app) => {
    const jobs = (await jobStore(app)
      .find({ createdAt: { $gte: new Date(ms) } } as never)
      .toArray()) as JobRecord[];
    return jobs
      .filter(({ lane }) => lane?.startsWith('schedule:'))
      .map(({ name, uniqueKey, state }) => ({ name, tickMs: Date.parse(uniqueKey!.split('@')[1]!), state }));
  });
const isLive = async (): Promise<boolean> => (await fetch(`${service.ready.url}/api/health/live`)).status === 200;

describe.skipIf(!canMoveClocks)('bsvc serve while the wall clock jumps', () => {
  it('makes one late run of each schedule for a jump ahead, for next to no processor time, and goes on after one back', async () => {
    const names = SCHEDULES.map(({ job }) => job.name).sort();
    let aheadBefore = 0;
    for (const ahead of [DAY, 30 * DAY, 365 * DAY]) {
      const before = cpu();
      // Between the moment before and the one after the jump lies nothing but missed ticks.
      const jumpedAt = Date.now() + aheadBefore * 1000;
      clock.setAhead(ahead);
      const landed = Date.now() + ahead * 1000 - 5_000;
      const runs = await eventually('every schedule made up for what it missed', async () => {
        const found = await runsSince(landed);
        const late = found.filter(({ tickMs, state }) => tickMs < landed && state === 'done');
        return late.length >= names.length ? found : null;
      });
      const late = runs.filter(({ tickMs }) => tickMs < landed);
      expect(late.map(({ name }) => name).sort()).toEqual(names);
      expect(late.every(({ tickMs }) => tickMs > jumpedAt - 60_000)).toBe(true);
      expect(await isLive()).toBe(true);
      expect(cpu() - before).toBeLessThan(MAX_CPU_SECONDS);
      aheadBefore = ahead;
    }

    const before = cpu();
    const landed = Date.now() - DAY * 1000;
    clock.setAhead(-DAY);
    await eventually('the schedules go on', () =>
      withApp(env, async (app) => {
        const between = { $gte: new Date(landed - 5_000), $lt: new Date(landed + 3_600_000) };
        return jobStore(app).findOne({ createdAt: between, name: 'webhooks.sweep', state: 'done' } as never);
      }),
    );
    expect(await isLive()).toBe(true);
    expect(cpu() - before).toBeLessThan(MAX_CPU_SECONDS);
  });
});

describe.skipIf(!canMoveClocks)('bsvc serve after the wall clock was set back by an hour', () => {
  it('goes on from the time that was: while it is served, and after a kill', async () => {
    const { publishable } = await withApp(env, (app) => buildProject(app));
    const call = (path: string, body?: object, headers = {}): Promise<Response> =>
      fetch(`${service.ready.url}/api/userAuth${path}`, {
        method: body ? 'POST' : 'GET',
        headers: { 'x-api-key': publishable, 'content-type': 'application/json', ...headers },
        ...(body && { body: JSON.stringify(body) }),
      });
    const signUp = async () => {
      const reply = await call('/signup', { email: buildEmail(), password: PASSWORD });
      return (await reply.json()) as { accessToken: string; user: { createdAt: string } };
    };
    const first = await signUp();
    const isGood = async (): Promise<boolean> =>
      (await call('/me', undefined, bearer(first.accessToken))).status === 200;
    expect(await isGood()).toBe(true);

    clock.setAhead(-3_600);
    await eventually('the machine’s clock is back', async () => {
      const { headers } = await call('/me');
      return Date.parse(headers.get('date')!) < Date.now() - 3_000_000;
    });
    expect(await isGood()).toBe(true);
    const second = await signUp();
    expect(second.user.createdAt > first.user.createdAt).toBe(true);

    // Scheduled jobs note it, up to 34 seconds apart, and the clock goes at half speed.
    await eventually('the time is noted', () =>
      withApp(env, async (app) => {
        const noted = await app.db.collection<{ seenAt: Date }>('clock_watch').findOne({});
        return noted !== null && noted.seenAt.getTime() > Date.parse(first.user.createdAt);
      }),
    );
    await service.stop('SIGKILL');
    service = await startService(['serve', '--port', '0'], { ...env, ...clock.env });
    expect(await isGood()).toBe(true);
    expect((await signUp()).user.createdAt > first.user.createdAt).toBe(true);
  });
});
