import { type Doc, isDocument } from '../../codec/document.js';
import { CODES, EngineError, refusal } from '../../errors.js';
import { compileExpression } from '../../query/expression.js';
import { addNumbers, multiplyNumbers } from '../../query/values/number.js';
import { addToDate, requireUnit } from '../../query/operators/date-arithmetic.js';
import { UTC } from '../../query/operators/time-zone.js';
import { splitPath } from '../../query/values/path.js';
import { compileSort } from '../../query/sort.js';
import { compareValues } from '../../query/values/compare.js';
import { integerOf, isNullish, isNumber, numberOf } from '../../query/values/value.js';
import { keyOf } from '../../query/values/value-key.js';
import { collect, MemoryCharge, inBatches, type StageCompiler, unionOf } from '../stage.js';
import { plainPath, withPath } from './basic.js';
import { partitionExpression } from './fill.js';
import { partitionSource } from './partition.js';

/** MongoDB's own limit for the documents that one stage may make. */
const MAX_MADE = 500_000;

interface Range {
  /** The value `count` steps after `start`. */
  after(start: unknown, count: number): unknown;
  readonly bounds: 'full' | 'partition' | readonly [unknown, unknown];
  accepts(value: unknown): boolean;
}

function parseRange(spec: unknown): Range {
  if (!isDocument(spec)) throw refusal(5733402, "$densify 'range' must be an object");
  for (const name of Object.keys(spec)) {
    if (!['step', 'unit', 'bounds'].includes(name)) {
      throw refusal(CODES.IDLUnknownField, `BSON field '$densify.range.${name}' is an unknown field.`);
    }
  }
  const step = spec['step'];
  const size = isNumber(step) ? numberOf(step)! : NaN;
  if (!(size > 0)) {
    throw refusal(5733401, 'The step parameter in a range statement must be a strictly positive numeric value');
  }
  const unit = Object.hasOwn(spec, 'unit') ? requireUnit(spec['unit']) : null;
  if (unit !== null && integerOf(step) === null) {
    throw refusal(6586400, 'The step must be an integer when a unit is given');
  }
  const accepts = (value: unknown): boolean => (unit === null ? isNumber(value) : value instanceof Date);
  const bounds = spec['bounds'];
  if (bounds !== 'full' && bounds !== 'partition') {
    if (!Array.isArray(bounds) || bounds.length !== 2 || !bounds.every(accepts)) {
      throw refusal(5946802, "$densify 'bounds' must be 'full', 'partition' or two values that fit the step");
    }
    if (compareValues(bounds[0], bounds[1]) > 0) {
      throw refusal(5733402, 'the lower bound must not exceed the upper bound');
    }
  }
  return {
    bounds: bounds as Range['bounds'],
    accepts,
    after: (start, count) =>
      unit === null
        ? addNumbers(start, multiplyNumbers(step, count))
        : new Date(addToDate((start as Date).getTime(), unit, size * count, UTC)),
  };
}

/** Adds documents where a field's values leave gaps. */
export const densify: StageCompiler = (spec, { environment }) => {
  if (!isDocument(spec)) throw refusal(5733201, 'the $densify stage specification must be an object');
  for (const name of Object.keys(spec)) {
    if (!['field', 'partitionByFields', 'range'].includes(name)) {
      throw refusal(CODES.IDLUnknownField, `BSON field '$densify.${name}' is an unknown field.`);
    }
  }
  const field = spec['field'];
  if (typeof field !== 'string' || field === '' || field.startsWith('$')) {
    throw refusal(5733203, "$densify 'field' must be a path without '$'");
  }
  const path = splitPath(field);
  const range = parseRange(spec['range']);
  const partitionFields = (spec['partitionByFields'] ?? []) as string[];
  const by = compileExpression(partitionExpression(partitionFields, '$densify'), environment);
  const sort = compileSort({ [field]: 1 });
  const partitionPaths = partitionFields.map(splitPath);

  return {
    async *run(source, run) {
      const { budget } = run;
      const gauge = new MemoryCharge(budget);
      let made = 0;
      try {
        const { present, others, low, high } = sortOut(await collect(source, run, gauge), path, range);
        yield* inBatches(others);
        for (const part of await partitionSource(inBatches(present), run, gauge, by, sort)) {
          const values = part.map(({ doc }) => plainPath(doc, path));
          const explicit = typeof range.bounds === 'string' ? null : range.bounds;
          const start = explicit?.[0] ?? (range.bounds === 'full' ? low : values[0]);
          const end = explicit?.[1] ?? (range.bounds === 'full' ? high : values[values.length - 1]);
          let template: Doc = {};
          for (const names of partitionPaths) {
            const value = plainPath(part[0]!.doc, names);
            if (value !== undefined) template = withPath(template, names, value);
          }
          let out: Doc[] = [];
          let at = 0;
          for (let step = 0; ; step++) {
            const value = range.after(start, step);
            const order = compareValues(value, end);
            // Explicit bounds leave out their end, the others include it.
            if (explicit === null ? order > 0 : order >= 0) break;
            while (at < part.length && compareValues(values[at], value) < 0) out.push(part[at++]!.doc);
            if (at < part.length && keyOf(values[at]) === keyOf(value)) {
              while (at < part.length && keyOf(values[at]) === keyOf(value)) out.push(part[at++]!.doc);
            } else {
              if (++made > MAX_MADE) {
                throw new EngineError(5897900, `$densify would make more than ${String(MAX_MADE)} documents`);
              }
              out.push(withPath(template, path, value));
            }
            if (budget.tick(1)) await budget.pause();
            if (out.length >= 256) {
              yield out;
              out = [];
            }
          }
          if (out.length > 0) yield out;
          yield* inBatches(part.slice(at).map(({ doc }) => doc));
        }
      } finally {
        gauge.close();
      }
    },
    reads: unionOf(by.fields, new Set([path[0]!])),
    replaces: false,
  };
};

/** Documents with a value, the least and the greatest of these values, and documents without. */
function sortOut(docs: readonly Doc[], path: readonly string[], range: Range) {
  let low: unknown;
  let high: unknown;
  const present: Doc[] = [];
  const others: Doc[] = [];
  for (const doc of docs) {
    const value = plainPath(doc, path);
    if (isNullish(value)) {
      others.push(doc);
      continue;
    }
    if (!range.accepts(value)) {
      throw refusal(5733201, 'Densify field type must be numeric, or a date when a unit is given');
    }
    present.push(doc);
    if (low === undefined || compareValues(value, low) < 0) low = value;
    if (high === undefined || compareValues(value, high) > 0) high = value;
  }
  return { present, others, low, high };
}
