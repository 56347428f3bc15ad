import { refusal } from '../../errors.js';
import { compileWith, type Environment, parseFieldPath } from '../../query/expression.js';
import type { Compiled } from '../../query/operators/operator.js';
import { splitPath } from '../../query/path.js';
import { type Doc, isDocument, typeOf } from '../../query/value.js';
import {
  collect,
  Gauge,
  inBatches,
  type InnerPipeline,
  type Run,
  type Source,
  type StageCompiler,
  unionOf,
} from '../stage.js';
import { withPath } from './basic.js';
import { openJoin } from './join.js';

const OPTIONS = ['from', 'localField', 'foreignField', 'as', 'let', 'pipeline'];

function requireText(spec: Doc, name: string, stage: string): string {
  const value = spec[name];
  if (typeof value !== 'string' || value === '') {
    throw refusal(9, `${stage} argument '${name}' must be a non-empty string, is type ${typeOf(value)}`);
  }
  return value;
}

/** A field path given without `$`. */
export function requireFieldPath(spec: Doc, name: string, stage: string): string {
  const text = requireText(spec, name, stage);
  parseFieldPath(text);
  return text;
}

export function requireCollection(value: unknown, stage: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw refusal(
    9,
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
  if (!isDocument(spec)) throw refusal(9, 'the $lookup stage specification must be an object');
  for (const name of Object.keys(spec)) {
    if (!OPTIONS.includes(name)) throw refusal(9, `unknown argument to $lookup: ${name}`);
  }
  const as = splitPath(requireFieldPath(spec, 'as', '$lookup'));
  const hasFields = Object.hasOwn(spec, 'localField') || Object.hasOwn(spec, 'foreignField');
  const hasPipeline = Object.hasOwn(spec, 'pipeline');
  if (!hasFields && !hasPipeline) {
    throw refusal(9, "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified");
  }
  const local = hasFields ? requireFieldPath(spec, 'localField', '$lookup') : null;
  const foreign = hasFields ? requireFieldPath(spec, 'foreignField', '$lookup') : null;
  if (Object.hasOwn(spec, 'let') && !hasPipeline)
    throw refusal(9, "$lookup with a 'let' argument must also specify 'pipeline'");

  const bindings = compileBindings(spec['let'], tools.environment);
  const inner = hasPipeline ? tools.compileInner(spec['pipeline'], bindings.names) : null;
  const from =
    inner?.pipeline.startsAlone === true && !Object.hasOwn(spec, 'from')
      ? null
      : requireCollection(spec['from'], '$lookup');
  if (from !== null) tools.joins(from);
  const reads = unionOf(
    bindings.reads,
    local === null ? new Set<string>() : new Set([splitPath(local)[0]!]),
    new Set([as[0]!]),
  );
  const attach = (doc: Doc, found: readonly Doc[]): Doc => withPath(doc, as, found);

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

function compileBindings(spec: unknown, environment: Environment): Bindings {
  if (spec === undefined) return { names: [], values: [], reads: new Set() };
  if (!isDocument(spec)) throw refusal(9, "$lookup argument 'let' must be an object");
  const names = Object.keys(spec);
  const { result, fields } = compileWith(environment, (compiler) => names.map((name) => compiler.compile(spec[name])));
  return { names, values: result, reads: fields };
}

/** How many outer documents share one query of the inner collection. */
const JOIN_BATCH = 1024;

async function* regroup(source: Source, size: number): AsyncGenerator<Doc[]> {
  let pending: Doc[] = [];
  for await (const batch of source) {
    pending = pending.length === 0 ? batch : pending.concat(batch);
    if (pending.length < size) continue;
    yield pending;
    pending = [];
  }
  if (pending.length > 0) yield pending;
}

async function* joinByFields(
  source: Source,
  run: Run,
  from: string,
  local: string,
  foreign: string,
  attach: (doc: Doc, found: readonly Doc[]) => Doc,
): AsyncGenerator<Doc[]> {
  const join = openJoin(from, local, foreign, run);
  try {
    for await (const batch of regroup(source, JOIN_BATCH)) {
      const found = await join.matches(batch);
      yield batch.map((doc, i) => attach(doc, found[i]!));
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
  attach: (doc: Doc, found: readonly Doc[]) => Doc,
): AsyncGenerator<Doc[]> {
  const shared = new Gauge(run.budget);
  let same: Doc[] | null = null;
  try {
    for await (const batch of source) {
      const out: Doc[] = [];
      const gauge = new Gauge(run.budget);
      for (const doc of batch) {
        if (correlated) out.push(attach(doc, await collect(pipeline.read(from, bind(doc, run)), run, gauge)));
        else {
          same ??= await collect(pipeline.read(from, bind(doc, run)), run, shared);
          out.push(attach(doc, same));
        }
        if (run.budget.tick(1)) await run.budget.pause();
      }
      yield out;
      gauge.close();
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
  attach: (doc: Doc, found: readonly Doc[]) => Doc,
): AsyncGenerator<Doc[]> {
  const join = openJoin(from, local, foreign, run);
  try {
    for await (const batch of regroup(source, JOIN_BATCH)) {
      const found = await join.matches(batch);
      const gauge = new Gauge(run.budget);
      const out: Doc[] = [];
      for (const [i, doc] of batch.entries()) {
        const rest = pipeline.over(inBatches(found[i]!), bind(doc, run));
        out.push(attach(doc, await collect(rest, run, gauge)));
        if (run.budget.tick(1)) await run.budget.pause();
      }
      yield out;
      gauge.close();
    }
  } finally {
    join.close();
  }
}
