import { quoteShell } from '../../exchange/shell-word.js';

type Query = readonly (readonly [name: string, value: string])[];

/** Parameters of a list that the command line has as options of the same name. */
const COMMAND_OPTIONS = new Set(['sort', 'fields', 'populate', 'limit', 'page']);
const TRASH_FLAGS: Readonly<Record<string, string>> = { true: '--include-deleted', only: '--only-deleted' };

/** The options of `bsvc data query` that ask for the same list; null where it has none for a parameter. */
export function queryOptions(given: Query): string | null {
  const words: string[] = [];
  for (const [name, value] of withoutIdle(given)) {
    if (COMMAND_OPTIONS.has(name)) words.push(`--${name} ${quoteShell(value)}`);
    else if (name === 'include_deleted') words.push(TRASH_FLAGS[value] ?? `--filter ${quoteShell(`${name}=${value}`)}`);
    else if (name === 'count') words.push('--count');
    else if (name === 'skip' || name === 'cursor') return null;
    else words.push(`--filter ${quoteShell(`${name}=${value}`)}`);
  }
  return words.join(' ');
}

/** The options that show a list of the console: from its first page on, with all fields. */
export function shownOptions(given: Query): string {
  const as = given.filter(([name]) => name === 'as').map(([, user]) => `--as ${quoteShell(user)}`);
  const others = given.filter(([name]) => !['as', 'cursor', 'fields'].includes(name));
  return [...as, queryOptions(others)].filter((words) => words).join(' ');
}

/** The call of the client that asks for the same list; null where it has nothing for a parameter. */
export function clientCall(collection: string, given: Query): string | null {
  // Without a prototype, as names come from whatever was pasted.
  const filter = Object.create(null) as Record<string, unknown>;
  const options: Record<string, unknown> = {};
  let isCount = false;
  for (const [name, value] of withoutIdle(given)) {
    if (name === 'skip') return null;
    const isList = name === 'fields' || name === 'populate' || (name === 'sort' && value.includes(','));
    if (name === 'count') {
      isCount = true;
    } else if (name === 'include_deleted') {
      options.includeDeleted = value === 'only' ? 'only' : true;
    } else if (name === 'limit' || name === 'page') {
      options[name] = Number(value);
    } else if (isList) {
      options[name] = value.split(',');
    } else if (name === 'sort' || name === 'cursor') {
      options[name] = value;
    } else if (name === 'or' && filter[name] === undefined) {
      filter[name] = alternatives(value);
    } else {
      filter[name] = name in filter ? [filter[name], value].flat() : value;
    }
  }
  const hasFilter = Object.keys(filter).length > 0;
  const api = `api.collection('${escape(collection)}')`;
  if (isCount) {
    // It counts by a filter alone.
    if (Object.keys(options).length > 0) return null;
    return `const count = await ${api}.count(${hasFilter ? literal(filter) : ''});`;
  }
  const all = { ...(hasFilter && { filter }), ...options };
  return `const page = await ${api}.list(${Object.keys(all).length > 0 ? literal(all) : ''});`;
}

/** Without what changes nothing about which documents are meant; `populate` and `expand` are one. */
function withoutIdle(given: Query): Query {
  const isIdle = (name: string, value: string): boolean =>
    name === 'meta' || (value === 'false' && (name === 'count' || name === 'include_deleted'));
  const isPopulated = (name: string): boolean => name === 'populate' || name === 'expand';
  const populated = given.filter(([name]) => isPopulated(name)).map(([, names]) => names);
  return [
    ...given.filter(([name, value]) => !isIdle(name, value) && !isPopulated(name)),
    ...(populated.length > 0 ? [['populate', populated.join(',')] as const] : []),
  ];
}

function alternatives(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** As people write objects: names without quotes where they need none. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  if (typeof value === 'string') return `'${escape(value)}'`;
  if (typeof value !== 'object' || value === null) return String(value);
  return `{ ${Object.entries(value)
    .map(([name, each]) => `${nameOf(name)}: ${literal(each)}`)
    .join(', ')} }`;
}

function nameOf(name: string): string {
  // Otherwise it would be the prototype, and the filter lost.
  if (name === '__proto__') return `['__proto__']`;
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : `'${escape(name)}'`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\n': '\\n',
  '\r': '\\r',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
};

const escape = (text: string): string =>
  text.replace(/[\\']/g, '\\$&').replace(/[\n\r\u2028\u2029]/g, (each) => ESCAPES[each]!);
