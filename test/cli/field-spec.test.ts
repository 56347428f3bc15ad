import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UsageError } from '../../cli/view/exit.js';
import { type Field, parseFieldSpec } from '../world/collections.js';
import { presentType } from '../../cli/ask/field-spec.js';

describe('a field spec name:Type[!][&][=default]', () => {
  const readings: [spec: string, field: Field][] = [
    ['title:String', { name: 'title', type: 'String' }],
    ['title:String!', { name: 'title', type: 'String', required: true }],
    ['email:String!&', { name: 'email', type: 'String', required: true, unique: true }],
    ['email:String&!', { name: 'email', type: 'String', required: true, unique: true }],
    ['views:Number=0', { name: 'views', type: 'Number', default: 0 }],
    ['price:Number=-1.5e3', { name: 'price', type: 'Number', default: -1500 }],
    ['live:Boolean=false', { name: 'live', type: 'Boolean', default: false }],
    ['status:String=draft', { name: 'status', type: 'String', default: 'draft' }],
    ['note:String=a, b}', { name: 'note', type: 'String', default: 'a, b}' }],
    ['note:String="a @public \\" b"', { name: 'note', type: 'String', default: 'a @public " b' }],
    ['note:String=', { name: 'note', type: 'String', default: '' }],
    ['role:String@protected', { name: 'role', type: 'String', protected: true }],
    ['role:String=user@protected', { name: 'role', type: 'String', default: 'user', protected: true }],
    ['email:String!&@nocase', { name: 'email', type: 'String', required: true, unique: true, nocase: true }],
    ['nick:String=Max@nocase@fixed', { name: 'nick', type: 'String', default: 'Max', nocase: true, fixed: true }],
    ['cost:Number@hidden', { name: 'cost', type: 'Number', hidden: true }],
    [
      'note:String=x@read(doc.a = ")" or (user))@write("staff" in user.roles)@fixed',
      {
        name: 'note',
        type: 'String',
        default: 'x',
        read: 'doc.a = ")" or (user)',
        write: '"staff" in user.roles',
        fixed: true,
      },
    ],
    ['nick:String!@public', { name: 'nick', type: 'String', required: true, public: true }],
    ['born:Date', { name: 'born', type: 'Date' }],
    ['author:Ref', { name: 'author', type: 'Ref' }],
    ['author:Ref(users)!', { name: 'author', type: 'Ref', ref: 'users', required: true }],
    ['tags:Array', { name: 'tags', type: 'Array' }],
    ['tags:Array(String)', { name: 'tags', type: 'Array', items: { type: 'String' } }],
    ['grid:Array(Array(Number))', { name: 'grid', type: 'Array', items: { type: 'Array', items: { type: 'Number' } } }],
    ['meta:Object', { name: 'meta', type: 'Object' }],
    [
      'meta:Object{lang:String=en,tags:Array(String)}!',
      {
        name: 'meta',
        type: 'Object',
        required: true,
        fields: [
          { name: 'lang', type: 'String', default: 'en' },
          { name: 'tags', type: 'Array', items: { type: 'String' } },
        ],
      },
    ],
    [
      'lines:Array(Object{sku:Ref(items)!,n:Number})',
      {
        name: 'lines',
        type: 'Array',
        items: {
          type: 'Object',
          fields: [
            { name: 'sku', type: 'Ref', ref: 'items', required: true },
            { name: 'n', type: 'Number' },
          ],
        },
      },
    ],
  ];
  it.each(readings)('reads %s', (spec, field) => {
    expect(parseFieldSpec(spec)).toEqual(field);
  });

  const mistakes: [spec: string, column: number, problem: string][] = [
    ['', 1, 'expected the name of a field'],
    [':String', 1, 'expected the name of a field'],
    ['title', 6, 'expected ":"'],
    ['title:', 7, 'expected a type'],
    ['title:Strng', 7, 'expected a type'],
    ['title:string', 7, 'expected "String"'],
    ['title:String?', 13, 'unexpected "?"'],
    ['title:String! required', 14, 'unexpected " "'],
    ['views:Number=many', 14, 'expected a number'],
    ['live:Boolean=yes', 14, 'expected true or false'],
    ['when:Date=2020-01-01', 10, 'cannot have a default'],
    ['author:Ref(', 12, 'expected the name'],
    ['author:Ref(users', 17, 'expected ")"'],
    ['meta:Object{', 13, 'expected the name'],
    ['meta:Object{a:String', 21, 'expected "," or "}"'],
    ['meta:Object{a:String,a:Number}', 22, 'named twice'],
    ['meta:Object{a:String&}', 21, 'only a field at the top level can be unique'],
    ['meta:Object{a:String@nocase}', 21, 'only a field at the top level can be @nocase'],
    ['tags:Array(Strng)', 12, 'expected a type'],
    ['tags:Array(String', 18, 'expected ")"'],
    [
      'role:String@secret',
      12,
      'expected @nocase, @fixed, @hook, @hidden, @read(rule), @write(rule), @protected or @public',
    ],
    ['note:String@read', 17, 'expected "(" and a rule'],
    ['note:String@read()', 18, 'expected a rule'],
    ['note:String@read(user', 22, 'expected ")"'],
    ['note:String@read(doc.a = "x)', 26, 'this quotation mark is never closed'],
    ['note:String="open', 13, 'never closed'],
    [`deep:${'Array('.repeat(40)}`, 102, 'nested too deep'],
  ];
  it.each(mistakes)('points at the mistake in %j', (spec, column, problem) => {
    const error = catchError(() => parseFieldSpec(spec));
    expect(error).toBeInstanceOf(UsageError);
    expect((error as UsageError).message).toContain(problem);
    const [shown, caret] = (error as UsageError).note!.split('\n');
    const before = caret!.length - '  ^'.length;
    expect(shown!.slice(2, 2 + before)).toBe(spec.slice(column - 1 - before, column - 1));
  });

  it('answers every text with a field or a usage error', () => {
    const pieces = fc.constantFrom(
      ...[
        'a',
        'b',
        ':',
        'String',
        'Number',
        'Object',
        'Array',
        'Ref',
        '{',
        '}',
        '(',
        ')',
        ',',
        '!',
        '&',
        '=',
        '"',
        '@',
      ],
      ...['1', 'true', 'public', ' ', '\\', '__proto__'],
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 20 }), (parts) => {
        const error = catchError(() => parseFieldSpec(parts.join('')));
        expect(error === null || error instanceof UsageError).toBe(true);
      }),
      { seed: 20261121, numRuns: 3000 },
    );
  });

  it('reads a type as it is shown', () => {
    for (const [spec, field] of readings) {
      const again = parseFieldSpec(`${field.name}:${presentType(field)}`);
      expect(presentType(again), spec).toBe(presentType(field));
    }
  });
});

function catchError(action: () => unknown): unknown {
  try {
    action();
    return null;
  } catch (error) {
    return error;
  }
}
