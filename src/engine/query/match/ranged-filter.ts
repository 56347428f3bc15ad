import type { Doc } from '../../codec/document.js';
import {
  addEqualities,
  type Equality,
  type FieldRange,
  FieldTest,
  isPlainName,
  isPlainObject,
  isPlainValue,
} from './equalities.js';
import type { Alternative, Conjunct, Filter, MatchResult } from './filter.js';

/** What a filter of nothing but plain equalities and ranges asks for. */
export interface RangedConditions {
  readonly equalities: readonly Equality[];
  readonly ranges: readonly FieldRange[];
}

const MAX_RANGES = 16;
const MAX_DEPTH = 4;

/** The conditions of a filter that is nothing but plain equalities and ranges, possibly under `$and`; else null. */
export function readRanged(filter: Doc, depth = 0): RangedConditions | null {
  const equalities: Equality[] = [];
  const ranges: FieldRange[] = [];
  for (const path in filter) {
    const value = filter[path];
    if (path === '$and') {
      if (depth === MAX_DEPTH || !Array.isArray(value) || value.length === 0) return null;
      for (const part of value as unknown[]) {
        const read = isPlainObject(part) ? readRanged(part, depth + 1) : null;
        if (read === null) return null;
        equalities.push(...read.equalities);
        ranges.push(...read.ranges);
      }
      continue;
    }
    const range = path === '$nor' ? readOptional(value) : readRange(path, value);
    if (range !== null) ranges.push(range);
    else if (!addEqualities({ [path]: value }, equalities, depth)) return null;
  }
  return ranges.length > MAX_RANGES ? null : { equalities, ranges };
}

/** `[{n: {$gt: 5}}, {n: {$lt: 1}}]`, none of which may hold. */
function readOptional(value: unknown): FieldRange | null {
  if (!Array.isArray(value) || value.length !== 2) return null;
  const [above, below] = value as unknown[];
  if (!isPlainObject(above) || !isPlainObject(below)) return null;
  const [path, ...others] = Object.keys(above);
  if (path === undefined || others.length > 0 || Object.keys(below).join() !== path || !isPlainName(path)) return null;
  const to = boundOf(above[path], '$gt');
  const from = boundOf(below[path], '$lt');
  return to === null || from === null || path.startsWith('$') ? null : { path, from, to, isOptional: true };
}

function boundOf(value: unknown, operator: string): number | null {
  if (!isPlainObject(value) || Object.keys(value).join() !== operator) return null;
  const bound = value[operator];
  return typeof bound === 'number' && isPlainValue(bound) ? bound : null;
}

function readRange(path: string, value: unknown): FieldRange | null {
  if (path.startsWith('$') || !isPlainName(path) || !isPlainObject(value)) return null;
  const { $gte: from, $lte: to } = value;
  const isWhole = Object.keys(value).length === 2 && typeof from === 'number' && typeof to === 'number';
  return isWhole && isPlainValue(from) && isPlainValue(to) ? { path, from, to, isOptional: false } : null;
}

/**
 * A filter of plain equalities and ranges, as updates by operators ask for them: tested on stored bytes. All else
 * is asked of the whole filter, which is compiled when somebody does.
 */
export class RangedFilter implements Filter {
  readonly equalities = null;
  readonly mayTakeLong = false;
  readonly known: readonly Equality[];
  private compiled: Filter | undefined;
  private byteTest: FieldTest | null | undefined;

  constructor(
    private readonly conditions: RangedConditions,
    private readonly compile: () => Filter,
  ) {
    this.known = conditions.equalities;
  }

  get fields(): ReadonlySet<string> | null {
    return this.whole.fields;
  }

  get conjuncts(): readonly Conjunct[] {
    return this.whole.conjuncts;
  }

  get alternatives(): readonly (readonly Alternative[])[] {
    return this.whole.alternatives;
  }

  get unplanned(): boolean {
    return this.whole.unplanned;
  }

  get residual(): boolean {
    return this.whole.residual;
  }

  matches(doc: Doc): boolean {
    return this.whole.matches(doc);
  }

  match(doc: Doc): MatchResult | null {
    return this.whole.match(doc);
  }

  testBytes(bytes: Buffer): boolean | undefined {
    const { equalities, ranges } = this.conditions;
    if (this.byteTest === undefined) this.byteTest = FieldTest.of(equalities, [], ranges);
    return this.byteTest === null ? undefined : this.byteTest.test(bytes);
  }

  private get whole(): Filter {
    return (this.compiled ??= this.compile());
  }
}
