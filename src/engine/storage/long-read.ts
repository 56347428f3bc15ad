/** A read that has looked at more than 10,000 documents, told once and without its values. */
export interface LongRead {
  readonly command: ReadCommand;
  readonly ns: string;
  /** Its conditions by path. */
  readonly conditions: readonly { readonly path: string; readonly op: string }[];
  readonly sort: readonly { readonly path: string; readonly descending: boolean }[];
  /** By which it reads; null: every document is looked at, or several indexes are used. */
  readonly index: string | null;
}

export type ReadCommand = 'find' | 'count' | 'aggregate';

/** Describes a read; the opener of its scan knows all but the command. */
export type DescribeRead = () => Omit<LongRead, 'command'>;

/** The conditions of a compiled filter, without their values. */
export function conditionsOf({ conjuncts }: { readonly conjuncts: LongRead['conditions'] }): LongRead['conditions'] {
  return conjuncts.map(({ path, op }) => ({ path, op }));
}
