import { ApiError } from './api-error.js';

/** Reserved query parameters of lists, changes and streams: a field of such a name is filtered by another form. */
const PARAMETERS =
  /^(page|skip|limit|sort|cursor|count|fields|populate|expand|include_deleted|meta|since|wait|ticket)$/;

/** Half of a character beyond the first plane; no address can contain it. */
const LONE_SURROGATE = /[\ud800-\udfff]/u;

/**
 * The query string of a filter and parameters. It is written without URLSearchParams, which loses values on some
 * platforms. No condition is ever left out: without it, everything would match.
 */
export function buildQuery(
  filter: object | undefined,
  parameters: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>,
): string {
  const query: string[] = [];
  const append = (...pair: unknown[]): void =>
    void query.push(pair.map((text) => encodeURIComponent(String(text))).join('='));
  if (filter !== undefined && tagOf(filter) !== 'Object') throw wrongFilter('', `is ${tagOf(filter)}`);
  for (const [name, given] of Object.entries<unknown>((filter ?? {}) as Record<string, unknown>)) {
    const value = given === undefined ? given : toPlain(given, `filter: ${name}`, true);
    if (value === undefined || value === null) throw wrongFilter(name, `is ${String(value)}`);
    const isList = Array.isArray(value);
    if (isList && value.length === 0) throw wrongFilter(name, 'is an empty list');
    const parameter = PARAMETERS.test(name) ? `${name}_in` : name;
    const values: readonly unknown[] = isList ? value : [value];
    // Alternatives, of which one has to match.
    if (name === 'or' && tagOf(values[0]) === 'Object') {
      append(name, JSON.stringify(value));
      continue;
    }
    // Twice even for one value of a list: only then is a comma part of it.
    const isDoubled = values.length === 1 && (isList || parameter !== name);
    for (const each of isDoubled ? [values[0], values[0]] : values) {
      if (typeof each === 'object' || LONE_SURROGATE.test(`${name}${each as string}`)) {
        throw wrongFilter(name, 'is not a text, number or boolean');
      }
      append(parameter, each);
    }
  }
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) append(name, value);
  return query.join('&');
}

/**
 * A text as a part of a path. None, one dot and two are refused, since they would be the address of something else: of
 * the list, in place of one document.
 */
export function pathPart(text: string, code: string): string {
  if (/^\.{0,2}$/.test(text) || LONE_SURROGATE.test(text)) {
    throw new ApiError(`"${text}" names nothing`, { status: 400, code });
  }
  return encodeURIComponent(text);
}

/** The kind of a value, also of one from another frame: `Map`, `Date`, `Undefined`, … */
const tagOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);

const wrongFilter = (name: string, problem: string): ApiError =>
  new ApiError(`filter: ${name} ${problem}`, { status: 400, code: 'INVALID_QUERY' });

/**
 * A value as JSON contains it. Throws, naming the path, for what JSON would drop or turn into something else: `NaN`
 * would become null, which clears a field. Undefined members are left out, but refused in a query, which they would
 * widen.
 */
export function toPlain(given: unknown, path: string, isQuery = false): unknown {
  const refuse = (field: string, problem: string, cause?: unknown): ApiError => {
    const message = `${field || 'The body'}: ${problem} cannot be sent as JSON`;
    return new ApiError(message, {
      status: 400,
      code: isQuery ? 'INVALID_QUERY' : 'VALIDATION_FAILED',
      details: [{ field, rule: 'json', message }],
      cause,
    });
  };
  const walk = (given: unknown, path: string, above: readonly unknown[]): unknown => {
    const custom = (given as { toJSON?: unknown } | null | undefined)?.toJSON;
    const isCustom = typeof custom === 'function';
    const value = isCustom ? (custom.call(given, path) as unknown) : given;
    if (value === null ? !isCustom : /string|boolean/.test(typeof value) || Number.isFinite(value)) return value;
    const tag = tagOf(value);
    const within = (item: unknown, name: string | number): unknown =>
      walk(item, path ? `${path}.${name}` : `${name}`, [...above, value]);
    if (above.includes(value)) throw refuse(path, 'a circular reference');
    if (tag === 'Array') return Array.from(value as unknown[], within);
    if (tag === 'Object') {
      return Object.fromEntries(
        Object.entries(value as object)
          .filter(([, item]) => isQuery || item !== undefined)
          .map(([name, item]) => [name, within(item, name)]),
      );
    }
    // Invalid dates, those of libraries too, become null.
    const isEmpty = isCustom && (value === null || value === undefined);
    throw refuse(path, isEmpty ? `an invalid ${tagOf(given)}` : typeof value === 'number' ? `${value}` : tag);
  };
  try {
    return walk(given, path, []);
  } catch (cause) {
    // A `toJSON` that throws, or too many levels.
    throw cause instanceof ApiError ? cause : refuse(path, 'it', cause);
  }
}
