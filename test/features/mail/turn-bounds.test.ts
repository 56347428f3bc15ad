import { setTimeout as pause } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { setMailSettings } from '../../../src/features/mail/project-mail.js';
import { holdTurns, rejectLongWait, waitForTurn } from '../../../src/features/mail/sending/provider-pace.js';
import { sha256Hex } from '../../../src/platform/ids.js';
import { buildProject } from '../../helpers/build-project.js';
import { useTestApp } from '../../helpers/use.js';

const HOUR = 3_600_000;
/** Of ten calls a second. */
const GAP = 100;

// Stands until it is moved, so that bounds are exact.
const clock = { ms: Date.now(), now: () => clock.ms };

const test = await useTestApp({ clock, settings: { BSVC_MAIL_RATE: '10/1s' } });
const owner = await buildProject(test.app);
const project = await setMailSettings(test.app, owner.project, { providerApiKey: 're_own' });

const pace = () => test.app.db.collection<{ _id: string; nextAt: Date }>('mail_pace');
beforeEach(() => pace().deleteMany({}));

/** The next turn is so many milliseconds ahead. */
const lead = (ms: number) =>
  pace().updateOne({ _id: sha256Hex('re_own') }, { $set: { nextAt: new Date(clock.ms + ms) } }, { upsert: true });
const next = async (): Promise<number | null> => {
  const found = await pace().findOne({ _id: sha256Hex('re_own') });
  return found && found.nextAt.getTime() - clock.ms;
};
/** Whether a turn comes later than a timer of half a gap that began before it: in this order on a slow machine too. */
async function isWaitedFor(take: () => Promise<Date | null>): Promise<boolean> {
  const shorter = pause(GAP / 2, true);
  const turn = take();
  const waited = await Promise.race([shorter, turn.then(() => false)]);
  expect(await turn).toBeNull();
  return waited;
}
const later = (ms: number): Date => new Date(clock.ms + ms);

describe('a turn that somebody waits for at a screen', () => {
  const book = (mostMs?: number) => waitForTurn(test.app, project, { urgent: true, ...(mostMs && { mostMs }) });

  it('is booked behind those that are booked, a gap further each, and waited for', async () => {
    expect(await book()).toBeNull();
    expect(await next()).toBe(GAP);
    expect(await isWaitedFor(book)).toBe(true);
    expect(await next()).toBe(2 * GAP);
    await lead(-5_000);
    expect(await book()).toBeNull();
    expect(await next()).toBe(GAP);
  });

  it('is taken as far ahead as he waits for, and said to be later, and not booked, beyond', async () => {
    await lead(30);
    expect(await book(30)).toBeNull();
    expect(await next()).toBe(30 + GAP);
    await lead(31);
    expect(await book(30)).toEqual(later(31));
    expect(await next()).toBe(31);
  });

  it('is an hour ahead at most: what is further was booked by a clock that was set back', async () => {
    await lead(HOUR);
    expect(await book(30)).toEqual(later(HOUR));
    await lead(HOUR + 1);
    expect(await book(30)).toBeNull();
    expect(await next()).toBe(GAP);
  });
});

describe('a turn of a worker', () => {
  const wait = (mostMs?: number) => waitForTurn(test.app, project, mostMs ? { mostMs } : {});

  it('is taken when it is free, and waited for until then', async () => {
    expect(await wait()).toBeNull();
    expect(await next()).toBe(GAP);
    expect(await isWaitedFor(wait)).toBe(true);
    // From when it was free; timers may end a millisecond early.
    expect(await next()).toBeGreaterThanOrEqual(2 * GAP - 2);
  });

  it('is said to be later, and not taken, when it is further ahead than he waits for', async () => {
    await lead(5_000);
    expect(await wait(4_000)).toEqual(later(5_000));
    expect(await next()).toBe(5_000);
    await lead(0);
    expect(await wait(1)).toBeNull();
  });

  it('is taken at once where the one ahead was booked by a clock that was set back', async () => {
    await lead(HOUR - 1_000);
    expect(await wait(1)).toEqual(later(HOUR - 1_000));
    await lead(HOUR + 60_000);
    expect(await wait(1)).toBeNull();
    expect(await next()).toBeLessThan(HOUR);
  });
});

describe('silence that the provider asked for', () => {
  it('holds back as long as it was asked for, an hour at most, and is not made shorter', async () => {
    await holdTurns(test.app, project, 5_000);
    expect(await next()).toBe(5_000);
    await holdTurns(test.app, project, 4_000);
    expect(await next()).toBe(5_000);
    await holdTurns(test.app, project, HOUR + 1);
    expect(await next()).toBe(HOUR);
  });

  it('is of a key: a project without one has none to wait for', async () => {
    const { project: without } = await buildProject(test.app);
    await holdTurns(test.app, without, HOUR);
    expect(await pace().countDocuments({})).toBe(0);
    expect(await waitForTurn(test.app, without, { mostMs: 1 })).toBeNull();
    await rejectLongWait(test.app, without);
  });

  it('refuses a client beyond a minute, up to the hour that is believed', async () => {
    const refused = (ms: number) => ({ code: 'RATE_LIMITED', retryAfterSeconds: ms / 1_000 });
    await rejectLongWait(test.app, project);
    for (const ms of [-1, 0, 60_000, HOUR + 1]) {
      await lead(ms);
      await rejectLongWait(test.app, project);
    }
    for (const ms of [60_001, HOUR]) {
      await lead(ms);
      await expect(rejectLongWait(test.app, project)).rejects.toMatchObject(refused(ms));
      expect(await next()).toBe(ms);
    }
  });
});
