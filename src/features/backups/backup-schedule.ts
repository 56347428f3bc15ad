import { DAY_MS } from '../../platform/time/clock.js';
/** The rule for the backups to keep: the newest of each of a number of days, weeks and months. */
export interface KeepRule {
  days: number;
  weeks: number;
  months: number;
}

export interface NamedBackup {
  name: string;
  at: Date;
}

const NAME = /^bsvc-(\d{4}-\d{2}-\d{2})T(\d{2})(\d{2})(\d{2})Z\.backup$/;

/** The name of a backup of that moment; names sort by time. */
export function backupName(at: Date): string {
  return `bsvc-${at.toISOString().slice(0, 19).replaceAll(':', '')}Z.backup`;
}

/** The moment in a name of backupName; null for any other name: not a backup of ours. */
export function timeOfBackup(name: string): Date | null {
  const match = NAME.exec(name);
  if (!match) return null;
  const [, day, hours, minutes, seconds] = match;
  const at = new Date(`${day}T${hours}:${minutes}:${seconds}Z`);
  return Number.isNaN(at.getTime()) ? null : at;
}

/**
 * The backups that a rule does not keep. Of each day (week, month) in UTC that has one, the newest counts for the
 * period; the rule keeps the latest such periods, and always the newest backup of all.
 */
export function listSuperseded<B extends NamedBackup>(backups: readonly B[], { days, weeks, months }: KeepRule): B[] {
  const newestFirst = [...backups].sort((a, b) => b.at.getTime() - a.at.getTime());
  const kept = new Set<B>(newestFirst.slice(0, 1));
  const keep = (count: number, periodOf: (at: Date) => string | number): void => {
    const seen = new Set<string | number>();
    for (const backup of newestFirst) {
      const period = periodOf(backup.at);
      if (seen.has(period)) continue;
      if (seen.size === count) return;
      seen.add(period);
      kept.add(backup);
    }
  };
  keep(days, (at) => Math.floor(at.getTime() / DAY_MS));
  // The first day of 1970 was a Thursday; weeks begin on Monday.
  keep(weeks, (at) => Math.floor((at.getTime() / DAY_MS + 3) / 7));
  keep(months, (at) => at.toISOString().slice(0, 7));
  return newestFirst.filter((backup) => !kept.has(backup));
}
