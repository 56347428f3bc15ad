import { expect, it } from 'vitest';
import { searchRuleMeaning } from '../../../helpers/rule-meaning.js';
import { openSeed } from '../../../helpers/seed.js';

const CASES = 4_000;

it('rules that no run has seen before mean what an independent reading says, a hundred thousand times', async () => {
  const meant = await searchRuleMeaning(openSeed('the meaning of rules'), CASES);
  console.log(JSON.stringify(meant));
  expect(meant.compared).toBeGreaterThan(100_000);
}, 3_600_000);
