import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM, drivePage, type DrivenPage } from '../helpers/chromium.js';
import { eventually } from '../helpers/eventually.js';
import { missingLines, readExamples, readGuides } from '../helpers/guide-examples.js';
import { findFreePort, listen, type Listening } from '../helpers/listen.js';
import { runShell, type ShellOutcome } from '../helpers/run-shell.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

// What the guide "Your first app" has readers do: the backend by its commands, its page in a browser, its receiver.
const guides = readGuides();
const examples = readExamples(guides.get('first-app.md')!);
const [start, project] = examples.filter(({ language }) => language === 'sh');
const html = examples.find(({ file }) => file === 'index.html')!.text;
const receiver = examples.find(({ text }) => text.startsWith('node receiver.mjs'))!;
const DEADLINE_MS = 150_000;

let dir: TempDir;
let site: Listening;
let page: DrivenPage;
let shell: Promise<ShellOutcome>;
let served = '';
let ports: Record<'4000' | '5173' | '9000', string>;

const moved = (text: string): string => text.replace(/\b(4000|5173|9000)\b/g, (port) => ports[port as '4000']);
const printed = (): string => readFileSync(join(dir.path, 'printed.log'), 'utf8');

describe.skipIf(!CHROMIUM)('the page of the guide Your first app', () => {
  beforeAll(async () => {
    dir = await openTempDir();
    const server = createServer((request, response) => {
      response.setHeader('content-type', 'text/html');
      response.end(request.url === '/' ? served : '');
    });
    site = await listen(server);
    ports = { 4000: `${await findFreePort()}`, 5173: new URL(site.url).port, 9000: `${await findFreePort()}` };
    writeFileSync(join(dir.path, 'printed.log'), '');
    writeFileSync(
      join(dir.path, 'receiver.mjs'),
      moved(readExamples(guides.get('webhooks.md')!).find(({ file }) => file === 'receiver.mjs')!.text),
    );
    const script = `exec > printed.log 2>&1
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT; trap 'exit 1' TERM
${moved(start!.text)}
${moved(project!.text)}
${receiver.text.trim()} &
until [ -e done ]; do sleep 0.2; done
kill $(jobs -p); wait`;
    shell = runShell(dir.path, ['-m', '-e', '-o', 'pipefail', '-c', script], {}, 300_000);
    const key = await eventually('the key is printed', () => /^pk_live_\S+$/m.exec(printed())?.[0], DEADLINE_MS);
    served = moved(html).replace('pk_live_…', key);
    page = await drivePage(`http://localhost:${ports[5173]}/`);
  }, 200_000);
  afterAll(async () => {
    await page?.close();
    writeFileSync(join(dir.path, 'done'), '');
    await shell;
    await site.close();
    await dir.remove();
  }, 60_000);

  const enter = async (action: 'signup' | 'login', email: string): Promise<void> => {
    await page.until(`document.querySelector('#account') && !document.querySelector('#account').hidden`);
    await page.evaluate(`(() => {
      const form = document.querySelector('#account');
      form.email.value = '${email}';
      form.password.value = 'correct horse';
      form.requestSubmit(form.querySelector('[value="${action}"]'));
    })()`);
    await page.until(`!document.querySelector('#note').hidden || document.querySelector('#message').textContent`);
    expect(await page.evaluate(`document.querySelector('#message').textContent`)).toBe('');
  };
  const notes = (): Promise<string[]> =>
    page.evaluate(`[...document.querySelectorAll('#notes li')].map((item) => item.textContent)`);
  const leave = () => page.evaluate(`document.querySelector('#leave').click()`);

  it('signs up, keeps a private note with a photo, is signed in after a reload, and its webhook arrives', async () => {
    await enter('signup', 'ada@example.com');
    await page.evaluate(`(async () => {
      const canvas = Object.assign(document.createElement('canvas'), { width: 37, height: 11 });
      canvas.getContext('2d').fillRect(0, 0, 20, 10);
      const picture = await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
      const chosen = new DataTransfer();
      chosen.items.add(new File([picture], 'drawn.png', { type: 'image/png' }));
      const form = document.querySelector('#note');
      form.text.value = 'Buy milk';
      form.photo.files = chosen.files;
      form.requestSubmit();
    })()`);
    await page.until(`document.querySelector('#notes img')?.naturalWidth === 37`);
    expect(await notes()).toEqual(['Buy milk']);

    await page.evaluate(`void location.reload()`);
    await page.until(
      `document.querySelector('#notes img')?.naturalWidth === 37 && performance.getEntriesByType('navigation')[0].type === 'reload'`,
    );
    expect(await notes()).toEqual(['Buy milk']);

    await eventually(
      'the webhook is printed',
      () => missingLines(moved(receiver.shown!), printed()).length === 0,
      DEADLINE_MS,
    );
  }, 200_000);

  it('shows nobody else the note', async () => {
    await leave();
    await enter('signup', 'bob@example.com');
    expect(await notes()).toEqual([]);
    await leave();
    await enter('login', 'ada@example.com');
    await page.until(`document.querySelector('#notes li')`);
    expect(await notes()).toEqual(['Buy milk']);
  }, 200_000);
});
