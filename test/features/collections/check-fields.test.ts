import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/errors.js';
import { checkFields } from '../../../src/features/collections/fields/check-fields.js';
import type { Field } from '../../../src/features/collections/fields/field.js';

const enforced = { name: 'posts', mode: 'enforced' } as const;

function problems(fields: Field[], collection: Parameters<typeof checkFields>[1] = enforced): string[] {
  try {
    checkFields(fields, collection);
  } catch (error) {
    if (error instanceof AppError && error.kind === 'invalid') return error.details!.map(({ message }) => message);
    throw error;
  }
  return [];
}

describe('the declared fields of a collection', () => {
  it('are at least one, unless the collection is flexible', () => {
    expect(() => checkFields([], enforced)).toThrowError(
      expect.objectContaining({ code: 'EMPTY_SCHEMA', message: 'At least one field is required' }),
    );
    expect(checkFields([], { name: 'posts', mode: 'flexible' })).toEqual([]);
  });

  it.each(['$a', 'a.b', 'a b', 'a\tb', '', '__proto__', 'constructor', 'prototype', '_id', 'isDeleted', 'deletedAt'])(
    'cannot be named %j',
    (name) => expect(problems([{ name, type: 'String' }])).toHaveLength(1),
  );

  it.each(['createdAt', 'updatedAt', '_bsvc'])('cannot be named %s at the top, but inside an object', (name) => {
    expect(problems([{ name, type: 'Date' }])).toHaveLength(1);
    expect(problems([{ name: 'meta', type: 'Object', fields: [{ name, type: 'Date' }] }])).toEqual([]);
  });

  it('are refused in few words, however many and however long their names are', () => {
    const fields: Field[] = Array.from({ length: 1000 }, () => ({ name: '', type: 'String' }));
    const found = problems([{ name: 'x'.repeat(500_000), type: 'Object', fields }]);
    expect(found).toHaveLength(50);
    expect(found.join().length).toBeLessThan(50_000);
  });

  it.each([{ name: 'a\ud83d', type: 'String' } as const, { name: 'a', type: 'String', default: '\udc00' } as const])(
    'cannot hold half a surrogate pair: %j',
    (field) => expect(problems([field])).toEqual([expect.stringContaining('half a surrogate pair')]),
  );

  it('cannot share a name', () => {
    expect(
      problems([
        { name: 'a', type: 'String' },
        { name: 'a', type: 'Number' },
      ]),
    ).toEqual(['a is declared twice']);
  });

  it('lose empty flags', () => {
    expect(checkFields([{ name: 'a', type: 'Number', required: true, unique: false }], enforced)).toEqual([
      { name: 'a', type: 'Number', required: true },
    ]);
  });

  it.each([
    [{ name: 'f', type: 'Date', default: '2026-01-01' }, 'f cannot have a default: it is of type Date'],
    [{ name: 'f', type: 'Ref', default: 'x' }, 'f cannot have a default: it is of type Ref'],
    [{ name: 'f', type: 'Array', default: 'x' }, 'f cannot have a default: it is of type Array'],
    [{ name: 'f', type: 'Object', default: 'x' }, 'f cannot have a default: it is of type Object'],
    [
      { name: 'f', type: 'Number', required: true, default: 5 },
      'f cannot be required and have a default: a field with a default is always there',
    ],
    [{ name: 'f', type: 'Number', default: '5' }, 'f has a default that is not a Number'],
    [{ name: 'f', type: 'Boolean', default: 1 }, 'f has a default that is not a Boolean'],
    [{ name: 'f', type: 'String', default: 5 }, 'f has a default that is not a String'],
    [{ name: 'f', type: 'Object', unique: true }, 'f cannot be unique: it is of type Object'],
    [{ name: 'f', type: 'Text' }, 'f must have one of the types String, Number, Boolean, Date, Object, Array, Ref'],
    [{ name: 'f', type: 'Ref', ref: 'no name' }, 'f must name a collection'],
    [{ name: 'f', type: 'String', ref: 'users' }, 'f cannot name a collection: only a Ref can'],
    [{ name: 'f', type: 'String', items: { type: 'String' } }, 'f cannot declare items: only an Array can'],
    [{ name: 'f', type: 'String', protected: true }, 'f cannot be protected: only top-level fields of users can'],
    [
      { name: 'f', type: 'Object', fields: [{ name: 'g', type: 'String', unique: true }] },
      'f.g cannot be unique: only top-level fields can',
    ],
  ])('are refused: %j', (field, message) => {
    expect(problems([field as Field])).toEqual([message]);
  });

  it('keep protected and public on users', () => {
    const fields: Field[] = [{ name: 'role', type: 'String', protected: true, public: true }];
    expect(checkFields(fields, { name: 'users', mode: 'enforced' })).toEqual(fields);
  });

  it('nest at most five levels', () => {
    const nest = (levels: number): Field =>
      levels === 1 ? { name: 'f', type: 'String' } : { name: 'f', type: 'Object', fields: [nest(levels - 1)] };
    expect(problems([nest(5)])).toEqual([]);
    expect(problems([nest(6)])).toEqual(['f.f.f.f.f.f is nested deeper than 5 levels']);
  });

  it('are at most 200', () => {
    const many = (count: number): Field[] =>
      Array.from({ length: count }, (_, at) => ({ name: `f${at}`, type: 'String' }));
    expect(problems(many(200))).toEqual([]);
    expect(problems(many(201))).toEqual(['there can be at most 200 fields']);
  });
});
