import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startService } from '../helpers/run-binary.js';
import { runShell } from '../helpers/run-shell.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const dir = use(await openTempDir());
const env: Record<string, string> = {
  BSVC_DATA_DIR: join(dir.path, 'data'),
  BSVC_DURABILITY: 'relaxed',
  BSVC_LOG_LEVEL: 'warn',
};
const service = use(await startService(['serve', '--port', '0'], env));

it('a CI script sets a project up from nothing, uses it and takes it down, as often as it likes', async () => {
  const script = join(import.meta.dirname, 'ci-setup.sh');
  const settings = { ...env, API: `${service.ready.url}/api`, CI: 'true' };
  for (const round of [1, 2]) {
    const outcome = await runShell(dir.path, [script], settings, 140_000);
    expect({ round, ...outcome }).toMatchObject({ code: 0, output: expect.stringContaining('== done') as string });
  }
});
