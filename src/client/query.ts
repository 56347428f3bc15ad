import { ApiError } from './api-error.js';

/** The parameters of a query; a filter's values of any kind as the service reads them. */
export function buildQuery(
  filter: object | undefined,
  parameters: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>,
): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter ?? {})) {
    // Left out it would match everything: a list of all documents in place of somebody's.
    if (value === undefined || value === null) throw wrongFilter(name, `is ${String(value)}`);
    if (!Array.isArray(value)) query.append(name, textOf(value));
    else if (value.length === 0) throw wrongFilter(name, 'is an empty list');
    // Twice even for one value: only then is a comma part of it.
    else for (const each of value.length === 1 ? [value[0], value[0]] : value) query.append(name, textOf(each));
  }
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) query.append(name, String(value));
  }
  return query;
}

const textOf = (value: unknown): string => (value instanceof Date ? value.toISOString() : String(value));

const wrongFilter = (name: string, problem: string): ApiError =>
  new ApiError(`filter: ${name} ${problem}`, { status: 400, code: 'INVALID_QUERY' });
