import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/errors.js';
import type { Field, FieldType } from '../../../src/features/collections/fields/field.js';
import type { Writer } from '../../../src/features/access/access-rules.js';
import { readNewDocument } from '../../../src/features/documents/write/new-document.js';
import { buildCollection } from './build-collection.js';

const NOW = Date.UTC(2026, 10, 21);

function read(fields: Field[], body: unknown): Record<string, unknown> {
  return readNewDocument(buildCollection({ fields }), body, null, NOW);
}

function refusal(run: () => unknown): AppError {
  try {
    run();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('the document that an insert stores', () => {
  it('has an id, the fields and the system fields', () => {
    const stored = read([{ name: 'title', type: 'String' }], { title: 'Hello' });
    expect(Object.keys(stored)).toEqual(['_id', 'title', 'isDeleted', 'deletedAt', 'createdAt', 'updatedAt']);
    expect(stored).toMatchObject({ title: 'Hello', isDeleted: false, deletedAt: null, createdAt: new Date(NOW) });
  });

  const accepted: [FieldType, unknown, unknown][] = [
    ['String', '', ''],
    ['String', '  as given ', '  as given '],
    ['Number', 0, 0],
    ['Number', -1.5, -1.5],
    ['Boolean', false, false],
    ['Date', '2024-02-29', new Date('2024-02-29T00:00:00Z')],
    ['Date', '2026-01-31T23:30:00+01:30', new Date('2026-01-31T22:00:00Z')],
    ['Date', '2026-01-31t22:00:00.1239z', new Date('2026-01-31T22:00:00.123Z')],
    ['Object', {}, {}],
    ['Object', { any: [1, null] }, { any: [1, null] }],
    ['Array', [], []],
    ['Array', [1, 'a', null], [1, 'a', null]],
    ['Ref', '64b7f0c2a1b2c3d4e5f60718', '64b7f0c2a1b2c3d4e5f60718'],
  ];
  it.each(accepted)('takes as a %s: %j', (type, given, stored) => {
    expect(read([{ name: 'f', type }], { f: given }).f).toEqual(stored);
  });

  const refused: [FieldType, unknown][] = [
    ['String', 5],
    ['String', true],
    ['String', ['a']],
    ['Number', '5'],
    ['Number', true],
    ['Boolean', 'true'],
    ['Boolean', 1],
    ['Boolean', 0],
    ['Date', 1_700_000_000_000],
    ['Date', 'yesterday'],
    ['Date', ''],
    ['Date', '2023-02-29'],
    ['Date', '1900-02-29'],
    ['Date', '2026-13-01'],
    ['Date', '2026-00-10'],
    ['Date', '2026-04-31'],
    ['Date', '2026-1-1'],
    ['Date', '2026-01-01T10:00:00'],
    ['Date', '2026-01-01T24:00:00Z'],
    ['Date', '2026-01-01T10:60:00Z'],
    ['Date', '2026-01-01T10:00:00+24:00'],
    ['Date', '0000-01-01T00:00:00+10:00'],
    ['Date', '9999-12-31T23:59:59-10:00'],
    ['Date', ' 2026-01-01'],
    ['Object', []],
    ['Object', 'x'],
    ['Array', {}],
    ['Array', 'x'],
    ['Ref', '64b7f0c2a1b2c3d4e5f6071'],
    ['Ref', '64b7f0c2a1b2c3d4e5f6071g'],
    ['Ref', 5],
  ];
  it.each(refused)('refuses as a %s: %j', (type, given) => {
    const error = refusal(() => read([{ name: 'f', type }], { f: given }));
    expect(error).toMatchObject({ kind: 'invalid', code: 'VALIDATION_FAILED' });
    expect(error.message).toBe(`Validation failed: f must be a ${type}`);
    expect(error.details).toEqual([{ field: 'f', rule: 'type', message: `f must be a ${type}` }]);
  });

  it('needs every required field; null does not count as one', () => {
    const fields: Field[] = [{ name: 'title', type: 'String', required: true }];
    expect(refusal(() => read(fields, {})).message).toBe('Validation failed: title is required');
    expect(refusal(() => read(fields, { title: null })).message).toBe('Validation failed: title is required');
    expect(read(fields, { title: '' }).title).toBe('');
  });

  it('stores defaults of fields that are not given, or null', () => {
    const fields: Field[] = [
      { name: 'views', type: 'Number', default: 0 },
      { name: 'live', type: 'Boolean', default: false },
      { name: 'note', type: 'String', default: 'none' },
    ];
    const stored = read(fields, { note: null });
    expect(stored).toMatchObject({ views: 0, live: false, note: 'none' });
  });

  it('names nested values by their path and lists every problem', () => {
    const fields: Field[] = [
      {
        name: 'meta',
        type: 'Object',
        fields: [
          { name: 'lang', type: 'String', required: true },
          { name: 'seen', type: 'Date' },
        ],
      },
      { name: 'tags', type: 'Array', items: { type: 'String' } },
      {
        name: 'lines',
        type: 'Array',
        items: { type: 'Object', fields: [{ name: 'qty', type: 'Number', required: true }] },
      },
    ];
    const error = refusal(() =>
      read(fields, { meta: { seen: 'soon', x: 1 }, tags: ['a', 5, null], lines: [{ qty: 1 }, {}], titel: 'typo' }),
    );
    expect(error.message).toBe('Validation failed: meta.lang is required');
    expect(error.details?.map(({ field, rule }) => `${field} ${rule}`)).toEqual([
      'meta.lang required',
      'meta.seen type',
      'meta.x unknown',
      'tags.1 type',
      'tags.2 type',
      'lines.1.qty required',
      'titel unknown',
    ]);
    const stored = read(fields, { meta: { lang: 'de', seen: '2026-01-01' }, lines: [{ qty: 2 }] });
    expect(stored).toMatchObject({
      meta: { lang: 'de', seen: new Date('2026-01-01T00:00:00Z') },
      lines: [{ qty: 2 }],
    });
  });

  it('lists at most 50 problems of a body that is wrong a hundred thousand times', () => {
    const fields: Field[] = [{ name: 'tags', type: 'Array', items: { type: 'String' } }];
    expect(refusal(() => read(fields, { tags: new Array(100_000).fill(1) })).details).toHaveLength(50);
  });

  it('may carry system fields that say what the document gets anyway, and no others', () => {
    const fields: Field[] = [{ name: 'title', type: 'String' }];
    expect(read(fields, { title: 'a', isDeleted: false, deletedAt: null })).toMatchObject({ isDeleted: false });
    const _id = '64b7f0c2a1b2c3d4e5f60718';
    expect(String(read(fields, { title: 'a', _id })._id)).toBe(_id);
    for (const body of [
      { isDeleted: true },
      { deletedAt: '2026-01-01' },
      { createdAt: '2026-01-01' },
      { updatedAt: null },
      { _bsvc: {} },
    ]) {
      expect(refusal(() => read(fields, body)).details).toEqual([expect.objectContaining({ rule: 'system' })]);
      const flexible = buildCollection({ mode: 'flexible', fields: [] });
      expect(refusal(() => readNewDocument(flexible, body, null, NOW)).kind).toBe('invalid');
    }
  });
});

describe('a document of a flexible collection', () => {
  const flexible = buildCollection({ mode: 'flexible', fields: [{ name: 'title', type: 'String', required: true }] });

  it('is stored as given, whatever an earlier schema said', () => {
    const body = { title: 5, when: '2026-01-01', nothing: null, list: [{ a: { b: [] } }], '': 'empty name' };
    expect(readNewDocument(flexible, body, null, NOW)).toMatchObject(body);
  });
});

describe('a body that no collection takes', () => {
  const parse = (text: string): unknown => JSON.parse(text);
  const deep = (levels: number): unknown => JSON.parse('{"a":'.repeat(levels - 1) + '{}' + '}'.repeat(levels - 1));
  const hostile: [string, unknown][] = [
    ['an operator as a field', { $set: { a: 1 } }],
    ['an operator inside', { a: [{ $gt: '' }] }],
    ['a dotted key', { 'a.b': 1 }],
    ['a dotted key inside', { a: { 'b.c': 1 } }],
    ['__proto__', parse('{"__proto__":{"x":1}}')],
    ['__proto__ inside', parse('{"a":{"__proto__":{"x":1}}}')],
    ['constructor', { constructor: 1 }],
    ['prototype inside an array', { a: [{ prototype: 1 }] }],
    ['_bsontype', { a: { _bsontype: 'ObjectId' } }],
    ['a NUL in a key', { 'a\0b': 1 }],
    ['33 levels', deep(33)],
    ['5,000 levels', deep(5000)],
    ['a number beyond the range', parse('{"a":[1e999]}')],
    ['half a surrogate pair', { a: '\ud800' }],
    ['half a surrogate pair as a key', { '\udc00': 1 }],
  ];
  it.each(hostile)('refuses %s with 400', (_what, body) => {
    for (const mode of ['flexible', 'enforced'] as const) {
      const error = refusal(() => readNewDocument(buildCollection({ mode }), body, null, NOW));
      expect(error).toMatchObject({ kind: 'invalid', code: 'INVALID_BODY' });
    }
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  it.each([[null], [[]], ['text'], [5], [undefined]])('refuses %j, which is not an object', (body) => {
    expect(refusal(() => read([], body))).toMatchObject({ kind: 'invalid', code: 'INVALID_BODY' });
  });

  it('takes 32 levels', () => {
    const flexible = buildCollection({ mode: 'flexible', fields: [] });
    expect(readNewDocument(flexible, deep(32), null, NOW)).toHaveProperty('a');
  });
});

describe('the owner of a new document', () => {
  const user: Writer = {
    caller: null as never,
    ownerField: 'userId',
    userId: 'u1',
    network: '',
    fields: null,
    requireKnown: () => undefined,
    hasSets: false,
    admits: () => true,
    openSets: () => Promise.resolve(() => () => false),
  };
  for (const mode of ['flexible', 'enforced'] as const) {
    const collection = buildCollection({ mode, rls: { mode: 'private', ownerField: 'userId' } });

    it(`is the signed-in user (${mode})`, () => {
      expect(readNewDocument(collection, { title: 'a' }, user, NOW)).toMatchObject({ title: 'a', userId: 'u1' });
      expect(readNewDocument(collection, { title: 'a', userId: 'u1' }, user, NOW)).toMatchObject({ userId: 'u1' });
    });

    it.each([['u2'], [null], [['u1']], [{ $ne: 1 }], ['']])(`is nobody else: %j (${mode})`, (userId) => {
      const { kind, code } = refusal(() => readNewDocument(collection, { title: 'a', userId }, user, NOW));
      expect([kind, code]).toEqual(
        JSON.stringify(userId).includes('$') ? ['invalid', 'INVALID_BODY'] : ['forbidden', 'OWNER_MISMATCH'],
      );
    });

    it(`is whoever the secret key names, or nobody (${mode})`, () => {
      expect(readNewDocument(collection, { title: 'a', userId: 'u9' }, null, NOW)).toMatchObject({ userId: 'u9' });
      expect(readNewDocument(collection, { title: 'a' }, null, NOW)).not.toHaveProperty('userId');
      expect(refusal(() => readNewDocument(collection, { userId: 5 }, null, NOW)).message).toBe(
        'Validation failed: userId must be a String',
      );
    });
  }
});
