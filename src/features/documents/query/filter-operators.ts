import type { Document } from 'bson';
import type { PathTarget } from '../store/find-field.js';
import { readValues, readValuesOrNull, scalarShape, type Scalar } from './filter-value.js';
import { badQuery, decodeText } from '../reply/query-text.js';
import type { WorkBudget } from './work-budget.js';

/** One kind of comparison: how the raw texts of its parameter become a condition on a path. */
interface FilterOperator {
  /** End of the parameter's name; the exact match has none. */
  suffix: string;
  repeatable?: true;
  condition(field: FilteredField, raw: readonly string[]): Document;
}

export interface FilteredField {
  path: string;
  target: PathTarget;
  /** The parameter as the client wrote it, for messages. */
  parameter: string;
  /** The work that the request may still ask for. */
  budget: WorkBudget;
}

const MAX_LIST_VALUES = 1000;
const MAX_PATTERN_CHARACTERS = 128;

/** The comparisons of rest-api.md 4.2. No suffix is the end of another one, so the order does not matter. */
export const FILTER_OPERATORS: readonly FilterOperator[] = [
  range('_gt', '$gt'),
  range('_gte', '$gte'),
  range('_lt', '$lt'),
  range('_lte', '$lte'),
  {
    suffix: '_ne',
    condition: (field, [raw]) => {
      const values = readValuesOrNull(field.target, decodeText(raw!, field.parameter), field.parameter);
      return { [field.path]: values.length === 1 ? { $ne: values[0] } : { $nin: values } };
    },
  },
  {
    suffix: '_in',
    repeatable: true,
    condition: (field, raw) => oneOf(field.path, readList(field, raw)),
  },
  {
    suffix: '_exists',
    condition: ({ path, parameter }, [raw]) => {
      const text = decodeText(raw!, parameter);
      if (text !== 'true' && text !== 'false') throw badQuery(`${parameter} must be true or false`);
      return { [path]: { $exists: text === 'true' } };
    },
  },
  {
    suffix: '_regex',
    condition: ({ path, target, parameter, budget }, [raw]) => {
      requireText(target, parameter);
      const pattern = decodeText(raw!, parameter);
      if ([...pattern].length > MAX_PATTERN_CHARACTERS) {
        throw badQuery(`${parameter} must be at most ${MAX_PATTERN_CHARACTERS} characters long`);
      }
      budget.takePatterns([pattern], (problem) => badQuery(`${parameter} ${problem}`));
      return { [path]: { $regex: pattern, $options: 'i' } };
    },
  },
];

export const EXACT_MATCH: FilterOperator = {
  suffix: '',
  condition: (field, [raw]) =>
    oneOf(field.path, readValuesOrNull(field.target, decodeText(raw!, field.parameter), field.parameter)),
};

/**
 * A value that can be read in several ways is compared in each of them: the field's own type decides which one can
 * match.
 */
function range(suffix: string, operator: string): FilterOperator {
  return {
    suffix,
    condition: ({ path, target, parameter }, [raw]) => {
      const values = readValues(target, decodeText(raw!, parameter), parameter);
      const conditions = values.filter((value) => value !== null).map((value) => ({ [path]: { [operator]: value } }));
      const [first, ...others] = conditions;
      return others.length === 0 ? first! : { $or: [first, ...others] };
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

function requireText(target: PathTarget, parameter: string): void {
  if (target.kind === 'any') return;
  const type = target.kind === 'id' ? 'identifier' : target.firm ? scalarShape(target.shape)?.type : undefined;
  if (type !== undefined && type !== 'String' && type !== 'Ref') {
    throw badQuery(`${parameter} needs a text field; this one is of type ${type}`);
  }
}
