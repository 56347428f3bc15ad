import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from './eventually.js';
import { openTempDir } from './temp-dir.js';

export type ProxyName = 'nginx' | 'caddy' | 'haproxy';

/** Whether the proxy can be started here; tests that need one say that they were skipped otherwise. */
export const hasProxy = (name: ProxyName): boolean =>
  spawnSync(name, [name === 'caddy' ? 'version' : '-v'], { timeout: 20_000 }).status === 0;

const WORDS: Readonly<Record<ProxyName, (file: string, folder: string) => string[]>> = {
  nginx: (file, folder) => ['-c', file, '-p', folder, '-e', 'stderr', '-g', 'daemon off; pid nginx.pid;'],
  caddy: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
  haproxy: (file) => ['-db', '-f', file],
};

/** Starts a proxy with a configuration of its own; resolves when `url` is answered through it. */
export async function startProxy(name: ProxyName, configuration: string, url: string) {
  const folder = await openTempDir();
  const file = join(folder.path, name);
  await writeFile(file, configuration);
  const environment = { ...process.env, HOME: folder.path, XDG_DATA_HOME: folder.path, XDG_CONFIG_HOME: folder.path };
  const child = spawn(name, WORDS[name](file, folder.path), { stdio: ['ignore', 'pipe', 'pipe'], env: environment });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (said += text.toString()));
  const ended = once(child, 'exit');
  await eventually(`${name} answers`, async () => {
    if (child.exitCode !== null) throw new Error(`${name} ended: ${said}`);
    return (await fetch(url).catch(() => null))?.ok === true;
  });
  return {
    async close(): Promise<void> {
      child.kill('SIGTERM');
      await ended;
      await folder.remove();
    },
  };
}
