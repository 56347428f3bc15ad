import { type Doc, isDocument } from '../../codec/document.js';
import { failedToParse } from '../../errors.js';
import { compileWith, type ExpressionContext, parseFieldPath } from '../../query/expression.js';
import type { Compiled } from '../../query/operators/operator.js';
import { splitPath } from '../../query/values/path.js';
import { typeOf } from '../../query/values/value.js';
import { weigh } from '../../query/values/weight.js';
import {
  STAGE_BATCH_BYTES,
  collect,
  MemoryCharge,
  inBatches,
  type InnerPipeline,
  type Run,
  type Source,
  type StageCompiler,
  unionOf,
} from '../stage.js';
import { withPath } from './basic.js';
import { type Attach, attachLists, joinEach, openJoin } from './join.js';

const OPTIONS = ['from', 'localField', 'foreignField', 'as', 'let', 'pipeline'];

function requireText(spec: Doc, name: string, stage: string): string {
  const value = spec[name];
  if (typeof value !== 'string' || value === '') {
    throw failedToParse(`${stage} argument '${name}' must be a non-empty string, is type ${typeOf(value)}`);
  }
  return value;
}

/** A field path given without `$`. */
export function requireFieldPath(spec: Doc, name: string, stage: string): string {
  const text = requireText(spec, name, stage);
  parseFieldPath(text);
  return text;
}

/** The collection that `from` names; 9 for anything but a text, such as another database's collection. */
export function requireSourceName(value: unknown, stage: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw failedToParse(
    `${stage} argument 'from' must be the name of a collection of the same database, is type ${typeOf(value)}`,
  );
}

/** The variables of `let`: names and what computes them in the outer document. */
interface Bindings {
  readonly names: readonly string[];
  readonly values: readonly Compiled[];
  readonly reads: ReadonlySet<string> | null;
}

export const lookup: StageCompiler = (spec, tools) => {
  if (!isDocument(spec)) throw failedToParse('the $lookup stage specification must be an object');
  for (const name of Object.keys(spec)) {
    if (!OPTIONS.includes(name)) throw failedToParse(`unknown argument to $lookup: ${name}`);
  }
  const as = splitPath(requireFieldPath(spec, 'as', '$lookup'));
  const hasFields = Object.hasOwn(spec, 'localField') || Object.hasOwn(spec, 'foreignField');
  const hasPipeline = Object.hasOwn(spec, 'pipeline');
  if (!hasFields && !hasPipeline) {
    throw failedToParse("$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified");
  }
  const local = hasFields ? requireFieldPath(spec, 'localField', '$lookup') : null;
  const foreign = hasFields ? requireFieldPath(spec, 'foreignField', '$lookup') : null;
  if (Object.hasOwn(spec, 'let') && !hasPipeline) {
    throw failedToParse("$lookup with a 'let' argument must also specify 'pipeline'");
  }

  const bindings = compileBindings(spec['let'], tools.environment);
  const inner = hasPipeline ? tools.compileInner(spec['pipeline'], bindings.names) : null;
  const from =
    inner?.pipeline.startsAlone === true && !Object.hasOwn(spec, 'from')
      ? null
      : requireSourceName(spec['from'], '$lookup');
  if (from !== null) tools.joins(from);
  const reads = unionOf(
    bindings.reads,
    local === null ? new Set<string>() : new Set([splitPath(local)[0]!]),
    new Set([as[0]!]),
  );
  const attach: Attach = (doc, found) => withPath(doc, as, found);

  if (inner === null) {
    return { run: (source, run) => joinByFields(source, run, from!, local!, foreign!, attach), reads, replaces: false };
  }
  const bind = (doc: Doc, run: Run): Run => {
    run.scope.root = doc;
    const vars = [...run.scope.vars];
    bindings.values.forEach((value, i) => {
      vars[inner.slots[i]!] = value.evaluate(doc, run.scope);
    });
    return { ...run, scope: { ...run.scope, root: {}, vars } };
  };
  const { pipeline } = inner;
  const correlated = bindings.names.length > 0 || tools.environment.variables.size > 0;
  return {
    run: (source, run) =>
      local === null
        ? joinByPipeline(source, run, from, pipeline, correlated, bind, attach)
        : joinByBoth(source, run, from!, local, foreign!, pipeline, bind, attach),
    reads,
    replaces: false,
  };
};

function compileBindings(spec: unknown, environment: ExpressionContext): Bindings {
  if (spec === undefined) return { names: [], values: [], reads: new Set() };
  if (!isDocument(spec)) throw failedToParse("$lookup argument 'let' must be an object");
  const names = Object.keys(spec);
  const { result, fields } = compileWith(environment, (compiler) => names.map((name) => compiler.compile(spec[name])));
  return { names, values: result, reads: fields };
}

/** How many outer documents, and how heavy, share one query of the inner collection. */
const JOIN_BATCH = 1024;
const JOIN_BYTES = 8 * STAGE_BATCH_BYTES;

async function* regroup(source: Source): AsyncGenerator<Doc[]> {
  let pending: Doc[] = [];
  let bytes = 0;
  for await (const batch of source) {
    for (const doc of batch) bytes += weigh(doc);
    pending = pending.length === 0 ? batch : pending.concat(batch);
    if (pending.length < JOIN_BATCH && bytes < JOIN_BYTES) continue;
    yield pending;
    pending = [];
    bytes = 0;
  }
  if (pending.length > 0) yield pending;
}

async function* joinByFields(
  source: Source,
  run: Run,
  from: string,
  local: string,
  foreign: string,
  attach: Attach,
): AsyncGenerator<Doc[]> {
  const join = openJoin(from, local, foreign, run);
  try {
    for await (const batch of regroup(source)) {
      const found = await join.matches(batch);
      yield* attachLists(batch, found, run, attach);
    }
  } finally {
    join.close();
  }
}

async function* joinByPipeline(
  source: Source,
  run: Run,
  from: string | null,
  pipeline: InnerPipeline,
  correlated: boolean,
  bind: (doc: Doc, run: Run) => Run,
  attach: Attach,
): AsyncGenerator<Doc[]> {
  const shared = new MemoryCharge(run.budget);
  let same: Doc[] | null = null;
  try {
    for await (const batch of source) {
      if (correlated) {
        yield* joinEach(
          batch,
          run,
          (doc, _i, gauge) => collect(pipeline.read(from, bind(doc, run)), run, gauge),
          attach,
        );
        continue;
      }
      same ??= await collect(pipeline.read(from, bind(batch[0] ?? {}, run)), run, shared);
      yield* attachLists(batch, new Array<Doc[]>(batch.length).fill(same), run, attach);
    }
  } finally {
    shared.close();
  }
}

async function* joinByBoth(
  source: Source,
  run: Run,
  from: string,
  local: string,
  foreign: string,
  pipeline: InnerPipeline,
  bind: (doc: Doc, run: Run) => Run,
  attach: Attach,
): AsyncGenerator<Doc[]> {
  const join = openJoin(from, local, foreign, run);
  try {
    for await (const batch of regroup(source)) {
      const found = await join.matches(batch);
      const through = (doc: Doc, i: number, gauge: MemoryCharge) =>
        collect(pipeline.over(inBatches(found[i]!), bind(doc, run)), run, gauge);
      yield* joinEach(batch, run, through, attach);
    }
  } finally {
    join.close();
  }
}
