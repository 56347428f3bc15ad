import { describe, expect, expectTypeOf, it } from 'vitest';
import { compileCheck } from '../../src/platform/schema/check-schema.js';
import { arrayOf, integer, object, orNull, text, type Schema, type TypeOf } from '../../src/platform/schema/schema.js';

describe('the type of a schema', () => {
  it('cannot be claimed by a literal', () => {
    // @ts-expect-error -- a text is no number
    const count: Schema<number> = { type: 'string' };
    // @ts-expect-error -- a literal says nothing of the type, even where it is right
    const name: Schema<string> = { type: 'string' };
    // @ts-expect-error -- nor does one that is the field of an object
    const record = object({ count: { type: 'integer' } });
    expect([count, name, record]).toHaveLength(3);
  });

  it('refuses misspelt limits', () => {
    // @ts-expect-error -- maxLength
    expect(text({ maxLenght: 5 })).toEqual({ type: 'string', maxLenght: 5 });
    // @ts-expect-error -- a limit of texts
    expect(integer({ maxLength: 5 })).toEqual({ type: 'integer', maxLength: 5 });
  });

  it('is that of the values it admits', () => {
    const record = object({ name: text({ maxLength: 3 }), 'tags?': arrayOf(text()), size: orNull(integer()) });
    expectTypeOf<TypeOf<typeof record>>().toEqualTypeOf<{ name: string; tags?: string[]; size: number | null }>();
    const check = compileCheck(record);
    expect(check({ name: 'abc', size: null })).toEqual({ name: 'abc', size: null });
    expect(() => check({ name: 'abcd', size: 1 })).toThrow('name must have at most 3 characters');
    expect(() => check({ name: 'abc', size: '1' })).toThrow('size must be a whole Number or null');
  });
});
