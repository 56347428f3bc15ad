import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IdSet } from '../planner/scans/id-set.js';

describe('a set of encoded ids', () => {
  it('knows exactly those that were added, however many and however long', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 1500 }), (ids) => {
        const set = new IdSet();
        const known = new Set<string>();
        for (const [n, id] of ids.entries()) {
          const bytes = Buffer.concat([Buffer.from('head'), id, Buffer.from('tail')]);
          const text = Buffer.from(id).toString('latin1');
          const adds = n % 3 !== 0;
          expect(set.meet(bytes, 4, 4 + id.length, adds)).toBe(known.has(text));
          if (adds) known.add(text);
        }
        expect(set.size).toBe(known.size);
      }),
      { numRuns: 20, seed: 20261122 },
    );
    const set = new IdSet();
    const long = Buffer.alloc(513, 'x');
    for (let n = 0; n < 20_000; n++) {
      long.writeUInt32BE(n % 10_000, 400);
      expect(set.meet(long, 0, long.length, true)).toBe(n >= 10_000);
    }
    expect(set.size).toBe(10_000);
  });
});
