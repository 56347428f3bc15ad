import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runBinary } from '../../helpers/run-binary.js';
import { openCliHome } from '../../helpers/run-cli.js';
import { openSmallDisk, type SmallDisk } from '../../../src/engine/test/helpers/small-disk.js';

const home = openCliHome();
const backup = join(home.dir, 'large.backup');
let disk: SmallDisk | null;

beforeAll(async () => {
  disk = await openSmallDisk(3);
  await home.bsvc(['project', 'create', 'shop']);
  await home.bsvc(['collection', 'add', 'posts', '--project', 'shop', '--field', 't:String']);
  const stdin = `${JSON.stringify({ t: 'x'.repeat(1_000) })}\n`.repeat(5_000);
  await home.bsvc(['data', 'import', 'posts', '-', '--format', 'ndjson', '--project', 'shop'], { stdin });
  expect((await home.bsvc(['backup', '--out', backup])).code).toBe(0);
});
afterAll(async () => {
  home.remove();
  await disk?.remove();
});

describe('bsvc restore where the backup does not fit', () => {
  it('is refused in one line, before anything is changed, and done when there is room', async ({ skip }) => {
    // Only root may mount a small disk.
    if (!disk) return skip();
    const env = { BSVC_DATA_DIR: join(disk.path, 'data'), BSVC_DURABILITY: 'relaxed' };
    const refused = await runBinary(['restore', backup], { env });
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringMatching(
        /^bsvc: The backup holds \d MB of documents, and there is room for \d MB in [^\n]*\n$/,
      ) as string,
    ]);
    expect((await runBinary(['project', 'list'], { env })).stdout).toContain('No projects');
    disk.resize(64);
    expect((await runBinary(['restore', backup, '--yes'], { env })).code).toBe(0);
    expect((await runBinary(['project', 'list', '--quiet'], { env })).stdout.trim().split('\n')).toHaveLength(1);
  });
});
