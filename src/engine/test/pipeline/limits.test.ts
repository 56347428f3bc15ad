import { Decimal128 } from 'bson';
import { describe, expect, it } from 'vitest';
import type { Doc } from '../../codec/document.js';
import { openBudget } from '../../pipeline/budget.js';
import { compilePipeline } from '../../pipeline/compile.js';
import { equalValues } from '../../query/values/compare.js';
import { compileExpression, openExpressionContext } from '../../query/expression.js';
import { openTextSearch } from '../../query/patterns/text-search.js';
import { weigh } from '../../query/values/weight.js';
import { aggregate, openCollections } from '../query/memory-collections.js';

const one: readonly Doc[] = [{ _id: 1, a: 1 }];

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

/** The value of an expression computed by a pipeline over one document. */
async function computed(expression: unknown, doc: Doc = one[0]!): Promise<unknown> {
  const [result] = await aggregate({ one: [doc] }, 'one', [{ $project: { x: expression } }]);
  return result!['x'];
}

describe('the weight of a value', () => {
  it('counts shared parts as often as they stand there, and looks at them once', () => {
    let value: unknown = ['a'.repeat(5_000)];
    for (let i = 0; i < 12; i++) value = [value, value];
    expect(weigh(value)).toBeGreaterThan(2 ** 12 * 5_000);
    for (let i = 0; i < 2; i++) value = [value];
    expect(() => times(20, () => (value = [value, value])).map(weigh)).toThrow(
      expect.objectContaining({ code: 146 }) as Error,
    );
  });

  it.each<[string, unknown[], number]>([
    ['doubled in each stage', times(99, () => ({ $addFields: { a: ['$a', '$a'] } })), 146],
    ['that contain themselves twice', times(99, () => ({ $replaceWith: { a: '$$ROOT', b: '$$ROOT' } })), 146],
    ['doubled by projections', times(99, () => ({ $project: { a: { x: '$a', y: '$a' } } })), 146],
    ['of whole partitions', times(30, () => ({ $setWindowFields: { output: { a: { $push: '$$ROOT' } } } })), 146],
    ['filled in many times', times(99, () => ({ $fill: { output: { b: { value: ['$a', '$a'] } } } })), 0],
  ])('is limited for documents %s', async (_what, stages, code) => {
    const many = times(6, (i) => ({ _id: i, a: 1 }));
    const answer = aggregate({ one, many }, 'many', stages);
    if (code === 0) await expect(answer).resolves.toHaveLength(6);
    else await expect(answer).rejects.toMatchObject({ code });
  });

  it.each<[string, unknown, number]>([
    [
      'a value doubled in a loop',
      { $reduce: { input: { $range: [0, 100] }, initialValue: [1], in: ['$$value', '$$value'] } },
      146,
    ],
    [
      'documents merged in a loop',
      {
        $reduce: {
          input: { $range: [0, 100] },
          initialValue: {},
          in: { $mergeObjects: [{ x: '$$value' }, { y: '$$value' }] },
        },
      },
      146,
    ],
    [
      'fields set in a loop',
      {
        $reduce: {
          input: { $range: [0, 100] },
          initialValue: {},
          in: { $setField: { field: 'x', input: { y: '$$value' }, value: '$$value' } },
        },
      },
      146,
    ],
    ['deep nesting', { $reduce: { input: { $range: [0, 1000] }, initialValue: 1, in: { a: '$$value' } } }, 15],
    [
      'a list of long lists',
      { $map: { input: { $range: [0, 1000] }, in: { $range: [0, { $add: ['$$this', 3_000_000] }] } } },
      146,
    ],
    [
      'a wide table',
      {
        $zip: {
          inputs: [{ $range: [0, 1_000_000] }, ...times(50, () => ['$a'])],
          useLongestLength: true,
        },
      },
      146,
    ],
    [
      'many matches',
      { $regexFindAll: { input: 'a'.repeat(500_000), regex: `${'('.repeat(15)}a${')'.repeat(15)}` } },
      146,
    ],
    ['millions of parts', { $split: ['a'.repeat(5_000_000), 'a'] }, 146],
  ])('is limited for %s', async (_what, expression, code) => {
    const refusal: unknown = await computed(expression).catch((error: unknown) => error);
    // On a slow machine time may be up first.
    expect(code === 146 ? [146, 50] : [code]).toContain((refusal as { code?: number }).code);
  });

  it('does not grow while an expression is compiled', () => {
    const isConstant = (expression: unknown) => compileExpression(expression, openExpressionContext()).constant;
    expect(isConstant({ $range: [0, 10] })).toBe(true);
    expect(isConstant({ $range: [0, 4_000_000] })).toBe(false);
  });
});

describe('the time of one operator', () => {
  it('is not the square of its input', async () => {
    // The square of it would take minutes, and anything beyond 60 ms is refused.
    const size = 30_000;
    expect(await computed({ $size: { $minN: { n: size, input: { $range: [size, 0, -1] } } } })).toBe(size);
    expect(await computed({ $size: { $lastN: { n: size - 1, input: { $range: [0, size] } } } })).toBe(size - 1);
    const text = 'a'.repeat(size);
    const wanted = `b${'a'.repeat(size / 2)}`;
    expect(await computed({ $indexOfBytes: [text, wanted] })).toBe(-1);
    expect(await computed({ $indexOfCP: [`${text}${wanted}`, wanted] })).toBe(size);
    expect(await computed({ $size: { $split: [text, wanted] } })).toBe(1);
    expect(await computed({ $strLenCP: { $replaceAll: { input: text, find: wanted, replacement: '' } } })).toBe(size);
  });

  it('finds the same places as the built-in search', () => {
    const text = `${'ab'.repeat(5_000)}b${'ab'.repeat(3_000)}c`;
    for (const wanted of [`${'ab'.repeat(2_000)}b`, `${'ab'.repeat(2_999)}abc`, 'b'.repeat(3_000), text]) {
      expect(openTextSearch(wanted).indexIn(text, 0)).toBe(text.indexOf(wanted));
      expect(openTextSearch(wanted).indexIn(text, 1)).toBe(text.indexOf(wanted, 1));
    }
  });

  it.each<[string, unknown]>([
    ['a format of many numbers', { dateString: `${'1'.repeat(60)}x`, format: '%d'.repeat(40) }],
    ['a date behind which there is nothing for long', { dateString: `2024-01-01${' '.repeat(300_000)}x` }],
    ['words without end', { dateString: `2024-01-01 ${'a/'.repeat(100_000)}` }],
  ])('does not explode for %s', async (_what, operand) => {
    expect(await computed({ $dateFromString: { ...(operand as Doc), onError: 'none' } })).toBe('none');
  });

  it.each<[string, unknown, number]>([
    [
      'years beyond the last',
      { $dateAdd: { startDate: '$$NOW', unit: 'year', amount: 1e6, timezone: 'Asia/Tokyo' } },
      15,
    ],
    ['parts beyond the last', { $dateFromParts: { year: 2000, day: 1e15, timezone: 'Asia/Tokyo' } }, 15],
    ['bins of many years', { $dateTrunc: { date: { $toDate: -1.5 }, unit: 'year', binSize: 1e12 } }, 15],
    ['the last instant, further east', { $isoWeekYear: { date: { $toDate: 8.64e15 }, timezone: '+01:00' } }, 15],
    [
      'a week that starts with a document',
      { $dateTrunc: { date: '$$NOW', unit: 'week', startOfWeek: { $literal: { toString: 1 } } } },
      9,
    ],
  ])('refuses %s', async (_what, expression, code) => {
    await expect(computed(expression)).rejects.toMatchObject({ code });
  });

  it('reads numbers of any length', async () => {
    const digits = `1${'0'.repeat(500_000)}`;
    expect(String(await computed({ $toDecimal: digits }))).toBe('Infinity');
    const rounded = await computed({ $toDecimal: `${'1'.repeat(34)}5${'0'.repeat(200)}1` });
    expect(equalValues(rounded, Decimal128.fromString(`${'1'.repeat(33)}2E+202`))).toBe(true);
  });
});

describe('what a stage holds', () => {
  const docs = times(2_000, (i) => ({ _id: i, same: i % 3, text: i % 8 === 0 ? '' : 'x'.repeat(1_000) }));

  function within(memoryBytes: number, stages: unknown[], from: readonly Doc[] = docs): Promise<Doc[]> {
    const run = openCollections({ docs: from }, { budget: openBudget({ memoryBytes }) });
    return aggregate({ docs: from }, 'docs', [{ $unset: 'nothing' }, ...stages], {}, run);
  }

  it.each<[string, unknown]>([
    ['light and heavy documents', { $sort: { text: 1 } }],
    ['a document for each group', { $group: { _id: '$_id', first: { $first: '$$ROOT' } } }],
    ['the greatest value of each group', { $group: { _id: '$_id', text: { $max: '$text' } } }],
    [
      'values for windows',
      { $setWindowFields: { output: { n: { $shift: { output: '$text', by: 1 } } }, sortBy: { _id: 1 } } },
    ],
  ])('is charged for %s', async (_what, stage) => {
    await expect(within(400_000, [stage])).rejects.toMatchObject({ code: 146 });
  });

  it('is charged for documents that replace lighter ones in a limited sort', async () => {
    const growing = times(2_000, (i) => ({ _id: i, text: 'x'.repeat(i < 1_000 ? 1 : 1_000) }));
    const stages = [{ $sort: { _id: -1 } }, { $limit: 600 }];
    await expect(within(700_000, stages, growing)).rejects.toMatchObject({ code: 146 });
    await expect(within(700_000, [{ $sort: { _id: -1 } }, { $limit: 20 }], growing)).resolves.toHaveLength(20);
  });

  it.each<[string, unknown, unknown]>([
    ['$addToSet', { $addToSet: '$same' }, [0, 1, 2]],
    ['$top', { $top: { sortBy: { _id: -1 }, output: '$_id' } }, 1_999],
    ['$maxN', { $maxN: { input: '$_id', n: 2 } }, [1_999, 1_998]],
    ['$lastN', { $lastN: { input: '$_id', n: 2 } }, [1_998, 1_999]],
    ['$mergeObjects', { $mergeObjects: { same: '$_id' } }, { same: 1_999 }],
  ])('is not charged for what %s does not keep', async (_name, accumulator, result) => {
    expect(await within(20_000, [{ $group: { _id: null, result: accumulator } }])).toEqual([{ _id: null, result }]);
  });

  it('is given back when the documents of an inner pipeline are not all wanted', async () => {
    const inner = [{ $sample: { size: 50 } }, { $limit: 1 }];
    const stages = [{ $lookup: { from: 'docs', let: { id: '$_id' }, pipeline: inner, as: 'some' } }, { $count: 'n' }];
    expect(await within(2_000_000, stages, docs.slice(0, 200))).toEqual([{ n: 200 }]);
  });
});

describe('paths', () => {
  it('that lead to one place in many ways are followed once', async () => {
    let value: unknown = 1;
    for (let i = 0; i < 60; i++) value = [{ 0: value }];
    const docs = [{ _id: 1, a: value }];
    const found = (path: string, wanted: number) => aggregate({ docs }, 'docs', [{ $match: { [path]: wanted } }]);
    expect(await found(`a${'.0'.repeat(90)}`, 2)).toEqual([]);
    expect(await found(`a${'.0'.repeat(90)}`, 1)).toHaveLength(1);
    expect(await found(`a${'.0'.repeat(60)}`, 1)).toHaveLength(1);
    expect(await found(`a${'.0'.repeat(59)}`, 1)).toEqual([]);
    expect(await found(`a${'.0'.repeat(121)}`, 1)).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['$match', { $match: { [`a${'.b'.repeat(300)}`]: 1 } }],
    ['$addFields', { $addFields: { [`a${'.b'.repeat(100_000)}`]: 1 } }],
    ['$project', { $project: { x: `$a${'.b'.repeat(100_000)}` } }],
    ['$sort', { $sort: { [`a${'.b'.repeat(300)}`]: 1 } }],
    ['$lookup', { $lookup: { from: 'one', pipeline: [], as: `a${'.b'.repeat(100_000)}` } }],
  ])('of more parts than a document has levels are refused in %s', async (_name, stage) => {
    await expect(aggregate({ one }, 'one', [stage])).rejects.toMatchObject({ code: 15 });
  });
});

describe('long arrays', () => {
  it('are unwound piece by piece', async () => {
    const pipeline = compilePipeline([{ $unwind: '$list' }]);
    const run = openCollections({ docs: [{ _id: 1, list: times(5_000, (i) => i) }] });
    const sizes: number[] = [];
    for await (const batch of pipeline.run(run.open('docs', {}), run)) sizes.push(batch.length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(128);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(5_000);
  });

  it('are followed by $graphLookup', async () => {
    const list = times(200_000, (i) => i);
    const docs = [
      { _id: 1, to: list },
      { _id: 150_000, to: [] },
    ];
    const stages = [
      { $match: { _id: 1 } },
      { $graphLookup: { from: 'docs', startWith: 1, connectFromField: 'to', connectToField: '_id', as: 'all' } },
      { $project: { n: { $size: '$all' } } },
    ];
    expect(await aggregate({ docs }, 'docs', stages)).toEqual([{ _id: 1, n: 2 }]);
  });

  it('are shared by all documents that join the same ones', async () => {
    const docs = times(50, (i) => ({ _id: i, k: 1 }));
    const joined = await aggregate({ docs }, 'docs', [
      { $lookup: { from: 'docs', localField: 'k', foreignField: 'k', as: 'all' } },
    ]);
    expect(joined[0]!['all']).toHaveLength(50);
    expect(joined[1]!['all']).toBe(joined[0]!['all']);
  });
});
