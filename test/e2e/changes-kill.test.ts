import { describe, expect, it } from 'vitest';
import { soakChanges } from '../helpers/soak/changes-soak.js';

describe('followers of changes', () => {
  it.each(['embedded', 'wire'] as const)(
    'have what a list shows, and were told nothing else, after processes were killed under writes (%s)',
    async (transport) => {
      const report = await soakChanges({ seconds: 12, seed: 20_261_122, transport, processes: 3 });
      expect(report).toMatchObject({ different: [], leaked: [] });
      for (const what of ['kills', 'cut', 'expired', 'paused', 'pages'] as const) {
        expect(report[what], what).toBeGreaterThan(0);
      }
      expect(report.told).toBeGreaterThan(100);
    },
  );
});
