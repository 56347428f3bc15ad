import { runs } from '../../../helpers/runs.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileFilter } from '../../../../src/engine/query/match/match.js';
import { compileSort } from '../../../../src/engine/query/sort.js';
import { keysetFilters } from '../../../../src/features/documents/query/keyset-filter.js';
import type { SortField } from '../../../../src/features/documents/query/parse-sort.js';
import { sortKeyOf } from '../../../../src/features/documents/query/sort-key.js';

type Row = Record<string, unknown> & { _id: number };

const scalar = fc.constantFrom<unknown>(
  ...[null, 0, 1, 2, 1.5, -1, '', 'a', 'b', 'é', '😀', '\uffff', true, false, new Date(0), new Date(5)],
);
const object = fc.dictionary(fc.constantFrom('x', 'y'), scalar, { maxKeys: 2 });
const list = fc.array(fc.oneof(scalar, object, fc.array(scalar, { maxLength: 2 })), { maxLength: 3 });
const value = fc.oneof({ weight: 3, arbitrary: scalar }, object, list);
const holder = fc.record({ b: value }, { requiredKeys: [] });
const outer = fc.oneof(
  value,
  holder,
  fc.array(fc.oneof(scalar, holder, fc.array(holder, { maxLength: 2 })), { maxLength: 3 }),
);
const document = fc.record({ f: value, g: scalar, a: outer }, { requiredKeys: [] });

const sorts = ['f', '-f', 'f,g', '-f,g', 'g,-f', 'a.b', '-a.b', 'g,a.b', '-a.b,-g'].map((text): SortField[] => [
  ...text.split(',').map((part): SortField => ({
    path: part.replace('-', ''),
    direction: part.startsWith('-') ? -1 : 1,
  })),
  { path: '_id', direction: 1 },
]);

/** The documents in the database's order, or null where it refuses the sort: two arrays in one document. */
function inOrder(documents: Row[], sort: SortField[]): Row[] | null {
  const { compare } = compileSort(Object.fromEntries(sort.map(({ path, direction }) => [path, direction])));
  try {
    return [...documents].sort(compare);
  } catch {
    return null;
  }
}

describe('the filters behind a cursor', () => {
  it('lead through every document once, in order, whatever the sorted fields hold', () => {
    let walked = 0;
    const property = fc.property(
      fc.array(document, { minLength: 2, maxLength: 8 }),
      fc.constantFrom(...sorts),
      fc.integer({ min: 1, max: 3 }),
      (given, sort, limit) => {
        const sorted = inOrder(
          given.map((fields, at): Row => ({ ...fields, _id: at })),
          sort,
        );
        if (!sorted) return;
        walked++;
        const seen: number[] = [];
        let filters: object[] = [{}];
        for (let page = 0; page <= sorted.length; page++) {
          const found = filters.flatMap((filter) =>
            sorted.filter((row) => compileFilter(filter as never).matches(row)),
          );
          const last = found.slice(0, limit).at(-1);
          if (!last) break;
          seen.push(...found.slice(0, limit).map(({ _id }) => _id));
          filters = keysetFilters(
            sort,
            sort.map((field) => sortKeyOf(last, field)),
          );
        }
        expect(seen).toEqual(sorted.map(({ _id }) => _id));
      },
    );
    fc.assert(property, { seed: 42, numRuns: runs(1000) });
    expect(walked).toBeGreaterThan(500);
  });
});

describe('the sort key of a document', () => {
  it('is found in an array with more items than a call can have arguments', () => {
    const f = Array.from({ length: 500_000 }, (_, at) => at);
    expect(sortKeyOf({ f }, { path: 'f', direction: 1 })).toMatchObject({ value: 0 });
    expect(sortKeyOf({ f }, { path: 'f', direction: -1 })).toMatchObject({ value: 499_999 });
  });
});
