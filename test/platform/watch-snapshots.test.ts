import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { watchSnapshots } from '../../src/platform/database/watch-snapshots.js';
import { eventually } from '../helpers/eventually.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';
import { holdSnapshot, killHard } from '../helpers/snapshot-holder.js';

let test: TestApp;
beforeEach(async () => {
  test = await openTestApp();
});
afterEach(() => test.close());

describe('the watch over snapshots', () => {
  it('names a stopped reader in the log once', async () => {
    const reader = await holdSnapshot(test.dataDir);
    const end = watchSnapshots(test.app, { lookMs: 20, longMs: 200 });
    const told = (): Record<string, unknown>[] =>
      test.logLines.map((line) => JSON.parse(line) as Record<string, unknown>).filter((line) => 'reader' in line);
    try {
      reader.kill('SIGSTOP');
      await eventually('a line in the log', () => told().length > 0);
      await eventually('more looks', () => (test.app.db.listSnapshots!()[0]?.ageMs ?? 0) > 600);
      expect(told()).toMatchObject([{ level: 40, reader: reader.pid }]);
    } finally {
      end();
      await killHard(reader);
    }
  });
});
