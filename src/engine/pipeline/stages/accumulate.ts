import { type Doc, isDocument, setField } from '../../codec/document.js';
import { refusal, unsupported } from '../../errors.js';
import { compileWith, type ExpressionContext } from '../../query/expression.js';
import type { Accumulation } from '../../query/operators/accumulations.js';
import { type Accumulator, compileAccumulator } from '../../query/operators/accumulators.js';

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
