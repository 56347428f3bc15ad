import { inspect } from 'node:util';
import { Binary, BSONRegExp, Code, Decimal128, MaxKey, MinKey, ObjectId, Timestamp } from 'bson';
import { describe, expect, it } from 'vitest';
import type { Doc } from '../../codec/document.js';
import { EngineError } from '../../errors.js';
import { compileExpression, openExpressionContext, supportedExpressions } from '../../query/expression.js';
import { openScope } from '../../query/operators/operator.js';
import { identicalValues } from '../../query/values/compare.js';
import { toDouble } from '../../query/values/value.js';

const double = toDouble;
const dec = (text: string) => Decimal128.fromString(text);
const date = (text: string) => new Date(text);
const id = new ObjectId('65f000000000000000000001');
const missing = undefined;

const doc: Doc = {
  n: 7,
  d: 2.5,
  big: 9007199254740993n,
  s: 'Größe 😀',
  t: 'hello world',
  list: [3, 1, 2],
  items: [{ q: 1 }, { q: 5 }, { x: 1 }],
  none: null,
  sub: { a: 1, b: { c: 'deep' } },
  at: date('2024-02-29T23:30:15.123Z'),
  id,
};

function evaluate(expression: unknown): unknown {
  const environment = openExpressionContext([], date('2024-06-01T00:00:00Z'));
  const scope = openScope(environment);
  scope.root = doc;
  return compileExpression(expression, environment).evaluate(doc, scope);
}

function refusalOf(expression: unknown): number | undefined {
  try {
    evaluate(expression);
  } catch (error) {
    if (error instanceof EngineError) return error.code;
    throw error;
  }
  return undefined;
}

/** For each operator: operands and what they give. */
const ANSWERS: Record<string, [operand: unknown, answer: unknown][]> = {
  $literal: [['$n', '$n']],
  $const: [[{ $add: [1, 1] }, { $add: [1, 1] }]],
  $let: [
    [{ vars: { a: 1, b: '$n' }, in: { $add: ['$$a', '$$b'] } }, 8],
    [{ vars: { a: 1 }, in: { $let: { vars: { a: { $add: ['$$a', 1] } }, in: '$$a' } } }, 2],
    [{ vars: { CURRENT: '$sub' }, in: '$b.c' }, 'deep'],
  ],
  $add: [
    [[1, 2], 3],
    [[2147483647, 1], 2147483648n],
    [[9223372036854775807n, 1], 9223372036854775808],
    [[1, 2n], 3n],
    [[1, 0.5], 1.5],
    [[0.5, 0.5], double(1)],
    [[dec('0.1'), dec('0.2')], dec('0.3')],
    [[1, dec('0.10')], dec('1.10')],
    [['$at', 1000], date('2024-02-29T23:30:16.123Z')],
    [[1, null], null],
    [[1, '$nope'], null],
    [[], 0],
  ],
  $subtract: [
    [[1, 3], -2],
    [['$at', date('2024-02-29T23:30:14.123Z')], 1000n],
    [['$at', 123], date('2024-02-29T23:30:15.000Z')],
  ],
  $multiply: [
    [[3, 4], 12],
    [[100000, 100000], 10000000000n],
    [[2, 1.5], double(3)],
    [[dec('1.20'), 2], dec('2.40')],
  ],
  $divide: [
    [[6, 3], double(2)],
    [[1, 4], 0.25],
    [[dec('1'), 3], dec('0.3333333333333333333333333333333333')],
    [[null, 3], null],
  ],
  $mod: [
    [[7, 3], 1],
    [[-7, 3], -1],
    [[7.5, 2], 1.5],
    [[7n, 4], 3n],
    [[dec('7.5'), 2], dec('1.5')],
  ],
  $abs: [
    [-5, 5],
    [-5n, 5n],
    [dec('-1.5'), dec('1.5')],
    [-2147483648, 2147483648n],
  ],
  $ceil: [
    [1.2, double(2)],
    [-1.2, double(-1)],
    [3, 3],
    [dec('1.2'), dec('2')],
  ],
  $floor: [
    [1.8, double(1)],
    [-1.2, double(-2)],
    [dec('-1.2'), dec('-2')],
  ],
  $round: [
    [[1.5], double(2)],
    [[2.5], double(2)],
    [[10.15, 1], 10.2],
    [[19.25, 1], 19.2],
    [[1234, -2], 1200],
    [[1250, -2], 1200],
    [[dec('1.235'), 2], dec('1.24')],
    [[null, 1], null],
  ],
  $trunc: [
    [[7.99], double(7)],
    [[-7.99, 1], -7.9],
    [[1299, -2], 1200],
    [[3n, 1], 3n],
  ],
  $pow: [
    [[2, 31], 2147483648n],
    [[2, 10], 1024],
    [[2, -1], 0.5],
    [[2.5, 2], 6.25],
    [[10, 30], 1e30],
    [[dec('1.1'), 2], dec('1.21')],
  ],
  $sqrt: [[25, double(5)]],
  $exp: [[0, double(1)]],
  $ln: [[1, double(0)]],
  $log: [[[100, 10], double(2)]],
  $log10: [[1000, double(3)]],
  $sin: [[0, double(0)]],
  $cos: [[0, double(1)]],
  $tan: [[0, double(0)]],
  $asin: [[0, double(0)]],
  $acos: [[1, double(0)]],
  $atan: [[0, double(0)]],
  $atan2: [[[0, 1], double(0)]],
  $sinh: [[0, double(0)]],
  $cosh: [[0, double(1)]],
  $tanh: [[0, double(0)]],
  $asinh: [[0, double(0)]],
  $acosh: [[1, double(0)]],
  $atanh: [[0, double(0)]],
  $degreesToRadians: [[180, Math.PI]],
  $radiansToDegrees: [[Math.PI, double(180)]],
  $bitAnd: [
    [[6, 3], 2],
    [[6n, 3], 2n],
    [[], -1],
  ],
  $bitOr: [[[6, 3], 7]],
  $bitXor: [[[6, 3], 5]],
  $bitNot: [
    [5, -6],
    [5n, -6n],
  ],
  $eq: [
    [[1, double(1)], true],
    [[dec('1.0'), 1n], true],
    [['$none', '$nope'], false],
  ],
  $ne: [[[1, 2], true]],
  $gt: [
    [['a', 5], true],
    [[null, '$nope'], true],
  ],
  $gte: [[[2, 2n], true]],
  $lt: [[[[1], [1, 0]], true]],
  $lte: [[[NaN, -Infinity], true]],
  $cmp: [
    [['a', 'b'], -1],
    [[{ a: 1 }, { a: 1 }], 0],
  ],
  $and: [
    [[1, 'x', []], true],
    [[1, 0], false],
    [[], true],
  ],
  $or: [
    [[0, null, '$nope'], false],
    [[0, ''], true],
  ],
  $not: [
    [[0], true],
    [['x'], false],
  ],
  $cond: [
    [[true, 'a', 'b'], 'a'],
    [{ if: { $gt: ['$n', 10] }, then: 'a', else: 'b' }, 'b'],
    // The branch not taken is not evaluated.
    [[false, { $divide: [1, '$nope2'] }, 'safe'], 'safe'],
    [[true, 'safe', { $divide: [1, 0] }], 'safe'],
  ],
  $switch: [
    [{ branches: [{ case: { $gt: ['$n', 5] }, then: 'big' }], default: 'small' }, 'big'],
    [{ branches: [{ case: false, then: 1 }], default: 'small' }, 'small'],
  ],
  $ifNull: [
    [['$nope', '$none', 5], 5],
    [['$n', 5], 7],
    [['$none', '$nope'], missing],
  ],
  $concat: [
    [['a', 'b'], 'ab'],
    [['a', null], null],
  ],
  $toLower: [
    ['ABC', 'abc'],
    [null, ''],
    [12, '12'],
  ],
  $toUpper: [['aé', 'Aé']],
  $strcasecmp: [
    [['abc', 'ABC'], 0],
    [['a', 'b'], -1],
  ],
  $substr: [[['hello', 1, 3], 'ell']],
  $substrBytes: [
    [['cafétéria', 0, 5], 'café'],
    [['hello', 2, -1], 'llo'],
    [['hello', 9, 2], ''],
  ],
  $substrCP: [[['$s', 6, 1], '😀']],
  $strLenBytes: [['$s', 12]],
  $strLenCP: [['$s', 7]],
  $indexOfBytes: [
    [['cafétéria', 't'], 5],
    [['abcabc', 'c', 3], 5],
    [['abc', 'x'], -1],
    [[null, 'x'], null],
  ],
  $indexOfCP: [
    [['cafétéria', 't'], 4],
    [['abc', 'c', 0, 2], -1],
    [['abc', ''], 0],
  ],
  $split: [
    [
      ['June-15-2013', '-'],
      ['June', '15', '2013'],
    ],
    [
      ['astronomical', 'astro'],
      ['', 'nomical'],
    ],
  ],
  $trim: [
    [{ input: ' \n good  bye \t  ' }, 'good  bye'],
    [{ input: 'ggggoodbyeeee', chars: 'ge' }, 'oodby'],
    [{ input: '$nope' }, null],
  ],
  $ltrim: [[{ input: '  x ' }, 'x ']],
  $rtrim: [[{ input: '  x ' }, '  x']],
  $replaceOne: [[{ input: 'a.b.c', find: '.', replacement: '-$&' }, 'a-$&b.c']],
  $replaceAll: [
    [{ input: 'a.b.c', find: '.', replacement: '-' }, 'a-b-c'],
    [{ input: '$nope', find: 'x', replacement: 'y' }, null],
  ],
  $regexMatch: [
    [{ input: 'line1\nline2', regex: '^line2$', options: 'm' }, true],
    [{ input: '$nope', regex: 'x' }, false],
    [{ input: 'ABC', regex: new BSONRegExp('b', 'i') }, true],
  ],
  $regexFind: [
    [
      { input: 'Größe 😀 x7', regex: '([a-z])(\\d)(z)?' },
      { match: 'x7', idx: 8, captures: ['x', '7', null] },
    ],
    [{ input: 'abc', regex: 'z' }, null],
  ],
  $regexFindAll: [
    [
      { input: '😀a1b2', regex: '([a-z])\\d' },
      [
        { match: 'a1', idx: 1, captures: ['a'] },
        { match: 'b2', idx: 3, captures: ['b'] },
      ],
    ],
    [{ input: null, regex: 'a' }, []],
  ],
  $arrayElemAt: [
    [['$list', 0], 3],
    [['$list', -1], 2],
    [['$list', 9], missing],
    [[null, 0], null],
  ],
  $first: [
    ['$list', 3],
    [[[]], missing],
  ],
  $last: [['$list', 2]],
  $concatArrays: [
    [
      ['$list', [9]],
      [3, 1, 2, 9],
    ],
    [['$list', '$nope'], null],
  ],
  $filter: [
    [{ input: '$list', cond: { $gte: ['$$this', 2] } }, [3, 2]],
    [{ input: '$list', as: 'x', cond: { $gte: ['$$x', 2] }, limit: 1 }, [3]],
    [{ input: '$nope', cond: true }, null],
  ],
  $map: [
    [{ input: '$items', as: 'i', in: '$$i.q' }, [1, 5, null]],
    [{ input: [[1, 2], [3]], in: { $map: { input: '$$this', in: { $add: ['$$this', 1] } } } }, [[2, 3], [4]]],
  ],
  $reduce: [[{ input: ['a', 'b'], initialValue: '', in: { $concat: ['$$value', '$$this'] } }, 'ab']],
  $in: [
    [[2, '$list'], true],
    [['x', ['a', 'b', 'c', 'd', 'e', 'x']], true],
    [[2n, [1, 2, 3, 4, 5, 6]], true],
  ],
  $indexOfArray: [
    [['$list', 2], 2],
    [['$list', 3, 1], -1],
  ],
  $isArray: [
    [['$list'], true],
    [['$n'], false],
  ],
  $range: [
    [
      [0, 10, 3],
      [0, 3, 6, 9],
    ],
    [
      [3, 0, -1],
      [3, 2, 1],
    ],
    [[0, 0], []],
  ],
  $reverseArray: [['$list', [2, 1, 3]]],
  $size: [['$list', 3]],
  $slice: [
    [
      ['$list', 2],
      [3, 1],
    ],
    [
      ['$list', -2],
      [1, 2],
    ],
    [
      ['$list', 1, 5],
      [1, 2],
    ],
    [
      ['$list', -5, 2],
      [3, 1],
    ],
  ],
  $sortArray: [
    [{ input: '$list', sortBy: -1 }, [3, 2, 1]],
    [{ input: '$items', sortBy: { q: -1 } }, [{ q: 5 }, { q: 1 }, { x: 1 }]],
  ],
  $zip: [
    [{ inputs: [[1, 2], ['a']] }, [[1, 'a']]],
    [
      { inputs: [[1, 2], ['a']], useLongestLength: true },
      [
        [1, 'a'],
        [2, null],
      ],
    ],
  ],
  $setUnion: [
    [
      [
        [1, 2],
        [2, 3],
      ],
      [1, 2, 3],
    ],
  ],
  $setIntersection: [
    [
      [
        ['a', 'b', 'b'],
        ['b', 'c'],
      ],
      ['b'],
    ],
  ],
  $setDifference: [
    [
      [[1, 2, 2, 3], [2]],
      [1, 3],
    ],
  ],
  $setEquals: [
    [
      [
        [1, 2],
        [2, 1, 1],
      ],
      true,
    ],
  ],
  $setIsSubset: [
    [[[1], [1, 2]], true],
    [[[3], [1, 2]], false],
  ],
  $anyElementTrue: [[[[0, false]], false]],
  $allElementsTrue: [[[[1, null]], false]],
  $mergeObjects: [
    [[{ a: 1, b: 1 }, null, { b: 2 }], { a: 1, b: 2 }],
    ['$nope', {}],
  ],
  $objectToArray: [
    [
      { a: 1, b: 'x' },
      [
        { k: 'a', v: 1 },
        { k: 'b', v: 'x' },
      ],
    ],
  ],
  $arrayToObject: [
    [{ $literal: [{ k: 'a', v: 1 }] }, { a: 1 }],
    [
      {
        $literal: [
          ['a', 1],
          ['b', 2],
        ],
      },
      { a: 1, b: 2 },
    ],
  ],
  $getField: [
    ['n', 7],
    [{ field: { $literal: '$x' }, input: { $literal: { $x: 5 } } }, 5],
    [{ field: 'a.b', input: { $literal: { 'a.b': 6 } } }, 6],
    [{ field: 'x', input: '$nope' }, missing],
  ],
  $setField: [
    [
      { field: 'z', input: { a: 1 }, value: 2 },
      { a: 1, z: 2 },
    ],
    [{ field: 'a', input: { a: 1, b: 2 }, value: '$$REMOVE' }, { b: 2 }],
  ],
  $unsetField: [[{ field: 'a', input: { a: 1, b: 2 } }, { b: 2 }]],
  $bsonSize: [
    [{ $literal: {} }, 5],
    [{ $literal: { a: 1 } }, 12],
    [{ $literal: { a: 1n } }, 16],
  ],
  $binarySize: [
    ['é', 2],
    [new Binary(Buffer.from('abc')), 3],
  ],
  $type: [
    ['$n', 'int'],
    ['$d', 'double'],
    ['$big', 'long'],
    ['$nope', 'missing'],
    ['$none', 'null'],
    [{ $literal: new Code('f') }, 'javascript'],
    [new MinKey(), 'minKey'],
    [new MaxKey(), 'maxKey'],
    [new Timestamp({ t: 1, i: 1 }), 'timestamp'],
    [[[1]], 'array'],
  ],
  $isNumber: [
    ['$big', true],
    ['$s', false],
  ],
  $convert: [
    [{ input: '12', to: 'int' }, 12],
    [{ input: '12', to: 18 }, 12n],
    [{ input: 'x', to: 'int', onError: 'bad' }, 'bad'],
    [{ input: null, to: 'int', onNull: 'nothing' }, 'nothing'],
    [{ input: 1.9, to: { type: 'int' } }, 1],
  ],
  $toBool: [
    ['false', true],
    [0, false],
    [null, null],
  ],
  $toInt: [
    ['-5', -5],
    [2.9, 2],
    [true, 1],
    [dec('5.9'), 5],
  ],
  $toLong: [
    ['5', 5n],
    ['$at', 1709249415123n],
  ],
  $toDouble: [
    ['2.50', 2.5],
    ['-5e3', double(-5000)],
    [true, double(1)],
  ],
  $toDecimal: [
    ['1.10', dec('1.10')],
    [2.5, dec('2.5')],
    [0.1, dec('0.1')],
  ],
  $toString: [
    [2.5, '2.5'],
    [{ $literal: -0 }, '-0'],
    [1.5e-7, '1.5e-07'],
    [-2e21, '-2e+21'],
    [1e-10, '1e-10'],
    ['$big', '9007199254740993'],
    ['$id', '65f000000000000000000001'],
    ['$at', '2024-02-29T23:30:15.123Z'],
    [false, 'false'],
    [dec('1.10'), '1.10'],
  ],
  $toDate: [
    ['2024-03-01', date('2024-03-01T00:00:00Z')],
    ['2024-03-01T10:00:00+02:00', date('2024-03-01T08:00:00Z')],
    [1000n, date('1970-01-01T00:00:01Z')],
    ['$id', id.getTimestamp()],
  ],
  $toObjectId: [['65f000000000000000000001', id]],
  $year: [['$at', 2024]],
  $month: [[{ date: '$at', timezone: 'Europe/Berlin' }, 3]],
  $dayOfMonth: [['$at', 29]],
  $dayOfWeek: [['$at', 5]],
  $dayOfYear: [['$at', 60]],
  $hour: [[{ date: '$at', timezone: 'Asia/Kolkata' }, 5]],
  $minute: [['$at', 30]],
  $second: [['$at', 15]],
  $millisecond: [['$at', 123]],
  $week: [['$at', 8]],
  $isoWeek: [['$at', 9]],
  $isoWeekYear: [[date('2021-01-01T00:00:00Z'), 2020n]],
  $isoDayOfWeek: [['$at', 4]],
  $dateToString: [
    [
      { date: '$at', format: '%d.%m.%Y %H:%M:%S %j %G-W%V-%u %U %b %B %z %Z %%' },
      '29.02.2024 23:30:15 060 2024-W09-4 08 Feb February +0000 0 %',
    ],
    [{ date: '$at', timezone: '-03:30' }, '2024-02-29T20:00:15.123'],
    [{ date: '$nope', onNull: '?' }, '?'],
  ],
  $dateFromString: [
    [{ dateString: '2017-02-08T12:10:40.787' }, date('2017-02-08T12:10:40.787Z')],
    [{ dateString: '2017-02-08', timezone: 'America/New_York' }, date('2017-02-08T05:00:00Z')],
    [{ dateString: '06-15-2018', format: '%m-%d-%Y' }, date('2018-06-15T00:00:00Z')],
    [{ dateString: 'nonsense', onError: 'bad' }, 'bad'],
    [{ dateString: null, onNull: 'nothing' }, 'nothing'],
  ],
  $dateToParts: [
    [{ date: '$at' }, { year: 2024, month: 2, day: 29, hour: 23, minute: 30, second: 15, millisecond: 123 }],
    [
      { date: '$at', iso8601: true },
      { isoWeekYear: 2024, isoWeek: 9, isoDayOfWeek: 4, hour: 23, minute: 30, second: 15, millisecond: 123 },
    ],
  ],
  $dateFromParts: [
    [{ year: 2017, month: 2, day: 8, hour: 12 }, date('2017-02-08T12:00:00Z')],
    [{ isoWeekYear: 2017, isoWeek: 6, isoDayOfWeek: 3 }, date('2017-02-08T00:00:00Z')],
    [{ year: 2016, month: 12, day: 31, hour: 23, timezone: 'America/New_York' }, date('2017-01-01T04:00:00Z')],
    [{ year: 2017, month: 0 }, date('2016-12-01T00:00:00Z')],
  ],
  $dateAdd: [
    [{ startDate: date('2024-01-31T00:00:00Z'), unit: 'month', amount: 1 }, date('2024-02-29T00:00:00Z')],
    [
      { startDate: date('2024-03-30T12:00:00Z'), unit: 'day', amount: 1, timezone: 'Europe/Berlin' },
      date('2024-03-31T11:00:00Z'),
    ],
    [{ startDate: '$at', unit: 'hour', amount: 2 }, date('2024-03-01T01:30:15.123Z')],
  ],
  $dateSubtract: [[{ startDate: '$at', unit: 'year', amount: 1 }, date('2023-02-28T23:30:15.123Z')]],
  $dateDiff: [
    [{ startDate: date('2023-12-31T23:59:59Z'), endDate: date('2024-01-01T00:00:00Z'), unit: 'year' }, 1n],
    [{ startDate: date('2024-01-06T00:00:00Z'), endDate: date('2024-01-07T00:00:00Z'), unit: 'week' }, 1n],
    [
      {
        startDate: date('2024-01-06T00:00:00Z'),
        endDate: date('2024-01-07T00:00:00Z'),
        unit: 'week',
        startOfWeek: 'monday',
      },
      0n,
    ],
    [{ startDate: date('2024-01-01T10:59:00Z'), endDate: date('2024-01-01T11:01:00Z'), unit: 'hour' }, 1n],
  ],
  $dateTrunc: [
    [{ date: '$at', unit: 'day' }, date('2024-02-29T00:00:00Z')],
    [{ date: '$at', unit: 'quarter' }, date('2024-01-01T00:00:00Z')],
    [{ date: date('2021-03-20T11:30:05Z'), unit: 'month', binSize: 2 }, date('2021-03-01T00:00:00Z')],
    [{ date: '$at', unit: 'week', startOfWeek: 'monday' }, date('2024-02-26T00:00:00Z')],
    [{ date: '$at', unit: 'minute', binSize: 15 }, date('2024-02-29T23:30:00Z')],
  ],
  $tsSecond: [[new Timestamp({ t: 5, i: 7 }), 5n]],
  $tsIncrement: [[new Timestamp({ t: 5, i: 7 }), 7n]],
  $sum: [
    ['$list', 6],
    [['$n', '$d', 'x'], 9.5],
  ],
  $avg: [
    ['$list', double(2)],
    [['x'], null],
  ],
  $min: [
    ['$list', 1],
    [[3, null, 2n], 2n],
  ],
  $max: [['$list', 3]],
  $stdDevPop: [[[1, 3], double(1)]],
  $stdDevSamp: [
    [[1, 3], Math.SQRT2],
    [[1], null],
  ],
  $firstN: [[{ n: 2, input: '$list' }, [3, 1]]],
  $lastN: [[{ n: 2, input: '$list' }, [1, 2]]],
  $minN: [[{ n: 2, input: '$list' }, [1, 2]]],
  $maxN: [[{ n: 9, input: [1, null, 5] }, [5, 1]]],
  $median: [[{ input: '$list', method: 'approximate' }, double(2)]],
  $percentile: [[{ input: [1, 2, 3, 4], p: [0.25, 1], method: 'approximate' }, [double(1), double(4)]]],
};

describe('aggregation expressions', () => {
  for (const [name, rows] of Object.entries(ANSWERS)) {
    it(`computes ${name}`, () => {
      for (const [operand, answer] of rows) {
        const got = evaluate({ [name]: operand });
        expect(identicalValues(got, answer), `${name} of ${inspect(operand)} gave ${inspect(got)}`).toBe(true);
      }
    });
  }

  it('computes $rand between 0 and 1', () => {
    const value = evaluate({ $rand: {} }) as number;
    expect(value >= 0 && value < 1).toBe(true);
  });

  it('has a row for every operator', () => {
    expect(supportedExpressions.filter((name) => !Object.hasOwn(ANSWERS, name) && name !== '$rand')).toEqual([]);
  });

  it('reads paths through arrays, leaving out what has no such field', () => {
    expect(evaluate('$items.q')).toEqual([1, 5]);
    expect(evaluate('$sub.b.c')).toBe('deep');
    expect(evaluate('$items.0')).toEqual([]);
    expect(evaluate('$n.x')).toBeUndefined();
  });

  it('knows the system variables', () => {
    expect(evaluate('$$ROOT.n')).toBe(7);
    expect(evaluate('$$CURRENT.sub.a')).toBe(1);
    expect(evaluate('$$NOW')).toEqual(date('2024-06-01T00:00:00Z'));
    expect(evaluate('$$REMOVE')).toBeUndefined();
  });

  it('makes documents and arrays of expressions, missing values left out of the one and null in the other', () => {
    expect(evaluate({ a: '$n', b: '$nope', c: { d: ['$nope', 1] } })).toEqual({ a: 7, c: { d: [null, 1] } });
  });

  it('finds no fields that are only the prototype’s', () => {
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      expect(evaluate(`$${name}`)).toBeUndefined();
      expect(evaluate({ $getField: name })).toBeUndefined();
    }
  });

  it.each<[string, unknown, number]>([
    ['an unknown operator', { $foo: 1 }, 168],
    ['an operator beside other fields', { $add: [1], x: 1 }, 15983],
    ['an undefined variable', '$$who', 17276],
    ['an empty path', '$', 16872],
    ['a path with an empty part', '$a..b', 15998],
    ['too many arguments', { $abs: [1, 2] }, 16020],
    ['text in an addition', { $add: [1, 'x'] }, 14],
    ['division by zero', { $divide: ['$n', 0] }, 2],
    ['modulo zero', { $mod: ['$n', 0] }, 16610],
    ['a cut through a character', { $substrBytes: ['é', 1, 1] }, 28656],
    ['an unparsable number', { $toInt: 'abc' }, 241],
    ['a number too large', { $toInt: 3000000000 }, 241],
    ['an unknown time zone', { $hour: { date: '$at', timezone: 'Mars/Olympus' } }, 40485],
    ['a number for a date', { $year: 5 }, 16006],
    ['a negative square root', { $sqrt: -1 }, 28714],
    ['a switch that finds nothing', { $switch: { branches: [{ case: false, then: 1 }] } }, 40066],
    ['an array where a set is needed', { $setUnion: ['$n'] }, 17043],
    ['an array where a set is needed, before a missing one', { $setUnion: ['$n', '$missing'] }, 17043],
    ['a set without an array, before a missing one', { $setIntersection: ['$n', '$missing'] }, 17047],
    ['a range of billions', { $range: [0, 2000000000] }, 146],
    ['look-ahead', { $regexMatch: { input: 'a', regex: '(?=a)' } }, 51091],
    ['an unknown regex option', { $regexMatch: { input: 'a', regex: 'a', options: 'g' } }, 51108],
    ['an unknown argument', { $trim: { input: 'a', what: 1 } }, 9],
  ])('refuses %s', (_what, expression, code) => {
    expect(refusalOf(expression)).toBe(code);
  });

  it('says which top-level fields it reads', () => {
    const fieldsOf = (expression: unknown) => compileExpression(expression, openExpressionContext()).fields;
    expect(fieldsOf({ $add: ['$a.b', '$$ROOT.c', 1] })).toEqual(new Set(['a', 'c']));
    expect(fieldsOf('$$ROOT')).toBeNull();
    expect(fieldsOf({ $map: { input: '$list', in: '$$this.x' } })).toEqual(new Set(['list']));
  });

  it('stays small: strings that double do not grow without end', () => {
    const doubling = {
      $reduce: { input: { $range: [0, 60] }, initialValue: 'x'.repeat(64), in: { $concat: ['$$value', '$$value'] } },
    };
    expect(refusalOf(doubling)).toBe(10334);
    const growing = {
      $reduce: { input: { $range: [0, 60] }, initialValue: [1], in: { $concatArrays: ['$$value', '$$value'] } },
    };
    expect(refusalOf(growing)).toBe(146);
  });
});
