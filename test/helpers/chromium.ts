import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { once } from 'node:events';
import { openTempDir } from './temp-dir.js';

const FOUND = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);

/** Path of a Chromium on this machine, or null; a test that needs one is then skipped and says so. */
export const CHROMIUM: string | null = FOUND ?? null;

export interface Browser {
  close(): Promise<void>;
}

/** Opens `url` in a headless browser with a profile of its own. It reports to nobody: the page must. */
export async function openInBrowser(url: string): Promise<Browser> {
  const profile = await openTempDir();
  const child = spawn(
    CHROMIUM!,
    [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      // Headless ends by itself once it has nothing to do; a debugging port that nobody uses keeps it.
      '--remote-debugging-port=0',
      `--user-data-dir=${profile.path}`,
      url,
    ],
    { stdio: 'ignore', detached: true },
  );
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
