import {
  Binary,
  BSONRegExp,
  Code,
  Decimal128,
  deserialize,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  serialize,
  Timestamp,
} from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromApp, toApp } from '../codec/app-values.js';
import { decodeDocument } from '../codec/decode.js';
import { type Doc } from '../codec/document.js';
import { BsonValueError, encodeDocument } from '../codec/encode.js';
import { BsonFormatError } from '../codec/elements.js';
import { FieldWalk } from '../codec/field-walk.js';
import { hasSecondId, withIdFirst } from '../codec/raw.js';
import { changedNames, spliceDocument } from '../codec/splice.js';

const SEED = 20261121;
const RUNS = 1500;
/** What the driver passes by default; `bson` alone would leave undefined fields out. */
const DRIVER = { ignoreUndefined: false };

const scalar = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.maxSafeInteger(),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.boolean(),
  fc.constantFrom(null, undefined, -0, new MinKey(), new MaxKey(), /a.b/i, /x/g, /x/m),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => Long.fromBigInt(value)),
  fc.date({ noInvalidDate: true }),
  fc.uint8Array({ minLength: 12, maxLength: 12 }).map((bytes) => new ObjectId(bytes)),
  fc
    .tuple(fc.uint8Array({ maxLength: 20 }), fc.constantFrom(0, 2, 5, 128))
    .map(([bytes, kind]) => new Binary(bytes, kind)),
  fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => new Binary(bytes, 4)),
  fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes)),
  fc.integer().map((value) => new Int32(value)),
  fc.double().map((value) => new Double(value)),
  fc.integer({ min: -5, max: 5 }).map((value) => new Double(value)),
  fc.tuple(fc.nat(), fc.nat()).map(([t, i]) => new Timestamp({ t, i })),
  fc.constantFrom('1.10', '-0', 'NaN', '1E+6111').map((text) => Decimal128.fromString(text)),
  fc.constantFrom(new Code('f()'), new Code('g()', { a: 1 }), new BSONRegExp('a', 'im')),
);
const name = fc.oneof(
  fc.constantFrom('a', 'b', '_id', 'é', '', 'a long name that is longer than most'),
  fc.string({ maxLength: 5 }),
);
const safeName = name.filter((text) => !text.includes('\0') && text !== '__proto__' && !text.startsWith('$'));
const doc = fc.letrec<{ value: unknown; doc: Doc }>((tie) => ({
  value: fc.oneof({ maxDepth: 3, depthSize: 'small' }, scalar, fc.array(tie('value'), { maxLength: 4 }), tie('doc')),
  doc: fc.dictionary(safeName, tie('value'), { maxKeys: 6, noNullPrototype: true }),
})).doc;

/** The first `count` of the fields, by one walk over the document. */
function found(bytes: Buffer, names: string[], count: number): Doc {
  const walk = FieldWalk.of(names)!;
  walk.walk(bytes);
  return walk.decode(bytes, count);
}

function expectFoundOrRefused(bytes: Buffer): void {
  try {
    found(bytes, ['a', 'b'], 2);
  } catch (error) {
    expect(error).toBeInstanceOf(BsonFormatError);
  }
}

describe('the codec', () => {
  it('writes the bytes that the driver writes', () => {
    fc.assert(
      fc.property(doc, fc.boolean(), (value, ignoreUndefined) => {
        const ours = encodeDocument(value, undefined, ignoreUndefined);
        expect(ours.equals(Buffer.from(serialize(value, { ignoreUndefined })))).toBe(true);
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });

  it('gives the application what the driver gives', () => {
    fc.assert(
      fc.property(doc, (value) => {
        const bytes = Buffer.from(serialize(value, DRIVER));
        expect(decodeDocument(bytes, 'app')).toEqual(deserialize(bytes));
        expect(toApp(decodeDocument(bytes))).toEqual(deserialize(bytes));
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });

  it('keeps every type through the engine’s own values, and through those of the application', () => {
    fc.assert(
      fc.property(doc, (value) => {
        const bytes = Buffer.from(serialize(value, DRIVER));
        expect(encodeDocument(decodeDocument(bytes)).equals(bytes)).toBe(true);
        expect(encodeDocument(fromApp(value) as Doc).equals(bytes)).toBe(true);
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });

  it('decodes only the fields that are asked for', () => {
    fc.assert(
      fc.property(doc, (value) => {
        const bytes = Buffer.from(serialize(value, DRIVER));
        const whole = decodeDocument(bytes);
        const masked = decodeDocument(bytes, 'engine', new Set(['a', '_id']));
        const expected = Object.entries(whole).filter(([field]) => field === 'a' || field === '_id');
        expect(masked).toEqual(Object.fromEntries(expected));
        expect(Object.entries(found(bytes, ['_id', 'a', 'b', ''], 2))).toEqual(expected);
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });

  it('finds the last of two fields of one name at the place of the first, as decoding does', () => {
    const parts = [{ a: 1 }, { b: 2 }, { a: 3 }].map((part) => Buffer.from(serialize(part)).subarray(4, -1));
    const bytes = Buffer.concat([Buffer.alloc(4), ...parts, Buffer.alloc(1)]);
    bytes.writeInt32LE(bytes.length);
    expect(Object.entries(decodeDocument(bytes))).toEqual([
      ['a', 3],
      ['b', 2],
    ]);
    expect(Object.entries(found(bytes, ['b', 'a'], 2))).toEqual(Object.entries(decodeDocument(bytes)));
  });

  it('finds no fields by names that need more care than bytes', () => {
    for (const name of ['é', '__proto__', 'a\0']) expect(FieldWalk.of(['a', name])).toBeNull();
    expect(FieldWalk.of(Array.from({ length: 25 }, (_, n) => `f${n}`))).toBeNull();
  });

  it('puts the _id first without changing anything else', () => {
    fc.assert(
      fc.property(doc, (value) => {
        const bytes = withIdFirst(Buffer.from(serialize(value, DRIVER)));
        expect(bytes.toString('latin1', 5, 9)).toBe('_id\0');
        const given = deserialize(serialize(value, DRIVER));
        expect(deserialize(bytes)).toEqual('_id' in given ? given : { ...given, _id: expect.any(ObjectId) as unknown });
        expect(hasSecondId(bytes)).toBe(false);
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });

  it('changes fields in the stored bytes as it would in the decoded document', () => {
    fc.assert(
      fc.property(doc, doc, fc.array(fc.nat(), { maxLength: 3 }), (original, other, removed) => {
        const bytes = encodeDocument(original);
        const whole = decodeDocument(bytes);
        const changes = decodeDocument(encodeDocument(other));
        const names = Object.keys(whole);
        const gone = removed
          .map((n) => names[n % names.length]!)
          .filter((field) => names.length > 0 && !(field in changes));
        const touched = new Set([...Object.keys(changes), ...gone]);
        const before = decodeDocument(bytes, 'engine', touched);
        const after: Doc = { ...before, ...changes };
        const expected: Doc = { ...whole, ...changes };
        for (const field of gone) {
          delete after[field];
          delete expected[field];
        }
        const spliced = spliceDocument(bytes, after, changedNames(before, after));
        expect(decodeDocument(spliced)).toEqual(expected);
        // JavaScript puts names that look like numbers first; bytes stay where they are.
        if (![...names, ...touched].some((field) => /^\d+$/.test(field)))
          expect(spliced).toEqual(encodeDocument(expected));
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });

  it('refuses damaged bytes with an error of its own, and reads the others alike whether it decodes or skips', () => {
    fc.assert(
      fc.property(doc, fc.nat(), fc.nat(255), fc.nat(20), (value, at, byte, cut) => {
        const damaged = Buffer.from(serialize(value, DRIVER));
        const length = Math.max(5, damaged.length - cut);
        damaged.writeInt32LE(length);
        damaged[at % length] = byte;
        const bytes = damaged.subarray(0, length);
        let whole: Doc;
        try {
          whole = decodeDocument(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(BsonFormatError);
          expectFoundOrRefused(bytes);
          return;
        }
        if (bytes.readInt32LE(0) !== bytes.length) return;
        expect(decodeDocument(bytes, 'engine', new Set(['a']))['a']).toEqual(whole['a']);
        expect(found(bytes, ['a'], 1)['a']).toEqual(whole['a']);
        expect(() => hasSecondId(bytes)).not.toThrow();
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });

  it('refuses lengths that lead elsewhere than the values they belong to', () => {
    const binary = Buffer.from(serialize({ b: new Binary(Buffer.alloc(0)), c: 1 }));
    binary.writeInt32LE(-1, binary.indexOf('b\0') + 2);
    expect(() => decodeDocument(binary)).toThrow(BsonFormatError);
    const code = Buffer.from(serialize({ f: new Code('x', { y: 1 }), g: 1 }));
    const lengthAt = code.indexOf('f\0') + 2;
    code.writeInt32LE(code.readInt32LE(lengthAt) + 7, lengthAt);
    expect(() => decodeDocument(code)).toThrow(BsonFormatError);
  });

  it('tells a document with a second _id', () => {
    const doubled = Buffer.from(serialize({ _id: 1, xid: 2 }));
    doubled.write('_id', doubled.indexOf('xid'));
    expect(hasSecondId(doubled)).toBe(true);
  });

  it('refuses cycles, too much depth and names with null bytes', () => {
    const cyclic: Doc = {};
    cyclic['self'] = cyclic;
    expect(() => encodeDocument(cyclic)).toThrow(BsonValueError);
    expect(() => fromApp(cyclic)).toThrow(BsonValueError);
    expect(() => encodeDocument({ 'a\0b': 1 })).toThrow(BsonValueError);
    let deep: Doc = {};
    for (let n = 0; n < 300; n++) deep = { deep };
    expect(() => encodeDocument(deep)).toThrow(BsonValueError);
    expect(() => decodeDocument(Buffer.from(serialize(deep)))).toThrow(BsonFormatError);
  });
});
