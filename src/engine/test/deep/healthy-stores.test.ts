import { rmSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { openSeed } from '../helpers/seed.js';
import { fillAndKill } from '../helpers/healthy-store.js';
import { temporaryDir } from '../transports.js';

/** `npm run soak store` takes a million. */
const DOCUMENTS = Number(process.env['BSVC_TEST_DOCUMENTS'] ?? 80_000);
const KILLS = 4;

describe('a store of many documents', () => {
  const dataDir = temporaryDir();
  afterAll(() => {
    rmSync(dataDir, { recursive: true, force: true });
  });

  it(
    'opens, takes writes and is found whole after imports, removals, indexes, backups and kills',
    {
      timeout: 900_000,
    },
    async () => {
      const seed = openSeed('healthy stores');
      const report = await fillAndKill(dataDir, { documents: DOCUMENTS, kills: KILLS, seed });
      console.log(`healthy stores: ${JSON.stringify(report)}`);
      expect(report.problems).toEqual([]);
      expect(report.documents).toBeGreaterThan(DOCUMENTS / 2);
    },
  );
});
