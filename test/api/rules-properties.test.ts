import { describe, expect, it } from 'vitest';
import { REACHED, searchRules } from '../helpers/search-rules.js';
import { useTestApp } from '../helpers/use.js';

let aheadMs = 0;
const pass = (ms: number): void => void (aheadMs += ms);

const test = await useTestApp({ clock: { now: () => Date.now() + aheadMs } });

describe('a collection under rules', () => {
  it.each(Array.from({ length: 4 }, (_, at) => 36_000 + at))(
    'is the same for lists, counts, joins, changes and writes (seed %i)',
    (seed) => searchRules(test, seed, pass),
  );

  it('was asked about sets, members who come and go, and both halves of updates', () => {
    const { startedOver, ...reached } = REACHED;
    for (const [what, count] of Object.entries(reached)) expect(count, what).toBeGreaterThan(0);
    // On the embedded engine joining and leaving a set is told exactly.
    expect(startedOver > 0).toBe(!test.app.db.changeLogs);
  });
});
