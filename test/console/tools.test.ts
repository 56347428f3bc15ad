import { describe, expect, it } from 'vitest';
import { fileStore } from '../world/stored.js';
import { CHROMIUM } from '../helpers/chromium.js';
import { openStorageClient } from '../helpers/storage-client.js';
import { at, findBarriers, measureOverflow, openConsole, settle, useConsole, VIEWER } from './console-stage.js';

/** Of the page: what is evaluated there. */
declare const document: { title: string; querySelector(selector: string): { naturalWidth: number } | null };
declare const location: { reload(): void };
declare const InputEvent: new (name: string, options: { bubbles: boolean }) => Event;

const PIXEL = Buffer.from('R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs=', 'base64');
const XSS = '<img src=x onerror="document.title=\'broken in\'">';

describe.skipIf(!CHROMIUM)('files and queries at the console', () => {
  const stage = useConsole();
  const storedNames = async (): Promise<string[]> =>
    (await fileStore(stage.test.app).find({ state: 'confirmed' }).toArray()).map(({ name }) => name).sort();

  it('uploads files one after the other, says which was refused, previews and deletes them', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'files') });
    await page.getByText('No files yet').waitFor();
    // The server refuses one of them as too large.
    await page.route(/\/files$/, async (route) => {
      if (route.request().method() !== 'POST' || !route.request().postData()?.includes('large.bin')) {
        return route.continue();
      }
      const message = 'The file is larger than 10 MB';
      return route.fulfill({ status: 413, json: { success: false, code: 'FILE_TOO_LARGE', message } });
    });
    await page.getByLabel('Files to upload').setInputFiles([
      { name: 'cover.gif', mimeType: 'image/gif', buffer: PIXEL },
      { name: 'large.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(10) },
      { name: 'page.txt', mimeType: 'text/plain', buffer: Buffer.from(`${XSS} first line`) },
    ]);
    await page.getByText('The file is larger than 10 MB').waitFor();
    await page.getByRole('link', { name: 'page.txt', exact: true }).waitFor();
    await settle(page);
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    expect(await storedNames()).toEqual(['cover.gif', 'page.txt']);
    await page.getByRole('button', { name: 'Clear this list' }).click();
    await page.getByRole('link', { name: 'cover.gif', exact: true }).click();
    await page.getByRole('img', { name: 'Preview of cover.gif' }).waitFor();
    await expect.poll(() => page.evaluate(() => document.querySelector('.file-preview img')?.naturalWidth)).toBe(1);
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'page.txt', exact: true }).click();
    await page.getByText(`${XSS} first line`).waitFor();
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    await page.getByRole('dialog').getByRole('button', { name: 'Delete…' }).click();
    await page.getByLabel(/^Type/).fill('page.txt');
    await page.getByRole('button', { name: 'Delete the file' }).click();
    await page.getByRole('link', { name: 'page.txt', exact: true }).waitFor({ state: 'detached' });
    expect(await storedNames()).toEqual(['cover.gif']);
    expect(await page.title()).not.toBe('broken in');
  });

  it('offers no upload to a viewer, and shows hostile files as what they are', async () => {
    const files = openStorageClient(stage.test, stage.secret);
    await files.upload('<svg xmlns="http://www.w3.org/2000/svg" onload="document.title=1"/>', 'x.svg', 'image/svg+xml');
    await files.upload('<script>document.title=1</script>', 'x.html', 'text/html');
    await files.upload('no image', 'x.png', 'image/png');
    const page = await openConsole(stage, { email: VIEWER, hash: at(stage, 'files') });
    for (const [name, shown] of [
      ['x.svg', 'There is no preview of such a file.'],
      ['x.html', 'There is no preview of such a file.'],
      ['x.png', 'The image cannot be shown.'],
    ] as const) {
      await page.getByRole('link', { name, exact: true }).click();
      await page.getByText(shown).waitFor();
      expect(await page.getByRole('dialog').getByRole('button', { name: 'Delete…' }).count()).toBe(0);
      await page.keyboard.press('Escape');
    }
    expect(await page.getByRole('button', { name: 'Upload…' }).count()).toBe(0);
    expect(await page.title()).toBe('Files · bsvc console');
  });

  it('runs a list by its query string, shows its plan and its code, and keeps it in the address', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'query') });
    const typed = page.getByLabel(/^Query string/);
    await typed.fill('https://api.example/api/data/posts?views_gte=100&sort=-views&limit=5');
    await typed.press('Control+Enter');
    await page.getByText('5 rows of 20').waitFor();
    expect(await page.getByRole('row').nth(1).getByRole('cell').allTextContents()).toContain('Post 119');
    await page.getByText('As code').click();
    const code = (label: string) => page.getByLabel(label, { exact: true });
    expect(await code('Client').textContent()).toBe(
      `const page = await api.collection('posts').list({ filter: { views_gte: '100' }, sort: '-views', limit: 5 });`,
    );
    expect(await code('Command').textContent()).toBe(
      'bsvc data query posts --project shop --filter views_gte=100 --sort -views --limit 5',
    );
    const address = (await code('URL').textContent())!;
    const answer = await fetch(address, { headers: { 'x-api-key': stage.secret } });
    expect(await answer.json()).toMatchObject({ data: { total: 20, limit: 5 } });
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByText(/^Read by the index .*views/).waitFor();
    await typed.fill('views_gt3=1');
    await page.getByRole('button', { name: 'Run' }).click();
    await page
      .getByRole('alert')
      .getByText(/views_gt/)
      .waitFor();
    await page.goBack();
    await page.getByText('5 rows of 20').waitFor();
    expect(await typed.inputValue()).toContain('views_gte=100');
    // What is typed and was not run outlives the page, also one that is left before it is drawn again.
    await typed.evaluate(async (field) => {
      (field as unknown as { value: string }).value = 'views=7';
      field.dispatchEvent(new InputEvent('input', { bubbles: true }));
      await Promise.resolve();
      location.reload();
    });
    await expect.poll(() => typed.inputValue()).toBe('views=7');
    await typed.fill('count=true');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('cell', { name: '120', exact: true }).waitFor();
    expect(await page.evaluate(() => document.title)).toBe('Query · bsvc console');
  });

  it('runs a pipeline whose stages begin with fields of the collection', async () => {
    const page = await openConsole(stage, { email: VIEWER, hash: at(stage, 'query?as=pipeline') });
    await page.getByLabel('Add a stage').selectOption('$group');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('20 rows').waitFor();
    await page.getByRole('columnheader', { name: 'viewsAverage' }).waitFor();
    await page.getByRole('button', { name: 'As JSON' }).click();
    await page.getByLabel('Result as JSON').getByText('"count": 1').first().waitFor();
    await page.getByText('As code').click();
    expect(await page.getByLabel('Command', { exact: true }).textContent()).toMatch(
      /^bsvc data query posts --pipeline '\[/,
    );
    await settle(page);
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByText(/examined for/).waitFor();
    const downloaded = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('button', { name: 'Download' }).click();
    expect((await downloaded).suggestedFilename()).toBe('posts.json');
  });

  it('shows what a document was before each change, as text, once changes are kept', async () => {
    const id = stage.ids[7]!;
    const change = (title: string) =>
      fetch(`${stage.test.url}/api/data/posts/${id}`, {
        method: 'PATCH',
        headers: { 'x-api-key': stage.secret, 'content-type': 'application/json' },
        body: JSON.stringify({ title }),
      });
    const hash = at(stage, `documents/posts?open=${id}&tab=history`);
    const looking = await openConsole(stage, { email: VIEWER, hash });
    await looking.getByText('Changes of posts are not kept yet').waitFor();
    expect(await looking.getByRole('button', { name: 'Keep changes from now on' }).count()).toBe(0);
    const page = await openConsole(stage, { hash });
    await page.getByRole('button', { name: 'Keep changes from now on' }).click();
    await page.getByText('No change of posts is kept yet').waitFor();
    for (const title of [XSS, 'newer']) await change(title);
    await page.reload();
    const list = page.getByRole('dialog').getByRole('listitem');
    await list.first().waitFor();
    await settle(page);
    const shown = (await list.allTextContents()).map((text) => text.replace(/\d{4}-\d\d-\d\d [\d:]{8}/, ''));
    expect(shown).toEqual([
      `Changed title${JSON.stringify(XSS)} → "newer"`,
      `Changed title"Post 7" → ${JSON.stringify(XSS)}`,
    ]);
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    expect(await page.title()).not.toBe('broken in');
  });
});
