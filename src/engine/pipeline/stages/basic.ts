import { type Doc, isDocument, setField } from '../../codec/document.js';
import { refusal } from '../../errors.js';
import { DOCUMENT_STAGES, type DocumentStageCompiler } from '../../query/document-stages.js';
import { compileExpression, parseFieldPath } from '../../query/expression.js';
import { readGeoNear } from '../../query/geometry/geo-near.js';
import { compileFilter } from '../../query/match/match.js';
import { splitPath } from '../../query/values/path.js';
import { copyDoc, fieldOf, integerOf, typeOf } from '../../query/values/value.js';
import { weigh } from '../../query/values/weight.js';
import { countRounds, type Scope } from '../../query/operators/operator.js';
import {
  BATCH_SIZE,
  eachDocument,
  MemoryCharge,
  inBatches,
  type Run,
  type Source,
  type Stage,
  type StageCompiler,
} from '../stage.js';

const NOTHING: ReadonlySet<string> = new Set();

/** A stage made of a function from document to document. */
function documentStage(compile: DocumentStageCompiler): StageCompiler {
  return (spec, { environment }) => {
    const { apply, composes, ...uses } = compile(spec, environment);
    return { run: (source, run) => eachDocument(source, run, apply, composes), ...uses };
  };
}

export const documentStages: Readonly<Record<string, StageCompiler>> = Object.fromEntries(
  Object.entries(DOCUMENT_STAGES).map(([name, compile]) => [name, documentStage(compile)]),
);

export const match: StageCompiler = (spec, { environment }) => {
  if (!isDocument(spec)) throw refusal(15959, 'the match filter must be an expression in an object');
  const filter = compileFilter(spec, { environment });
  return {
    run: (source, run) => eachDocument(source, run, (doc, scope) => (filter.matches(doc, scope) ? doc : undefined)),
    reads: filter.fields,
    replaces: false,
  };
};

/** A stage that neither reads nor changes documents. */
function passing(run: (source: Source, run: Run) => Source): Stage {
  return { run, reads: NOTHING, replaces: false };
}

/** Answered by the collection at the start of a pipeline; where there is none, nothing is near. */
export const geoNear: StageCompiler = (spec) => {
  readGeoNear(spec);
  return passing((source) => source);
};

/** The count of a `$limit`; 15958 unless it is a positive integer of any numeric type. */
export function requireLimit(spec: unknown): number {
  const count = integerOf(spec);
  if (count === null || count <= 0) throw refusal(15958, 'the limit must be positive');
  return count;
}

/** The count of a `$skip`; 15956 unless it is an integer of any numeric type and not negative. */
export function requireSkip(spec: unknown): number {
  const count = integerOf(spec);
  if (count === null || count < 0) throw refusal(15956, 'Argument to $skip cannot be negative and must be a number');
  return count;
}

export const limit: StageCompiler = (spec) => {
  const count = requireLimit(spec);
  return passing(async function* (source) {
    let left = count;
    for await (const batch of source) {
      if (batch.length >= left) {
        yield batch.slice(0, left);
        return;
      }
      left -= batch.length;
      yield batch;
    }
  });
};

export const skip: StageCompiler = (spec) => {
  const count = requireSkip(spec);
  return passing(async function* (source) {
    let left = count;
    for await (const batch of source) {
      if (left >= batch.length) {
        left -= batch.length;
      } else {
        yield left === 0 ? batch : batch.slice(left);
        left = 0;
      }
    }
  });
};

export const count: StageCompiler = (spec) => {
  if (typeof spec !== 'string' || spec === '') throw refusal(40156, 'the count field must be a non-empty string');
  if (spec.startsWith('$')) throw refusal(40158, 'the count field cannot be a $-prefixed path');
  if (spec.includes('.')) throw refusal(40160, "the count field cannot contain '.'");
  return {
    async *run(source, { budget }) {
      let total = 0;
      for await (const batch of source) {
        total += batch.length;
        if (budget.tick(batch.length)) await budget.pause();
      }
      if (total > 0) yield [{ [spec]: total <= 2147483647 ? total : BigInt(total) }];
    },
    reads: NOTHING,
    replaces: true,
  };
};

/** Sets a dotted path in a copy, making documents on the way; `undefined` removes the field. */
export function withPath(doc: Doc, path: readonly string[], value: unknown, at = 0): Doc {
  const copy = copyDoc(doc);
  const name = path[at]!;
  if (at < path.length - 1) {
    const inner = fieldOf(doc, name);
    setField(copy, name, withPath(isDocument(inner) ? inner : {}, path, value, at + 1));
  } else if (value === undefined) {
    delete copy[name];
  } else {
    setField(copy, name, value);
  }
  return copy;
}

/** The value at a path that leads through documents only. */
export function plainPath(doc: Doc, path: readonly string[]): unknown {
  let value: unknown = doc;
  for (const name of path) {
    if (!isDocument(value)) return undefined;
    value = fieldOf(value, name);
  }
  return value;
}

export const unwind: StageCompiler = (spec) => {
  const options: Doc = isDocument(spec) ? spec : { path: spec };
  for (const name of Object.keys(options)) {
    if (!['path', 'includeArrayIndex', 'preserveNullAndEmptyArrays'].includes(name)) {
      throw refusal(28811, `unrecognized option to $unwind stage: ${name}`);
    }
  }
  const text = options['path'];
  if (text === undefined) throw refusal(28812, 'no path specified to $unwind stage');
  if (typeof text !== 'string') {
    throw refusal(28808, `expected a string as the path for $unwind stage, got ${typeOf(text)}`);
  }
  if (!text.startsWith('$')) {
    throw refusal(28818, `path option to $unwind stage should be prefixed with a '$': ${text}`);
  }
  const path = parseFieldPath(text.slice(1));
  const preserve = options['preserveNullAndEmptyArrays'] ?? false;
  if (typeof preserve !== 'boolean') throw refusal(28809, 'preserveNullAndEmptyArrays must be a bool');
  const indexName = options['includeArrayIndex'];
  if (indexName !== undefined && (typeof indexName !== 'string' || indexName === '')) {
    throw refusal(28810, 'includeArrayIndex must be a non-empty string');
  }
  if (indexName?.startsWith('$') === true) throw refusal(28822, 'includeArrayIndex must not start with $');
  const indexPath = indexName === undefined ? null : splitPath(indexName);
  const withIndex = (doc: Doc, index: bigint | null): Doc =>
    indexPath === null ? doc : withPath(doc, indexPath, index);

  function* expand(doc: Doc): Generator<Doc> {
    const value = plainPath(doc, path);
    if (!Array.isArray(value)) {
      if ((value !== undefined && value !== null) || preserve) yield withIndex(doc, null);
      return;
    }
    if (value.length === 0 && preserve) yield withIndex(withPath(doc, path, undefined), null);
    for (const [i, item] of value.entries()) yield withIndex(withPath(doc, path, item), BigInt(i));
  }

  return {
    async *run(source, { budget }) {
      let out: Doc[] = [];
      for await (const batch of source) {
        for (const doc of batch) {
          if (budget.tick(1)) await budget.pause();
          for (const part of expand(doc)) {
            out.push(part);
            if (budget.tick(1)) await budget.pause();
            if (out.length < BATCH_SIZE) continue;
            yield out;
            out = [];
          }
        }
        if (out.length > 0) yield out;
        out = [];
      }
    },
    reads: new Set([path[0]!]),
    replaces: false,
  };
};

/** Keeps a random selection of the given size (reservoir sampling). */
export const sample: StageCompiler = (spec) => {
  const size = isDocument(spec) ? integerOf(spec['size']) : null;
  if (!isDocument(spec)) throw refusal(28745, 'the $sample stage specification must be an object');
  for (const name of Object.keys(spec)) {
    if (name !== 'size') throw refusal(28748, `unrecognized option to $sample: ${name}`);
  }
  if (size === null) throw refusal(28746, 'size argument to $sample must be a number');
  if (size <= 0) throw refusal(28747, 'size argument to $sample must be a positive integer');
  return passing(async function* (source, { budget }) {
    const gauge = new MemoryCharge(budget);
    const kept: Doc[] = [];
    let seen = 0;
    try {
      for await (const batch of source) {
        for (const doc of batch) {
          seen++;
          const at = kept.length < size ? kept.length : Math.floor(Math.random() * seen);
          if (at >= size) continue;
          if (at < kept.length) gauge.bytes(-weigh(kept[at]));
          gauge.bytes(weigh(doc));
          kept[at] = doc;
        }
        if (budget.tick(batch.length)) await budget.pause();
      }
      for (let i = kept.length - 1; i > 0; i--) {
        const other = Math.floor(Math.random() * (i + 1));
        [kept[i], kept[other]] = [kept[other]!, kept[i]!];
      }
      yield* inBatches(kept);
    } finally {
      gauge.close();
    }
  });
};

const KEEP = Symbol('keep');
const PRUNE = Symbol('prune');
const DESCEND = Symbol('descend');

/** Cuts documents level by level: the expression decides for the document and each document inside. */
export const redact: StageCompiler = (spec, { environment }) => {
  const constants = new Map<string, unknown>([
    ['KEEP', KEEP],
    ['PRUNE', PRUNE],
    ['DESCEND', DESCEND],
  ]);
  const { evaluate } = compileExpression(spec, { ...environment, constants });
  function cut(doc: Doc, scope: Scope): Doc | undefined {
    countRounds(scope);
    const verdict = evaluate(doc, scope);
    if (verdict === KEEP) return doc;
    if (verdict === PRUNE) return undefined;
    if (verdict !== DESCEND) {
      throw refusal(17053, '$redact must evaluate to one of $$DESCEND, $$PRUNE or $$KEEP');
    }
    const result: Doc = {};
    for (const name of Object.keys(doc)) {
      const value = cutValue(doc[name], scope);
      if (value !== undefined) setField(result, name, value);
    }
    return result;
  }
  function cutValue(value: unknown, scope: Scope): unknown {
    if (isDocument(value)) return cut(value, scope);
    if (!Array.isArray(value)) return value;
    return value.map((item) => cutValue(item, scope)).filter((item) => item !== undefined);
  }
  return {
    run: (source, run) =>
      eachDocument(source, run, (doc, scope) => {
        scope.root = doc;
        return cut(doc, scope);
      }),
    reads: null,
    replaces: false,
  };
};
