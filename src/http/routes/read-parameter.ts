import type { ParsedUrlQuery } from 'node:querystring';
import { invalid } from '../../errors.js';

/** A query parameter that may be given once; 400 INVALID_QUERY for twice. */
export function readTextParameter(query: ParsedUrlQuery, name: string): string | undefined {
  const value = query[name];
  if (Array.isArray(value)) throw invalid('INVALID_QUERY', `${name} is given more than once`);
  return value;
}

/** A query parameter in plain digits, from `min` to `max`; 400 INVALID_QUERY for anything else names both. */
export function readWholeParameter(
  query: ParsedUrlQuery,
  name: string,
  { min, max }: { min: number; max: number },
): number | undefined {
  const text = readTextParameter(query, name);
  if (text === undefined) return undefined;
  const value = /^(?:0|[1-9]\d*)$/.test(text) ? Number(text) : NaN;
  if (value >= min && value <= max) return value;
  throw invalid('INVALID_QUERY', `${name} must be a whole number from ${min} to ${max}`);
}

/** A query parameter that is `true` or `false`; 400 INVALID_QUERY for anything else. */
export function readFlagParameter(query: ParsedUrlQuery, name: string, fallback: boolean): boolean {
  const value = query[name];
  if (value === undefined) return fallback;
  if (value !== 'true' && value !== 'false') throw invalid('INVALID_QUERY', `${name} must be true or false`);
  return value === 'true';
}
