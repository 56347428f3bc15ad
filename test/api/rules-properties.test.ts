import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';
import { REACHED, searchRules } from '../helpers/search-rules.js';

let test: TestApp;

beforeAll(async () => {
  test = await openTestApp();
});
afterAll(() => test.close());

describe('a collection under rules', () => {
  it.each(Array.from({ length: 4 }, (_, at) => 36_000 + at))(
    'is the same for lists, counts, joins, changes and writes (seed %i)',
    (seed) => searchRules(test, seed),
  );

  it('was asked about sets, members who come and go, and both halves of updates', () => {
    for (const [what, count] of Object.entries(REACHED)) expect(count, what).toBeGreaterThan(0);
  });
});
