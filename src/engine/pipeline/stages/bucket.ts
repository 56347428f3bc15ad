import { type Doc, isDocument } from '../../codec/document.js';
import { refusal, unsupported } from '../../errors.js';
import { compileExpression, type ExpressionContext } from '../../query/expression.js';
import { NO_SCOPE } from '../../query/operators/operator.js';
import { compareValues } from '../../query/values/compare.js';
import { integerOf, rankOf } from '../../query/values/value.js';
import { MemoryCharge, inBatches, type StageCompiler, unionOf } from '../stage.js';
import { compileAccumulation, type GroupFields, presentGroup, groupStage } from './group.js';
import { type KeyedDocument, sortKeyed } from './sort.js';

function readOptions(spec: unknown, name: string, code: number, known: readonly string[]): Doc {
  if (!isDocument(spec)) throw refusal(code, `Argument to ${name} stage must be an object`);
  for (const option of Object.keys(spec)) {
    if (!known.includes(option)) throw refusal(40197, `Unrecognized option to ${name}: ${option}`);
  }
  return spec;
}

function outputFields(options: Doc, environment: ExpressionContext): GroupFields {
  const output = options['output'] ?? { count: { $sum: 1 } };
  if (!isDocument(output)) throw refusal(40196, "The 'output' field must be an object");
  return compileAccumulation(output, environment, []);
}

function requireGroupBy(value: unknown, name: string): unknown {
  const fits =
    (typeof value === 'string' && value.startsWith('$')) ||
    (isDocument(value) && Object.keys(value)[0]?.startsWith('$') === true);
  if (!fits) throw refusal(40202, `The ${name} 'groupBy' field must be defined as a $-prefixed path or an expression`);
  return value;
}

function constantOf(value: unknown, environment: ExpressionContext, code: number): unknown {
  const compiled = compileExpression(value, environment);
  if (!compiled.constant) throw refusal(code, 'the boundaries and the default of $bucket must be constant');
  return compiled.evaluate({}, NO_SCOPE);
}

export const bucket: StageCompiler = (spec, { environment }) => {
  const options = readOptions(spec, '$bucket', 40201, ['groupBy', 'boundaries', 'default', 'output']);
  const by = compileExpression(requireGroupBy(options['groupBy'], '$bucket'), environment);
  if (!Array.isArray(options['boundaries'])) throw refusal(40200, "The $bucket 'boundaries' field must be an array");
  const boundaries = options['boundaries'].map((item: unknown) => constantOf(item, environment, 40191));
  if (boundaries.length < 2) throw refusal(40192, "The $bucket 'boundaries' field must have at least 2 values");
  boundaries.forEach((boundary, i) => {
    if (i === 0) return;
    if (rankOf(boundary) !== rankOf(boundaries[0])) {
      throw refusal(40193, 'All values in the boundaries must have the same type');
    }
    if (compareValues(boundaries[i - 1], boundary) >= 0) {
      throw refusal(40194, 'The boundaries must be in ascending order');
    }
  });
  const hasDefault = Object.hasOwn(options, 'default');
  const fallback = hasDefault ? constantOf(options['default'], environment, 40195) : undefined;
  const last = boundaries[boundaries.length - 1];
  if (hasDefault && compareValues(fallback, boundaries[0]) >= 0 && compareValues(fallback, last) < 0) {
    throw refusal(
      40199,
      "The $bucket 'default' field must be less than the lowest boundary or not less than the highest",
    );
  }
  const idOf = (value: unknown): unknown => {
    if (compareValues(value, boundaries[0]) >= 0 && compareValues(value, last) < 0) {
      let low = 0;
      let high = boundaries.length - 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (compareValues(boundaries[middle], value) <= 0) low = middle;
        else high = middle;
      }
      return boundaries[low];
    }
    if (hasDefault) return fallback;
    throw refusal(40066, '$switch could not find a matching branch for an input, and no default was specified.');
  };
  const fields = outputFields(options, environment);
  return groupStage(by.fields, (doc, { scope }) => idOf(by.evaluate(doc, scope)), fields, { _id: 1 });
};

/** Buckets of about the same number of documents; equal values never lie in two. */
export const bucketAuto: StageCompiler = (spec, { environment }) => {
  const options = readOptions(spec, '$bucketAuto', 40240, ['groupBy', 'buckets', 'output', 'granularity']);
  const by = compileExpression(requireGroupBy(options['groupBy'], '$bucketAuto'), environment);
  const wanted = integerOf(options['buckets']);
  if (wanted === null) throw refusal(40241, "The $bucketAuto 'buckets' field must be an integer");
  if (wanted <= 0) throw refusal(40243, "The $bucketAuto 'buckets' field must be greater than 0");
  if (Object.hasOwn(options, 'granularity')) {
    throw unsupported("the 'granularity' of $bucketAuto is not supported by this engine");
  }
  const fields = outputFields(options, environment);
  return {
    async *run(source, run) {
      const { budget, scope } = run;
      const gauge = new MemoryCharge(budget);
      try {
        const items: KeyedDocument[] = [];
        for await (const batch of source) {
          for (const doc of batch) {
            scope.root = doc;
            gauge.add(doc);
            items.push({ doc, keys: [by.evaluate(doc, scope) ?? null] });
            if (budget.tick(1)) await budget.pause();
          }
        }
        const sorted = await sortKeyed(items, (a, b) => compareValues(a.keys[0], b.keys[0]), budget);
        const size = Math.max(1, Math.round(sorted.length / wanted));
        const results: Doc[] = [];
        for (let start = 0, index = 0; start < sorted.length; index++) {
          let end = index === wanted - 1 ? sorted.length : Math.min(sorted.length, start + size);
          while (end < sorted.length && compareValues(sorted[end]!.keys[0], sorted[end - 1]!.keys[0]) === 0) end++;
          const parts = fields.accumulators.map((accumulator) => accumulator.open());
          for (let i = start; i < end; i++) {
            const { doc } = sorted[i]!;
            scope.root = doc;
            fields.accumulators.forEach((accumulator, k) => {
              gauge.bytes(parts[k]!.add(accumulator.evaluate(doc, scope)));
            });
            if (budget.tick(1)) await budget.pause();
          }
          const max = sorted[end < sorted.length ? end : end - 1]!.keys[0];
          results.push(presentGroup({ min: sorted[start]!.keys[0], max }, fields.names, parts));
          start = end;
        }
        yield* inBatches(results);
      } finally {
        gauge.close();
      }
    },
    reads: unionOf(by.fields, fields.reads),
    replaces: true,
  };
};
