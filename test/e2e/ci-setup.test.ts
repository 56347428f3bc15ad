import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BINARY, startService, type RunningService } from '../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

let dir: TempDir;
let service: RunningService;
let env: Record<string, string>;
beforeAll(async () => {
  dir = await openTempDir();
  mkdirSync(join(dir.path, 'bin'));
  symlinkSync(BINARY, join(dir.path, 'bin', 'bsvc'));
  env = { BSVC_DATA_DIR: join(dir.path, 'data'), BSVC_DURABILITY: 'relaxed', BSVC_LOG_LEVEL: 'warn' };
  service = await startService(['serve', '--port', '0'], env);
});
afterAll(async () => {
  await service.stop();
  await dir.remove();
});

it('a CI script sets a project up from nothing, uses it and takes it down, as often as it likes', async () => {
  for (const round of [1, 2]) {
    const shell = spawn('bash', [join(import.meta.dirname, 'ci-setup.sh')], {
      cwd: dir.path,
      env: {
        ...env,
        API: `${service.ready.url}/api`,
        PATH: `${join(dir.path, 'bin')}:${process.env.PATH}`,
        CI: 'true',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [shell.stdout, shell.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    }
    const [code] = (await once(shell, 'close')) as [number];
    expect({ round, code, output }).toMatchObject({ code: 0, output: expect.stringContaining('== done') as string });
  }
}, 300_000);
