import { it } from 'vitest';
import { runs } from '../../helpers/runs.js';
import { REACHED, searchRules } from '../../helpers/search-rules.js';
import { openSeed } from '../../helpers/seed.js';
import { useTestApp } from '../../helpers/use.js';

/** Rules × callers × stores that are read in all ways, each; BSVC_TEST_RUNS=100000 is the long form. */
const READ = runs(160);
/** Small and looked at often: most of the time goes into reading it. */
const WORLD = { documents: 6, rounds: 25, writes: 3 };
let aheadMs = 0;
const pass = (ms: number): void => void (aheadMs += ms);

const test = await useTestApp({ clock: { now: () => Date.now() + aheadMs } });

it('rules that no run has seen before decide all ways of reading and writing alike', async () => {
  const seed = openSeed('reads and writes under rules');
  for (let at = 0; REACHED.cases < READ; at++) {
    await searchRules(test, seed + at, pass, WORLD);
    if (at % 100 === 0 || REACHED.cases >= READ) console.log(JSON.stringify(REACHED));
  }
}, 36_000_000);
