import { ObjectId } from 'bson';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/errors.js';
import type { Field } from '../../../src/features/collections/fields/field.js';
import { readDocumentChange, type DocumentChange } from '../../../src/features/documents/write/document-change.js';
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
const change = (body: Record<string, unknown>): DocumentChange =>
  readDocumentChange(posts, id, body, { now: NOW, takesOperators: false });

function refusal(body: Record<string, unknown>, collection = posts): AppError {
  try {
    readDocumentChange(collection, id, body, { now: NOW, takesOperators: false });
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('the change that an update makes', () => {
  it('sets only what is given and converts it', () => {
    expect(change({ note: 'n', when: '2026-01-01' })).toMatchObject({
      set: { note: 'n', when: new Date('2026-01-01T00:00:00Z') },
      unset: [],
      conditions: [],
    });
  });

  it('clears an optional field with null and refuses that on a required one', () => {
    expect(change({ note: null, 'meta.views': null })).toMatchObject({ set: {}, unset: ['note', 'meta.views'] });
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

  it('makes required fields beside a dotted key a condition, unless they come along', () => {
    const paths = (body: Record<string, unknown>): string[] =>
      change(body).conditions.map(({ problem }) => problem.message);
    expect(paths({ 'meta.views': 1 })).toEqual(['meta.lang is required', 'meta.inner is required']);
    expect(paths({ 'meta.views': 1, 'meta.lang': 'de', 'meta.inner.x': 1 })).toEqual([]);
    expect(paths({ 'meta.inner.x': 1 })).toEqual(['meta.lang is required']);
    expect(paths({ 'meta.views': null })).toEqual([]);
    expect(paths({ 'lines.2.qty': 1 })).toEqual([
      'lines.2 is not there: send the whole array to add to it',
      'lines.2.sku is required',
    ]);
    expect(paths({ 'free.a.b': 1 })).toEqual([]);
    expect(paths({ 'free.a.900000': 1 })).toEqual(['free.a.900000 is not there: send the whole array to add to it']);
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
    expect(change({ _id: id.toHexString(), isDeleted: false, deletedAt: null, note: 'n' })).toMatchObject({
      set: { note: 'n' },
      unset: [],
      conditions: [],
    });
    const moment = '2026-11-21T10:00:00.000Z';
    expect(change({ createdAt: moment, updatedAt: moment }).conditions.map(({ filter }) => filter)).toEqual([
      { createdAt: new Date(moment) },
      { updatedAt: new Date(moment) },
    ]);
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
    const owner = (body: Record<string, unknown>): unknown =>
      readDocumentChange(owned, id, body, { now: NOW, takesOperators: false }).owner;
    expect(owner({ userId: 'u1' })).toEqual({ value: 'u1' });
    for (const body of [{ userId: null }, { userId: ['u1'] }, { 'userId.x': 'u1' }, { 'userId.0': 'u1' }]) {
      expect(owner(body)).toEqual({ value: null });
    }
    expect(owner({ note: 'n' })).toBeUndefined();
  });
});
