import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ObjectId } from 'bson';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { requireCollection } from '../world/collections.js';
import { makeSignInLink, requireOperatorNamed } from '../world/operators.js';
import { addWebhook, updateProject } from '../world/projects.js';
import { SIGNED_IN_OPERATORS, operatorSessionStore } from '../world/stored.js';
import { signUp } from '../world/users.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { CHROMIUM } from '../helpers/chromium.js';
import { openStorageClient } from '../helpers/storage-client.js';
import {
  at,
  findBarriers,
  measureOverflow,
  openConsole,
  openPage,
  OWNER,
  PASSWORD,
  reach,
  signIn,
  useConsole,
  visit,
  type ConsoleStage,
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

async function readDocument({ test, secret }: ConsoleStage, id: string): Promise<{ updatedAt: string }> {
  const answer = await fetch(`${test.url}/api/data/posts/${id}`, { headers: { 'x-api-key': secret } });
  return (await answer.json()) as { updatedAt: string };
}

async function typeJson(page: Page, label: string, value: object): Promise<void> {
  await page.getByLabel(label).click();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(JSON.stringify(value));
}

describe.skipIf(!CHROMIUM)('work at the console', () => {
  const stage = useConsole();

  it('changes a document by the fields that were changed, trashes it, and undoes that', async () => {
    const id = stage.ids[5]!;
    const page = await openConsole(stage, { hash: at(stage, `documents/posts?open=${id}&tab=json`) });
    const editor = page.getByLabel('Document as JSON');
    await editor.click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText('{"title":"Changed at the console","views":5}');
    await page.getByRole('dialog').getByText('As a command').click();
    const known = (await readDocument(stage, id)).updatedAt;
    await page.getByText(`-H 'if-match: "${known}"' -d '{"title":"Changed at the console"}'`).waitFor();
    const sent = page.waitForRequest((each) => each.method() === 'PATCH');
    await page.getByRole('button', { name: 'Save' }).click();
    expect((await sent).postDataJSON()).toEqual({ title: 'Changed at the console' });
    await page.getByText('Document changed').waitFor();
    await visit(page, at(stage, `documents/posts?open=${id}`));
    await page.getByRole('button', { name: 'Move to the trash' }).click();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Document restored').waitFor();
  });

  it('stores a copy of a document, with links to those that it names', async () => {
    const named = await buildCollection(stage.test.app, stage.project, {
      name: 'replies',
      fields: [{ name: 'post', type: 'Ref', ref: 'posts' }],
    });
    const [id] = await placeDocuments(stage.test.app, named, [{ post: new ObjectId(stage.ids[2]) }]);
    const page = await openConsole(stage, { hash: at(stage, `documents/replies?open=${id!}`) });
    await page.getByRole('link', { name: 'Duplicate' }).click();
    await page.getByRole('button', { name: 'Insert' }).click();
    await page.getByText('Document stored').waitFor();
    await page.getByText('2 shown').waitFor();
    await visit(page, at(stage, `documents/replies?open=${id!}&tab=references`));
    await page.getByRole('link', { name: `post: posts ${stage.ids[2]!}` }).click();
    await page.getByRole('heading', { name: `posts ${stage.ids[2]!}` }).waitFor();
  });

  it('stores the documents of a file after a look at which of them fit', async () => {
    await buildCollection(stage.test.app, stage.project, {
      name: 'stock',
      fields: [{ name: 'title', type: 'String', required: true }],
    });
    const page = await openConsole(stage, { hash: at(stage, 'documents/stock?import=1') });
    const choose = (text: string) =>
      page.getByLabel(/^File:/).setInputFiles({ name: 'a.ndjson', mimeType: 'text/plain', buffer: Buffer.from(text) });
    await choose('{"title":"one"}\n{"title":');
    await page.getByText('Line 2 is not JSON').waitFor();
    await choose('{"title":"one"}\n{"views":2}\n{"title":"three"}\n');
    await page.getByRole('button', { name: 'Preview import of 3' }).click();
    await page.getByText('2 fit, 1 would be refused. Nothing is stored yet.').waitFor();
    await page.getByText(/^Document 2: .*title/).waitFor();
    await page.getByRole('button', { name: 'Store 2 documents' }).click();
    await page.getByText('2 documents stored, 1 refused').waitFor();
    await page.getByText('2 shown').waitFor();
  });

  it('edits a collection only after a look at invalid documents, and drops it by its name', async () => {
    const pages = await buildCollection(stage.test.app, stage.project, {
      name: 'pages',
      fields: [{ name: 'title', type: 'String' }],
    });
    await placeDocuments(stage.test.app, pages, [{ title: 'one' }, {}]);
    const page = await openConsole(stage, { hash: at(stage, 'collections?open=pages') });
    await page.getByRole('link', { name: 'Edit…' }).click();
    await page.getByRole('link', { name: 'JSON', exact: true }).click();
    await typeJson(page, 'Collection as JSON', {
      mode: 'enforced',
      fields: [{ name: 'title', type: 'String', required: true }],
      indexes: ['title'],
      access: 'private',
      ownerField: 'userId',
    });
    const changes = page.getByRole('region', { name: 'Changes' }).getByRole('listitem');
    await expect
      .poll(() => changes.allTextContents())
      .toEqual(['field title: String → title: String, required', '+ index title', 'access public → private by userId']);
    // Saving looks by itself, and stops where a document would be invalid.
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('1 of 2 stored documents would be invalid').waitFor();
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    await page.getByRole('button', { name: 'Save anyway' }).click();
    await page.getByText('Collection changed').waitFor();
    await page.getByRole('row', { name: 'pages' }).getByText('private, by userId').waitFor();
    await visit(page, at(stage, 'collections?open=pages'));
    await page.getByRole('button', { name: 'Drop…' }).click();
    await page.getByLabel(/^Type/).fill('pages');
    await page.getByRole('button', { name: 'Drop the collection' }).click();
    await page.getByText('The collection is dropped').waitFor();
    await page.getByRole('row', { name: 'pages' }).waitFor({ state: 'detached' });
  });

  it('registers a collection, and says why when the server refuses one', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'collections') });
    await page.getByRole('link', { name: 'Register a collection…' }).click();
    await page.locator('dialog label input:focus').fill('1st');
    await page.getByRole('button', { name: 'Register' }).click();
    await page.getByRole('alert').getByText('INVALID_NAME').waitFor();
    await page.getByLabel('Name', { exact: true }).fill('registered');
    await page.getByRole('button', { name: 'Register' }).click();
    await page.getByText('Collection registered').waitFor();
    await page.getByRole('row', { name: 'registered' }).getByText('server-only').waitFor();
  });

  it('declares references, uniques with a condition and expiry in the form', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'collections?new=1') });
    await page.getByLabel('Name', { exact: true }).fill('visits');
    for (const name of ['org', 'status', 'until', 'post']) {
      await page.getByRole('button', { name: 'Add a field' }).click();
      await page.getByLabel('Name of the new field').fill(name);
    }
    await page.getByLabel('Type of until').selectOption('Date');
    await page.getByLabel('Type of post').selectOption('Ref');
    await page.getByLabel('Collection of post').selectOption('posts');
    await page.getByText('Rules of post').click();
    await page.getByLabel('When it is deleted').selectOption('trash');
    await page.getByLabel(/^Unique together/).fill('org,title where status=booked\norg,until');
    await page.getByLabel('Documents expire').selectOption('until');
    await page.getByLabel(/^Time after that/).fill('2h');
    await page.getByLabel('permanently, not to the trash').check();
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    await page.getByRole('button', { name: 'Register' }).click();
    await page.getByText('Collection registered').waitFor();
    const visits = await requireCollection(stage.test.app, stage.project._id, 'visits');
    expect(visits.fields.at(-1)).toEqual({ name: 'post', type: 'Ref', ref: 'posts', check: true, onDelete: 'trash' });
    expect([visits.uniques, visits.expire]).toEqual([
      [{ fields: ['org', 'title'], where: { status: 'booked' } }, ['org', 'until']],
      { field: 'until', after: '2h', permanent: true },
    ]);

    await visit(page, at(stage, 'collections?open=visits'));
    await page.getByText('Unique together: org,title where status=booked · org,until').waitFor();
    await page.getByRole('link', { name: 'Edit…' }).click();
    await page.getByLabel(/^Unique together/).fill('org,until');
    await page.getByLabel('Documents expire').selectOption('never');
    await page.getByText('Rules of post').click();
    await page.getByLabel('With the same').fill('title');
    const changes = page.getByRole('region', { name: 'Changes' }).getByRole('listitem');
    await expect
      .poll(() => changes.allTextContents())
      .toEqual([
        expect.stringContaining('field post: Ref'),
        '− unique org,title where status=booked',
        'expire by until after 2h permanently → never',
      ]);
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Collection changed').waitFor();
    const changed = await requireCollection(stage.test.app, stage.project._id, 'visits');
    expect([changed.uniques, changed.expire ?? null]).toEqual([[['org', 'until']], null]);
    expect(changed.fields.at(-1)).toMatchObject({ onDelete: 'trash', same: ['title'] });
  });

  it('applies a schema after a look at it, and asks for the name before it loosens anything', async () => {
    await buildCollection(stage.test.app, stage.project, {
      name: 'warnings',
      fields: [{ name: 'text', type: 'String' }],
      rls: { mode: 'private', ownerField: 'userId' },
    });
    const page = await openConsole(stage, { hash: at(stage, 'collections') });
    await page.getByRole('link', { name: 'Schema as a file…' }).click();
    const collections = [{ name: 'warnings', fields: [{ name: 'text', type: 'String' }], rls: 'off' }];
    await typeJson(page, 'Schema as JSON', { format: 'bsvc-schema/1', collections });
    await page.getByRole('button', { name: 'See what would change' }).click();
    const changes = page.getByRole('status', { name: 'Preview of changes' });
    await changes.getByText('change warnings').waitFor();
    await changes.getByText(/This loosens /).waitFor();
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByLabel(/^Type/).fill('shop');
    await page.getByRole('button', { name: 'Apply the schema' }).click();
    await reach(page, page.getByText('Schema applied'));
    await page.getByRole('row', { name: 'warnings' }).getByText('public', { exact: true }).waitFor();
  });

  it('overrides a template of the service, shows its HTML on a page without rights, and removes it', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'mail?template=welcome') });
    await page.getByLabel('Subject').fill('Welcome to the shop');
    await page.getByLabel('HTML').fill(`<p>Hello {{name}}</p>${XSS}`);
    await page.getByRole('button', { name: 'Store' }).click();
    const row = page.getByRole('row', { name: 'welcome' });
    await row.getByText('Welcome to the shop').waitFor();
    await row.getByRole('link', { name: 'welcome' }).click();
    const opened = page.context().waitForEvent('page');
    await page.getByRole('link', { name: 'Show HTML source' }).click();
    const preview = await opened;
    await preview.getByText('Hello {{name}}').waitFor();
    expect(await preview.title()).toBe('');
    await preview.close();
    await page.getByRole('button', { name: 'Remove…' }).click();
    await page.getByLabel(/^Type/).fill('welcome');
    await page.getByRole('button', { name: 'Remove the template' }).click();
    await row.getByText('the service').waitFor();
  });

  it('sets a user’s password, which ends the sessions that it shows', async () => {
    const { app } = stage.test;
    const user = await signUp(app, stage.project, { email: 'eve@example.test', password: 'long enough' }, 'project');
    await fetch(`${stage.test.url}/api/userAuth/login`, {
      method: 'POST',
      headers: { 'x-api-key': stage.secret, 'content-type': 'application/json' },
      body: JSON.stringify({ email: 'eve@example.test', password: 'long enough' }),
    });
    const page = await openConsole(stage, { hash: at(stage, `users?open=${user._id.toHexString()}`) });
    const sessions = page.getByRole('region', { name: 'Sessions' });
    await sessions.getByRole('button', { name: /^End the session/ }).waitFor();
    await page.getByRole('button', { name: 'Set the password…' }).click();
    await page.getByLabel('New password').fill('x');
    await page.getByRole('button', { name: 'Set the password', exact: true }).click();
    await page.getByRole('alert').first().waitFor();
    await page.getByLabel('New password').fill('another long one');
    await page.getByRole('button', { name: 'Set the password', exact: true }).click();
    await reach(page, page.getByText('every session has ended'));
    await sessions.getByText('No active sessions.').waitFor();
  });

  it('shows both versions of a document that somebody else changed meanwhile', async () => {
    const id = stage.ids[7]!;
    const page = await openConsole(stage, { hash: at(stage, `documents/posts?open=${id}&tab=json`) });
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
    await expect
      .poll(() => conflict.getByRole('row').allTextContents())
      .toEqual(['FieldAs you opened itStored nowYours', 'title"Post 7""Theirs"not changed', 'views77770']);
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
    const page = await openConsole(stage, { hash: at(stage, `documents/posts?open=${stage.ids[8]!}&tab=json`) });
    await page.getByLabel('Document as JSON').click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText('{"title":"Typed before","views":8}');
    // The page of another version, as far as this one can see; what is loaded instead is the server's own.
    await page.route('**/console/', async (route) => {
      if (route.request().resourceType() !== 'fetch') return route.continue();
      const answer = await route.fetch();
      await route.fulfill({ response: answer, body: (await answer.text()).replace(/main-\w+/, 'main-OTHER') });
    });
    const loaded = page.waitForEvent('load');
    await page.evaluate(() => void document.dispatchEvent(new Event('visibilitychange')));
    await loaded;
    const sent = page.waitForRequest((each) => each.method() === 'PATCH');
    await page.getByRole('button', { name: 'Save' }).click();
    expect((await sent).postDataJSON()).toEqual({ title: 'Typed before' });
    await page.getByText('Document changed').waitFor();
    expect(await page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }]))).not.toContain(
      'Typed before',
    );
  });

  it('shows a line of so many characters in one line that breaking it would take seconds', async () => {
    const texts = await buildCollection(stage.test.app, stage.project, { name: 'texts' });
    const [short, long] = await placeDocuments(stage.test.app, texts, [{ text: 'y' }, { text: 'y'.repeat(20_000) }]);
    const page = await openConsole(stage);
    for (const [id, wrapped] of [
      [short!, 1],
      [long!, 0],
    ] as const) {
      await visit(page, at(stage, `documents/texts?open=${id}&tab=json`));
      await page.getByRole('heading', { name: `texts ${id}` }).waitFor();
      await page.getByLabel('Document as JSON').waitFor();
      await expect.poll(() => page.locator('.cm-lineWrapping').count(), { message: id }).toBe(wrapped);
      expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    }
  });

  it('refuses to send a number that would lose digits, and what is no JSON', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/posts?open=new&tab=json') });
    await page.getByLabel('Document as JSON').click();
    for (const [text, problem] of [
      ['{"title":"x","views":9007199254740993}', '9007199254740993 has more digits'],
      ['{"title":', 'This is not JSON'],
      ['[1]', 'A document is a JSON object'],
    ] as const) {
      await page.keyboard.press('Control+a');
      await page.keyboard.insertText(text);
      await page.getByText(problem).waitFor();
      await expect.poll(() => page.getByRole('button', { name: 'Insert' }).isDisabled()).toBe(true);
    }
  });

  it('filters, and goes from page to page and back by links', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/posts') });
    const counts: string[] = [];
    page.on('request', (each) => {
      if (/count=true|[?&]page=/.test(each.url())) counts.push(each.url());
    });
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByRole('link', { name: 'First page' }).waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'First page' }).waitFor();
    await page.getByRole('link', { name: 'Previous page' }).click();
    await page.getByText('50 shown of 120').waitFor();
    await page.getByRole('link', { name: 'First page' }).waitFor({ state: 'detached' });
    await page.getByRole('combobox', { name: 'Filter' }).fill('views < 7');
    await page.getByRole('button', { name: 'Filter', exact: true }).click();
    await page.getByText('7 shown').waitFor();
    await page.getByRole('link', { name: 'Remove the filter views < 7' }).waitFor();
    expect(counts).toEqual([]);
    expect(page.url()).toContain('views_lt=7');
    const download = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Export filtered' }).click();
    const lines = readFileSync(await (await download).path(), 'utf8')
      .trimEnd()
      .split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { views: number }).views)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    await page.getByText('As a command').click();
    await page.getByText(/^bsvc data export posts --project shop --filter views_lt=7$/).waitFor();
    await page.getByText(/^bsvc data query posts --project shop --filter views_lt=7 .*--limit \d+$/).waitFor();
  });

  it('moves many documents to the trash at once and takes them back', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/posts?views_gte=100&views_lte=102') });
    await page.getByText('3 shown').waitFor();
    await page.getByLabel('All rows').check();
    await page.getByRole('button', { name: 'Move to the trash' }).click();
    await page.getByText('3 moved to the trash').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('3 restored').waitFor();
    await page.getByText('3 shown').waitFor();
    await page.getByLabel(`Row ${stage.ids[101]!}`).check();
    await page.getByRole('button', { name: 'Move to the trash' }).click();
    await page.getByText('2 shown').waitFor();
    await page.getByRole('link', { name: 'Trash', exact: true }).click();
    await page.getByText('1 shown').waitFor();
    await page.getByLabel('All rows').check();
    await page.getByRole('button', { name: 'Take back' }).click();
    await page.getByText('1 restored').waitFor();
  });

  it('asks for the name before something ends for good, and shows a key once', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'keys') });
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

  it('asks for the password before a secret is made anew, and shows it once', async () => {
    const { webhook } = await addWebhook(stage.test.app, stage.project, { url: 'https://h.example/', events: ['*'] });
    const page = await openConsole(stage);
    for (const [hash, open, action, secret] of [
      ['keys', 'Rotate the secret key…', 'Rotate the secret key', /^sk_live_/],
      [`webhooks/${webhook.id.toHexString()}`, 'New secret…', 'Make a new secret', /^whsec_/],
    ] as const) {
      await visit(page, at(stage, hash));
      await page.getByRole('button', { name: open }).click();
      const go = page.getByRole('dialog').getByRole('button', { name: action, exact: true });
      expect(await go.isDisabled()).toBe(true);
      await page.getByLabel('Your password').fill('wrong password');
      await go.click();
      await page.getByText('The password is not right').waitFor();
      expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
      await page.getByLabel('Your password').fill(PASSWORD);
      await go.click();
      await page.getByText('It is shown only now').waitFor();
      await page.getByText(secret).waitFor();
      await page.keyboard.press('Escape');
      await page.getByText(secret).waitFor({ state: 'detached' });
    }
  });

  it('changes name, origins, plan and limits of a project, and deletes it by name and password', async () => {
    const { project } = await buildProject(stage.test.app, 'attic');
    const id = project._id.toHexString();
    const page = await openConsole(stage, { hash: `#/p/${id}/settings` });
    await page.getByRole('link', { name: 'Edit the project' }).click();
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/project-edit.png` });
    await page.getByLabel('Name', { exact: true }).fill('cellar');
    await page.getByLabel('Allowed domains').fill('https://a.example\n\n https://b.example ');
    await page.getByLabel('Plan').selectOption('pro');
    await page.getByLabel('Emails a month').fill('7');
    const dialog = page.getByRole('dialog');
    await dialog.getByText('As a command').click();
    await dialog.getByText('bsvc project update attic', { exact: true }).waitFor();
    await dialog.getByText('"limits":{"mail":7}').waitFor();
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    const sent = page.waitForRequest((each) => each.method() === 'PATCH');
    await page.getByRole('button', { name: 'Save' }).click();
    expect((await sent).postDataJSON()).toEqual({
      name: 'cellar',
      plan: 'pro',
      allowedDomains: ['https://a.example', 'https://b.example'],
      limits: { mail: 7 },
    });
    await page.getByText('The project is changed').waitFor();
    await page.getByText('https://a.example, https://b.example').waitFor();
    await page.getByRole('option', { name: 'cellar' }).waitFor({ state: 'attached' });
    await page.getByRole('button', { name: 'Show usage' }).click();
    await page.getByText('Emails this month: 0 of 7').waitFor();
    await page.getByRole('link', { name: 'Edit the project' }).click();
    await page.getByLabel('Emails a month').fill('');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('mail 7').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Delete the project…' }).click();
    await page.getByLabel(/^Type/).fill('cellar');
    const go = page.getByRole('dialog').getByRole('button', { name: 'Delete the project' });
    expect(await go.isDisabled()).toBe(true);
    await page.getByLabel('Your password').fill(PASSWORD);
    await go.click();
    await page.getByText('The project is deleted').waitFor();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.getByRole('option', { name: 'cellar' }).waitFor({ state: 'detached' });
  });

  it('finds a user by any text, and counts what files use when it is asked to', async () => {
    const { app } = stage.test;
    for (const name of ['Ada Lovelace', 'Grace Hopper'])
      await signUp(
        app,
        stage.project,
        { email: `${name.slice(0, 3)}@b.test`, password: 'long enough', name },
        'project',
      );
    const page = await openConsole(stage, { hash: at(stage, 'users') });
    await page.getByLabel('ID or any text contains').fill('lovel');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByText('1 user', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'ada@b.test' }).waitFor();
    await openStorageClient(stage.test, stage.secret).upload('bytes', 'used.txt', 'text/plain');
    await visit(page, at(stage, 'files'));
    await page.getByRole('button', { name: 'Count what they use' }).click();
    await page.getByText(/^\d+ files?: \d+ B of 100 MB$/).waitFor();
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
  });

  it('opens a guest, who has no address, and finds a user for a field that names one', async () => {
    const { app, url } = stage.test;
    await updateProject(app, stage.project._id.toHexString(), { signIn: { anonymous: true } });
    const headers = { 'x-api-key': stage.secret, 'content-type': 'application/json' };
    const answer = await fetch(`${url}/api/userAuth/signup/anonymous`, { method: 'POST', headers });
    const { user: guest } = (await answer.json()) as { user: { _id: string } };
    const page = await openConsole(stage, { hash: at(stage, 'users') });
    await page.getByRole('link', { name: guest._id }).click();
    await page.getByRole('dialog').getByText('no password').waitFor();
    await page.getByRole('button', { name: 'Close', exact: true }).click();

    await buildCollection(app, stage.project, { name: 'teams', fields: [{ name: 'lead', type: 'Ref', ref: 'users' }] });
    const lead = await signUp(app, stage.project, { email: 'lead@b.test', password: 'long enough' }, 'project');
    await visit(page, at(stage, 'documents/teams?open=new'));
    const field = page.getByRole('combobox', { name: 'lead' });
    await field.fill('lead@b');
    await page.getByRole('option', { name: 'lead@b.test' }).click();
    expect(await field.inputValue()).toBe(lead._id.toHexString());
    await page.getByRole('link', { name: 'lead@b.test' }).waitFor();
    await page.getByRole('button', { name: 'Insert' }).click();
    await page.getByText('Document stored').waitFor();
  });

  it('keeps what was typed when the session ends, and goes on after signing in again', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/posts?open=new&tab=json') });
    await page.getByLabel('Document as JSON').click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText('{"title":"typed before the end"}');
    await operatorSessionStore(stage.test.app).deleteMany({});
    stage.test.app.cache.forgetAll(SIGNED_IN_OPERATORS);
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
    await page.getByText('You see the last data').waitFor();
    await page.context().setOffline(false);
    await page.getByText('You see the last data').waitFor({ state: 'detached' });
    await page.getByRole('cell', { name: OWNER }).first().waitFor();
  });

  it('is walked through with the keyboard alone', async () => {
    const page = await openPage(stage);
    await page.goto('./');
    await page.getByLabel('Email', { exact: true }).waitFor();
    await page.keyboard.type(OWNER);
    await page.keyboard.press('Tab');
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('Tab');
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toContain('Skip to the content');
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
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('href'))).toBe(focused);
    await page.keyboard.press('/');
    await page.keyboard.type('views');
    await expect.poll(() => page.getByRole('combobox', { name: 'Filter' }).inputValue()).toBe('views');
  });

  it('signs in once by the link of "bsvc console", which leaves the address at once', async () => {
    const { link } = await makeSignInLink(stage.test.app, await requireOperatorNamed(stage.test.app, OWNER));
    const page = await openPage(stage);
    await page.goto(`./#/enter/${link}`);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    expect(page.url()).not.toContain(link);
    const again = await openPage(stage);
    await again.goto(`./#/enter/${link}`);
    await again.getByText('This link has expired or was already used').waitFor();
    await again.getByRole('button', { name: 'Sign in' }).waitFor();
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

  it('is led to by the page of the service, which uses the width of a screen', async () => {
    const page = await openPage(stage);
    await page.goto('/');
    expect((await page.locator('main').boundingBox())!.width).toBeGreaterThan(600);
    await page.getByRole('link', { name: 'Console' }).click();
    await page.getByLabel('Email', { exact: true }).waitFor();
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
