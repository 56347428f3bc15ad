import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { operatorSessionStore } from '../../src/features/access/operator.js';
import { makeSignInLink } from '../../src/features/operators/console-session.js';
import { requireOperatorNamed } from '../../src/features/operators/remove-operator.js';
import { addWebhook } from '../../src/features/webhooks/add-webhook.js';
import { testWebhook } from '../../src/features/webhooks/deliveries/test-webhook.js';
import { buildCollection, placeDocuments } from '../helpers/build-project.js';
import { CHROMIUM } from '../helpers/chromium.js';
import { openStorageClient } from '../helpers/storage-client.js';
import { openWebhookReceiver } from '../helpers/webhook-receiver.js';
import {
  at,
  findBarriers,
  measureOverflow,
  openConsole,
  openPage,
  OWNER,
  PASSWORD,
  signIn,
  useConsole,
  visit,
} from './console-stage.js';

/** Of the page: what is evaluated there. */
declare const document: {
  documentElement: { scrollWidth: number; clientWidth: number };
  body: { innerText: string };
  activeElement: { textContent: string; getAttribute(name: string): string | null } | null;
  querySelector(selector: string): unknown;
  dispatchEvent(event: Event): boolean;
};
declare const location: { href: string };
declare const localStorage: object;
declare const sessionStorage: object;

const SHOTS = process.env.BSVC_TEST_SHOTS;
const XSS = '<img src=x onerror="document.title=\'broken in\'"><script>document.title="broken in"</script>';

describe.skipIf(!CHROMIUM)('work at the console', () => {
  const stage = useConsole();

  it('changes a document by the fields that were changed, trashes it, and undoes that', async () => {
    const id = stage.ids[5]!;
    const page = await openConsole(stage, { hash: at(stage, `documents/posts?open=${id}`) });
    const editor = page.getByLabel('Document as JSON');
    await editor.click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText('{"title":"Changed at the console","views":5}');
    const sent = page.waitForRequest((each) => each.method() === 'PATCH');
    await page.getByRole('button', { name: 'Save' }).click();
    expect((await sent).postDataJSON()).toEqual({ title: 'Changed at the console' });
    await page.getByText('Document changed').waitFor();
    await visit(page, at(stage, `documents/posts?open=${id}`));
    await page.getByRole('button', { name: 'Move to the trash' }).click();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Document taken back').waitFor();
  });

  it('shows both versions of a document that somebody else changed meanwhile', async () => {
    const id = stage.ids[7]!;
    const page = await openConsole(stage, { hash: at(stage, `documents/posts?open=${id}`) });
    const write = async (views: number): Promise<void> => {
      await page.getByLabel('Document as JSON').click();
      await page.keyboard.press('Control+a');
      await page.keyboard.insertText(`{"title":"Post 7","views":${views}}`);
    };
    const api = `${stage.test.url}/api/data/posts/${id}`;
    const change = (fields: object) =>
      fetch(api, {
        method: 'PATCH',
        headers: { 'x-api-key': stage.secret, 'content-type': 'application/json' },
        body: JSON.stringify(fields),
      });
    await write(70);
    await change({ title: 'Theirs', views: 77 });
    await page.getByRole('button', { name: 'Save' }).click();
    const conflict = page.getByRole('alert', { name: 'Changed meanwhile' });
    await conflict.waitFor();
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/conflict.png` });
    expect(await conflict.getByRole('row').allTextContents()).toEqual([
      'FieldAs you opened itStored nowYours',
      'title"Post 7""Theirs"not changed',
      'views77770',
    ]);
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    // Changed once more: the answer to it is as old as what it was given to.
    await change({ views: 78 });
    await conflict.getByRole('button', { name: 'Store mine over it' }).click();
    await conflict.getByRole('cell', { name: '78', exact: true }).waitFor();
    await conflict.getByRole('button', { name: 'Store mine over it' }).click();
    await page.getByText('Document changed').waitFor();
    const { title, views } = (await (await fetch(api, { headers: { 'x-api-key': stage.secret } })).json()) as {
      title: string;
      views: number;
    };
    expect([title, views]).toEqual(['Theirs', 70]);
  });

  it('loads itself anew for another version of the server, with what was typed', async () => {
    const page = await openConsole(stage, { hash: at(stage, `documents/posts?open=${stage.ids[8]!}`) });
    await page.getByLabel('Document as JSON').click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText('{"title":"Typed before","views":8}');
    // The page of another version, as far as this one can see.
    await page.route('**/console/', async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, body: (await answer.text()).replace(/main-\w+/, 'main-OTHER') });
    });
    const loaded = page.waitForEvent('load');
    await page.evaluate(() => void document.dispatchEvent(new Event('visibilitychange')));
    await page.waitForRequest('**/console/');
    await page.unrouteAll({ behavior: 'wait' });
    await loaded;
    const sent = page.waitForRequest((each) => each.method() === 'PATCH');
    await page.getByRole('button', { name: 'Save' }).click();
    expect((await sent).postDataJSON()).toEqual({ title: 'Typed before' });
    await page.getByText('Document changed').waitFor();
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain('Typed before');
  });

  it('refuses to send a number that would lose digits, and what is no JSON', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/posts?open=new') });
    await page.getByLabel('Document as JSON').click();
    for (const [text, problem] of [
      ['{"title":"x","views":9007199254740993}', '9007199254740993 has more digits'],
      ['{"title":', 'This is not JSON'],
      ['[1]', 'A document is a JSON object'],
    ] as const) {
      await page.keyboard.press('Control+a');
      await page.keyboard.insertText(text);
      await page.getByText(problem).waitFor();
      expect(await page.getByRole('button', { name: 'Insert' }).isDisabled()).toBe(true);
    }
  });

  it('filters, counts on demand and goes from page to page by links', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/posts') });
    const counts: string[] = [];
    page.on('request', (each) => {
      if (/count=true|[?&]page=/.test(each.url())) counts.push(each.url());
    });
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByRole('link', { name: 'First page' }).waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'First page' }).waitFor();
    await page.getByLabel('Field').fill('views');
    await page.getByLabel('Condition').selectOption('_lt=');
    await page.getByLabel('Value').fill('7');
    await page.getByRole('button', { name: 'Filter', exact: true }).click();
    await page.getByText('7 shown').waitFor();
    expect(counts).toEqual([]);
    await page.getByRole('button', { name: 'Count' }).click();
    await page.getByText('7 documents').waitFor();
    expect(page.url()).toContain('views_lt=7');
  });

  it('moves many documents to the trash at once and takes them back', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/posts?views_gte=100&views_lte=102') });
    await page.getByText('3 shown').waitFor();
    await page.getByLabel('All rows').check();
    await page.getByRole('button', { name: 'Move to the trash' }).click();
    await page.getByText('3 moved to the trash').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('3 taken back').waitFor();
    await page.getByText('3 shown').waitFor();
    await page.getByLabel(`Row ${stage.ids[101]!}`).check();
    await page.getByRole('button', { name: 'Move to the trash' }).click();
    await page.getByText('2 shown').waitFor();
    await page.getByRole('link', { name: 'With the trash' }).click();
    await page.getByText('3 shown').waitFor();
    await page.getByLabel('All rows').check();
    await page.getByRole('button', { name: 'Take back' }).click();
    await page.getByText('1 taken back').waitFor();
  });

  it('asks for the name before something ends for good, and shows a key once', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'settings') });
    await page.getByLabel('Name of a new key').fill('nightly import');
    await page.getByRole('button', { name: 'New publishable key' }).click();
    const value = await page.getByText(/^pk_live_/).textContent();
    await page.keyboard.press('Escape');
    await page.getByText(value!).waitFor({ state: 'detached' });
    expect(
      await page.evaluate(() => location.href + JSON.stringify({ ...localStorage, ...sessionStorage })),
    ).not.toContain(value);
    const last4 = value!.slice(-4);
    await page.getByRole('row', { name: last4 }).getByText('nightly import').waitFor();
    await page.getByRole('button', { name: `Revoke the key ending with ${last4}` }).click();
    const revoke = page.getByRole('button', { name: 'Revoke the key', exact: true });
    expect(await revoke.isDisabled()).toBe(true);
    await page.getByLabel(/^Type/).fill(last4);
    await revoke.click();
    await page.getByText('The key is revoked').waitFor();
  });

  it('keeps what was typed when the session ends, and goes on after signing in again', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/posts?open=new') });
    await page.getByLabel('Document as JSON').click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText('{"title":"typed before the end"}');
    await operatorSessionStore(stage.test.app).deleteMany({});
    stage.test.app.cache.forgetAll('operators');
    await page.getByRole('button', { name: 'Insert' }).click();
    await page.getByRole('heading', { name: 'Your session has ended' }).waitFor();
    await signIn(page);
    await page.getByText('Document stored').waitFor();
  });

  it('tells that the server is away, keeps what is shown, and goes on when it is back', async () => {
    const page = await openConsole(stage, { hash: '#/audit' });
    await page.getByRole('cell', { name: OWNER }).first().waitFor();
    await page.context().setOffline(true);
    await visit(page, '#/audit?action=operator%20login');
    await page.getByText('What you see is what came last').waitFor();
    await page.context().setOffline(false);
    await page.getByText('What you see is what came last').waitFor({ state: 'detached' });
    await page.getByRole('cell', { name: OWNER }).first().waitFor();
  });

  it('is walked through with the keyboard alone', async () => {
    const page = await openPage(stage);
    await page.goto('./');
    await page.getByLabel('E-mail').waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.type(OWNER);
    await page.keyboard.press('Tab');
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('Tab');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toContain('Skip to the content');
    await page.getByRole('link', { name: 'Documents', exact: true }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('d');
    await page.getByRole('heading', { name: 'Documents' }).waitFor();
    await page.getByText('50 shown').waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    const focused = await page.evaluate(() => document.activeElement?.getAttribute('href'));
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await page.evaluate(() => document.activeElement?.getAttribute('href'))).toBe(focused);
    await page.keyboard.press('/');
    await page.keyboard.type('views');
    expect(await page.getByLabel('Field').inputValue()).toBe('views');
  });

  it('signs in once by the link of "bsvc console", which leaves the address at once', async () => {
    const { link } = await makeSignInLink(stage.test.app, await requireOperatorNamed(stage.test.app, OWNER));
    const page = await openPage(stage);
    await page.goto(`./#/enter/${link}`);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    expect(page.url()).not.toContain(link);
    const again = await openPage(stage);
    await again.goto(`./#/enter/${link}`);
    await again.getByText('This link was used already').waitFor();
    await again.getByRole('button', { name: 'Sign in' }).waitFor();
  });

  it('shows what is stored as text: documents, names of files, answers to webhooks', async () => {
    const { app } = stage.test;
    const notes = await buildCollection(app, stage.project, { name: 'notes' });
    const [id] = await placeDocuments(app, notes, [{ [XSS.slice(0, 20)]: XSS, text: XSS }]);
    await openStorageClient(stage.test, stage.secret).upload('bytes', `${XSS.slice(0, 40)}.txt`, 'text/plain');
    const receiver = await openWebhookReceiver();
    receiver.answer = (response) => void response.writeHead(500).end(XSS);
    const { webhook } = await addWebhook(app, stage.project, { url: receiver.url, events: ['*'] });
    const delivery = await testWebhook(app, stage.project, webhook.id.toHexString());
    const page = await openConsole(stage);
    for (const hash of [
      'documents/notes',
      `documents/notes?open=${id!}`,
      'files',
      `webhooks/${webhook.id.toHexString()}?open=${delivery._id}`,
    ]) {
      await visit(page, at(stage, hash));
      await page.waitForFunction(() => !document.querySelector('[aria-busy="true"]'));
      await page.waitForTimeout(0);
      expect(await page.title()).not.toContain('broken in');
      expect(await page.locator('main img').count()).toBe(0);
    }
    await receiver.close();
  });

  it('works below a path that a proxy in front takes away', async () => {
    const target = new URL(stage.test.url);
    const proxy = createServer((incoming, outgoing) => {
      const path = incoming.url!.replace(/^\/tools\/bsvc/, '');
      const { method, headers } = incoming;
      const passed = request({ host: target.hostname, port: target.port, path, method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(outgoing);
      });
      incoming.pipe(passed);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    try {
      const base = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/tools/bsvc/console`;
      const page = await openPage(stage);
      await page.goto(base);
      expect(page.url()).toBe(`${base}/`);
      await signIn(page);
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      await visit(page, at(stage, 'documents/posts'));
      await page.getByText('50 shown').waitFor();
    } finally {
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    }
  });

  it('is in no frame of another page', async () => {
    const page = await openPage(stage);
    const host = createServer((_request, answer) =>
      answer.setHeader('content-type', 'text/html').end(`<iframe src="${stage.test.url}/console/"></iframe>`),
    );
    await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
    try {
      // Told on the page's own console, where it is no fault here.
      page.removeAllListeners('console');
      const refused = page.waitForEvent('console', (message) =>
        /frame-ancestors|X-Frame-Options|Framing/i.test(message.text()),
      );
      await page.goto(`http://127.0.0.1:${(host.address() as AddressInfo).port}/`);
      await refused;
      const framed = page.frames()[1];
      expect(
        await framed
          ?.locator('#app')
          .count()
          .catch(() => 0),
      ).toBe(0);
    } finally {
      host.closeAllConnections();
      await new Promise((resolve) => host.close(resolve));
    }
  });
});
