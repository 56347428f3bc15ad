import { ObjectId } from 'bson';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/errors.js';
import type { Field } from '../../../src/features/collections/fields/field.js';
import { applyChange, readChange } from '../../../src/features/documents/write/change.js';
import { buildCollection } from './build-collection.js';

const id = new ObjectId();
const fields: Field[] = [
  { name: 'title', type: 'String', required: true },
  { name: 'note', type: 'String' },
  { name: 'when', type: 'Date' },
  { name: 'free', type: 'Object' },
  { name: 'tags', type: 'Array', items: { type: 'String' } },
  {
    name: 'meta',
    type: 'Object',
    fields: [
      { name: 'lang', type: 'String', required: true },
      { name: 'views', type: 'Number' },
      { name: 'inner', type: 'Object', required: true, fields: [{ name: 'x', type: 'Number' }] },
    ],
  },
  {
    name: 'lines',
    type: 'Array',
    items: {
      type: 'Object',
      fields: [
        { name: 'sku', type: 'String', required: true },
        { name: 'qty', type: 'Number' },
      ],
    },
  },
];
const posts = buildCollection({ fields });
const NOW = Date.UTC(2024, 0, 1);
const OPTIONS = { now: NOW, takesOperators: false };
const STORED = { title: 't', meta: { lang: 'en', views: 1, inner: {} }, lines: [{ sku: 's' }] };
const changed = (body: Record<string, unknown>, stored: Record<string, unknown> = STORED): Record<string, unknown> =>
  applyChange(readChange(posts, id, body, OPTIONS), stored);

/** What is thrown for a body, by what is stored where the body alone does not tell. */
function refusal(body: Record<string, unknown>, stored: Record<string, unknown> = STORED): AppError {
  try {
    changed(body, stored);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('the change that an update makes', () => {
  it('sets only what is given and converts it', () => {
    expect(changed({ note: 'n', when: '2026-01-01' })).toEqual({
      ...STORED,
      note: 'n',
      when: new Date('2026-01-01T00:00:00Z'),
    });
  });

  it('shares what stays with the stored document, which it leaves as it is', () => {
    const stored = structuredClone(STORED);
    const next = changed({ 'meta.views': 2, 'lines.0.qty': 3 }, stored);
    expect(stored).toEqual(STORED);
    expect(next).toMatchObject({ meta: { lang: 'en', views: 2 }, lines: [{ sku: 's', qty: 3 }] });
    expect((next.meta as typeof STORED.meta).inner).toBe(stored.meta.inner);
  });

  it('clears an optional field with null and refuses that on a required one', () => {
    expect(changed({ note: null, 'meta.views': null }, { ...STORED, note: 'n' })).toEqual({
      ...STORED,
      meta: { lang: 'en', inner: {} },
    });
    expect(changed({ 'meta.views': null }, { title: 't' })).toEqual({ title: 't' });
    expect(refusal({ title: null }).message).toBe('Validation failed: title is required');
    expect(refusal({ 'meta.lang': null }).message).toBe('Validation failed: meta.lang is required');
  });

  it('checks dotted keys like whole ones', () => {
    expect(refusal({ 'meta.views': '5' }).message).toBe('Validation failed: meta.views must be a Number');
    expect(refusal({ 'tags.0': 5 }).message).toBe('Validation failed: tags.0 must be a String');
    expect(refusal({ 'lines.0': { qty: 1 } }).message).toBe('Validation failed: lines.0.sku is required');
    expect(refusal({ 'meta.nope': 1 }).message).toBe('Validation failed: meta.nope is not a field of this collection');
    expect(refusal({ 'nope.x': 1 }).message).toBe('Validation failed: nope.x is not a field of this collection');
    expect(refusal({ 'tags.last': 'a' }).message).toBe(
      'Validation failed: tags.last must name a position: tags is an Array',
    );
    expect(refusal({ 'tags.-1': 'a' }).details).toEqual([expect.objectContaining({ field: 'tags.-1', rule: 'type' })]);
    expect(refusal({ 'title.x': 1 }).message).toBe('Validation failed: title.x cannot be set: title must be a String');
  });

  it('asks for the required fields beside a dotted key, unless they are there or come along', () => {
    const told = (body: Record<string, unknown>, stored: Record<string, unknown>): string[] =>
      refusal(body, stored).details!.map(({ message }) => message);
    const bare = { title: 't' };
    expect(told({ 'meta.views': 1 }, bare)).toEqual(['meta.lang is required', 'meta.inner is required']);
    expect(told({ 'meta.inner.x': 1, 'meta.views': 1 }, bare)).toEqual(['meta.lang is required']);
    expect(changed({ 'meta.views': 1, 'meta.lang': 'de', 'meta.inner.x': 1 }, bare)).toEqual({
      ...bare,
      meta: { views: 1, lang: 'de', inner: { x: 1 } },
    });
    expect(told({ 'lines.2.qty': 1 }, STORED)).toEqual(['lines.2 is not there: send the whole array to add to it']);
    expect(told({ 'lines.0.qty': 1 }, { lines: [{}] })).toEqual(['lines.0.sku is required']);
    expect(told({ 'tags.0': 'a' }, bare)).toEqual(['tags.0 is not there: send the whole array to add to it']);
    expect(changed({ 'free.a.b': 1 }, bare)).toEqual({ ...bare, free: { a: { b: 1 } } });
    const list = { ...bare, free: { a: [0] } };
    expect(told({ 'free.a.1': 1 }, list)).toEqual(['free.a.1 is not there: send the whole array to add to it']);
    expect(told({ 'free.a.x': 1 }, list)).toEqual(['free.a.x cannot be set: free.a is not an object']);
    expect(told({ 'free.a.b': 1 }, { free: { a: 5 } })).toEqual(['free.a.b cannot be set: free.a is not an object']);
  });

  it('refuses a key together with one inside it', () => {
    expect(refusal({ meta: { lang: 'de' }, 'meta.views': 1 })).toMatchObject({ code: 'INVALID_BODY' });
    expect(refusal({ 'free.a.b.c': 1, 'free.a': 1 })).toMatchObject({ code: 'INVALID_BODY' });
  });

  it.each([
    [{}],
    [{ $set: { title: 'a' } }],
    [{ '': 1 }],
    [{ 'free.$': 1 }],
    [{ 'free.$[]': 1 }],
    [{ 'free..a': 1 }],
    [{ '.free': 1 }],
    [{ 'free.': 1 }],
    [{ 'free.__proto__.x': 1 }],
    [{ free: { 'a.b': 1 } }],
    [{ free: { $inc: 1 } }],
    [{ 'free._bsontype': 'x' }],
    [{ [Array.from({ length: 40 }, () => 'a').join('.')]: 1 }],
    [{ [Array.from({ length: 31 }, () => 'a').join('.')]: { b: { c: {} } } }],
    [Object.fromEntries(Array.from({ length: 501 }, (_, at) => [`free.k${at}`, 1]))],
  ])('refuses the body %j', (body) => {
    expect(refusal(body)).toMatchObject({ kind: 'invalid', code: 'INVALID_BODY' });
  });

  it('ignores system fields that may say what is stored, and refuses all others', () => {
    const kept = { _id: id.toHexString(), isDeleted: false, deletedAt: null };
    expect(changed({ ...kept, note: 'n' })).toEqual({ ...STORED, note: 'n' });
    const moment = '2026-11-21T10:00:00.000Z';
    const stored = { ...STORED, createdAt: new Date(moment), updatedAt: new Date(moment) };
    expect(changed({ createdAt: moment, updatedAt: moment }, stored)).toEqual(stored);
    const others = { createdAt: moment, updatedAt: '2026-11-21T10:00:00.001Z' };
    expect(refusal(others, stored).details!.map(({ field }) => field)).toEqual(['updatedAt']);
    for (const body of [
      { _id: new ObjectId().toHexString() },
      { isDeleted: true },
      { 'isDeleted.x': false },
      { deletedAt: moment },
      { 'deletedAt.a': null },
      { createdAt: 5 },
      { '_id.x': 1 },
      { _bsvc: 1 },
      { '_bsvc.x': 1 },
    ]) {
      expect(refusal(body).details).toEqual([expect.objectContaining({ rule: 'system' })]);
    }
  });

  it('hands an owner in the body on, at any spelling, as one that must be stored already', () => {
    const owned = buildCollection({ fields, rls: { mode: 'private', ownerField: 'userId' } });
    const owner = (body: Record<string, unknown>): unknown => readChange(owned, id, body, OPTIONS).owner;
    expect(owner({ userId: 'u1' })).toEqual({ value: 'u1' });
    for (const body of [{ userId: null }, { userId: ['u1'] }, { 'userId.x': 'u1' }, { 'userId.0': 'u1' }]) {
      expect(owner(body)).toEqual({ value: null });
    }
    expect(owner({ note: 'n' })).toBeNull();
  });
});
