import { EXPRESSION_OPERATORS } from '../../world/documents.js';

/** A request by a publishable key against a collection: a query string of a list, or the body of a pipeline. */
export type Expense = { query: string } | { pipeline: unknown };

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789_-!@#%';
const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const choiceOf = (characters: string[]): string => `(${characters.join('|')})*`;
/** How many different characters, none of which means anything in a pattern. */
const differentCharacters = (count: number): string[] => many(count, (at) => String.fromCharCode(0x4e00 + at));
const filters = (count: number, make: (at: number) => string): Expense => ({ query: many(count, make).join('&') });
const pipeline = (...stages: unknown[]): Expense => ({ pipeline: [...stages, { $limit: 1 }] });
const match = (filter: unknown): Expense => pipeline({ $match: filter });
const computed = (expression: unknown): Expense => pipeline({ $project: { r: expression } });
/** A text or array that doubles with every round. */
const doubled = (rounds: number, start: unknown, join: string): unknown => ({
  $reduce: { input: { $range: [0, rounds] }, initialValue: start, in: { [join]: ['$$value', '$$value'] } },
});
const longText = doubled(19, 'ab', '$concat');
const longArray = { $range: [0, 500_000] };
const nested = (levels: number, expression: unknown, operator: string): unknown =>
  levels === 0 ? expression : { [operator]: many(2, () => nested(levels - 1, expression, operator)) };
const loop = (count: number, body: unknown): unknown => ({ $map: { input: { $range: [0, count] }, in: body } });

/** What was found to hold the process, and its neighbours. The collection has one document, with `a: 'x'`. */
export const KNOWN_EXPENSES: Readonly<Record<string, Expense>> = {
  'sixty patterns of many alternatives': filters(
    60,
    (at) => `k${at}_regex=${encodeURIComponent(choiceOf([...LETTERS]))}`,
  ),
  'a pattern of 200 alternatives': match({ s: { $regex: choiceOf(differentCharacters(200)) } }),
  'a pattern of 254 alternatives': match({ s: { $regex: choiceOf(differentCharacters(254)) } }),
  'the same in an expression': computed({ $regexMatch: { input: '$a', regex: choiceOf(differentCharacters(254)) } }),
  'four thousand cheap patterns': match({ $or: many(4000, () => ({ s: { $regex: 'a.{0,200}b' } })) }),
  'three thousand different patterns': match({
    $or: many(3000, (at) => ({ s: { $regex: `a.{0,${at % 900}}b${at}` } })),
  }),
  'a pattern of many classes': match({ s: { $regex: `(${many(60, () => '[a-zäöü]').join('|')})*` } }),
  'a pattern of nested options': match({ s: { $regex: `${'(a?'.repeat(120)}${')'.repeat(120)}` } }),
  'a pattern of counted groups': match({ s: { $regex: '((((a{9}){9}){9})b{9}){9}' } }),
  'a pattern of long counts': match({ s: { $regex: many(50, () => '(?:a|b){0,900}').join('') } }),
  'a pattern that is found nowhere in a long text': computed({
    $regexFind: { input: longText, regex: 'a.{0,300}z|b$' },
  }),
  'all places of a pattern in a long text': computed({
    $size: { $regexFindAll: { input: longText, regex: 'a.{0,300}z|b$' } },
  }),
  'all places of a letter in a long text': computed({ $size: { $regexFindAll: { input: longText, regex: 'a' } } }),
  'all places of nothing in a long text': computed({ $size: { $regexFindAll: { input: longText, regex: '' } } }),
  'a pattern of many states in a long text': computed({
    $regexMatch: { input: longText, regex: '(?:a|b)*a(?:a|b){12}c' },
  }),
  'a pattern tried on many long texts': computed(
    loop(500, { $regexMatch: { input: longText, regex: 'a.{0,300}z|b$' } }),
  ),
  'nineteen thousand identifiers': match({ _id: { $in: many(19_000, (at) => at.toString(16).padStart(24, '0')) } }),
  'nineteen thousand texts': match({ a: { $in: many(19_000, (at) => `value ${at}`) } }),
  'nineteen thousand values of $all': match({ a: { $all: many(19_000, (at) => `value ${at}`) } }),
  'nineteen thousand items in an expression': computed({ $in: ['$a', many(19_000, (at) => `value ${at}`)] }),
  'nineteen thousand fields in an expression': computed({ $in: ['$a', many(19_000, (at) => `$f${at}`)] }),
  'a choice of five thousand fields': match({ $or: many(5000, (at) => ({ [`f${at}`]: at })) }),
  'a choice of one field five thousand times': match({ $or: many(5000, (at) => ({ a: at })) }),
  'twelve doublings of $or': match(nested(12, { a: 1 }, '$or')),
  'twelve doublings of $and of $or': match(nested(6, { $or: [{ a: 1 }, { b: nested(0, 1, '') }] }, '$and')),
  'twelve doublings of $nor': match(nested(11, { a: 1 }, '$nor')),
  'eleven doublings of $add': computed(nested(11, 1, '$add')),
  'eleven doublings of $cond': computed(nested(11, '$a', '$ifNull')),
  'three thousand branches': computed({
    $switch: { branches: many(3000, (at) => ({ case: { $eq: ['$a', at] }, then: at })), default: 0 },
  }),
  'nine thousand computed fields': pipeline({ $addFields: Object.fromEntries(many(9000, (at) => [`f${at}`, '$a'])) }),
  'nine thousand shown fields': pipeline({ $project: Object.fromEntries(many(9000, (at) => [`f${at}`, 1])) }),
  'nine thousand fields of a group': pipeline({
    $group: { _id: null, ...Object.fromEntries(many(9000, (at) => [`f${at}`, { $sum: 1 }])) },
  }),
  'nine thousand sorted fields': pipeline({ $sort: Object.fromEntries(many(9000, (at) => [`f${at}`, 1])) }),
  'nine thousand removed fields': pipeline({ $unset: many(9000, (at) => `f${at}`) }),
  'nine thousand removed fields of one another': pipeline({ $unset: many(9000, (at) => `f.g${at}`) }),
  'paths of a hundred parts': match(Object.fromEntries(many(200, (at) => [many(100, () => `p${at}`).join('.'), 1]))),
  'a path of a hundred thousand parts': match({ [many(100_000, () => 'p').join('.')]: 1 }),
  'a field reference of a hundred thousand parts': computed(`$${many(100_000, () => 'p').join('.')}`),
  'a hundred stages of two hundred fields': pipeline(
    ...many(90, (stage) => ({ $addFields: Object.fromEntries(many(100, (at) => [`f${stage}x${at}`, '$a'])) })),
  ),
  'twenty facets of many stages': pipeline({
    $facet: Object.fromEntries(
      many(20, (at) => [`f${at}`, many(4, () => ({ $match: { a: { $in: many(200, (n) => n) } } }))]),
    ),
  }),
  'ninety thousand keys': { pipeline: Object.fromEntries(many(90_000, (at) => [`k${at}`, 1])) },
  'an array that doubles': computed({ $size: doubled(24, [1], '$concatArrays') }),
  'a set that doubles': computed({ $size: doubled(24, longArray, '$setUnion') }),
  'a text that doubles': computed({ $strLenCP: doubled(24, 'ab', '$concat') }),
  'an array of arrays that doubles': computed({ $size: doubled(30, [1], '$zip') }),
  'a million numbers in reverse': computed({
    $size: { $sortArray: { input: { $reverseArray: longArray }, sortBy: 1 } },
  }),
  'a million numbers sorted at random': computed({
    $size: { $sortArray: { input: { $map: { input: longArray, in: { $rand: {} } } }, sortBy: 1 } },
  }),
  'a million sums': computed({ $size: loop(1_000_000, { $add: ['$$this', 1] }) }),
  'a thousand rounds of a thousand': computed({ $size: loop(1000, { $sum: loop(1000, '$$this') }) }),
  'a million pairs': computed({ $size: { $zip: { inputs: [longArray, longArray] } } }),
  'a text cut into half a million': computed({ $size: { $split: [longText, 'b'] } }),
  'half a million replacements': computed({
    $strLenCP: { $replaceAll: { input: longText, find: 'a', replacement: 'cc' } },
  }),
  'a search in vain, many times': computed(loop(1000, { $indexOfCP: [longText, 'aaaa'] })),
  'a million densified days': pipeline(
    { $set: { at: new Date(0).toISOString() } },
    { $project: { at: { $toDate: '$at' } } },
    {
      $densify: {
        field: 'at',
        range: { step: 1, unit: 'millisecond', bounds: [{ $date: '1970-01-01' }, { $date: '1970-01-02' }] },
      },
    },
    { $count: 'n' },
  ),
  'many formatted dates': computed({
    $size: loop(100_000, { $dateToString: { date: { $toDate: '$$this' }, timezone: 'Europe/Berlin' } }),
  }),
  'many unwound items': pipeline(
    { $set: { r: longArray } },
    { $unwind: '$r' },
    { $group: { _id: { $mod: ['$r', 7] } } },
  ),
  'a group of large values': pipeline(
    { $set: { r: { $range: [0, 300] } } },
    { $unwind: '$r' },
    { $group: { _id: null, all: { $push: { $concat: [doubled(14, 'ab', '$concat')] } } } },
    { $project: { n: { $size: '$all' } } },
  ),
  'a window of all for each': pipeline(
    { $set: { r: { $range: [0, 20_000] } } },
    { $unwind: '$r' },
    { $setWindowFields: { sortBy: { r: 1 }, output: { all: { $sum: '$r', window: { documents: [-5000, 5000] } } } } },
    { $count: 'n' },
  ),
  'big numbers': computed({ $size: loop(100_000, { $pow: [{ $toDecimal: '$$this' }, 1000] }) }),
  'a reply of a hundred thousand decimals': computed(loop(100_000, { $toDecimal: '$$this' })),
  'a reply of sixty thousand long decimals': computed(
    loop(60_000, { $add: ['$$this', { $toDecimal: '0.12345678901234567890123456789' }] }),
  ),
  'a decimal power': computed({ $pow: [{ $toDecimal: '1e6000' }, { $toDecimal: '-0.3333333333333333333' }] }),
  'a text of a megabyte as a number': computed({ $toDecimal: doubled(19, '1', '$concat') }),
  'a text of a megabyte as a date': computed({ $dateFromString: { dateString: doubled(19, '1', '$concat') } }),
  'one hundred and ninety-nine filters': filters(199, (at) => `f${at}_in=${many(20, (n) => n).join(',')}`),
  'one hundred and ninety-nine ranges': filters(199, (at) => `f${at}_gte=2026-01-01`),
  'a hundred filters of deep paths': filters(100, (at) => `f${at}.a.b.c.d.e.f.g.h=1`),
  'a list of fourteen thousand bytes': {
    query: `a_in=${many(1000, (at) => at).join(',')}&b_in=${many(1000, (at) => at).join(',')}&c_in=${many(1000, (at) => at).join(',')}`,
  },
  'a long sort': { query: `sort=${many(1500, (at) => `f${at}`).join(',')}` },
  'a long list of fields': { query: `fields=${many(2000, (at) => `f${at}`).join(',')}` },
  'nested fields': { query: `fields=${many(100, (at) => `f.${many(20, () => 'g').join('.')}.h${at}`).join(',')}` },
  'a long list to populate': { query: `populate=${many(2000, (at) => `f${at}`).join(',')}` },
  'a long cursor': { query: `cursor=${'A'.repeat(14_000)}` },
};

/** Of the forms of arguments each operator meets so many, one operator these and the next one others. */
const FORMS_EACH = 3;

/** Every operator of an expression on large values, in some of the forms of its arguments that operators have. */
export function* operatorExpenses(): Generator<[name: string, expense: Expense]> {
  const forms: Record<string, unknown> = {
    'a long text': longText,
    'a long array': longArray,
    'two long texts': [longText, longText],
    'a long text and a letter': [longText, 'z'],
    'two long arrays': [longArray, longArray],
    'an item and a long array': ['x', longArray],
    'many numbers': [many(2000, (at) => at)],
    'a named text': { input: longText },
    'a named array': { input: longArray, in: '$$this', cond: true, initialValue: 0, n: 5, sortBy: 1, as: 'this' },
  };
  const all = Object.entries(forms);
  for (const [at, operator] of [...EXPRESSION_OPERATORS].entries()) {
    for (let n = 0; n < FORMS_EACH; n++) {
      const [name, argument] = all[(at * FORMS_EACH + n) % all.length]!;
      const expression = { [operator]: argument };
      // Not the value itself: that a long reply takes long to write is another matter.
      yield [`${operator} of ${name}`, pipeline({ $match: { $expr: { $eq: [{ $type: expression }, 'none'] } } })];
    }
    yield [`${operator} in a loop`, computed({ $size: loop(50_000, { [operator]: '$$this' }) })];
  }
}
