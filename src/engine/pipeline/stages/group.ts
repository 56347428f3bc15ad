import { type Doc, isDocument, setField } from '../../codec/document.js';
import { refusal, unsupported } from '../../errors.js';
import type { Collation } from '../../query/collation/collation.js';
import { type Expression, compileExpression, compileWith, type ExpressionContext } from '../../query/expression.js';
import type { Accumulation } from '../../query/operators/accumulations.js';
import { compileSort } from '../../query/sort.js';
import { weigh } from '../../query/values/weight.js';
import { keyOf } from '../../query/values/value-key.js';
import { MemoryCharge, inBatches, type Run, type Source, type Stage, type StageCompiler, unionOf } from '../stage.js';
import { sortSource } from './sort.js';
import { type Accumulator, compileAccumulator } from '../../query/operators/accumulators.js';

interface Group {
  readonly id: unknown;
  readonly parts: readonly Accumulation[];
}

/** Collects the groups of a whole source in the order of their first documents. */
async function groupSource(
  source: Source,
  run: Run,
  gauge: MemoryCharge,
  idOf: (doc: Doc, run: Run) => unknown,
  fields: GroupFields,
  collation: Collation | null,
): Promise<Doc[]> {
  const { budget, scope } = run;
  const { accumulators } = fields;
  const groups = new Map<unknown, Group>();
  for await (const batch of source) {
    for (const doc of batch) {
      if (budget.tick(1)) await budget.pause();
      scope.root = doc;
      const id = idOf(doc, run) ?? null;
      const key = keyOf(collation === null ? id : collation.fold(id));
      let group = groups.get(key);
      if (group === undefined) {
        group = { id, parts: accumulators.map((accumulator) => accumulator.open()) };
        groups.set(key, group);
        gauge.bytes(96 + weigh(id) + accumulators.length * 64);
      }
      for (let i = 0; i < accumulators.length; i++) {
        const held = group.parts[i]!.add(accumulators[i]!.evaluate(doc, scope));
        if (held !== 0) gauge.bytes(held);
      }
    }
  }
  const results: Doc[] = [];
  for (const group of groups.values()) {
    results.push(presentGroup(group.id, fields.names, group.parts));
    if (budget.tick(1)) await budget.pause();
  }
  return results;
}

/** A stage that groups by what `idOf` says and orders the groups when `order` is given. */
export function groupStage(
  idReads: ReadonlySet<string> | null,
  idOf: (doc: Doc, run: Run) => unknown,
  fields: GroupFields,
  order?: Doc,
  collation: Collation | null = null,
): Stage {
  const sort = order === undefined ? null : compileSort(order);
  return {
    async *run(source, run) {
      const gauge = new MemoryCharge(run.budget);
      try {
        const groups = await groupSource(source, run, gauge, idOf, fields, collation);
        yield* inBatches(sort === null ? groups : await sortSource(inBatches(groups), sort, run, gauge));
      } finally {
        gauge.close();
      }
    },
    reads: unionOf(idReads, fields.reads),
    replaces: true,
  };
}

function byExpression(expression: Expression) {
  return (doc: Doc, { scope }: Run): unknown => expression.evaluate(doc, scope);
}

export const group: StageCompiler = (spec, { environment }) => {
  if (!isDocument(spec)) throw refusal(15947, "a group's fields must be specified in an object");
  if (!Object.hasOwn(spec, '_id')) throw refusal(15955, 'a group specification must include an _id');
  const id = compileExpression(spec['_id'], environment);
  const fields = compileAccumulation(spec, environment, ['_id']);
  return groupStage(id.fields, byExpression(id), fields, undefined, environment.collation);
};

export const sortByCount: StageCompiler = (spec, { environment }) => {
  const isExpression =
    (typeof spec === 'string' && spec.startsWith('$')) ||
    (isDocument(spec) && Object.keys(spec).length === 1 && Object.keys(spec)[0]!.startsWith('$'));
  if (!isExpression) {
    throw refusal(40149, 'the sortByCount field must be an expression in an object or a $-prefixed path');
  }
  const id = compileExpression(spec, environment);
  const fields = compileAccumulation({ count: { $sum: 1 } }, environment, []);
  return groupStage(id.fields, byExpression(id), fields, { count: -1 });
};

/** The accumulated fields of a grouping stage. */
export interface GroupFields {
  readonly names: readonly string[];
  readonly accumulators: readonly Accumulator[];
  readonly reads: ReadonlySet<string> | null;
}

/** Accumulators that compare what they are given, text among it. */
const COMPARING: ReadonlySet<string> = new Set([
  ...['$addToSet', '$max', '$maxN', '$min', '$minN', '$top', '$topN', '$bottom', '$bottomN'],
]);

/** Compiles the accumulators of a grouping stage, leaving out the names in `except`. */
export function compileAccumulation(spec: Doc, environment: ExpressionContext, except: readonly string[]): GroupFields {
  const names = Object.keys(spec).filter((name) => !except.includes(name));
  for (const name of names) {
    if (name.includes('.')) throw refusal(40235, `The field name '${name}' cannot contain '.'`);
    if (name.startsWith('$')) throw refusal(40236, `The field name '${name}' cannot be an operator name`);
    const [operator] = isDocument(spec[name]) ? Object.keys(spec[name]) : [];
    if (environment.collation !== null && operator !== undefined && COMPARING.has(operator)) {
      throw unsupported(`${operator} is not available together with a collation in this engine`);
    }
  }
  const { result, fields } = compileWith(environment, (compiler) =>
    names.map((name) => compileAccumulator(spec[name], name, compiler)),
  );
  return { names, accumulators: result, reads: fields };
}

/** The document of a finished group. */
export function presentGroup(id: unknown, names: readonly string[], parts: readonly Accumulation[]): Doc {
  const doc: Doc = { _id: id };
  names.forEach((name, i) => {
    setField(doc, name, parts[i]!.result());
  });
  return doc;
}
