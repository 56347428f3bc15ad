import type { Doc } from '../../codec/document.js';
import type { Scope } from '../operators/operator.js';
import type { Equality } from './equalities.js';
import type { ConjunctOp } from './match-operators.js';

/** A part of the filter's top-level conjunction that an index may answer; the whole filter is to be re-checked. */
export interface Conjunct {
  readonly path: string;
  readonly op: ConjunctOp;
  readonly value: unknown;
}

/** One branch of a `$or` in the top-level conjunction: a conjunction of its own. */
export interface Alternative {
  readonly conjuncts: readonly Conjunct[];
  /** For each `$or` of the conjunction its branches: a document satisfies one of each at least. */
  readonly alternatives: readonly (readonly Alternative[])[];
  /** True when the conjunction asks for more than conjuncts and alternatives say. */
  readonly unplanned: boolean;
}

/** A match of a filter: the position that `$` stands for, if an array was entered on the way. */
export interface MatchResult {
  readonly arrayIndex?: number;
}

/** A compiled filter. */
export interface Filter extends Alternative {
  /** `scope` supplies the variables of `$expr` and is needed only inside a pipeline that has any. */
  matches(doc: Doc, scope?: Scope): boolean;
  /** Null when the document does not match; otherwise what positional operators need. */
  match(doc: Doc, scope?: Scope): MatchResult | null;
  /** Top-level fields that `matches` reads; null = possibly all. */
  readonly fields: ReadonlySet<string> | null;
  /** True when the conjuncts are not the whole filter. */
  readonly residual: boolean;
  /** The whole filter when it is nothing but equalities of top-level fields with plain values, else null. */
  readonly equalities: readonly Equality[] | null;
  /** Equalities among its conditions, of a filter that knows them before all of it is compiled; null of others. */
  readonly known: readonly Equality[] | null;
  /** True when the test of a single document may take long: it has expressions, patterns or a schema. */
  readonly mayTakeLong: boolean;
  /** Tests a stored document; undefined when it has to be decoded for that. */
  testBytes(bytes: Buffer): boolean | undefined;
}
