import type { ParsedUrlQuery } from 'node:querystring';
import { invalid } from '../../errors.js';

/** A query parameter that is `true` or `false`; 400 INVALID_QUERY for anything else. */
export function readFlag(query: ParsedUrlQuery, name: string, fallback: boolean): boolean {
  const value = query[name];
  if (value === undefined) return fallback;
  if (value !== 'true' && value !== 'false') throw invalid('INVALID_QUERY', `${name} must be true or false`);
  return value === 'true';
}
