import { existsSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { killRunning, runBinary, startService } from '../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

let dir: TempDir;
let path: string;
let env: Record<string, string>;
beforeEach(async () => {
  dir = await openTempDir();
  path = join(dir.path, 'bsvc.sock');
  env = { BSVC_DATA_DIR: join(dir.path, 'data'), BSVC_HOST: `unix:${path}`, BSVC_LOG_LEVEL: 'warn' };
});
afterEach(async () => {
  killRunning();
  await dir.remove();
});

function askHealth(): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: path, path: '/api/health', headers: { host: 'app.example.com' } }, (reply) => {
      reply.resume();
      resolve(reply.statusCode!);
    });
    asked.on('error', reject).end();
  });
}

it.each(['1', '2'])(
  'a socket serves %s processes, for the group of its user, and goes with them',
  async (processes) => {
    const service = await startService(['serve', '--processes', processes], env);
    expect(service.ready.url).toBe(`unix:${path}`);
    expect(statSync(path).mode & 0o777).toBe(0o660);
    expect(await askHealth()).toBe(200);
    // The one that is in use is left alone.
    const second = await runBinary(['serve'], { env: { ...env, BSVC_DATA_DIR: join(dir.path, 'other') } });
    expect([second.code, second.stderr]).toEqual([1, expect.stringContaining('is already taken')]);
    expect(await askHealth()).toBe(200);
    expect(await service.stop()).toBe(0);
    expect(existsSync(path)).toBe(false);
  },
);

it('what a killed process has left is replaced, and any other file stays', async () => {
  const killed = await startService(['serve'], env);
  await killed.stop('SIGKILL');
  expect(statSync(path).isSocket()).toBe(true);
  const next = await startService(['serve'], env);
  expect(await askHealth()).toBe(200);
  await next.stop();
  writeFileSync(path, 'mine');
  const refused = await runBinary(['serve'], { env });
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('is no socket')]);
  expect(statSync(path).isFile()).toBe(true);
});
