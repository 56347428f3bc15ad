import { Cron } from 'croner';
import { invalid } from '../../errors.js';

/** The moments that a cron expression names in a time zone, in milliseconds since 1970. */
export interface DueTimes {
  /** The first one after that moment; null when there is none. */
  after(ms: number): number | null;
}

const MAX_CHARACTERS = 100;
const TIME_ZONE = /^[A-Za-z][\w+/-]{0,63}$/;
const EVERY = /[*?]/;
const LAST_MINUTE = 59;
const LAST_HOUR = 23;

/**
 * Reads an expression of five fields, so that no two of its moments are less than a minute apart. A local time that
 * occurs twice counts once, the first time; one that does not occur is the first moment after the gap. Expressions for
 * every hour, or every so many, go on by the hours that pass instead. 400 INVALID_SCHEDULE.
 */
export function readDueTimes(cron: string, timeZone: string): DueTimes {
  const fields = cron.trim().split(/\s+/);
  if (cron.length > MAX_CHARACTERS || fields.length !== 5) {
    throw invalid('INVALID_SCHEDULE', `A cron expression has five fields: minute, hour, day, month, weekday`);
  }
  requireTimeZone(timeZone);
  const read = open(fields, timeZone);
  const [minute = '', hour = '', ...days] = fields;
  if (EVERY.test(hour)) return read;
  return open([spellOut(minute, LAST_MINUTE), spellOut(hour, LAST_HOUR), ...days], timeZone);
}

function requireTimeZone(timeZone: string): void {
  try {
    if (!TIME_ZONE.test(timeZone)) throw new RangeError();
    new Intl.DateTimeFormat('en', { timeZone });
  } catch {
    const text = `${JSON.stringify(timeZone.slice(0, 64))} is no time zone: use a name such as Europe/Berlin or UTC`;
    throw invalid('INVALID_SCHEDULE', text);
  }
}

function open(fields: readonly string[], timezone: string): DueTimes {
  let read: Cron;
  try {
    read = new Cron(fields.join(' '), { timezone, paused: true, fixedTimeRule: 'no-wildcard' });
    if (read.nextRun(new Date())) return { after: (ms) => read.nextRun(new Date(ms))?.getTime() ?? null };
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error);
    throw invalid('INVALID_SCHEDULE', `The cron expression cannot be read: ${why}`, { cause: error });
  }
  throw invalid('INVALID_SCHEDULE', 'The cron expression names no moment that will ever come');
}

/** A field without wildcards and steps: times that occur twice or never are then treated as those of a single one. */
function spellOut(field: string, last: number): string {
  return field
    .split(',')
    .flatMap((part) => {
      const [range = '', step] = part.split('/');
      if (step === undefined && !EVERY.test(range)) return [part];
      const [from = 0, to = last] = EVERY.test(range) ? [] : range.split('-').map(Number);
      const every = Number(step ?? 1);
      return Array.from({ length: Math.floor((to - from) / every) + 1 }, (_, at) => String(from + at * every));
    })
    .join(',');
}
