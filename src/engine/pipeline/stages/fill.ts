import { type Doc, isDocument } from '../../codec/document.js';
import { CODES, failedToParse, refusal, typeMismatch } from '../../errors.js';
import { compileExpression, type Expression, type ExpressionContext } from '../../query/expression.js';
import { splitPath } from '../../query/values/path.js';
import { compileSort } from '../../query/sort.js';
import { isNullish } from '../../query/values/value.js';
import { eachDocument, MemoryCharge, inBatches, type StageCompiler, unionOf } from '../stage.js';
import { plainPath, withPath } from './basic.js';
import { partitionSource } from './partition.js';
import { carryForward, interpolate } from './window-functions.js';

interface Filled {
  readonly path: readonly string[];
  readonly method: 'value' | 'locf' | 'linear';
  readonly value: Expression | null;
}

const OPTIONS = ['partitionBy', 'partitionByFields', 'sortBy', 'output'];

/** The expression of `partitionBy`, or the one that `partitionByFields` abbreviates. */
export function partitionExpression(fields: unknown, stage: string): Doc {
  if (!Array.isArray(fields) || !fields.every((field) => typeof field === 'string')) {
    throw typeMismatch(`${stage} 'partitionByFields' must be an array of strings`);
  }
  const names = fields;
  for (const name of names) {
    if (name.startsWith('$')) throw refusal(8993000, `${stage}: field names may not start with '$'`);
  }
  return Object.fromEntries(names.map((name, i) => [`p${String(i)}`, `$${name}`]));
}

/** Replaces null and missing values. */
export const fill: StageCompiler = (spec, { environment }) => {
  if (!isDocument(spec)) throw failedToParse('the $fill stage specification must be an object');
  for (const name of Object.keys(spec)) {
    if (!OPTIONS.includes(name)) {
      throw refusal(CODES.IDLUnknownField, `BSON field '$fill.${name}' is an unknown field.`);
    }
  }
  const outputs = readOutputs(spec['output'], environment);
  if (Object.hasOwn(spec, 'partitionBy') && Object.hasOwn(spec, 'partitionByFields')) {
    throw refusal(6050204, "Maximum one of 'partitionBy' and 'partitionByFields' can be specified in '$fill'");
  }
  const partition = Object.hasOwn(spec, 'partitionByFields')
    ? partitionExpression(spec['partitionByFields'], '$fill')
    : spec['partitionBy'];
  const by = partition === undefined ? null : compileExpression(partition, environment);
  if (spec['sortBy'] !== undefined && !isDocument(spec['sortBy'])) {
    throw typeMismatch("$fill 'sortBy' must be an object");
  }
  const sort = spec['sortBy'] === undefined ? null : compileSort(spec['sortBy']);
  const isOrdered = outputs.some((entry) => entry.method !== 'value');
  if (outputs.some((entry) => entry.method === 'linear') && sort?.parts.length !== 1) {
    throw refusal(605001, '$linearFill must be specified with a top level sortBy expression with exactly one element');
  }
  if (isOrdered && sort === null) throw refusal(5371602, '$locf must be specified with a top level sortBy expression');
  const reads = unionOf(
    by?.fields ?? new Set(),
    sort?.fields ?? new Set(),
    new Set(outputs.map((entry) => entry.path[0]!)),
    ...outputs.map((entry) => entry.value?.fields ?? new Set<string>()),
  );
  if (!isOrdered) {
    return {
      run: (source, run) =>
        eachDocument(
          source,
          run,
          (doc, scope) => {
            scope.root = doc;
            return outputs.reduce(
              (result, entry) => fillValue(result, entry, (expression) => expression.evaluate(doc, scope)),
              doc,
            );
          },
          true,
        ),
      reads,
      replaces: false,
    };
  }
  return {
    async *run(source, run) {
      const { budget, scope } = run;
      const gauge = new MemoryCharge(budget);
      try {
        for (const part of await partitionSource(source, run, gauge, by, sort)) {
          const docs = part.map(({ doc }) => doc);
          const positions = part.map(({ keys }) => keys[0]);
          for (const entry of outputs) {
            const values = part.map(({ doc }) => plainPath(doc, entry.path));
            const filled = fillGaps(entry.method, values, positions);
            for (const [i, { doc }] of part.entries()) {
              scope.root = doc;
              if (filled === null) {
                docs[i] = fillValue(docs[i]!, entry, (expression) => expression.evaluate(doc, scope));
              } else if (isNullish(values[i])) {
                docs[i] = withPath(docs[i]!, entry.path, filled[i]);
              }
              if (budget.tick(1)) await budget.pause();
            }
          }
          yield* eachDocument(inBatches(docs), run, (doc) => doc, true);
        }
      } finally {
        gauge.close();
      }
    },
    reads,
    replaces: false,
  };
};

function readOutputs(output: unknown, environment: ExpressionContext): Filled[] {
  if (!isDocument(output)) {
    throw refusal(CODES.IDLFailedToParse, "BSON field '$fill.output' is missing but a required field");
  }
  return Object.keys(output).map((name): Filled => {
    const definition = output[name];
    if (!isDocument(definition)) throw failedToParse(`$fill output '${name}' must be an object`);
    const path = splitPath(name);
    if (Object.hasOwn(definition, 'value')) {
      return { path, method: 'value', value: compileExpression(definition['value'], environment) };
    }
    const { method } = definition;
    if (method !== 'locf' && method !== 'linear') throw refusal(6050202, "Method must be either 'locf' or 'linear'");
    return { path, method, value: null };
  });
}

function fillValue(doc: Doc, { path, value }: Filled, evaluate: (expression: Expression) => unknown): Doc {
  return isNullish(plainPath(doc, path)) ? withPath(doc, path, evaluate(value!)) : doc;
}

/** Of a fixed value null: it may differ by document. */
function fillGaps(method: Filled['method'], values: readonly unknown[], positions: readonly unknown[]) {
  if (method === 'value') return null;
  return method === 'locf' ? carryForward(values) : interpolate(values, positions);
}
