import { utc } from './session.js';

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const shortened = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
/** Fractions to three digits: more of them say nothing. */
export const number = (value: number): string => (Math.abs(value) < 1000 ? shortened : whole).format(value);

/** `1 document`, `2 documents`. */
export const howMany = (count: number, noun: string): string => `${number(count)} ${noun}${count === 1 ? '' : 's'}`;

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let size = value;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${new Intl.NumberFormat('en', { maximumFractionDigits: size < 10 && unit > 0 ? 1 : 0 }).format(size)} ${units[unit]!}`;
}

/** `2026-11-22 12:03:19`, of the browser's zone or UTC. */
export function moment(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) return String(value);
  const shown = utc.value ? date : new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return `${shown.toISOString().slice(0, 19).replace('T', ' ')}${utc.value ? ' UTC' : ''}`;
}

export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

const MAX_CELL = 120;

/** Any value in one short line. */
export function cell(value: unknown, most = MAX_CELL): string {
  if (value === undefined) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
