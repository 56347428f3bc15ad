import { findDate } from '../../../src/features/collections/fields/find-date.js';

const MOMENT = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(:\d{2}(?:\.\d+)?)?(Z|[+-]\d{2}(?::?\d{2})?)?$/i;

/**
 * The moment that text of another service names, as ISO 8601 to the millisecond; undefined for other text. PocketBase
 * and PostgreSQL write a space for the T, PostgreSQL an offset of hours alone, and none for `timestamp`: that is UTC.
 */
export function findForeignMoment(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  const [, day, time, seconds = ':00', zone = 'Z'] = MOMENT.exec(text) ?? [];
  const offset = zone.replace(/^(.\d\d):?(\d\d)?$/, (_, hours: string, minutes = '00') => `${hours}:${minutes}`);
  return findDate(day === undefined ? text : `${day}T${time}${seconds}${offset}`)?.toISOString();
}
