import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { CHROMIUM, drivePage, readRenderedPage } from '../helpers/chromium.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

let test: TestApp;

beforeAll(async () => {
  test = await openTestApp();
});
afterAll(() => test.close());

describe.skipIf(!CHROMIUM)('/api/docs in a browser', () => {
  it('runs its script under its own policy: search is offered, the named operation is open', async () => {
    const page = await readRenderedPage(`${test.url}/api/docs#aggregateDocuments`);
    expect(page).toMatch(/<form class="search" role="search">/);
    expect(page).toMatch(/<details class="operation" id="aggregateDocuments" open="">/);
    expect(page.match(/<details class="operation"[^>]* open="">/g)).toHaveLength(1);
  });

  it('sends a request with a key that is typed once, shows the answer, and leads to the guides', async () => {
    const { project, secret } = await buildProject(test.app);
    await buildCollection(test.app, project, {
      name: 'posts',
      fields: [{ name: 'title', type: 'String', required: true }],
    });
    const page = await drivePage(`${test.url}/api/docs#insertDocument`);
    try {
      const inForm = (id: string, rest: string): string => `document.querySelector('#${id} .try ${rest}')`;
      const open = async (id: string): Promise<void> => {
        await page.until(inForm(id, 'button'));
        await page.evaluate(`document.getElementById('${id}').open = true, ${inForm(id, 'button')}.click()`);
        await page.until(inForm(id, 'form'));
      };
      const send = async (id: string): Promise<string> => {
        await page.evaluate(`${inForm(id, 'form')}.requestSubmit()`);
        await page.until(`/^\\d/.test(${inForm(id, '.answer')}.textContent)`);
        return page.evaluate<string>(`${inForm(id, '.answer')}.textContent`);
      };
      await open('insertDocument');
      await page.evaluate(`(() => {
        const key = ${inForm('insertDocument', '[name="x-api-key"]')};
        key.value = '${secret}';
        key.dispatchEvent(new Event('input', { bubbles: true }));
        ${inForm('insertDocument', '[name="body"]')}.value = '{"title":"Tried"}';
      })()`);
      expect(await send('insertDocument')).toMatch(
        /^201 Created · \d+ ms\n\{\n {2}"_id": "[0-9a-f]{24}",\n {2}"title": "Tried"/,
      );
      await open('listDocuments');
      await page.evaluate(`${inForm('listDocuments', '[name="query"]')}.value = 'title_regex=^tri&fields=title'`);
      expect(await send('listDocuments')).toMatch(/^200 OK[\s\S]*"title": "Tried"[\s\S]*"total": 1/);
      await page.evaluate(`${inForm('listDocuments', '[name="query"]')}.value = 'nothing=1'`);
      await page.evaluate(`${inForm('listDocuments', '.answer')}.textContent = ''`);
      expect(await send('listDocuments')).toMatch(/^400 Bad Request[\s\S]*"code": "INVALID_QUERY"/);
      await page.evaluate(`document.querySelector('.intro a[href$="/first-app"]').click()`);
      await page.until(`document.querySelector('main.guide h1')?.textContent === 'Your first app'`);
    } finally {
      await page.close();
    }
  });
});
