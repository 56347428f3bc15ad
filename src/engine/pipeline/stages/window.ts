import { isDocument } from '../../codec/document.js';
import { CODES, failedToParse, refusal, typeMismatch } from '../../errors.js';
import { compileExpression, compileWith } from '../../query/expression.js';
import { addToDate, requireUnit } from '../../query/operators/date-arithmetic.js';
import { UTC } from '../../query/operators/time-zone.js';
import { compileSort, type Sort } from '../../query/sort.js';
import { splitPath } from '../../query/values/path.js';
import type { Accumulator } from '../../query/operators/accumulators.js';
import { integerOf, numberOf } from '../../query/values/value.js';
import { weigh } from '../../query/values/weight.js';
import type { Budget } from '../budget.js';
import { eachDocument, MemoryCharge, inBatches, type Run, type StageCompiler, unionOf } from '../stage.js';
import { withPath } from './basic.js';
import { type Partition, partitionSource } from './partition.js';
import { compileWindowFunction, type WindowFunction } from './window-functions.js';

type Bound = 'unbounded' | 'current' | number;

/** The documents around each one that its value is computed from. */
interface Window {
  readonly kind: 'documents' | 'range';
  readonly from: Bound;
  readonly to: Bound;
  readonly unit: ReturnType<typeof requireUnit> | null;
}

const WHOLE: Window = { kind: 'documents', from: 'unbounded', to: 'unbounded', unit: null };

interface Output {
  readonly path: readonly string[];
  readonly fn: WindowFunction;
  readonly window: Window;
}

export const setWindowFields: StageCompiler = (spec, { environment }) => {
  if (!isDocument(spec)) throw failedToParse('the $setWindowFields stage specification must be an object');
  for (const name of Object.keys(spec)) {
    if (!['partitionBy', 'sortBy', 'output'].includes(name)) {
      throw refusal(CODES.IDLUnknownField, `BSON field '$setWindowFields.${name}' is an unknown field.`);
    }
  }
  const by = Object.hasOwn(spec, 'partitionBy') ? compileExpression(spec['partitionBy'], environment) : null;
  const sortBy = spec['sortBy'];
  if (sortBy !== undefined && !isDocument(sortBy)) throw typeMismatch("$setWindowFields 'sortBy' must be an object");
  const sort = sortBy === undefined || Object.keys(sortBy).length === 0 ? null : compileSort(sortBy);
  const spelled = spec['output'];
  if (!isDocument(spelled)) {
    throw refusal(CODES.IDLFailedToParse, "BSON field '$setWindowFields.output' is missing but a required field");
  }
  const { result: outputs, fields } = compileWith(environment, (compiler) =>
    Object.keys(spelled).map((name): Output => {
      const definition = spelled[name];
      if (!isDocument(definition)) throw failedToParse(`The field '${name}' must be an object`);
      const functions = Object.keys(definition).filter((key) => key !== 'window');
      if (functions.length !== 1 || !functions[0]!.startsWith('$')) {
        throw failedToParse('Expected exactly one window function for each output');
      }
      const [fn] = functions as [string];
      const window = Object.hasOwn(definition, 'window') ? parseWindow(definition['window'], sort) : WHOLE;
      return {
        path: splitPath(name),
        fn: compileWindowFunction(definition[fn], { compiler, sort, name: fn }),
        window,
      };
    }),
  );
  return {
    async *run(source, run) {
      const gauge = new MemoryCharge(run.budget);
      try {
        for (const part of await partitionSource(source, run, gauge, by, sort)) {
          const docs = part.map(({ doc }) => doc);
          for (const output of outputs) {
            const values = await computeOutput(output, part, sort, run, gauge);
            for (const [i, value] of values.entries()) {
              docs[i] = withPath(docs[i]!, output.path, value);
              if (run.budget.tick(1)) await run.budget.pause();
            }
          }
          yield* eachDocument(inBatches(docs), run, (doc) => doc, true);
        }
      } finally {
        gauge.close();
      }
    },
    reads: unionOf(
      by?.fields ?? new Set(),
      sort?.fields ?? new Set(),
      fields,
      new Set(outputs.map((output) => output.path[0]!)),
    ),
    replaces: false,
  };
};

function parseWindow(spec: unknown, sort: Sort | null): Window {
  if (!isDocument(spec)) throw failedToParse("'window' field must be an object");
  for (const name of Object.keys(spec)) {
    if (!['documents', 'range', 'unit'].includes(name)) {
      throw failedToParse(`'window' field has an unknown argument: ${name}`);
    }
  }
  const hasRange = Object.hasOwn(spec, 'range');
  if (hasRange === Object.hasOwn(spec, 'documents')) {
    if (!hasRange) return WHOLE;
    throw failedToParse("Window bounds can specify either 'documents' or 'range', not both.");
  }
  const kind = hasRange ? 'range' : 'documents';
  const bounds: unknown = spec[kind];
  if (!Array.isArray(bounds) || bounds.length !== 2) {
    throw failedToParse(`Window bounds must be a 2-element array: ${kind}`);
  }
  const [from, to] = bounds.map((bound: unknown): Bound => {
    if (bound === 'unbounded' || bound === 'current') return bound;
    const number = kind === 'documents' ? integerOf(bound) : numberOf(bound);
    if (number === null) throw failedToParse("Window bounds must be 'unbounded', 'current', or a number.");
    return number;
  }) as [Bound, Bound];
  const low = typeof from === 'number' ? from : 0;
  const high = typeof to === 'number' ? to : 0;
  if (from !== 'unbounded' && to !== 'unbounded' && low > high) {
    throw refusal(5339900, 'Lower bound must not exceed upper bound');
  }
  const isWhole = from === 'unbounded' && to === 'unbounded';
  if (kind === 'documents' && !isWhole && sort === null) {
    throw refusal(5339901, 'Document-based bounds require a sortBy');
  }
  if (kind === 'range' && !isWhole && sort?.parts.length !== 1) {
    throw refusal(5339902, 'Range-based bounds require sortBy a single field');
  }
  if (Object.hasOwn(spec, 'unit') && !hasRange) {
    throw failedToParse("Window bounds can only specify 'unit' with range-based bounds.");
  }
  return { kind, from, to, unit: Object.hasOwn(spec, 'unit') ? requireUnit(spec['unit']) : null };
}

async function computeOutput(
  { fn, window }: Output,
  part: Partition,
  sort: Sort | null,
  run: Run,
  gauge: MemoryCharge,
): Promise<unknown[]> {
  const { budget, scope } = run;
  const columns: unknown[][] = [];
  for (const input of fn.inputs) {
    const column: unknown[] = [];
    for (const { doc } of part) {
      scope.root = doc;
      const value = input(doc, scope);
      gauge.bytes(16 + weigh(value));
      column.push(value);
      if (budget.tick(1)) await budget.pause();
    }
    columns.push(column);
  }
  if (fn.kind === 'partition') return fn.compute(part, columns);
  const boundsOf = windowBounds(window, part, sort);
  const values = fn.kind === 'accumulate' ? accumulateOver(fn.accumulator, columns[0]!) : null;
  const results: unknown[] = [];
  let start = 0;
  let end = -1;
  for (let i = 0; i < part.length; i++) {
    const [from, to] = boundsOf(i);
    if (i > 0 && from === start && to === end) {
      results.push(results[i - 1]);
      continue;
    }
    start = from;
    end = to;
    if (fn.kind === 'window') {
      results.push(from > to ? null : fn.compute(part, columns, from, to));
    } else {
      const result = await values!(from, to, budget);
      if (Array.isArray(result)) gauge.bytes(16 + result.length * 8);
      results.push(result);
    }
    if (budget.tick(1 + Math.max(0, to - from))) await budget.pause();
  }
  return results;
}

/**
 * Asks an accumulator about one window after the other. As long as a window only grows at its end the values so far are
 * kept; otherwise it starts over.
 */
function accumulateOver(accumulator: Accumulator, values: readonly unknown[]) {
  let accumulation = accumulator.open();
  let start = 0;
  let end = -1;
  return async (from: number, to: number, budget: Budget): Promise<unknown> => {
    if (from !== start || to < end) {
      accumulation = accumulator.open();
      start = from;
      end = from - 1;
    }
    while (end < to) {
      accumulation.add(values[++end]);
      if (budget.tick(1)) await budget.pause();
    }
    const result = accumulation.result();
    return Array.isArray(result) ? [...(result as unknown[])] : result;
  };
}

/** For each position the first and last position of its window, cut to the partition. */
function windowBounds(
  window: Window,
  docs: Partition,
  sort: Sort | null,
): (index: number) => readonly [number, number] {
  const last = docs.length - 1;
  const { from, to } = window;
  if (window.kind === 'documents' || (from === 'unbounded' && to === 'unbounded')) {
    return (index) => [
      from === 'unbounded' ? 0 : Math.max(0, index + (from === 'current' ? 0 : from)),
      to === 'unbounded' ? last : Math.min(last, index + (to === 'current' ? 0 : to)),
    ];
  }
  const [part] = sort!.parts;
  const positions = docs.map(({ keys }) => rangePosition(keys[0], window.unit !== null) * part!.dir);
  const shifted = (index: number, bound: number): number => {
    const position = positions[index]! * part!.dir;
    const moved =
      window.unit === null ? position + bound * part!.dir : addToDate(position, window.unit, bound * part!.dir, UTC);
    return moved * part!.dir;
  };
  return (index) => {
    const bound = (value: 'current' | number) => (value === 'current' ? positions[index]! : shifted(index, value));
    const low = from === 'unbounded' ? null : bound(from);
    const high = to === 'unbounded' ? null : bound(to);
    return [
      low === null ? 0 : firstPassing(positions, (position) => position >= low),
      high === null ? last : firstPassing(positions, (position) => position > high) - 1,
    ];
  };
}

function rangePosition(key: unknown, isDate: boolean): number {
  if (isDate) {
    if (key instanceof Date) return key.getTime();
    throw refusal(5429513, 'A range window with a unit expects the sortBy field to be a Date');
  }
  const number = numberOf(key);
  if (number === null) throw refusal(5429414, 'A range window expects the sortBy field to be a number');
  return number;
}

/** The first place of an ascending list from which on all pass. */
function firstPassing(sorted: readonly number[], passes: (position: number) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(sorted[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}
