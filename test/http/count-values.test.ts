import fc from 'fast-check';
import { expect, it } from 'vitest';
import { countValues } from '../../src/http/requests/count-values.js';
import { openSeed } from '../helpers/seed.js';

function valuesOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce<number>((sum, each) => sum + valuesOf(each), 1);
}

it('counts each value once, however it is written', () => {
  const spaces = fc.constantFrom(0, 1, 2, '\t');
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), spaces, (value, space) => {
      expect(countValues(Buffer.from(JSON.stringify(value, null, space)))).toBe(valuesOf(value));
    }),
    { seed: openSeed('counts of values') },
  );
  const lists = Array.from({ length: 30_000 }, () => []);
  expect(countValues(Buffer.from(JSON.stringify(lists)))).toBe(30_001);
});
