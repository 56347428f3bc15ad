import { join } from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM } from '../helpers/chromium.js';
import { findFreePort } from '../helpers/listen.js';
import { killRunning, startService, type RunningService } from '../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';
import { OWNER, PASSWORD, signIn } from './console-stage.js';

/** Of the page: what is evaluated there. */
declare const performance: { timeOrigin: number };

const TOKEN = 'an-admin-token-of-this-test';
const AWAY = 'The server does not respond. You see the last data';

describe.skipIf(!CHROMIUM)('a console whose server is killed', () => {
  let dir: TempDir;
  let settings: Record<string, string>;
  let port: number;
  let service: RunningService;
  let browser: Browser;
  let posts: string;

  const start = async (): Promise<void> => {
    service = await startService(['serve', '--port', String(port)], settings);
  };
  async function call<T>(method: string, path: string, body?: object): Promise<T> {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
    return ((await answer.json()) as { data: T }).data;
  }
  const titles = async (): Promise<string[]> => {
    const { items } = await call<{ items: { title: string }[] }>('GET', `${posts}/documents`);
    return items.map(({ title }) => title).sort();
  };

  beforeAll(async () => {
    dir = await openTempDir();
    port = await findFreePort();
    settings = {
      BSVC_DATA_DIR: join(dir.path, 'data'),
      BSVC_LOG_LEVEL: 'warn',
      BSVC_BCRYPT_COST: '4',
      BSVC_ADMIN_TOKEN: TOKEN,
    };
    await start();
    await call('POST', '/api/admin/operators', { email: OWNER, password: PASSWORD, role: 'owner' });
    const { project } = await call<{ project: { id: string } }>('POST', '/api/projects', { name: 'shop' });
    const fields = [{ name: 'title', type: 'String', required: true }];
    await call('POST', `/api/projects/${project.id}/collections`, { name: 'posts', fields });
    posts = `/api/projects/${project.id}/collections/posts`;
    browser = await chromium.launch({ executablePath: CHROMIUM!, args: ['--no-sandbox', '--disable-gpu'] });
  });
  afterAll(async () => {
    await browser?.close();
    killRunning();
    await dir.remove();
  });

  const title = (page: Page) => page.getByRole('dialog').getByLabel('title', { exact: true });
  const insert = (page: Page) => page.getByRole('button', { name: 'Insert', exact: true });

  it('loses nothing that is typed, says what is going on, stores once, and goes on by itself', async () => {
    const page = await browser.newPage({ baseURL: `http://127.0.0.1:${port}/console/` });
    page.setDefaultTimeout(45_000);
    const project = posts.split('/')[3]!;
    await page.goto(`./#/p/${project}/documents/posts?open=new`);
    await signIn(page);
    await title(page).fill('typed before');
    const began = await page.evaluate(() => performance.timeOrigin);
    await service.stop('SIGKILL');
    await insert(page).click();
    await page.getByText('The server does not answer: try again.').first().waitFor();
    await page.getByText(AWAY).waitFor();
    await title(page).fill('typed while it was away');
    await start();
    await page.getByText(AWAY).waitFor({ state: 'detached' });
    expect(await title(page).inputValue()).toBe('typed while it was away');

    // Killed when it has stored the document, and before it can say so.
    await page.route(/\/documents$/, async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      expect((await route.fetch()).status()).toBe(201);
      await service.stop('SIGKILL');
      return route.abort();
    });
    await insert(page).click();
    await page.getByText(AWAY).waitFor();
    await page.unroute(/\/documents$/);
    await title(page).fill('changed since');
    await start();
    await page.getByText(AWAY).waitFor({ state: 'detached' });
    await insert(page).click();
    await page.getByText('Document stored').waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('region', { name: 'Documents of posts' }).getByText('changed since').waitFor();
    expect(await titles()).toEqual(['changed since']);

    // A change of what is stored.
    await page.getByRole('row').nth(1).getByRole('link').first().click();
    await title(page).fill('changed again');
    await service.stop('SIGKILL');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText(AWAY).waitFor();
    await start();
    await page.getByText(AWAY).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Document changed').waitFor();
    expect(await titles()).toEqual(['changed again']);
    expect(await page.evaluate(() => performance.timeOrigin)).toBe(began);
  });
});
