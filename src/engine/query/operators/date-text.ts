import { refusal } from '../../errors.js';
import { fromWallClock, requireTimeZone, type TimeZone, toWallClock, utcTime } from './time-zone.js';

const DAY = 86_400_000;
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];

/** Monday-based weeks, the first of which has the year's first Thursday. */
export function isoWeekOf(local: Date): { year: number; week: number; day: number } {
  const day = local.getUTCDay() === 0 ? 7 : local.getUTCDay();
  const thursday = new Date(local.getTime() + (4 - day) * DAY);
  const year = thursday.getUTCFullYear();
  return { year, week: Math.floor((thursday.getTime() - utcTime(year, 0, 1)) / (7 * DAY)) + 1, day };
}

/** 1 for the first of January. */
export function dayOfYear(local: Date): number {
  return Math.floor((local.getTime() - utcTime(local.getUTCFullYear(), 0, 1)) / DAY) + 1;
}

/** Sunday-based weeks; the days before the first Sunday are week 0. */
export function weekOf(local: Date): number {
  return Math.floor((dayOfYear(local) + 6 - local.getUTCDay()) / 7);
}

function pad(value: number, width: number): string {
  return String(Math.abs(value)).padStart(width, '0');
}

type Writer = (local: Date, offset: number) => string;

function offsetText(offset: number): string {
  const minutes = Math.abs(offset) / 60_000;
  return `${offset < 0 ? '-' : '+'}${pad(Math.floor(minutes / 60), 2)}${pad(minutes % 60, 2)}`;
}

const WRITERS: Readonly<Record<string, Writer>> = {
  Y: (local) => pad(local.getUTCFullYear(), 4),
  m: (local) => pad(local.getUTCMonth() + 1, 2),
  d: (local) => pad(local.getUTCDate(), 2),
  H: (local) => pad(local.getUTCHours(), 2),
  M: (local) => pad(local.getUTCMinutes(), 2),
  S: (local) => pad(local.getUTCSeconds(), 2),
  L: (local) => pad(local.getUTCMilliseconds(), 3),
  j: (local) => pad(dayOfYear(local), 3),
  w: (local) => String(local.getUTCDay() + 1),
  u: (local) => String(isoWeekOf(local).day),
  U: (local) => pad(weekOf(local), 2),
  V: (local) => pad(isoWeekOf(local).week, 2),
  G: (local) => pad(isoWeekOf(local).year, 4),
  b: (local) => MONTHS[local.getUTCMonth()]!.slice(0, 3),
  B: (local) => MONTHS[local.getUTCMonth()]!,
  z: (_local, offset) => offsetText(offset),
  Z: (_local, offset) => String(offset / 60_000),
  '%': () => '%',
};

/** Writes an instant in a zone by a format of `%` specifiers; an unknown one is refused with 18536. */
export function formatDate(time: number, format: string, zone: TimeZone): string {
  const local = toWallClock(time, zone);
  if (local.getUTCFullYear() < 0 || local.getUTCFullYear() > 9999) {
    throw refusal(18537, `Could not convert date to string: date component was outside the supported range of 0-9999`);
  }
  const offset = zone.offsetAt(time);
  return format.replace(/%([\s\S]?)/g, (_text, letter: string) => {
    if (letter === '') throw refusal(18535, "Unmatched '%' at end of format string");
    const writer = Object.hasOwn(WRITERS, letter) ? WRITERS[letter] : undefined;
    if (writer === undefined) throw refusal(18536, `Invalid format character '%${letter}' in format string`);
    return writer(local, offset);
  });
}

interface Fields {
  year?: number;
  month?: number;
  day?: number;
  hour?: number;
  minute?: number;
  second?: number;
  millisecond?: number;
  dayOfYear?: number;
  isoYear?: number;
  isoWeek?: number;
  isoDay?: number;
  offset?: number;
}

const ISO =
  /^(\d{4})-?(\d{2})-?(\d{2})(?:[T ]?(\d{2})(?::?(\d{2})(?::?(\d{2})(?:[.,](\d{1,9}))?)?)?)?\s*(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?|[A-Za-z]+\/[A-Za-z_/]+)?$/i;
const ENGLISH = /^([A-Za-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})(?:\s+(\d{1,2}):(\d{2})(?::(\d{2}))?)?$/;
/** No date is longer, white space apart. */
const MAX_DATE_LENGTH = 100;

/** Reads an ISO 8601 date, or an English one like "July 4, 2017"; null for anything else. */
export function parseIsoDate(text: string, zoneName: string): Date | null {
  const date = text.trim();
  if (date.length > MAX_DATE_LENGTH) return null;
  const match = ISO.exec(date);
  if (match !== null) {
    const [, year, month, day, hour, minute, second, fraction, suffix] = match;
    const fields: Fields = {
      year: Number(year),
      month: Number(month),
      day: Number(day),
      hour: Number(hour ?? 0),
      minute: Number(minute ?? 0),
      second: Number(second ?? 0),
      millisecond: fraction === undefined ? 0 : Math.floor(Number(`0.${fraction}`) * 1000 + 1e-9),
    };
    return assemble(
      fields,
      requireTimeZone(suffix === undefined ? zoneName : suffix.length === 3 || suffix === 'z' ? 'UTC' : suffix),
    );
  }
  const english = ENGLISH.exec(date);
  if (english === null) return null;
  const month = monthOf(english[1]!);
  if (month < 0) return null;
  const fields: Fields = {
    year: Number(english[3]),
    month: month + 1,
    day: Number(english[2]),
    hour: Number(english[4] ?? 0),
    minute: Number(english[5] ?? 0),
    second: Number(english[6] ?? 0),
  };
  return assemble(fields, requireTimeZone(zoneName));
}

function monthOf(name: string): number {
  return MONTHS.findIndex((month) => month.toLowerCase().startsWith(name.toLowerCase()));
}

function inRange(value: number | undefined, low: number, high: number): boolean {
  return value === undefined || (value >= low && value <= high);
}

function assemble(fields: Fields, zone: TimeZone): Date | null {
  const { hour = 0, minute = 0, second = 0, millisecond = 0 } = fields;
  if (!inRange(fields.month, 1, 12) || !inRange(fields.day, 1, 31) || !inRange(hour, 0, 24)) return null;
  if (!inRange(minute, 0, 59) || !inRange(second, 0, 60) || !inRange(fields.isoWeek, 1, 53)) return null;
  let local: number;
  if (fields.isoYear !== undefined) {
    local = isoTime(fields.isoYear, fields.isoWeek ?? 1, fields.isoDay ?? 1);
  } else if (fields.dayOfYear !== undefined) {
    local = utcTime(fields.year ?? 1970, 0, fields.dayOfYear);
  } else {
    if (fields.year === undefined) return null;
    const { year, month = 1, day = 1 } = fields;
    local = utcTime(year, month - 1, day);
    if (new Date(local).getUTCDate() !== day) return null;
  }
  local += ((hour * 60 + minute) * 60 + second) * 1000 + millisecond;
  return new Date(fields.offset === undefined ? fromWallClock(local, zone) : local - fields.offset);
}

/** Midnight of a day given by ISO week. */
export function isoTime(year: number, week: number, day: number): number {
  const fourth = new Date(utcTime(year, 0, 4));
  const monday = fourth.getTime() - ((fourth.getUTCDay() + 6) % 7) * DAY;
  return monday + ((week - 1) * 7 + day - 1) * DAY;
}

const READERS: Readonly<Record<string, { pattern: RegExp; read: (text: string, fields: Fields) => void }>> = {
  Y: { pattern: /\d{4}/y, read: (text, fields) => (fields.year = Number(text)) },
  m: { pattern: /\d{1,2}/y, read: (text, fields) => (fields.month = Number(text)) },
  d: { pattern: /\d{1,2}/y, read: (text, fields) => (fields.day = Number(text)) },
  H: { pattern: /\d{1,2}/y, read: (text, fields) => (fields.hour = Number(text)) },
  M: { pattern: /\d{1,2}/y, read: (text, fields) => (fields.minute = Number(text)) },
  S: { pattern: /\d{1,2}/y, read: (text, fields) => (fields.second = Number(text)) },
  L: { pattern: /\d{1,3}/y, read: (text, fields) => (fields.millisecond = Number(text)) },
  j: { pattern: /\d{1,3}/y, read: (text, fields) => (fields.dayOfYear = Number(text)) },
  G: { pattern: /\d{4}/y, read: (text, fields) => (fields.isoYear = Number(text)) },
  V: { pattern: /\d{1,2}/y, read: (text, fields) => (fields.isoWeek = Number(text)) },
  u: { pattern: /[1-7]/y, read: (text, fields) => (fields.isoDay = Number(text)) },
  b: { pattern: /[A-Za-z]{3}/y, read: (text, fields) => (fields.month = monthOf(text) + 1) },
  B: { pattern: /[A-Za-z]{3,9}/y, read: (text, fields) => (fields.month = monthOf(text) + 1) },
  z: {
    pattern: /Z|[+-]\d{2}:?\d{2}/y,
    read: (text, fields) => (fields.offset = requireTimeZone(text).offsetAt(0)),
  },
  Z: { pattern: /[+-]?\d{1,4}/y, read: (text, fields) => (fields.offset = Number(text) * 60_000) },
  '%': { pattern: /%/y, read: () => undefined },
};

/** Reads a date by a format, each part as long as it can be; null when the text does not fit it. */
export function parseDateBy(text: string, format: string, zoneName: string): Date | null {
  for (const [, letter] of format.matchAll(/%([\s\S]?)/g)) {
    if (!Object.hasOwn(READERS, letter!)) {
      throw refusal(18536, `Invalid format character '%${letter!}' in format string`);
    }
  }
  const fields: Fields = {};
  let at = 0;
  for (let i = 0; i < format.length; i++) {
    if (format[i] !== '%') {
      if (text[at++] !== format[i]) return null;
      continue;
    }
    const reader = READERS[format[++i]!]!;
    reader.pattern.lastIndex = at;
    const [part] = reader.pattern.exec(text) ?? [];
    if (part === undefined) return null;
    reader.read(part, fields);
    at += part.length;
  }
  return at === text.length ? assemble(fields, requireTimeZone(zoneName)) : null;
}
