import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { EngineError } from '../../../src/engine/errors.js';
import { compileFilter } from '../../../src/engine/query/match.js';
import { distinctValues, splitPath } from '../../../src/engine/query/path.js';
import { compileProjection } from '../../../src/engine/query/project.js';
import { compileSort } from '../../../src/engine/query/sort.js';
import { compileUpdate } from '../../../src/engine/query/update.js';
import { compareValues, type Doc, identicalValues } from '../../../src/engine/query/value.js';
import { keyOf } from '../../../src/engine/query/value-key.js';
import { aggregate } from './memory-collections.js';
import { parseValues } from './values.js';

interface Case {
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

const file = new URL('../cases/mongo-cases.json', import.meta.url);
const { collections, cases } = parseValues(readFileSync(file, 'utf8')) as {
  collections: Record<string, Doc[]>;
  cases: Case[];
};
// The file's writer turned the double 2^53 of this document into an int64; the answers show what was stored.
collections['mixed']![16]!['v'] = 9007199254740992;

/** Where MongoDB's documentation and the reference engine differ, with what the documentation says. */
const DEVIATIONS: readonly { readonly is: (test: Case) => boolean; readonly because: string }[] = [
  {
    is: (test) => test.collection === 'mixed' && /"sort":\{"v"|"\$sort":\{"v"/.test(text(test)),
    because: 'an empty array sorts before null and missing values ("Sort Consistency", comparison of arrays)',
  },
  {
    is: (test) => text(test.update).startsWith('{"$pull":{"a":{"pattern"'),
    because: '$pull removes what matches the condition, and a regular expression is one',
  },
  {
    is: (test) => text(test.pipeline).includes('"$gt":999'),
    because: '$count makes no document when there is nothing to count',
  },
  {
    is: (test) => text(test.pipeline).startsWith('[{"$redact"'),
    because: '$$PRUNE leaves out the document: only the 8 new orders stay',
  },
  {
    is: (test) => text(test.pipeline).includes('"$setUnion"'),
    because: 'the order of a set is unspecified; here that of first appearance',
  },
  {
    is: (test) => text(test.pipeline).includes('"$dateTrunc":{"date":"$at","unit":"week"'),
    because: 'the 31st of December 2023 is a Sunday, on which a week starts by default',
  },
  {
    is: (test) => text(test.pipeline).includes('"unit":"month","timezone":"Europe/Oslo"'),
    because: 'dates are truncated in the time zone, where it is already the 1st of March',
  },
  {
    is: (test) => test.op === 'distinct' && test.collection === 'mixed',
    because: 'of values that are equal the first one found stands for all: 2^53 is an int64 in the first document',
  },
];

function find(test: Case): unknown {
  const { sort = { _id: 1 }, projection = {}, skip = 0, limit = 0 } = (test.options ?? {}) as Record<string, never>;
  const filter = compileFilter(test.filter ?? {});
  const { apply } = compileProjection(projection);
  const { compare } = compileSort(sort);
  const found = collections[test.collection!]!.map((doc) => ({ doc, match: filter.match(doc) }))
    .filter(({ match }) => match !== null)
    .sort((a, b) => compare(a.doc, b.doc));
  const cut = found.slice(skip, limit > 0 ? skip + limit : undefined);
  return test.op === 'count' ? cut.length : cut.map(({ doc, match }) => apply(doc, match));
}

function distinct(test: Case): unknown {
  const filter = compileFilter(test.filter ?? {});
  const values = new Map<unknown, unknown>();
  for (const doc of collections[test.collection!]!) {
    if (!filter.matches(doc)) continue;
    for (const value of distinctValues(doc, splitPath(test.key!))) {
      if (!values.has(keyOf(value))) values.set(keyOf(value), value);
    }
  }
  return [...values.values()].sort(compareValues);
}

function write(test: Case): unknown {
  const options = (test.options ?? {}) as Record<string, never>;
  const filter = compileFilter(test.filter!);
  const update = compileUpdate(test.update!, { arrayFilters: options['arrayFilters'] ?? [] });
  const docs = [...test.docs!];
  const now = new Date();
  let [matched, modified, upserted] = [0, 0, 0];
  let returned: Doc | undefined;
  for (const [i, doc] of docs.entries()) {
    const match = filter.match(doc);
    if (match === null) continue;
    matched++;
    const result = update.apply(doc, { arrayIndex: match.arrayIndex, inserting: false, now });
    if (result.changed) modified++;
    docs[i] = result.doc;
    returned = options['returnDocument'] === 'after' ? result.doc : doc;
    if (options['multi'] !== true) break;
  }
  if (matched === 0 && options['upsert'] === true) {
    upserted = 1;
    docs.push(update.upsert(test.filter!, { inserting: true, now }));
  }
  if (test.op !== 'findOneAndUpdate') return { result: [matched, modified, upserted], docs };
  return { result: compileProjection(options['projection'] ?? {}).apply(returned!), docs };
}

async function run(test: Case): Promise<unknown> {
  switch (test.op) {
    case 'find':
    case 'count':
      return find(test);
    case 'distinct':
      return distinct(test);
    case 'aggregate':
      return aggregate(collections, test.collection!, test.pipeline);
    default:
      return write(test);
  }
}

function text(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => (typeof item === 'bigint' ? `${String(item)}n` : item)) ?? '';
}
for (const group of new Set(cases.map((test) => test.group))) {
  describe(group, () => {
    cases.forEach((test, index) => {
      if (test.group !== group) return;
      const name = `#${String(index)} ${text(test.filter ?? test.pipeline)} ${text(test.update)}`.slice(0, 160);
      it(name, async () => {
        const deviation = DEVIATIONS.find(({ is }) => is(test));
        let answer: unknown;
        let code: number | undefined;
        try {
          answer = await run(test);
        } catch (error) {
          if (!(error instanceof EngineError)) throw error;
          code = error.code;
        }
        const same =
          test.error === undefined ? code === undefined && identicalValues(answer, test.expect) : code !== undefined;
        if (deviation !== undefined) expect(same, `no deviation any more: ${deviation.because}`).toBe(false);
        else if (!same) expect(code ?? text(answer)).toBe(test.error ?? text(test.expect));
        else expect(same).toBe(true);
      });
    });
  });
}
