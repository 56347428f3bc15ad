import { CODES, refusal } from '../../errors.js';

/** A time zone: fixed offset, or a name from the Olson database with its changes over time. */
export interface TimeZone {
  readonly isUtc: boolean;
  /** Milliseconds to add to UTC at the given instant. */
  offsetAt(time: number): number;
}

export const UTC: TimeZone = { isUtc: true, offsetAt: () => 0 };

const QUARTER_HOUR = 900_000;
const MAX_CACHED_OFFSETS = 5_000;
const zones = new Map<string, TimeZone>();

/** Finds a zone by name or offset (`Europe/Oslo`, `+05:30`, `-08`); an unknown one is refused with 40485. */
export function requireTimeZone(name: unknown): TimeZone {
  if (typeof name !== 'string') throw refusal(40517, 'timezone must evaluate to a string');
  const known = zones.get(name);
  if (known !== undefined) return known;
  const zone = parseOffset(name) ?? namedZone(name);
  if (zones.size >= 600) zones.clear();
  zones.set(name, zone);
  return zone;
}

function parseOffset(name: string): TimeZone | null {
  if (name === 'UTC' || name === 'GMT' || name === 'Z') return UTC;
  const match = /^([+-])(\d{2})(?::?(\d{2}))?$/.exec(name);
  if (match === null) return null;
  const offset = (Number(match[2]) * 60 + Number(match[3] ?? 0)) * 60_000 * (match[1] === '-' ? -1 : 1);
  return { isUtc: false, offsetAt: () => offset };
}

function namedZone(name: string): TimeZone {
  let format: Intl.DateTimeFormat;
  try {
    if (!/^[A-Za-z][A-Za-z0-9_+\-/]{0,60}$/.test(name)) throw new RangeError(name);
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
      era: 'short',
    });
  } catch {
    throw refusal(40485, `unrecognized time zone identifier: "${name}"`);
  }
  // Zones change their offset only at quarters of an hour, and asking Intl is slow.
  const offsets = new Map<number, number>();
  return {
    isUtc: false,
    offsetAt(time) {
      // Such a time is refused when a date is made of it.
      if (!(Math.abs(time) <= LAST_INSTANT)) return 0;
      const quarter = Math.floor(time / QUARTER_HOUR);
      const cached = offsets.get(quarter);
      if (cached !== undefined) return cached;
      if (offsets.size >= MAX_CACHED_OFFSETS) offsets.clear();
      const offset = readOffset(format, quarter * QUARTER_HOUR);
      offsets.set(quarter, offset);
      return offset;
    },
  };
}

function readOffset(format: Intl.DateTimeFormat, time: number): number {
  const parts: Record<string, string> = {};
  for (const { type, value } of format.formatToParts(time)) parts[type] = value;
  const year = parts['era'] === 'BC' ? 1 - Number(parts['year']) : Number(parts['year']);
  const local = utcTime(
    year,
    Number(parts['month']) - 1,
    Number(parts['day']),
    Number(parts['hour']),
    Number(parts['minute']),
    Number(parts['second']),
  );
  return local - time;
}

/** Like `Date.UTC`, for any year (which takes 0 to 99 for the twentieth century). */
export function utcTime(
  year: number,
  month: number,
  day: number,
  hour = 0,
  minute = 0,
  second = 0,
  millisecond = 0,
): number {
  const date = new Date(0);
  date.setUTCFullYear(year, month, day);
  date.setUTCHours(hour, minute, second, millisecond);
  return date.getTime();
}

const LAST_INSTANT = 8.64e15;

/** The date of an instant; one that no date can have is refused with 15. */
export function dateAt(time: number): Date {
  if (!(Math.abs(time) <= LAST_INSTANT)) throw refusal(CODES.Overflow, 'the date is out of range');
  return new Date(time);
}

/** The same instant as a date whose UTC fields are the zone's wall clock. */
export function toWallClock(time: number, zone: TimeZone): Date {
  return dateAt(time + zone.offsetAt(time));
}

/** The instant at which the zone's clocks show the given time; within a gap, what they would have shown. */
export function fromWallClock(local: number, zone: TimeZone): number {
  const first = local - zone.offsetAt(local);
  const offset = zone.offsetAt(first);
  const second = local - offset;
  return zone.offsetAt(second) === offset ? second : Math.max(first, second);
}
