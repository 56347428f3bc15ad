import type { ParsedUrlQuery } from 'node:querystring';

/**
 * The parameters of a query string; what is given more than once is a list. In one pass: Koa's own looks for all values
 * of a name once more at each of them.
 */
export function parseQuery(text: string): ParsedUrlQuery {
  const query = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const given = query.get(name);
    if (given === undefined) query.set(name, value);
    else if (typeof given === 'string') query.set(name, [given, value]);
    else given.push(value);
  }
  return Object.fromEntries(query);
}
