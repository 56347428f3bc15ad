import { expect, it } from 'vitest';
import { searchRuleMeaning } from '../../helpers/rule-meaning.js';

it('a rule means the same as a filter, for what a document holds and for what an update leads to', async () => {
  const meant = await searchRuleMeaning(36, 500);
  for (const [what, count] of Object.entries(meant)) expect(count, what).toBeGreaterThan(50);
});
