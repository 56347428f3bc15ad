import type { Document } from 'bson';
import { FILTER_FORMS, type FilterSuffix } from '../../../exchange/filter-forms.js';
import type { PathTarget } from '../store/find-field.js';
import { foldText } from '../../collections/fields/nocase.js';
import { isNocase, readValues, readValuesOrNull, scalarShape, type Scalar } from './filter-value.js';
import { badQuery, decodeText } from '../reply/query-text.js';
import type { WorkBudget } from './work-budget.js';

/** By which meters become radians, in the database as well. */
const EARTH_RADIUS_METERS = 6_378_100;
/** Half of the way around. */
const MOST_METERS = EARTH_RADIUS_METERS * Math.PI;
const MIN_CORNERS = 3;
const MAX_CORNERS = 100;

/** `lng,lat,meters` as the condition that a place lies in that circle, its edge included. */
function nearCondition(path: string, text: string, parameter: string): Document {
  const numbers = readNumbers(text);
  if (numbers?.length !== 3) throw badQuery(`${parameter} must be longitude,latitude,meters`);
  const [lng, lat, meters] = numbers as [number, number, number];
  requirePlace(lng, lat, parameter);
  if (meters < 0 || meters > MOST_METERS) throw badQuery(`${parameter}: the meters must be from 0 to 20037000`);
  return { [path]: { $geoWithin: { $centerSphere: [[lng, lat], meters / EARTH_RADIUS_METERS] } } };
}

/** `lng,lat,lng,lat,…`, the corners in their order, as the condition that a place lies in that polygon. */
function withinCondition(path: string, text: string, parameter: string): Document {
  const numbers = readNumbers(text);
  if (numbers === null || numbers.length % 2 !== 0) {
    throw badQuery(`${parameter} must be the corners of a polygon: longitude,latitude,longitude,latitude,…`);
  }
  const corners: [number, number][] = [];
  for (let n = 0; n < numbers.length; n += 2) {
    const [lng, lat] = [numbers[n]!, numbers[n + 1]!];
    requirePlace(lng, lat, parameter);
    corners.push([lng, lat]);
  }
  const [first, last] = [corners[0]!, corners.at(-1)!];
  if (corners.length > 1 && first[0] === last[0] && first[1] === last[1]) corners.pop();
  const different = new Set(corners.map((corner) => corner.join()));
  if (different.size < MIN_CORNERS || corners.length > MAX_CORNERS) {
    throw badQuery(`${parameter} takes a polygon of ${MIN_CORNERS} to ${MAX_CORNERS} different corners`);
  }
  return { [path]: { $geoWithin: { $geometry: { type: 'Polygon', coordinates: [[...corners, corners[0]!]] } } } };
}

const NUMBER = /^-?\d{1,12}(\.\d{1,20})?$/;

function readNumbers(text: string): number[] | null {
  const parts = text.split(',', MAX_CORNERS * 2 + 3).map((part) => part.trim());
  return parts.every((part) => NUMBER.test(part)) ? parts.map(Number) : null;
}

function requirePlace(lng: number, lat: number, parameter: string): void {
  if (Math.abs(lng) > 180 || Math.abs(lat) > 90) {
    throw badQuery(`${parameter}: ${lng},${lat} is no place: longitude -180 to 180, latitude -90 to 90`);
  }
}

/** One kind of comparison: messages, API document and guide are made from its row. */
export interface FilterOperator {
  /** End of the parameter's name; the exact match has none. */
  suffix: string;
  /**
   * Its value: of the field's type, for a type that has an order (`ordered`) or for any (`same`) · several of these ·
   * true or false · a text, of text fields alone · numbers that describe an area, of fields of places
   */
  takes: (typeof FILTER_FORMS)[FilterSuffix]['takes'];
  /** Said behind the suffix, where its name does not say all. */
  note?: string;
  /** Streams try it on every change. */
  inStreams: boolean;
  /** An index of the field finds what matches, and nothing else is read. */
  byIndex: boolean;
  /** How the raw texts of its parameter become a condition on a path. */
  condition(field: FilteredField, raw: readonly string[]): Document;
}

export interface FilteredField {
  /** What is compared: the field, or its folded value. */
  path: string;
  /** The field itself. */
  written: string;
  target: PathTarget;
  /** The parameter as the client wrote it, for messages. */
  parameter: string;
  /** The work that the request may still ask for. */
  budget: WorkBudget;
}

const MAX_LIST_VALUES = 1000;
const MAX_TEXT_CHARACTERS = 128;

/** The comparisons of rest-api.md 4.2. No suffix is the end of another one, so the order does not matter. */
export const FILTER_OPERATORS: readonly FilterOperator[] = [
  range('_gt', '$gt'),
  range('_gte', '$gte'),
  range('_lt', '$lt'),
  range('_lte', '$lte'),
  {
    ...form('_ne'),
    inStreams: true,
    byIndex: false,
    condition: (field, [raw]) => {
      const values = readValuesOrNull(field.target, decodeText(raw!, field.parameter), field.parameter);
      return { [field.path]: values.length === 1 ? { $ne: values[0] } : { $nin: values } };
    },
  },
  {
    ...form('_in'),
    note: 'comma-separated',
    inStreams: true,
    byIndex: true,
    condition: (field, raw) => oneOf(field.path, readList(field, raw)),
  },
  {
    ...form('_exists'),
    note: 'true or false',
    inStreams: true,
    byIndex: false,
    condition: ({ path, parameter }, [raw]) => {
      const text = decodeText(raw!, parameter);
      if (text !== 'true' && text !== 'false') throw badQuery(`${parameter} must be true or false`);
      return { [path]: { $exists: text === 'true' } };
    },
  },
  {
    ...form('_startswith'),
    note: 'case-sensitive, unless the field is @nocase',
    inStreams: true,
    byIndex: true,
    condition: (field, [raw]) => {
      const given = readText(field, raw!);
      if (given === '') throw badQuery(`${field.parameter} needs at least one character`);
      const text = isNocase(field.target) ? foldText(given) : given;
      // Not a range: of a list, one item would be compared with its one end, and another item with the other.
      return { [field.path]: { $regex: `^${escapePattern(text)}` } };
    },
  },
  {
    ...form('_regex'),
    note: `case-insensitive, at most ${MAX_TEXT_CHARACTERS} characters`,
    inStreams: false,
    byIndex: false,
    condition: (field, [raw]) => {
      const { written, parameter, budget } = field;
      const pattern = readText(field, raw!);
      budget.takePatterns([pattern], (problem) => badQuery(`${parameter} ${problem}`));
      return { [written]: { $regex: pattern, $options: 'i' } };
    },
  },
  area('_near', 'longitude,latitude,meters', nearCondition),
  area('_within', 'the corners of a polygon: longitude,latitude,…', withinCondition),
];

export const EXACT_MATCH: FilterOperator = {
  ...form(''),
  inStreams: true,
  byIndex: true,
  condition: (field, [raw]) =>
    oneOf(field.path, readValuesOrNull(field.target, decodeText(raw!, field.parameter), field.parameter)),
};

function form(suffix: FilterSuffix): Pick<FilterOperator, 'suffix' | 'takes'> {
  return { suffix, takes: FILTER_FORMS[suffix].takes };
}

/** The suffixes with their notes, as sentences list them: `_gt`, …, `_in` (comma-separated). */
export function listSuffixes(): string {
  return FILTER_OPERATORS.map(({ suffix, note }) => `\`${suffix}\`${note === undefined ? '' : ` (${note})`}`).join(
    ', ',
  );
}

/** The suffixes that streams refuse. */
export function listUnstreamed(): string {
  return FILTER_OPERATORS.filter(({ inStreams }) => !inStreams)
    .map(({ suffix }) => `\`${suffix}\``)
    .join(', ');
}

/**
 * A value that can be read in several ways is compared in each of them: the field's own type decides which one can
 * match.
 */
function range(suffix: FilterSuffix, operator: string): FilterOperator {
  return {
    ...form(suffix),
    inStreams: true,
    byIndex: true,
    condition: ({ path, target, parameter }, [raw]) => {
      const values = readValues(target, decodeText(raw!, parameter), parameter);
      const conditions = values.filter((value) => value !== null).map((value) => ({ [path]: { [operator]: value } }));
      const [first, ...others] = conditions;
      return others.length === 0 ? first! : { $or: [first, ...others] };
    },
  };
}

/** An area in which a place has to be: of a list of places, one of them. */
function area(
  suffix: FilterSuffix,
  note: string,
  condition: (path: string, text: string, parameter: string) => Document,
): FilterOperator {
  return {
    ...form(suffix),
    note,
    inStreams: true,
    byIndex: false,
    condition: ({ path, target, parameter }, [raw]) => {
      const type = target.kind === 'id' ? 'identifier' : target.kind === 'declared' ? target.shape.type : undefined;
      if (type !== undefined && type !== 'Object' && type !== 'Array') {
        throw badQuery(`${parameter} needs a field of places; this one is of type ${type}`);
      }
      return condition(path, decodeText(raw!, parameter), parameter);
    },
  };
}

/**
 * Commas separate. In a repeated parameter only those written as such do, so that `%2C` can be part of a value; many
 * clients encode every comma.
 */
function readList({ target, parameter }: FilteredField, raw: readonly string[]): Scalar[] {
  const texts =
    raw.length === 1
      ? decodeText(raw[0]!, parameter).split(',')
      : raw.flatMap((part) => part.split(',').map((text) => decodeText(text, parameter)));
  if (texts.length === 1 && texts[0] === '') throw badQuery(`${parameter} needs at least one value`);
  if (texts.length > MAX_LIST_VALUES) throw badQuery(`${parameter} may list at most ${MAX_LIST_VALUES} values`);
  return texts.flatMap((text) => readValuesOrNull(target, text, parameter));
}

function oneOf(path: string, values: readonly Scalar[]): Document {
  return { [path]: values.length === 1 ? { $eq: values[0] } : { $in: values } };
}

/** The text of a comparison of text fields. */
function readText({ target, parameter }: FilteredField, raw: string): string {
  requireText(target, parameter);
  const text = decodeText(raw, parameter);
  if ([...text].length > MAX_TEXT_CHARACTERS) {
    throw badQuery(`${parameter} must be at most ${MAX_TEXT_CHARACTERS} characters long`);
  }
  return text;
}

/** A pattern that finds the very text. Databases take none with `|` for a beginning that an index finds. */
function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}]/g, '\\$&').replaceAll('|', '\\x7c');
}

function requireText(target: PathTarget, parameter: string): void {
  if (target.kind === 'any') return;
  const type = target.kind === 'id' ? 'identifier' : target.firm ? scalarShape(target.shape)?.type : undefined;
  if (type !== undefined && type !== 'String' && type !== 'Ref') {
    throw badQuery(`${parameter} needs a text field; this one is of type ${type}`);
  }
}
