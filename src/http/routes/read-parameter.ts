import type { ParsedUrlQuery } from 'node:querystring';
import { invalid } from '../../errors.js';

/** A query parameter that may be given once; 400 INVALID_QUERY for twice. */
export function readTextParameter(query: ParsedUrlQuery, name: string): string | undefined {
  const value = query[name];
  if (Array.isArray(value)) throw invalid('INVALID_QUERY', `${name} is given more than once`);
  return value;
}

/**
 * A query parameter in plain digits, 1 or more; beyond `max` it counts as `max`. 400 INVALID_QUERY for anything else.
 */
export function readWholeParameter(query: ParsedUrlQuery, name: string, fallback: number, max: number): number {
  const text = readTextParameter(query, name);
  if (text === undefined) return fallback;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw invalid('INVALID_QUERY', `${name} must be a whole number, 1 or more`);
  return Math.min(Number(text), max);
}

/** A query parameter that is `true` or `false`; 400 INVALID_QUERY for anything else. */
export function readFlagParameter(query: ParsedUrlQuery, name: string, fallback: boolean): boolean {
  const value = query[name];
  if (value === undefined) return fallback;
  if (value !== 'true' && value !== 'false') throw invalid('INVALID_QUERY', `${name} must be true or false`);
  return value === 'true';
}
