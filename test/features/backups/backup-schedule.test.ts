import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backupName, listSuperseded, timeOfBackup } from '../../../src/features/backups/backup-schedule.js';
import { openSeed } from '../../helpers/seed.js';

const DAY_MS = 86_400_000;
const dailyFrom = (first: string, count: number) =>
  Array.from({ length: count }, (_, day) => {
    const at = new Date(Date.parse(`${first}T03:00:00Z`) + day * DAY_MS);
    return { name: backupName(at), at };
  });

describe('the rule of kept backups', () => {
  it('keeps the newest of the last days, weeks and months', () => {
    const backups = dailyFrom('2026-01-01', 120);
    const removed = new Set(listSuperseded(backups, { days: 3, weeks: 2, months: 3 }));
    const kept = backups.filter((backup) => !removed.has(backup)).map(({ at }) => at.toISOString().slice(0, 10));
    // 30 April is a Thursday: the last Sunday before it ends the week before, and the months end in February, March and
    // today.
    expect(kept).toEqual(['2026-02-28', '2026-03-31', '2026-04-26', '2026-04-28', '2026-04-29', '2026-04-30']);
  });

  it('keeps one of several of a day, the newest', () => {
    const at = (hour: number) => new Date(`2026-01-01T0${hour}:00:00Z`);
    const backups = [1, 2, 3].map((hour) => ({ name: backupName(at(hour)), at: at(hour) }));
    expect(listSuperseded(backups, { days: 7, weeks: 4, months: 6 }).map(({ at: time }) => time.getUTCHours())).toEqual(
      [2, 1],
    );
  });

  it('never removes the newest, keeps no more than it names, and removes nothing when asked again', () => {
    const moments = fc.array(fc.integer({ min: 0, max: 4 * 365 }), { minLength: 1, maxLength: 60 });
    const counts = fc.record({ days: fc.nat(10), weeks: fc.nat(6), months: fc.nat(8) });
    fc.assert(
      fc.property(moments, counts, (days, rule) => {
        const backups = [...new Set(days)].map((day) => ({ name: `${day}`, at: new Date(day * DAY_MS) }));
        const removed = new Set(listSuperseded(backups, rule));
        const kept = backups.filter((backup) => !removed.has(backup));
        const newest = Math.max(...backups.map(({ at }) => at.getTime()));
        expect(kept.some(({ at }) => at.getTime() === newest)).toBe(true);
        expect(kept.length).toBeLessThanOrEqual(Math.max(1, rule.days + rule.weeks + rule.months));
        expect(listSuperseded(kept, rule)).toEqual([]);
      }),
      { seed: openSeed('schedules of backups') },
    );
  });

  it('reads the time of its own names and of no others', () => {
    const at = new Date('2026-11-22T03:00:00Z');
    expect(timeOfBackup(backupName(at))).toEqual(at);
    for (const name of ['bsvc.backup', 'bsvc-2026-13-40T030000Z.backup', `${backupName(at)}.old`, 'x'])
      expect(timeOfBackup(name)).toBeNull();
  });
});
