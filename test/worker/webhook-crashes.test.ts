import { describe, expect, it } from 'vitest';
import { runCrashRounds } from '../helpers/webhook-crashes.js';

// The processes use the embedded engine by themselves, whichever transport the other tests use.
describe.skipIf(process.env.BSVC_TEST_TRANSPORT === 'wire')('webhooks while server and worker are killed', () => {
  it('tell every answered change at least once, exactly once by webhook-id, in the order of each document', async () => {
    const report = await runCrashRounds({ rounds: 4 });
    expect(report.acknowledged).toBeGreaterThan(10);
    expect(report).toMatchObject({ missing: [], tooMany: [], outOfOrder: [], undelivered: 0 });
  }, 240_000);
});
