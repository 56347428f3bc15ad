import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';
import { searchRuleMeaning } from '../helpers/rule-meaning.js';
import { REACHED, searchRules } from '../helpers/search-rules.js';
import { openSeed } from '../helpers/seed.js';

const CASES = 4_000;
/** Rules × callers × stores that are read in all ways, each; BSVC_TEST_RUNS=100000 is the long form. */
const READ = Number(process.env.BSVC_TEST_RUNS ?? 400);
/** Small and looked at often: most of the time goes into reading it. */
const WORLD = { documents: 6, rounds: 25, writes: 3 };
let test: TestApp;
let aheadMs = 0;
const pass = (ms: number): void => void (aheadMs += ms);

beforeAll(async () => {
  test = await openTestApp({ clock: { now: () => Date.now() + aheadMs } });
});
afterAll(() => test.close());

describe('rules that no run has seen before', () => {
  it('mean the same as an independent reading says, a hundred thousand times', async () => {
    const meant = await searchRuleMeaning(openSeed('the meaning of rules'), CASES);
    console.log(JSON.stringify(meant));
    expect(meant.compared).toBeGreaterThan(100_000);
  }, 3_600_000);

  it('decide all ways of reading and writing alike', async () => {
    const seed = openSeed('reads and writes under rules');
    for (let at = 0; REACHED.cases < READ; at++) {
      await searchRules(test, seed + at, pass, WORLD);
      if (at % 100 === 0 || REACHED.cases >= READ) console.log(JSON.stringify(REACHED));
    }
  }, 36_000_000);
});
