import { ApiError } from './api-error.js';

/** Reserved query parameters of lists, changes and streams: a field of such a name is filtered by another form. */
const PARAMETERS =
  /^(page|skip|limit|sort|cursor|count|fields|populate|expand|include_deleted|meta|since|wait|ticket)$/;

/** The parameters of a query; a filter's values of any kind as the service reads them. */
export function buildQuery(
  filter: object | undefined,
  parameters: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>,
): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter ?? {})) {
    // Left out it would match everything: a list of all documents in place of somebody's.
    if (value === undefined || value === null) throw wrongFilter(name, `is ${String(value)}`);
    const isList = Array.isArray(value);
    if (isList && value.length === 0) throw wrongFilter(name, 'is an empty list');
    const parameter = PARAMETERS.test(name) ? `${name}_in` : name;
    const values: readonly unknown[] = isList ? value : [value];
    // Twice even for one value of a list: only then is a comma part of it.
    const isDoubled = values.length === 1 && (isList || parameter !== name);
    for (const each of isDoubled ? [values[0], values[0]] : values) query.append(parameter, textOf(each));
  }
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) query.append(name, String(value));
  }
  return query;
}

/**
 * A text as a part of a path. None, one dot and two are refused, since they would be the address of something else: of
 * the list, in place of one document.
 */
export function pathPart(text: string, code: string): string {
  if (/^\.{0,2}$/.test(text)) throw new ApiError(`"${text}" names nothing`, { status: 400, code });
  return encodeURIComponent(text);
}

const textOf = (value: unknown): string => (value instanceof Date ? value.toISOString() : String(value));

const wrongFilter = (name: string, problem: string): ApiError =>
  new ApiError(`filter: ${name} ${problem}`, { status: 400, code: 'INVALID_QUERY' });
