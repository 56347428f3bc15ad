import type { Doc } from '../codec/document.js';
import type { ExpressionContext } from '../query/expression.js';
import type { GeoNear } from '../query/geometry/geo-near.js';
import type { Scope } from '../query/operators/operator.js';
import { weigh } from '../query/values/weight.js';
import type { Budget } from './budget.js';

/** Documents in batches. Nobody may modify a document that came through one: parts are shared between documents. */
export type Source = AsyncIterable<Doc[]>;

/** The demands on a joined collection; the filter must be applied fully, the sort and limit as well. */
export interface OpenOptions {
  /** Instead of all others. */
  readonly near?: GeoNear;
  readonly filter?: Doc;
  readonly sort?: Doc;
  readonly skip?: number;
  readonly limit?: number;
}

/** The caller's part of a run. */
export interface RunEnvironment {
  readonly budget: Budget;
  /** Reads a joined collection; one that does not exist is empty. */
  open(collection: string, options: OpenOptions): Source;
}

/** One execution of a pipeline. */
export interface Run extends RunEnvironment {
  readonly scope: Scope;
}

/** A compiled stage. */
export interface Stage {
  run(source: Source, run: Run): Source;
  /** Top-level fields of its input that it reads; null = possibly all. */
  readonly reads: ReadonlySet<string> | null;
  /** True when its output holds nothing of the input but what it reads. */
  readonly replaces: boolean;
  /** Set when all it does is to take something out of these top-level fields. */
  readonly removes?: ReadonlySet<string>;
}

/** Tools for stages that contain pipelines. */
export interface StageTools {
  readonly environment: ExpressionContext;
  /** Compiles a pipeline inside this one; `names` are further variables, whose slots come back. */
  compileInner(stages: unknown, names?: readonly string[]): { pipeline: InnerPipeline; slots: readonly number[] };
  /** Notes a collection that will be read. */
  joins(collection: string): void;
}

/** A pipeline inside a stage. */
export interface InnerPipeline {
  /** Reads the collection itself, with as much as possible pushed into `open`. */
  read(collection: string | null, run: Run): Source;
  /** Runs over given documents. */
  over(source: Source, run: Run): Source;
  readonly fields: ReadonlySet<string> | null;
  /** True if it makes its own documents instead of reading a collection. */
  readonly startsAlone: boolean;
  readonly names: readonly string[];
}

export type StageCompiler = (spec: unknown, tools: StageTools) => Stage;

/** How many documents a stage hands on at once when it makes its own batches. */
export const BATCH_SIZE = 128;

/** A batch of documents that a stage made is handed on as soon as it is heavier than this. */
export const STAGE_BATCH_BYTES = 1024 * 1024;

/**
 * Applies a function to every document; `undefined` drops it. With `composes` what comes out may be heavier than what
 * went in, and is weighed.
 */
export async function* eachDocument(
  source: Source,
  run: Run,
  apply: (doc: Doc, scope: Scope) => Doc | undefined,
  composes = false,
): AsyncGenerator<Doc[]> {
  const { budget, scope } = run;
  for await (const batch of source) {
    let out: Doc[] = [];
    let bytes = 0;
    for (const doc of batch) {
      const result = apply(doc, scope);
      if (result !== undefined) out.push(result);
      if (composes) bytes += weigh(result);
      if (budget.tick(1)) await budget.pause();
      if (bytes > STAGE_BATCH_BYTES) {
        yield out;
        out = [];
        bytes = 0;
      }
    }
    if (out.length > 0) yield out;
  }
}

/** Charges a budget for what a stage holds, until it is closed. */
export class MemoryCharge {
  private charged = 0;

  constructor(private readonly budget: Budget) {}

  /** Refuses, as `weigh` does, a document that is too heavy by itself; returns what was charged for it. */
  add(doc: Doc): number {
    const bytes = weigh(doc) + 64;
    this.bytes(bytes);
    return bytes;
  }

  bytes(count: number): void {
    this.charged += count;
    this.budget.charge(count);
  }

  close(): void {
    this.budget.release(this.charged);
    this.charged = 0;
  }
}

/** Everything a source has, charged to the gauge. */
export async function collect(source: Source, run: Run, gauge: MemoryCharge): Promise<Doc[]> {
  const docs: Doc[] = [];
  for await (const batch of source) {
    for (const doc of batch) {
      gauge.add(doc);
      docs.push(doc);
    }
    if (run.budget.tick(batch.length)) await run.budget.pause();
  }
  return docs;
}

/** Hands an array on in batches. */
/* oxlint-disable-next-line typescript/require-await -- sources of stages are asynchronous */
export async function* inBatches(docs: readonly Doc[]): AsyncGenerator<Doc[]> {
  for (let i = 0; i < docs.length; i += BATCH_SIZE) yield docs.slice(i, i + BATCH_SIZE);
}

/** Joins what several parts read. */
export function unionOf(...sets: readonly (ReadonlySet<string> | null)[]): ReadonlySet<string> | null {
  const union = new Set<string>();
  for (const set of sets) {
    if (set === null) return null;
    for (const name of set) union.add(name);
  }
  return union;
}
