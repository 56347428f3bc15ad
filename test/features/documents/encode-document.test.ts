import { Binary, Decimal128, deserialize, Double, Long, ObjectId, serialize, type Document } from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeStoredJson, writeDocuments } from '../../../src/features/documents/reply/encode-document.js';
import { presentDocument } from '../../../src/features/documents/reply/present-document.js';
import { JsonWriter } from '../../../src/platform/database/bson-json.js';

/** What a client receives when the text is sent. */
function received(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8');
}

function decoded(stored: Buffer, meta: boolean): string {
  return JSON.stringify(presentDocument(deserialize(stored), meta));
}

function store(document: Document): Buffer {
  return Buffer.from(serialize(document));
}

const id = new ObjectId('65f0a1b2c3d4e5f60718293a');
const moment = new Date('2026-03-01T12:34:56.789Z');
const system = { isDeleted: false, deletedAt: null, createdAt: moment, updatedAt: moment };

describe('encodeDocument', () => {
  it('writes the identifier first, the fields as stored, the system fields last', () => {
    const stored = store({ _id: id, isDeleted: false, title: 'Hello', views: 3, deletedAt: null, createdAt: moment });
    expect(received(encodeStoredJson(stored, true))).toBe(
      '{"_id":"65f0a1b2c3d4e5f60718293a","title":"Hello","views":3,"isDeleted":false,"deletedAt":null,"createdAt":"2026-03-01T12:34:56.789Z"}',
    );
  });

  it('leaves the system fields out on request, and the hidden field always', () => {
    const stored = store({ _id: id, _bsvc: { at: moment }, title: 'Hello', ...system });
    expect(received(encodeStoredJson(stored, false))).toBe('{"_id":"65f0a1b2c3d4e5f60718293a","title":"Hello"}');
    expect(received(encodeStoredJson(stored, true))).not.toContain('_bsvc');
  });

  it.each<[string, unknown]>([
    [
      'text with every character that JSON escapes',
      Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)).join(''),
    ],
    ['a long text with an escape at its end', `${'x'.repeat(500)}"`],
    ['text of other scripts', 'Grüße, 東京, 👩‍👩‍👧'],
    ['an empty text', ''],
    ['minus zero', new Double(-0)],
    ['a fraction', 0.1 + 0.2],
    ['a large number', 1e300],
    ['the smallest number', 5e-324],
    ['what is not a number', new Double(NaN)],
    ['infinity', new Double(-Infinity)],
    ['a whole number of 64 bits that JSON can hold', Long.fromNumber(2 ** 40)],
    ['a negative one', Long.fromNumber(-(2 ** 40) - 1)],
    ['one that it cannot hold', Long.fromString('9007199254740993')],
    ['a decimal', Decimal128.fromString('1.10')],
    ['bytes', new Binary(Buffer.from('abc'))],
    ['a pattern', /a+/i],
    ['a moment before 1970', new Date(-1)],
    ['the first moment of a day', new Date('2024-02-29T00:00:00.000Z')],
    ['a moment before the year 0', new Date('-000001-01-01T00:00:00.000Z')],
    ['a moment after the year 9999', new Date('+012345-12-31T23:59:59.999Z')],
    ['moments 128 days apart', [0, 128, 0, 256].map((day) => new Date(1_700_000_000_000 + day * 86_400_000))],
    ['the first and the last moment', [new Date(-8.64e15), new Date(8.64e15)]],
    ['no moment at all', new Date(NaN)],
    ['an identifier in an array', [id, [id]]],
    ['nested objects', { a: { b: [{ c: null }, {}] }, _id: id, createdAt: moment }],
  ])('writes %s as JSON.stringify does', (_what, value) => {
    const stored = store({ _id: id, value, ...system });
    expect(received(encodeStoredJson(stored, true))).toBe(decoded(stored, true));
  });

  it('replaces bytes that are no UTF-8', () => {
    const stored = store({ _id: id, title: 'ab', ...system });
    stored[stored.indexOf('ab')] = 0xff;
    expect(received(encodeStoredJson(stored, true))).toContain('"title":"\ufffdb"');
  });

  it('writes documents without an identifier of ours like any other', () => {
    for (const stored of [store({ _id: 'text', a: 1 }), store({ a: 1 }), store({ a: 1, _id: id })])
      expect(JSON.parse(received(encodeStoredJson(stored, true)))).toEqual(JSON.parse(decoded(stored, true)));
  });

  it('says for any document what presenting the decoded document says', () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: 'binary', maxLength: 200 }), fc.string({ minLength: 49 }));
    const name = fc.oneof(
      fc.constantFrom('isDeleted', 'deletedAt', 'createdAt', 'updatedAt', '_bsvc', 'isdeleted', '_bsvd', '_ie'),
      fc
        .string({ unit: 'grapheme', maxLength: 12 })
        .filter((made) => !made.includes('\0') && !/^\d+$/.test(made) && made !== '__proto__' && !made.startsWith('$')),
    );
    const value = fc.letrec((tie) => ({
      leaf: fc.oneof(
        text,
        fc.integer(),
        fc.double(),
        fc.boolean(),
        fc.constant(null),
        fc.date({ noInvalidDate: true }),
        fc.constant(id),
      ),
      any: fc.oneof(
        { depthSize: 'small' },
        tie('leaf'),
        fc.array(tie('any'), { maxLength: 4 }),
        fc.dictionary(name, tie('any'), { maxKeys: 4 }),
      ),
    })).any;
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 6 }), fc.boolean(), (fields, meta) => {
        const stored = store({ _id: id, ...Object.fromEntries(fields) });
        expect(received(encodeStoredJson(stored, meta))).toBe(decoded(stored, meta));
      }),
      { seed: 20261121, numRuns: 500 },
    );
  });
});

describe('writeDocuments', () => {
  const written = (rows: Buffer[]): string => {
    const out = new JsonWriter();
    writeDocuments(out, rows, true);
    return received(out.text());
  };

  it('writes an array, however long', () => {
    const rows = Array.from({ length: 300 }, (_, n) => store({ _id: id, n, text: '\u0001'.repeat(n), ...system }));
    expect(written(rows)).toBe(`[${rows.map((row) => decoded(row, true)).join(',')}]`);
    expect(written([])).toBe('[]');
  });
});
