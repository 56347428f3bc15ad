import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM } from '../helpers/chromium.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

if (!CHROMIUM) console.warn('browser test skipped: no Chromium on this machine (apt-get install chromium)');

let test: TestApp;

beforeAll(async () => {
  test = await openTestApp();
});
afterAll(() => test.close());

describe.skipIf(!CHROMIUM)('/api/docs in a browser', () => {
  it('runs its script under its own policy: search is offered, the named operation is open', async () => {
    const page = await readPage(`${test.url}/api/docs#aggregateDocuments`);
    expect(page).toMatch(/<form class="search" role="search">/);
    expect(page).toMatch(/<details class="operation" id="aggregateDocuments" open="">/);
    expect(page.match(/<details class="operation"[^>]* open="">/g)).toHaveLength(1);
  });
});

/** The page as it is once its scripts have run. */
async function readPage(url: string): Promise<string> {
  const profile = await openTempDir();
  try {
    const { stdout } = await promisify(execFile)(
      CHROMIUM!,
      [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        `--user-data-dir=${profile.path}`,
        '--dump-dom',
        url,
      ],
      { maxBuffer: 16 * 1024 * 1024, timeout: 45_000 },
    );
    return stdout;
  } finally {
    await profile.remove();
  }
}
