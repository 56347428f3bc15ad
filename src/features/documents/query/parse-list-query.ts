import type { Document } from 'bson';
import type { Collection } from '../../collections/collection.js';
import { comparedPath } from '../../collections/fields/nocase.js';
import { EXACT_MATCH, FILTER_OPERATORS, type FilterOperator } from './filter-operators.js';
import { scalarShape } from './filter-value.js';
import { allOf } from './keyset-filter.js';
import { findField, isDeclaredPath, isFieldPath, type PathTarget } from '../store/find-field.js';
import { adviseNearest, parseSort, type SortField } from './parse-sort.js';
import {
  badQuery,
  findSingle,
  quoted,
  readFlag,
  readNames,
  readQueryText,
  readWholeNumber,
  type QueryText,
  decodeText,
} from '../reply/query-text.js';
import { WorkBudget } from './work-budget.js';

/** The parameter of a list whose value is alternatives: at least one of them must match. */
const ALTERNATIVES = 'or';

const MAX_ALTERNATIVES = 20;
const MAX_FILTERS = 20;

/** A filter as a parameter has it: its name with a suffix, and its raw values. */
type RawFilter = readonly [name: string, raw: readonly string[]];

/**
 * Reads the value of `or`: a JSON list of objects, each of them filters of which all must match, such as
 * `[{"status":"open"},{"views_gt":3}]`. Values are those of a query string, written as JSON; only filters that list
 * values take an array. 400 INVALID_QUERY.
 */
function readAlternatives(raw: string): RawFilter[][] {
  const alternatives = parse(decodeText(raw, ALTERNATIVES));
  if (!Array.isArray(alternatives) || alternatives.length === 0) {
    throw badQuery(`${ALTERNATIVES} must be a JSON list of objects, such as [{"status":"open"},{"views_gt":3}]`);
  }
  if (alternatives.length > MAX_ALTERNATIVES) {
    throw badQuery(`${ALTERNATIVES} may have at most ${MAX_ALTERNATIVES} alternatives`);
  }
  return alternatives.map((alternative: unknown, at) => {
    const filters =
      typeof alternative === 'object' && alternative !== null && !Array.isArray(alternative)
        ? Object.entries(alternative)
        : [];
    if (filters.length === 0) throw badQuery(`${ALTERNATIVES}: alternative ${at + 1} must be an object with filters`);
    if (filters.length > MAX_FILTERS) {
      throw badQuery(`${ALTERNATIVES}: alternative ${at + 1} may have at most ${MAX_FILTERS} filters`);
    }
    return filters.map(([name, value]): RawFilter => [name, encodeValue(name, value)]);
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A JSON value as the raw texts of a parameter. */
function encodeValue(name: string, value: unknown): string[] {
  if (!Array.isArray(value)) return [encodeScalar(name, value)];
  if (value.length === 0) throw badQuery(`${quoted(name)} needs at least one value`);
  const texts = value.map((item) => encodeScalar(name, item));
  // The commas of a text that is sent once separate values; of one that is repeated, encoded commas are part of it.
  return texts.length === 1 ? [texts[0]!, texts[0]!] : texts;
}

function encodeScalar(name: string, value: unknown): string {
  if (typeof value === 'object' && value !== null) {
    throw badQuery(`${quoted(name)} must be a text, a number, true, false or null, or a list of these with _in`);
  }
  try {
    return encodeURIComponent(String(value));
  } catch {
    throw badQuery(`${quoted(name)} is not valid Unicode`);
  }
}

/**
 * The query string of filters that are given as an object, `{"status":"open","tags_in":["a","b"]}`, with `or` as a list
 * of such. 400 INVALID_QUERY for values that are none of a filter.
 */
export function writeFilters(filters: Readonly<Record<string, unknown>>): string {
  return Object.entries(filters)
    .flatMap(([name, value]) => {
      const isListOfObjects = Array.isArray(value) && typeof value[0] === 'object';
      const texts =
        name === ALTERNATIVES && isListOfObjects
          ? [encodeURIComponent(JSON.stringify(value))]
          : encodeValue(name, value);
      return texts.map((text) => `${encodeScalar(name, name)}=${text}`);
    })
    .join('&');
}

/** A Ref field to be replaced by its document, and the collection that its schema names. */
export interface PopulatedPath {
  path: string;
  ref: string;
}

/** Options of showing a document, shared by lists and single documents. */
export interface Presentation {
  /** Paths to show, `_id` besides; null = the whole document. */
  readonly fields: readonly string[] | null;
  readonly populate: readonly PopulatedPath[];
  readonly meta: boolean;
  readonly includeDeleted: boolean;
}

export type Paging = { mode: 'offset'; page: number; skip: number } | { mode: 'cursor'; cursor: string | null };

/**
 * A list request, checked and typed: every value is a scalar of the type that its field has. Requests of the same text
 * share one, so do not modify it.
 */
export interface ListQuery extends Presentation {
  /** To be AND-ed, after the access filter. */
  readonly conditions: readonly Document[];
  /** Ends with `_id`, so that no two documents are equal. */
  readonly sort: readonly SortField[];
  /** The same as the database takes it. */
  readonly order: Readonly<Record<string, 1 | -1>>;
  readonly paging: Readonly<Paging>;
  readonly limit: number;
  readonly count: boolean;
}

export const DEFAULT_LIMIT = 20;
export const MAX_LIMIT = 1000;

const PRESENTATION_KEYS = ['fields', 'populate', 'expand', 'meta', 'include_deleted'];
/** Parameters of a list that are not conditions (decisions.md 4). */
export const RESERVED_KEYS: ReadonlySet<string> = new Set([
  ...PRESENTATION_KEYS,
  'page',
  'limit',
  'sort',
  'count',
  'cursor',
  'skip',
]);
/** The trash is seen through include_deleted alone (decisions.md 3). */
const UNFILTERABLE: ReadonlySet<string> = new Set(['isDeleted', 'deletedAt']);
const MAX_POPULATED_PATHS = 10;
const MAX_FIELDS = 100;

/** Texts of lists that are remembered with a collection's record, until that changes. */
const MAX_REMEMBERED = 256;
export const MAX_REMEMBERED_CHARACTERS = 256;
const remembered = new WeakMap<Collection, Map<string, ListQuery>>();

/**
 * Reads the query string of a list (rest-api.md 4.2, decisions.md 4); 400 INVALID_QUERY whose text names the parameter.
 * An application asks for the same few lists again and again: reading one again costs as much as counting it.
 */
export function parseListQuery(raw: string, collection: Collection): ListQuery {
  if (raw.length > MAX_REMEMBERED_CHARACTERS) return readListQuery(raw, collection);
  let known = remembered.get(collection);
  if (!known) remembered.set(collection, (known = new Map<string, ListQuery>()));
  let query = known.get(raw);
  if (!query) {
    query = readListQuery(raw, collection);
    if (known.size >= MAX_REMEMBERED) known.clear();
    known.set(raw, query);
  }
  return query;
}

function readListQuery(raw: string, collection: Collection): ListQuery {
  const query = readQueryText(raw);
  const limit = readWholeNumber(query, 'limit', 1) ?? DEFAULT_LIMIT;
  const trash = readTrash(query);
  const { fields, populate, meta, includeDeleted } = readPresentation(query, collection, trash.includeDeleted);
  const conditions = [...readConditions(query, collection), ...trash.conditions];
  const sort = parseSort(findSingle(query, 'sort'), collection);
  return {
    fields,
    populate,
    meta,
    includeDeleted,
    conditions,
    sort,
    order: Object.fromEntries(sort.map(({ path, direction }) => [path, direction])),
    limit: Math.min(limit, MAX_LIMIT),
    paging: readPaging(query, Math.min(limit, MAX_LIMIT)),
    count: readFlag(query, 'count', false),
  };
}

/** Reads the query string of an export: conditions, and `include_deleted`; any other parameter of lists is 400. */
export function parseExportQuery(
  raw: string,
  collection: Collection,
): Pick<ListQuery, 'conditions' | 'includeDeleted'> {
  const query = readQueryText(raw);
  for (const name of query.keys()) {
    if (RESERVED_KEYS.has(name) && name !== 'include_deleted') {
      throw badQuery(`${quoted(name)} is not a parameter here: an export takes filters and include_deleted`);
    }
  }
  const { includeDeleted, conditions } = readTrash(query);
  return { conditions: [...readConditions(query, collection), ...conditions], includeDeleted };
}

/** `include_deleted` of a list: `only` is the trash alone. */
export function readTrash(query: QueryText): Pick<ListQuery, 'conditions' | 'includeDeleted'> {
  if (findSingle(query, 'include_deleted') === 'only') {
    return { includeDeleted: true, conditions: [{ isDeleted: true }] };
  }
  return { includeDeleted: readFlag(query, 'include_deleted', false), conditions: [] };
}

const PLAIN: Presentation = { fields: null, populate: [], meta: true, includeDeleted: false };

/** Reads the query string of a single document's request; anything but what shapes the answer is 400. */
export function parseGetQuery(raw: string, collection: Collection): Presentation {
  if (raw === '') return PLAIN;
  const query = readQueryText(raw);
  for (const name of query.keys()) {
    if (!PRESENTATION_KEYS.includes(name)) {
      throw badQuery(`${quoted(name)} is not a parameter here: use ${PRESENTATION_KEYS.join(', ')}`);
    }
  }
  return readPresentation(query, collection, readFlag(query, 'include_deleted', false));
}

function readPresentation(query: QueryText, collection: Collection, includeDeleted: boolean): Presentation {
  return {
    fields: readFields(query, collection),
    populate: readPopulate(query, collection),
    meta: readFlag(query, 'meta', true),
    includeDeleted,
  };
}

/** The filters of a query: every parameter that lists do not reserve, and `or`. */
export function readConditions(query: QueryText, collection: Collection): Document[] {
  const conditions: Document[] = [];
  const budget = new WorkBudget();
  const read = ([name, raw]: RawFilter): Document => readCondition(collection, name, raw, budget);
  for (const [given, raw] of query) {
    if (isAlternatives(collection, given)) {
      conditions.push(...raw.map((text) => anyOf(readAlternatives(text).map((filters) => allOf(filters.map(read))))));
    } else if (!RESERVED_KEYS.has(given)) {
      conditions.push(read([given, raw]));
    }
  }
  return conditions;
}

/** The filters of a query one by one, those of alternatives too. */
export function filtersOf(query: QueryText, collection: Collection): RawFilter[] {
  return [...query].flatMap(([name, raw]) => {
    if (isAlternatives(collection, name)) return raw.flatMap((text) => readAlternatives(text).flat());
    return RESERVED_KEYS.has(name) ? [] : [[name, raw] as const];
  });
}

/** A declared field of that name is the field. */
function isAlternatives(collection: Collection, name: string): boolean {
  return name === ALTERNATIVES && !isDeclaredPath(collection, name);
}

function readCondition(collection: Collection, given: string, raw: readonly string[], budget: WorkBudget): Document {
  const parameter = withoutBrackets(given);
  const operator = findOperator(collection, parameter);
  const written = parameter.slice(0, parameter.length - operator.suffix.length);
  const target = requireFilterField(collection, written, parameter);
  const path = comparedPath(collection, written);
  if (raw.length > 1 && operator.takes !== 'list') {
    const hint = operator === EXACT_MATCH ? `: use ${written}_in for one of several values` : '';
    throw badQuery(`${parameter} is given more than once${hint}`);
  }
  const condition = operator.condition({ path, written, target, parameter, budget }, raw);
  const namesake = raw.length === 1 ? findNamesake(collection, written, target, parameter) : null;
  if (!namesake) return condition;
  const exact = EXACT_MATCH.condition(
    { path: parameter, written: parameter, target: namesake, parameter, budget },
    raw,
  );
  return { $or: [condition, allOf([{ [parameter]: { $exists: true } }, exact])] };
}

/**
 * The undeclared field whose whole name a filter may mean, such as `logged_in`: stored documents may have it as well as
 * `logged`. A field that is declared or indexed is meant with its suffix.
 */
function findNamesake(collection: Collection, path: string, target: PathTarget, parameter: string): PathTarget | null {
  const isIndexed = collection.indexes.some((spec) =>
    spec.split(/[,:]/).some((part) => part.replace(/^-/, '') === path),
  );
  if (path === parameter || target.kind !== 'any' || isIndexed) return null;
  const namesake = findField(collection, parameter);
  return namesake?.kind === 'any' ? namesake : null;
}

function anyOf(alternatives: readonly Document[]): Document {
  return alternatives.length === 1 ? alternatives[0]! : { $or: alternatives };
}

/** The comparison that a parameter names. The name of a declared field is that field, whatever it ends with. */
export function findOperator(collection: Collection, given: string): FilterOperator {
  const parameter = withoutBrackets(given);
  if (isDeclaredPath(collection, parameter)) return EXACT_MATCH;
  return FILTER_OPERATORS.find(({ suffix }) => parameter.endsWith(suffix)) ?? EXACT_MATCH;
}

/** `filter[views_gt]`, as clients write it that put an object into the query, is `views_gt`. */
function withoutBrackets(parameter: string): string {
  return parameter.startsWith('filter[') && parameter.endsWith(']') ? parameter.slice(7, -1) : parameter;
}

function requireFilterField(collection: Collection, path: string, parameter: string) {
  if (!isFieldPath(path)) {
    throw badQuery(`${quoted(parameter)} is not a valid filter: write field=value or field${suffixes()}`);
  }
  if (UNFILTERABLE.has(path.split('.', 1)[0]!)) {
    throw badQuery(`${quoted(parameter)}: isDeleted and deletedAt cannot be filtered by; use include_deleted=true`);
  }
  const target = findField(collection, path);
  if (!target) {
    throw badQuery(`Unknown field ${quoted(path)} in the filter ${quoted(parameter)}${adviseField(collection, path)}`);
  }
  return target;
}

/** A hint at what was meant: an operator that there is not, or the nearest field. */
function adviseField(collection: Collection, path: string): string {
  const base = path.replace(/_[a-z]+$/, '');
  if (base !== path && findField(collection, base)) {
    return `: ${quoted(base)} can be followed by ${suffixes()}`;
  }
  return adviseNearest(collection, path);
}

const suffixes = (): string => FILTER_OPERATORS.map(({ suffix }) => suffix).join(', ');

function readPaging(query: QueryText, limit: number): Paging {
  const page = readWholeNumber(query, 'page', 1);
  const skip = readWholeNumber(query, 'skip', 0);
  const cursor = findSingle(query, 'cursor');
  if (cursor !== null) {
    if (page !== null || skip !== null) throw badQuery('cursor cannot be combined with page or skip');
    return { mode: 'cursor', cursor: cursor === '' || cursor === 'start' ? null : cursor };
  }
  if (page !== null && skip !== null) throw badQuery('page and skip cannot be combined');
  if (skip !== null) return { mode: 'offset', page: Math.floor(skip / limit) + 1, skip };
  const at = page ?? 1;
  if (!Number.isSafeInteger(at * limit)) throw badQuery('page is too large');
  return { mode: 'offset', page: at, skip: (at - 1) * limit };
}

function readFields(query: QueryText, collection: Collection): string[] | null {
  if (!query.has('fields')) return null;
  const named = [...new Set(readNames(query, 'fields'))];
  if (named.length > MAX_FIELDS) throw badQuery(`fields may name at most ${MAX_FIELDS} fields`);
  for (const path of named) {
    if (!isFieldPath(path) || !findField(collection, path)) {
      throw badQuery(`Unknown field ${quoted(path)} in fields${adviseNearest(collection, path)}`);
    }
  }
  return named.filter((path) => !named.some((other) => path.startsWith(`${other}.`)));
}

function readPopulate(query: QueryText, collection: Collection): PopulatedPath[] {
  const named = new Set([...readNames(query, 'populate'), ...readNames(query, 'expand')]);
  if (named.size > MAX_POPULATED_PATHS) throw badQuery(`populate may name at most ${MAX_POPULATED_PATHS} fields`);
  return [...named].map((path) => {
    const ref = findRef(collection, path);
    if (ref === null) throw badQuery(`populate: ${quoted(path)} is not a declared Ref field`);
    if (ref === undefined) {
      throw badQuery(`populate: the schema does not say which collection ${quoted(path)} points into`);
    }
    return { path, ref };
  });
}

/**
 * The collection that a Ref field or an array of Refs names; undefined when it names none, null when the path is no
 * such field.
 */
function findRef(collection: Collection, path: string): string | null | undefined {
  const target = isFieldPath(path) && !/\.\d+(\.|$)/.test(path) ? findField(collection, path) : null;
  const shape = target?.kind === 'declared' ? scalarShape(target.shape) : null;
  return shape?.type === 'Ref' ? shape.ref : null;
}
