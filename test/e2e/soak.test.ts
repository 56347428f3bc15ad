import { describe, expect, it } from 'vitest';
import { runSoak } from '../helpers/soak/run-soak.js';

const SECONDS = 25;
/** The kind that is killed next, and when, follows from it; `npm run soak` takes others. */
const SEED = 20_261_121;

describe.runIf(process.platform === 'linux')('all processes killed (kill -9) in turn under mixed load', () => {
  it('lose nothing that was answered, and every counter is what it counts', async () => {
    const report = await runSoak({
      seconds: SECONDS,
      seed: SEED,
      pauseMs: 2_000,
      settleMs: 5_000,
      mostStartMs: Infinity,
    });
    expect(report.violations).toEqual([]);
    expect(Object.keys(report.kills)).toEqual(expect.arrayContaining(['supervisor', 'api', 'worker', 'everything']));
    expect(report.compared['answered changes of documents']).toBeGreaterThan(50);
  });
});
