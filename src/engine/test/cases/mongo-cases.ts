import { readFileSync } from 'node:fs';
import type { Doc } from '../../codec/document.js';
import { parseValues } from '../query/values.js';

/** One call with the answer of an independent MongoDB-compatible engine. */
export interface Case {
  readonly group: string;
  readonly op: string;
  readonly collection?: string;
  readonly docs?: Doc[];
  readonly filter?: Doc;
  readonly update?: Doc;
  readonly pipeline?: Doc[];
  readonly key?: string;
  readonly options?: Doc;
  readonly expect?: unknown;
  readonly error?: number;
}

const file = new URL('mongo-cases.json', import.meta.url);
export const { collections, cases } = parseValues(readFileSync(file, 'utf8')) as {
  collections: Record<string, Doc[]>;
  cases: Case[];
};
// The file's writer turned the double 2^53 of this document into an int64; the answers show what was stored.
collections['mixed']![16]!['v'] = 9007199254740992;

/** Where MongoDB's documentation and the reference engine differ, with what the documentation says. */
const DEVIATIONS: readonly { readonly is: (test: Case) => boolean; readonly because: string }[] = [
  {
    is: (test) => test.collection === 'mixed' && /"sort":\{"v"|"\$sort":\{"v"/.test(textOf(test)),
    because: 'an empty array sorts before null and missing values ("Sort Consistency", comparison of arrays)',
  },
  {
    is: (test) => textOf(test.update).startsWith('{"$pull":{"a":{"pattern"'),
    because: '$pull removes what matches the condition, and a regular expression is one',
  },
  {
    is: (test) => textOf(test.pipeline).includes('"$gt":999'),
    because: '$count makes no document when there is nothing to count',
  },
  {
    is: (test) => textOf(test.pipeline).startsWith('[{"$redact"'),
    because: '$$PRUNE leaves out the document: only the 8 new orders stay',
  },
  {
    is: (test) => textOf(test.pipeline).includes('"$setUnion"'),
    because: 'the order of a set is unspecified; here that of first appearance',
  },
  {
    is: (test) => textOf(test.pipeline).includes('"$dateTrunc":{"date":"$at","unit":"week"'),
    because: 'the 31st of December 2023 is a Sunday, on which a week starts by default',
  },
  {
    is: (test) => textOf(test.pipeline).includes('"unit":"month","timezone":"Europe/Oslo"'),
    because: 'dates are truncated in the time zone, where it is already the 1st of March',
  },
  {
    is: (test) => test.op === 'distinct' && test.collection === 'mixed',
    because: 'of values that are equal the first one found stands for all: 2^53 is an int64 in the first document',
  },
];

/** Why the answer of this case is not ours; undefined when it is to be. */
export function deviationOf(test: Case): string | undefined {
  return DEVIATIONS.find(({ is }) => is(test))?.because;
}

/** A value as text, for names of tests and messages. */
export function textOf(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => (typeof item === 'bigint' ? `${String(item)}n` : item)) ?? '';
}
