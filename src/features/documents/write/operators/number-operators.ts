import type { Document } from 'bson';
import type { Field } from '../../../collections/fields/field.js';
import { Problems } from '../../reply/problems.js';
import { storeValue, type ValueShape } from '../../store/document-shape.js';
import type { Condition } from '../change-path.js';
import { isFitting, oneOfFilters, type OperatorRow } from './operator.js';
import { rangeBefore, type Arithmetic, type NumberRange } from './number-range.js';

/** Beyond it whole numbers lose digits, which no counter should: decision 2. */
const EXACT: NumberRange = { from: -Number.MAX_SAFE_INTEGER, to: Number.MAX_SAFE_INTEGER };

/** A filter for a single number in a range, never for a list with one. */
function inRange(path: string, { from, to }: NumberRange): Document {
  return { [path]: { $gte: from, $lte: to, $not: { $type: 'array' } } };
}

/** inRange, or nothing at all where that fits: cheap for the database, which itself changes nothing but numbers. */
function outOfNoRange(path: string, { from, to }: NumberRange, isAbsentFitting: boolean): Document {
  if (!isAbsentFitting) return { [path]: { $gte: from, $lte: to } };
  return { $nor: [{ [path]: { $gt: to } }, { [path]: { $lt: from } }] };
}

/** A condition of which most writes need the quick part alone. */
function quickCondition(quick: Document, whole: () => Condition): Condition {
  return {
    quick,
    get filter() {
      return whole().filter;
    },
    get problem() {
      return whole().problem;
    },
  };
}

function arithmeticRow(
  name: '$inc' | '$mul',
  { of, fromNothing }: { of: (operand: number) => Arithmetic; fromNothing: (operand: number) => number },
): OperatorRow {
  return {
    database: name,
    makesParents: true,
    read({ path, shape }, operand, { problems, now }) {
      if (shape.type !== 'Number' && shape.type !== 'any') {
        problems.add('operator', `is a ${shape.type}: ${name} changes numbers`, path);
        return null;
      }
      const declared = 'declared' in shape ? shape.declared : {};
      if (typeof operand !== 'number') {
        problems.add('operator', `must be changed by a number with ${name}`, path);
      } else if (declared.integer && !Number.isInteger(operand)) {
        problems.add('integer', `must be changed by a whole number with ${name}`, path);
      }
      if (problems.summary !== null || typeof operand !== 'number') return null;
      const arithmetic = of(operand);
      const [min, max] = [declared.min as number | undefined, declared.max as number | undefined];
      const wanted = { from: Math.max(min ?? -Infinity, EXACT.from), to: Math.min(max ?? Infinity, EXACT.to) };
      const values = declared.enum as number[] | undefined;
      const range = values ? null : rangeBefore(arithmetic, wanted);
      const first = fromNothing(operand);
      const absent = { [path]: { $exists: false } };
      const isAbsentFitting = isFitting(shape, first, now) && first >= wanted.from && first <= wanted.to;
      if (!values && !range && !isAbsentFitting) {
        problems.add(name, resultText(name, shape), path);
        return null;
      }
      const condition = (): Condition => {
        const fitting: Document[] = range ? [inRange(path, range)] : [];
        const kept = values?.filter((value) => values.includes(arithmetic.apply(value)));
        if (kept) fitting.push({ [path]: { $in: kept } });
        if (isAbsentFitting) fitting.push(absent);
        return oneOfFilters(path, fitting, name, resultText(name, shape));
      };
      return {
        operand,
        conditions: [range ? quickCondition(outOfNoRange(path, range, isAbsentFitting), condition) : condition()],
        resultIn(results) {
          const before: Document[] = [];
          for (const result of results) {
            const range = typeof result === 'number' ? rangeBefore(arithmetic, { from: result, to: result }) : null;
            if (range) before.push(inRange(path, range));
          }
          if (results.includes(first)) before.push(absent);
          return before.length > 0 && { $or: before };
        },
      };
    },
  };
}

/** What the result has to be, in the words of the declaration. */
function resultText(name: string, shape: ValueShape): string {
  const { min, max, integer, enum: values } = 'declared' in shape ? shape.declared : {};
  const parts = [
    values && `one of ${values.join(', ')}`,
    integer && 'a whole number',
    `at least ${min ?? EXACT.from}`,
    `at most ${max ?? EXACT.to}`,
  ];
  return `must be a number after ${name}: ${parts.filter(Boolean).join(', ')}`;
}

export const inc = arithmeticRow('$inc', {
  of: (operand) => ({ apply: (stored) => stored + operand, guess: (result) => result - operand, slope: 1 }),
  fromNothing: (operand) => operand,
});

export const mul = arithmeticRow('$mul', {
  of: (operand) => ({
    apply: (stored) => stored * operand,
    guess: (result) => result / operand,
    slope: Math.sign(operand),
  }),
  fromNothing: () => 0,
});

/** In the order of the database: of numbers their size, of texts their bytes. */
function compare(a: unknown, b: unknown): number | null {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return null;
}

const ORDERED: ReadonlySet<string> = new Set(['Number', 'String', 'Date', 'any']);

function extremeRow(name: '$min' | '$max'): OperatorRow {
  const [sign, beyond, kept] = name === '$min' ? [1, '$gt', '$lte'] : [-1, '$lt', '$gte'];
  return {
    database: name,
    makesParents: true,
    read({ path, parts, shape }, operand, reading) {
      if (!ORDERED.has(shape.type)) {
        reading.problems.add('operator', `is a ${shape.type}: ${name} compares numbers, texts and dates`, path);
        return null;
      }
      if ('declared' in shape && (shape.declared as Partial<Field>).nocase) {
        reading.problems.add('operator', `is compared without regard to case, which ${name} is not`, path);
        return null;
      }
      if (typeof operand === 'object') {
        reading.problems.add('operator', `must be given a number, a text or a date by ${name}`, path);
        return null;
      }
      const own = new Problems(parts);
      const value = storeValue(shape, operand, own, reading.now);
      if (value === undefined) {
        reading.problems.take(own);
        return null;
      }
      return {
        operand: value,
        conditions: own.first ? [{ filter: { [path]: { [kept]: value } }, problem: own.first }] : [],
        resultIn(results) {
          const before: Document[] = [];
          for (const result of results) {
            const order = compare(result, value);
            if (order !== null && sign * order <= 0) before.push({ [path]: result });
          }
          if (results.includes(value)) before.push({ [path]: { $exists: false } }, { [path]: { [beyond]: value } });
          return before.length > 0 && { $or: before };
        },
      };
    },
  };
}

export const min = extremeRow('$min');
export const max = extremeRow('$max');
