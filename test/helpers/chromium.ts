import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { openTempDir } from './temp-dir.js';

/** Path of a Chromium on this machine, or null; a test that needs one is then skipped and says so. */
export const CHROMIUM: string | null =
  ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path)) ?? null;

if (!CHROMIUM) console.warn('browser test skipped: no Chromium on this machine (apt-get install chromium)');

const flags = (profile: string): string[] => [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  `--user-data-dir=${profile}`,
];

export interface Browser {
  close(): Promise<void>;
}

/** Opens `url` in a headless browser with a profile of its own. It reports to nobody: the page must. */
export async function openInBrowser(url: string): Promise<Browser> {
  const profile = await openTempDir();
  // Headless ends by itself once it has nothing to do; a debugging port that nobody uses keeps it.
  const words = [...flags(profile.path), '--remote-debugging-port=0', url];
  const child = spawn(CHROMIUM!, words, { stdio: 'ignore', detached: true });
  return {
    async close() {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, 'exit');
        // Its whole process group, which is ours alone.
        process.kill(-child.pid!, 'SIGKILL');
        await ended;
      }
      await profile.remove();
    },
  };
}

/** The page at `url` as it is once its scripts have run. */
export async function readRenderedPage(url: string): Promise<string> {
  const profile = await openTempDir();
  try {
    const words = [...flags(profile.path), '--dump-dom', url];
    const { stdout } = await promisify(execFile)(CHROMIUM!, words, { maxBuffer: 16 * 1024 * 1024, timeout: 45_000 });
    return stdout;
  } finally {
    await profile.remove();
  }
}
