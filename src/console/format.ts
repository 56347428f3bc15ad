import { utc } from './session.js';

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });
export const number = (value: number): string => numbers.format(value);

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
export function cell(value: unknown): string {
  if (value === undefined) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > MAX_CELL ? `${text.slice(0, MAX_CELL)}…` : text;
}
