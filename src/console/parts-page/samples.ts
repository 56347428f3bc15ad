import type { CollectionField } from '../collection.js';
import type { Line } from '../parts/draw-plot.js';
import { kit } from './given.js';

export const LONG = 'a-name-of-one-word-that-is-longer-than-any-column-of-a-telephone-is-wide-and-has-to-break';
export const START = Date.UTC(2026, 0, 5, 8);
export const REQUESTS: readonly Line[] = [
  { name: '2xx', colour: 'good', values: [4, 6, 9, 7, 12, 14, null, null, 11, 16, 13, 18] },
  { name: '4xx', colour: 'warn', values: [1, 0, 2, 1, 3, 1, null, 2, null, 4, 2, 1] },
  { name: '5xx', colour: 'bad', values: [0, 0, 0, 0, 1, 0, null, null, 0, 2, 0, 0] },
];
export const NOTHING: readonly Line[] = [{ name: 'file', colour: 'plain', values: [] }];

const SIZES = ['S', 'M', 'L'];
export const FIELDS: readonly CollectionField[] = [
  { name: 'title', type: 'String', required: true, maxLength: 100 },
  { name: 'text', type: 'String', maxLength: 2000 },
  { name: 'price', type: 'Number', min: 0 },
  { name: 'status', type: 'String', enum: ['draft', 'shown', 'sold'] },
  { name: 'listed', type: 'Boolean' },
  { name: 'since', type: 'Date' },
  { name: 'author', type: 'Ref', ref: 'users' },
  { name: 'labels', type: 'Array', items: { type: 'String' }, maxItems: 5 },
  { name: 'sizes', type: 'Array', items: { type: 'String', enum: SIZES } },
  { name: 'maker', type: 'Object', fields: [{ name: 'city', type: 'String' }] },
  { name: 'parcels', type: 'Array', items: { type: 'Object', fields: [{ name: 'weight', type: 'Number' }] } },
  { name: 'extra', type: 'Object' },
];
export const WRITTEN = {
  title: 'A chair',
  text: 'Of ash, oiled.\nFour of them are left.',
  price: 120.5,
  status: 'shown',
  listed: true,
  since: '2026-01-05T08:00:00.000Z',
  author: '65a1f0c2e4b0a1b2c3d4e5f6',
  labels: ['new', 'wood'],
  sizes: ['M'],
  maker: { city: 'Graz' },
  parcels: [{ weight: 7 }],
  extra: { from: 'import' },
};
export const BROKEN = new Map([
  ['title', 'title is required'],
  ['price', 'price must be at least 0'],
  ['labels', 'labels must have at most 5 items'],
  ['maker.city', 'maker.city must be text'],
]);

export interface Row {
  id: string;
  name: string;
  state: 'good' | 'warn' | 'bad';
  size: number;
}
export const ROWS: readonly Row[] = [
  { id: 'a1', name: 'orders', state: 'good', size: 1204 },
  { id: 'b2', name: LONG, state: 'warn', size: 88 },
  { id: 'c3', name: 'visits', state: 'bad', size: 1_250_300 },
];

export const nothing = (): void => undefined;
export const refuse = () => new kit.Refusal(500, 'INTERNAL', 'Something went wrong', 'req-1', null);
