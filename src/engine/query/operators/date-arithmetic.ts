import { failedToParse, refusal } from '../../errors.js';
import { typeOf } from '../values/value.js';
import { fromWallClock, type TimeZone, toWallClock, utcTime } from './time-zone.js';

export type DateUnit = 'year' | 'quarter' | 'month' | 'week' | 'day' | 'hour' | 'minute' | 'second' | 'millisecond';

const DAY = 86_400_000;
const LENGTHS: Readonly<Record<'week' | 'day' | 'hour' | 'minute' | 'second' | 'millisecond', number>> = {
  week: 7 * DAY,
  day: DAY,
  hour: 3_600_000,
  minute: 60_000,
  second: 1000,
  millisecond: 1,
};
const MONTHS_IN: Readonly<Partial<Record<DateUnit, number>>> = { year: 12, quarter: 3, month: 1 };
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];

/** Checks a unit's name; an unknown one is refused with 9. */
export function requireUnit(unit: unknown): DateUnit {
  if (typeof unit !== 'string') throw refusal(5439013, `unit must be a string, found ${typeOf(unit)}`);
  if (Object.hasOwn(LENGTHS, unit) || Object.hasOwn(MONTHS_IN, unit)) return unit as DateUnit;
  throw failedToParse(`unknown time unit value: ${unit}`);
}

function weekdayOf(name: unknown): number {
  if (name === undefined || name === null) return 0;
  const wanted = typeof name === 'string' ? name.toLowerCase() : '';
  const index = WEEKDAYS.findIndex((day) => day === wanted || (wanted.length === 3 && day.startsWith(wanted)));
  if (index < 0) throw failedToParse(`unknown day of week value: ${typeof name === 'string' ? name : typeOf(name)}`);
  return index;
}

function isLongUnit(unit: DateUnit): boolean {
  return unit === 'week' || unit === 'day';
}

/** Months keep the day where the month has it, else the last one; days and longer units keep the wall clock's time. */
export function addToDate(time: number, unit: DateUnit, amount: number, zone: TimeZone): number {
  const months = MONTHS_IN[unit];
  if (months === undefined) {
    const length = LENGTHS[unit as keyof typeof LENGTHS] * amount;
    if (!isLongUnit(unit)) return time + length;
    return fromWallClock(toWallClock(time, zone).getTime() + length, zone);
  }
  const local = toWallClock(time, zone);
  const total = local.getUTCFullYear() * 12 + local.getUTCMonth() + months * amount;
  const year = Math.floor(total / 12);
  const month = total - year * 12;
  const lastDay = new Date(utcTime(year, month + 1, 0)).getUTCDate();
  const day = utcTime(year, month, Math.min(local.getUTCDate(), lastDay));
  return fromWallClock(day + modulo(local.getTime(), DAY), zone);
}

function modulo(value: number, divisor: number): number {
  return value - Math.floor(value / divisor) * divisor;
}

/** How many boundaries of the unit lie between the two instants. */
export function dateDifference(
  start: number,
  end: number,
  unit: DateUnit,
  zone: TimeZone,
  startOfWeek: unknown,
): number {
  return ordinal(end, unit, zone, startOfWeek) - ordinal(start, unit, zone, startOfWeek);
}

/** The number of the unit that an instant falls into, counted from some fixed one. */
function ordinal(time: number, unit: DateUnit, zone: TimeZone, startOfWeek: unknown): number {
  const months = MONTHS_IN[unit];
  const local = toWallClock(time, zone);
  if (months !== undefined) return Math.floor((local.getUTCFullYear() * 12 + local.getUTCMonth()) / months);
  if (unit === 'day') return Math.floor(local.getTime() / DAY);
  // The first of January 1970 was a Thursday.
  if (unit === 'week') return Math.floor((Math.floor(local.getTime() / DAY) + 4 - weekdayOf(startOfWeek)) / 7);
  const length = LENGTHS[unit as keyof typeof LENGTHS];
  return Math.floor((time + modulo(zone.offsetAt(time), length)) / length);
}

/** The start of the bin of `size` units that an instant falls into; bins are counted from the year 2000. */
export function truncateDate(time: number, unit: DateUnit, size: number, zone: TimeZone, startOfWeek: unknown): number {
  const months = MONTHS_IN[unit];
  const local = toWallClock(time, zone).getTime();
  if (months !== undefined) {
    const date = new Date(local);
    const bin = months * size;
    const since = (date.getUTCFullYear() - 2000) * 12 + date.getUTCMonth();
    return fromWallClock(utcTime(2000, Math.floor(since / bin) * bin, 1), zone);
  }
  const bin = LENGTHS[unit as keyof typeof LENGTHS] * size;
  if (isLongUnit(unit)) {
    // The first of January 2000 was a Saturday: weeks start on the first such weekday from there on.
    const reference = utcTime(2000, 0, 1) + (unit === 'week' ? ((weekdayOf(startOfWeek) + 1) % 7) * DAY : 0);
    return fromWallClock(reference + Math.floor((local - reference) / bin) * bin, zone);
  }
  const reference = fromWallClock(utcTime(2000, 0, 1), zone);
  return reference + Math.floor((time - reference) / bin) * bin;
}
