import { ObjectId } from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/features/collections/collection.js';
import { parseGetQuery, parseListQuery } from '../../../src/features/documents/query/parse-list-query.js';
import { buildCollection } from './build-collection.js';

const ID = '0123456789abcdef01234567';

const posts = buildCollection({
  rls: { mode: 'public-read', ownerField: 'userId' },
  fields: [
    { name: 'title', type: 'String' },
    { name: 'views', type: 'Number' },
    { name: 'live', type: 'Boolean' },
    { name: 'published', type: 'Date' },
    { name: 'checked_in', type: 'Boolean' },
    { name: 'author', type: 'Ref', ref: 'authors' },
    { name: 'source', type: 'Ref' },
    { name: 'editors', type: 'Array', items: { type: 'Ref', ref: 'authors' } },
    { name: 'tags', type: 'Array', items: { type: 'String' } },
    { name: 'scores', type: 'Array', items: { type: 'Number' } },
    { name: 'bag', type: 'Array' },
    {
      name: 'meta',
      type: 'Object',
      fields: [
        { name: 'views', type: 'Number' },
        { name: 'reviewer', type: 'Ref', ref: 'authors' },
      ],
    },
    { name: 'extra', type: 'Object' },
    {
      name: 'lines',
      type: 'Array',
      items: { type: 'Object', fields: [{ name: 'quantity', type: 'Number' }] },
    },
  ],
});
const notes = buildCollection({ name: 'notes', mode: 'flexible', fields: [], indexes: ['a', 'checked'] });

const conditions = (raw: string, collection: Collection = posts) => parseListQuery(raw, collection).conditions;
const refusal = (raw: string, collection: Collection = posts): string => {
  try {
    parseListQuery(raw, collection);
  } catch (error) {
    expect(error).toMatchObject({ kind: 'invalid', code: 'INVALID_QUERY' });
    return (error as Error).message;
  }
  throw new Error(`"${raw}" was accepted`);
};

describe('defaults of a list', () => {
  it('is the first twenty, newest first, without the trash', () => {
    expect(parseListQuery('', posts)).toEqual({
      conditions: [],
      sort: [
        { path: 'createdAt', direction: -1 },
        { path: '_id', direction: -1 },
      ],
      order: { createdAt: -1, _id: -1 },
      paging: { mode: 'offset', page: 1, skip: 0 },
      limit: 20,
      count: false,
      fields: null,
      populate: [],
      meta: true,
      includeDeleted: false,
    });
  });
});

describe('filters on an enforced collection', () => {
  it.each([
    ['title=red%20car', { title: { $eq: 'red car' } }],
    ['title=red+car', { title: { $eq: 'red car' } }],
    ['title=', { title: { $eq: '' } }],
    ['title=5', { title: { $eq: '5' } }],
    ['title=null', { title: { $eq: 'null' } }],
    ['title_ne=a', { title: { $ne: 'a' } }],
    ['title_in=a,b', { title: { $in: ['a', 'b'] } }],
    ['title_exists=false', { title: { $exists: false } }],
    ['title_regex=%5Ered', { title: { $regex: '^red', $options: 'i' } }],
    ['title_startswith=a.b|c%20%5B', { title: { $regex: '^a\\.b\\x7cc \\[' } }],
    ['tags_startswith=re', { tags: { $regex: '^re' } }],
    ['meta_near=13.4,52.5,6378.1', { meta: { $geoWithin: { $centerSphere: [[13.4, 52.5], 0.001] } } }],
    ['meta_within=0,0,10,0,10,10', { meta: { $geoWithin: { $geometry: { type: 'Polygon', coordinates: [[[0, 0], [10, 0], [10, 10], [0, 0]]] } } } }], // prettier-ignore
    ['views=5', { views: { $eq: 5 } }],
    ['views=null', { views: { $eq: null } }],
    ['views_gt=1.5e3', { views: { $gt: 1500 } }],
    ['views_gte=-1', { views: { $gte: -1 } }],
    ['views_lt=10', { views: { $lt: 10 } }],
    ['views_lte=10', { views: { $lte: 10 } }],
    ['live=true', { live: { $eq: true } }],
    ['published_gte=2026-01-31', { published: { $gte: new Date('2026-01-31T00:00:00Z') } }],
    // A Date in a text, as the hosted service's SDK sends it.
    [
      `published_lt=${encodeURIComponent('Sat Jan 31 2026 02:00:00 GMT+0200 (Eastern European Standard Time)')}`,
      { published: { $lt: new Date('2026-01-31T00:00:00Z') } },
    ],
    ['createdAt_lt=2026-01-31T12:00:00%2B01:00', { createdAt: { $lt: new Date('2026-01-31T11:00:00Z') } }],
    [`author=${ID}`, { author: { $eq: ID } }],
    [`_id=${ID}`, { _id: { $eq: new ObjectId(ID) } }],
    [`_id_in=${ID}`, { _id: { $eq: new ObjectId(ID) } }],
    ['userId=42', { userId: { $eq: '42' } }],
    ['tags=red', { tags: { $eq: 'red' } }],
    ['scores_gt=3', { scores: { $gt: 3 } }],
    ['meta.views_gt=3', { 'meta.views': { $gt: 3 } }],
    ['lines.quantity=2', { 'lines.quantity': { $eq: 2 } }],
    ['lines.0.quantity=2', { 'lines.0.quantity': { $eq: 2 } }],
    ['extra.colour=red', { 'extra.colour': { $eq: 'red' } }],
    ['bag=2', { bag: { $in: [2, '2'] } }],
    ['checked_in=true', { checked_in: { $eq: true } }],
    ['checked_in_ne=true', { checked_in: { $ne: true } }],
  ])('reads %s', (raw, condition) => {
    expect(conditions(raw)).toEqual([condition]);
  });

  it('ANDs several operators on one field', () => {
    expect(conditions('views_gt=1&views_lt=5')).toEqual([{ views: { $gt: 1 } }, { views: { $lt: 5 } }]);
  });

  it.each([
    ['views=abc', 'views must be a number, not "abc"'],
    ['views=0x10', 'views must be a number'],
    ['views=1e999', 'views must be a number'],
    ['views_in=1,', 'views_in must be a number, not ""'],
    ['live=1', 'live must be true or false'],
    ['published=Sat%20Jan%2099%202026%2002:00:00%20GMT%2B0200', 'published must be a date such as 2026-01-31'],
    ['published=yesterday', 'published must be a date such as 2026-01-31'],
    ['author=me', 'author must be an identifier of 24 hexadecimal digits'],
    ['_id=1', '_id must be an identifier of 24 hexadecimal digits'],
    ['extra=1', 'extra is an Object: filter by one of the fields inside it'],
    ['colour=red', 'Unknown field "colour" in the filter "colour"'],
    ['colour_gt=red', 'Unknown field "colour" in the filter "colour_gt"'],
    ['title.length=3', 'Unknown field "title.length"'],
    ['meta.hits=3', 'Unknown field "meta.hits"'],
    ['title_exists=yes', 'title_exists must be true or false'],
    ['views_regex=1', 'views_regex needs a text field; this one is of type Number'],
    ['_id_regex=1', '_id_regex needs a text field'],
    ['views_near=1,2,3', 'views_near needs a field of places; this one is of type Number'],
    ['meta_near=1,2', 'meta_near must be longitude,latitude,meters'],
    ['meta_near=1,92,3', 'meta_near: 1,92 is no place: longitude -180 to 180, latitude -90 to 90'],
    ['meta_within=1,2,3,4', 'meta_within takes a polygon of 3 to 100 different corners'],
    ['meta_within=1,2,3', 'meta_within must be the corners of a polygon: longitude,latitude,longitude,latitude,…'],
    ['views_startswith=1', 'views_startswith needs a text field; this one is of type Number'],
    ['title_startswith=', 'title_startswith needs at least one character'],
    [`title_startswith=${'a'.repeat(129)}`, 'title_startswith must be at most 128 characters long'],
    ['title=a&title=b', 'title is given more than once: use title_in for one of several values'],
    ['views_gt=1&views_gt=2', 'views_gt is given more than once'],
    ['isDeleted=true', 'isDeleted and deletedAt cannot be filtered by; use include_deleted=true'],
    ['isDeleted_ne=false', 'cannot be filtered by'],
    ['deletedAt_exists=true', 'cannot be filtered by'],
    ['isDeleted.x=1', 'cannot be filtered by'],
    ['title=%E0%A4', 'title is not properly percent-encoded'],
    ['title=a%00b', 'title contains a NUL character'],
  ])('refuses %s', (raw, text) => {
    expect(refusal(raw)).toContain(text);
  });
});

describe('filters on a flexible collection', () => {
  it.each([
    ['zip=10115', { zip: { $in: [10115, '10115'] } }],
    ['zip=010115', { zip: { $eq: '010115' } }],
    ['a=true', { a: { $in: [true, 'true'] } }],
    ['a=null', { a: { $in: [null, 'null'] } }],
    ['a_ne=null', { a: { $nin: [null, 'null'] } }],
    ['a_in=1,x', { a: { $in: [1, '1', 'x'] } }],
    ['a_gt=5', { $or: [{ a: { $gt: 5 } }, { a: { $gt: '5' } }] }],
    ['a_gt=null', { a: { $gt: 'null' } }],
    ['a=2026-01-31', { a: { $in: ['2026-01-31', new Date('2026-01-31T00:00:00Z')] } }],
    ['a.b.0.c=x', { 'a.b.0.c': { $eq: 'x' } }],
    ['checked_in=x', { checked: { $eq: 'x' } }],
    ['createdAt_gt=2026-01-31', { createdAt: { $gt: new Date('2026-01-31T00:00:00Z') } }],
    [`_id=${ID}`, { _id: { $eq: new ObjectId(ID) } }],
  ])('reads %s', (raw, condition) => {
    expect(conditions(raw, notes)).toEqual([condition]);
  });

  it('matches an undeclared field of the whole name too, where nothing says that the suffix is meant', () => {
    const loose = buildCollection({ mode: 'flexible', fields: [] });
    const exact = { $and: [{ seen_gt: { $exists: true } }, { seen_gt: { $in: [5, '5'] } }] };
    expect(conditions('seen_gt=5', loose)).toEqual([
      { $or: [{ $or: [{ seen: { $gt: 5 } }, { seen: { $gt: '5' } }] }, exact] },
    ]);
  });

  it('takes a declared field only as a hint, because it may hold anything', () => {
    const loose = buildCollection({ mode: 'flexible', fields: [{ name: 'views', type: 'Number' }] });
    expect(conditions('views=many', loose)).toEqual([{ views: { $eq: 'many' } }]);
  });
});

describe('_in', () => {
  it.each([
    ['title_in=a,b,c', ['a', 'b', 'c']],
    ['title_in=a%2Cb', ['a', 'b']],
    ['title_in=a&title_in=b', ['a', 'b']],
    ['title_in=a,b&title_in=c', ['a', 'b', 'c']],
    ['title_in=a%2Cb&title_in=c', ['a,b', 'c']],
    ['title_in=a,,b', ['a', '', 'b']],
  ])('reads %s', (raw, list) => {
    expect(conditions(raw)).toEqual([{ title: { $in: list } }]);
  });

  it('needs a value', () => {
    expect(refusal('title_in=')).toBe('title_in needs at least one value');
  });

  it('takes at most a thousand values', () => {
    expect(refusal(`title_in=${'a,'.repeat(1000)}a`)).toBe('title_in may list at most 1000 values');
  });
});

describe('_regex', () => {
  it('takes up to 128 characters', () => {
    expect(conditions(`title_regex=${'a'.repeat(128)}`)).toHaveLength(1);
    expect(refusal(`title_regex=${'a'.repeat(129)}`)).toBe('title_regex must be at most 128 characters long');
  });

  it.each(['[', 'a**', '(?=a)', '(a)%5C1', '(?<!a)b', '%5C'])('refuses %s, which cannot be compiled', (pattern) => {
    expect(refusal(`title_regex=${pattern}`)).toContain('title_regex is not a usable pattern');
  });

  it.each([
    '(a%2B)%2B$',
    '(a|a)*$',
    '(a|aa)%2B$',
    '([a-z]%2B)*x',
    '(a?b?)*c',
    '(.*a){20}',
    '(a|a){50}',
    '.*.*.*.*.*x',
    `${'a?'.repeat(40)}${'a'.repeat(40)}`,
  ])('refuses %s, which can backtrack catastrophically', (pattern) => {
    expect(refusal(`title_regex=${pattern}`)).toContain('title_regex could take too long');
  });

  it.each(['^red', 'foo|bar', 'f.*o.*o', '%5E[a-z]%2B(-[a-z]%2B)*$', '(%5Cd{1,3}%5C.){3}%5Cd%2B', '.{0,50}x', '(?i)A'])(
    'accepts %s',
    (pattern) => {
      expect(conditions(`title_regex=${pattern}`)).toHaveLength(1);
    },
  );
});

describe('hostile parameter names', () => {
  it.each([
    '$where=1',
    'a[$ne]=1',
    'a[]=1',
    'a.$ne=1',
    '$or=1',
    '.a=1',
    'a..b=1',
    'a.=1',
    '__proto__=1',
    '__proto__.x=1',
    'constructor.prototype=1',
    'a.__proto__.b=1',
    '_bsvc=1',
    '_bsvc.x_exists=true',
    '=1',
    'a%00=1',
    'a b=1',
    `${'a.'.repeat(40)}b=1`,
  ])('refuses %s', (raw) => {
    refusal(raw, notes);
  });

  it('refuses more than two hundred parameters', () => {
    expect(refusal(Array.from({ length: 201 }, (_, at) => `a${at}=1`).join('&'), notes)).toContain('at most 200');
  });

  it('never lets anything but scalars through, whatever the query string, and leaves Object.prototype alone', () => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    const piece = fc.constantFrom(
      '$where',
      '__proto__',
      'a',
      '_gt',
      '_in',
      '_regex',
      '[',
      ']',
      '=',
      '&',
      '%2C',
      '.',
      '$ne',
      '1',
      '{}',
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string({ maxLength: 3 })), { maxLength: 12 }), (pieces) => {
        try {
          for (const condition of conditions(pieces.join(''), notes)) expectScalars(condition);
        } catch (error) {
          expect(error).toMatchObject({ code: 'INVALID_QUERY' });
        }
      }),
      { seed: 7, numRuns: 3000 },
    );
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
  });
});

describe('sort', () => {
  it.each([
    ['title', { title: 1, _id: 1 }],
    ['-title', { title: -1, _id: -1 }],
    ['title:asc', { title: 1, _id: 1 }],
    ['title:desc,views', { title: -1, views: 1, _id: 1 }],
    ['-views,_id', { views: -1, _id: 1 }],
    ['_id,title', { _id: 1 }],
    ['meta.views', { 'meta.views': 1, _id: 1 }],
  ])('reads %s', (text, order) => {
    const sort = Object.entries(order).map(([path, direction]) => ({ path, direction }));
    expect(parseListQuery(`sort=${text}`, posts).sort).toEqual(sort);
  });

  it.each([
    ['$where', 'sort: "$where" is not a field'],
    ['', 'sort: ""'],
    ['title,', 'sort: ""'],
    ['-title:asc', 'is not field, -field, field:asc or field:desc'],
    ['title:up', 'is not field, -field, field:asc or field:desc'],
    ['title,title', 'sort names "title" twice'],
    ['colour', 'Unknown field "colour" in sort'],
    ['-titel', 'Unknown field "titel" in sort: did you mean "title"?'],
    ['isDeleted', 'isDeleted cannot be sorted by'],
    ['-_bsvc', 'is not a field'],
  ])('refuses %s', (text, message) => {
    expect(refusal(`sort=${text}`)).toContain(message);
  });

  it('takes at most eight fields', () => {
    expect(refusal(`sort=${Array.from({ length: 9 }, (_, at) => `f${at}`).join(',')}`, notes)).toContain('at most 8');
  });
});

describe('paging', () => {
  it.each([
    ['page=3&limit=10', { mode: 'offset', page: 3, skip: 20 }, 10],
    ['limit=1000', { mode: 'offset', page: 1, skip: 0 }, 1000],
    ['limit=5000&page=2', { mode: 'offset', page: 2, skip: 1000 }, 1000],
    ['skip=45', { mode: 'offset', page: 3, skip: 45 }, 20],
    ['page=1000000000', { mode: 'offset', page: 1_000_000_000, skip: 19_999_999_980 }, 20],
    ['cursor=', { mode: 'cursor', cursor: null }, 20],
    ['cursor=start', { mode: 'cursor', cursor: null }, 20],
    ['cursor=abc.def', { mode: 'cursor', cursor: 'abc.def' }, 20],
  ])('reads %s', (raw, paging, limit) => {
    expect(parseListQuery(raw, posts)).toMatchObject({ paging, limit });
  });

  it.each([
    ['limit=0', 'limit must be a whole number of at least 1'],
    ['limit=-5', 'limit must be a whole number of at least 1'],
    ['limit=ten', 'limit must be a whole number'],
    ['limit=1.5', 'limit must be a whole number'],
    ['limit=', 'limit must be a whole number'],
    ['limit=1&limit=2', 'limit is given more than once'],
    ['page=0', 'page must be a whole number of at least 1'],
    ['page=1e9', 'page must be a whole number of at least 1'],
    ['page=999999999999999&limit=1000', 'page is too large'],
    ['skip=-1', 'skip must be a whole number of at least 0'],
    ['page=1&skip=1', 'page and skip cannot be combined'],
    ['page=1&cursor=start', 'cursor cannot be combined with page or skip'],
    ['count=1', 'count must be true or false'],
    ['include_deleted=yes', 'include_deleted must be true or false'],
  ])('refuses %s', (raw, message) => {
    expect(refusal(raw)).toContain(message);
  });
});

describe('fields, populate and expand', () => {
  it('names fields, without those that a wider one contains', () => {
    expect(parseListQuery('fields=title,meta.views&fields=meta', posts).fields).toEqual(['title', 'meta']);
  });

  it('populates declared Refs, nested ones and arrays of them, each once', () => {
    expect(parseListQuery('populate=author,editors&expand=meta.reviewer&expand=author', posts).populate).toEqual([
      { path: 'author', ref: 'authors' },
      { path: 'editors', ref: 'authors' },
      { path: 'meta.reviewer', ref: 'authors' },
    ]);
  });

  it.each([
    ['fields=', 'fields must name at least one field'],
    ['fields=title,', 'none of its parts may be empty'],
    ['fields=$where', 'Unknown field "$where" in fields'],
    ['fields=colour', 'Unknown field "colour" in fields'],
    ['fields=titel', 'Unknown field "titel" in fields: did you mean "title"?'],
    ['fields=_bsvc', 'Unknown field'],
    ['populate=title', 'populate: "title" is not a declared Ref field'],
    ['populate=nothing', 'is not a declared Ref field'],
    ['expand=editors.0', 'is not a declared Ref field'],
    ['populate=author.name', 'is not a declared Ref field'],
    ['populate=__proto__', 'is not a declared Ref field'],
    ['populate=source', 'the schema does not say which collection "source" points into'],
    [`populate=${Array.from({ length: 11 }, (_, at) => `r${at}`).join(',')}`, 'at most 10'],
  ])('refuses %s', (raw, message) => {
    expect(refusal(raw)).toContain(message);
  });
});

describe('the query of a single document', () => {
  it('takes what shapes the answer', () => {
    expect(parseGetQuery('include_deleted=true&meta=false&fields=title&expand=author', posts)).toEqual({
      includeDeleted: true,
      meta: false,
      fields: ['title'],
      populate: [{ path: 'author', ref: 'authors' }],
    });
  });

  it('refuses anything else', () => {
    expect(() => parseGetQuery('title=a', posts)).toThrow('"title" is not a parameter here');
  });
});

describe('the text of a list that came before', () => {
  it('is read anew by the fields of another record of the collection', () => {
    const changed = buildCollection({ ...posts, fields: [{ name: 'views', type: 'String' }] });
    expect(conditions('views=1')).toEqual([{ views: { $eq: 1 } }]);
    expect(conditions('views=1', changed)).toEqual([{ views: { $eq: '1' } }]);
    expect(conditions('views=1')).toEqual([{ views: { $eq: 1 } }]);
  });

  it('is refused again', () => {
    expect(refusal('views=many')).toBe(refusal('views=many'));
  });

  it('says the same however many came between', () => {
    const first = parseListQuery('views=0&sort=-views', posts);
    for (let views = 1; views < 1000; views++)
      expect(conditions(`views=${views}`)).toEqual([{ views: { $eq: views } }]);
    expect(parseListQuery('views=0&sort=-views', posts)).toEqual(first);
  });
});

function expectScalars(condition: object): void {
  for (const [key, value] of Object.entries(condition)) {
    if (key === '$or' || key === '$and') (value as object[]).forEach(expectScalars);
    else {
      expect(key.startsWith('$')).toBe(false);
      for (const [operator, operand] of Object.entries(value as object)) {
        expect(operator).toMatch(/^\$(eq|ne|gt|gte|lt|lte|in|nin|exists|regex|options)$/);
        for (const scalar of Array.isArray(operand) ? operand : [operand]) {
          expect(
            scalar === null || typeof scalar !== 'object' || scalar instanceof Date || scalar instanceof ObjectId,
          ).toBe(true);
        }
      }
    }
  }
}
