import { createTask, parse, type ParsedFields } from 'node-cron';
import { DAY_MS } from '../time/clock.js';

const SECOND_MS = 1_000;
/** The longest gap between two ticks: eight years from one 29th of February to the next across a year like 2100. */
const MAX_DAYS = 8 * 366;

/** The ticks of one cron expression. */
export interface Ticks {
  /**
   * The first tick after that moment, both in milliseconds since 1970; null when there is none within eight years.
   * Looks at days, never at the ticks in between.
   */
  after(ms: number): number | null;
}

/** Reads a cron expression (UTC; six fields start with seconds); throws when it is none. */
export function readTicks(cron: string): Ticks {
  const fields = parse(cron);
  const matches = dayMatcher(cron, fields);
  const firstOfDay = timeOfDayAfter(fields, -1)!;
  return {
    after(ms) {
      const firstDayMs = Math.floor(ms / DAY_MS) * DAY_MS;
      for (let day = 0; day < MAX_DAYS; day++) {
        const dayMs = firstDayMs + day * DAY_MS;
        if (!fields.month.includes(new Date(dayMs).getUTCMonth() + 1)) continue;
        const second = day === 0 ? timeOfDayAfter(fields, Math.floor((ms - dayMs) / SECOND_MS)) : firstOfDay;
        if (second === null) continue;
        const tick = dayMs + second * SECOND_MS;
        if (matches(new Date(tick))) return tick;
      }
      return null;
    },
  };
}

/**
 * Days by number are compared here: node-cron asks the calendar of the system, which costs a process 9 MiB. Others,
 * such as the last day of the month, are left to it.
 */
function dayMatcher(cron: string, { dayOfMonth, dayOfWeek }: ParsedFields): (moment: Date) => boolean {
  if ([...dayOfMonth, ...dayOfWeek].every((day) => typeof day === 'number')) {
    return (moment) => dayOfMonth.includes(moment.getUTCDate()) && dayOfWeek.includes(moment.getUTCDay());
  }
  const task = createTask(cron, () => undefined, { timezone: 'UTC' });
  // It is never started.
  void task.destroy();
  return (moment) => task.match(moment);
}

/**
 * The first time of day that the fields name after that second of the day, in seconds; null when the day has none left.
 */
function timeOfDayAfter({ hour, minute, second }: ParsedFields, after: number): number | null {
  const hours = ascending(hour);
  const minutes = ascending(minute);
  const seconds = ascending(second);
  for (const h of hours) {
    for (const m of minutes) {
      const minuteAt = h * 3600 + m * 60;
      for (const s of seconds) if (minuteAt + s > after) return minuteAt + s;
    }
  }
  return null;
}

const ascending = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);
