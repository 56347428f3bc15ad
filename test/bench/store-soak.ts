import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fillAndKill } from '../../src/engine/test/helpers/healthy-store.js';

/**
 * `npm run soak store -- [--documents 1000000] [--kills 20] [--seed n]`: fills a store by processes of which most are
 * killed; after each it has to open, take a write and be found whole. Exit code 1 when it did not.
 */
const { values } = parseArgs({
  options: { documents: { type: 'string' }, kills: { type: 'string' }, seed: { type: 'string' } },
});
const dataDir = mkdtempSync(join(tmpdir(), 'bsvc-soak-'));
const report = await fillAndKill(
  dataDir,
  {
    documents: Number(values.documents ?? 1_000_000),
    kills: Number(values.kills ?? 20),
    seed: Number(values.seed ?? Date.now() % 1_000_000),
  },
  (line) => process.stderr.write(`${line}\n`),
);
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
rmSync(dataDir, { recursive: true, force: true });
if (report.problems.length > 0) process.exitCode = 1;
