import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkStore } from '../../../cli/doctor/check-data.js';
import { watchSnapshots } from '../../../src/platform/database/watch-snapshots.js';
import { eventually } from '../../helpers/eventually.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';
import { holdSnapshot, killHard } from '../../../src/engine/test/helpers/snapshot-holder.js';

const TOKEN = 'admin-token-for-metrics';
let test: TestApp;
beforeEach(async () => {
  test = await openTestApp({ settings: { BSVC_ADMIN_TOKEN: TOKEN } });
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
      await eventually('more looks', () => (test.app.db.listSnapshots()[0]?.ageMs ?? 0) > 600);
      expect(told()).toMatchObject([{ level: 40, reader: reader.pid }]);
    } finally {
      end();
      await killHard(reader);
    }
  });

  it('has company: the metrics tell the age of the oldest and the free bytes, and doctor whom to end', async () => {
    const told = async (measure: string): Promise<number> => {
      const reply = await fetch(`${test.url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
      return Number(new RegExp(`^bsvc_database\\{measure="${measure}"\\} (\\d+)$`, 'm').exec(await reply.text())![1]);
    };
    expect(await told('freeBytes')).toBeLessThan(await told('fileBytes'));
    const reader = await holdSnapshot(test.dataDir);
    try {
      reader.kill('SIGSTOP');
      const [stopped] = await checkStore(test.app);
      expect(stopped).toMatchObject({ name: 'data file', ok: false });
      expect(stopped!.hint).toContain(`kill -CONT ${reader.pid}`);
      expect(await told('oldestSnapshotMs')).toBeGreaterThanOrEqual(1000);
    } finally {
      await killHard(reader);
    }
    expect(await checkStore(test.app)).toMatchObject([{ name: 'data file', ok: true }]);
    await eventually('no snapshot is old', async () => (await told('oldestSnapshotMs')) < 1000);
  });
});
