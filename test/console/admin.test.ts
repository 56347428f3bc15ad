import { mkdtempSync, rmSync } from 'node:fs';
import { readFile, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ObjectId } from 'bson';
import { afterAll, describe, expect, it } from 'vitest';
import { checkBackupJob, drainJobs, runBackupJob } from '../world/jobs.js';
import { sendMail, setTemplate } from '../world/projects.js';
import { jobStore } from '../world/stored.js';
import { signUp } from '../world/users.js';
import { CHROMIUM } from '../helpers/chromium.js';
import { at, OWNER, openConsole, PASSWORD, reach, settle, useConsole, VIEWER, visit } from './console-stage.js';

/** Of the page: what is evaluated there. */
declare const document: { title: string; querySelectorAll(selector: string): { length: number } };

const BACKUPS = mkdtempSync(join(tmpdir(), 'bsvc-backups-'));
afterAll(() => rmSync(BACKUPS, { recursive: true, force: true }));
const XSS = '<img src=x onerror="document.title=\'broken in\'">';

describe.skipIf(!CHROMIUM)('an admin at the console', () => {
  const stage = useConsole({ settings: { BSVC_MAIL_FROM: 'shop@example.test', BSVC_BACKUP_TO: BACKUPS } });

  it('makes a project, sees its keys once, and goes on to its collections', async () => {
    const page = await openConsole(stage);
    await page.getByRole('link', { name: 'New project' }).click();
    await page.getByLabel('Name').fill('atelier');
    await page.getByRole('button', { name: 'Create the project' }).click();
    await page.getByText(/^sk_live_/).waitFor();
    await page.getByRole('link', { name: 'Go on to its collections' }).click();
    await page.getByRole('heading', { name: 'Collections' }).waitFor();
    expect(await page.getByText(/^sk_live_/).count()).toBe(0);
    await page.getByRole('option', { name: 'atelier' }).waitFor({ state: 'attached' });
  });

  it('creates a user, gives roles and fields, and asks before an edit is lost', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'users?new=1') });
    await page.getByLabel('Email', { exact: true }).fill('new@example.test');
    await page.getByLabel('Password').fill('long enough');
    await page.getByLabel('Further fields').fill('{"name": "New"');
    await page.getByText('This is not JSON').waitFor();
    expect(await page.getByRole('button', { name: 'Create the user' }).isDisabled()).toBe(true);
    await page.getByLabel('Further fields').fill('{"name": "New"}');
    await page.getByRole('button', { name: 'Create the user' }).click();
    await reach(page, page.getByRole('link', { name: 'new@example.test' }));
    await page.getByRole('link', { name: 'new@example.test' }).click();
    await page.getByLabel('Roles').fill('editor, author');
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { name: 'Leave without saving?' }).waitFor();
    await page.getByRole('button', { name: 'Keep editing' }).click();
    expect(await page.getByLabel('Roles').inputValue()).toBe('editor, author');
    await page.getByLabel('Email address verified').check();
    await page.getByRole('button', { name: 'Save' }).click();
    await reach(page, page.getByText('The user is changed'));
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    const row = page.getByRole('row', { name: 'new@example.test' });
    await row.getByText('editor, author').waitFor();
    await row.getByText('yes').waitFor();
  });

  it('says which page invitations need, invites, and withdraws', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'users?invite=1') });
    await page.getByText('No redirect pages are allowed yet').waitFor();
    await visit(page, at(stage, 'sign-in?edit=1'));
    await page.getByLabel('Allowed redirect pages').fill('https://shop.example/join');
    await page.getByLabel('Delete inactive anonymous users after').fill('7d');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('https://shop.example/join').first().waitFor();
    expect(await stage.test.app.db.collection('projects').countDocuments({ 'signIn.anonymousKeep': '7d' })).toBe(1);
    await visit(page, at(stage, 'users?invite=1'));
    await page.getByLabel('Email', { exact: true }).fill('guest@example.test');
    await page.getByRole('button', { name: 'Send the invitation' }).click();
    await page.getByRole('button', { name: 'Withdraw the invitation of guest@example.test' }).click();
    await page.getByText('The invitation is withdrawn').waitFor();
  });

  it('adds a webhook whose secret is shown once, edits and removes it', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'webhooks?edit=new') });
    await page.getByLabel('URL').fill('https://hooks.example/in');
    await page.getByRole('textbox', { name: 'Events' }).fill('postz.insert');
    await page.getByText('There is no collection postz').waitFor();
    await page.getByRole('textbox', { name: 'Events' }).fill('posts.insert\nposts.update');
    await page.getByRole('button', { name: 'Add the webhook' }).click();
    await reach(page, page.getByText(/^whsec_/));
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'https://hooks.example/in' }).click();
    await page.getByRole('link', { name: 'Edit…' }).click();
    await page.getByLabel('Description').fill(XSS);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('cell', { name: XSS }).waitFor();
    await page.getByRole('button', { name: 'Remove…' }).click();
    await page.getByLabel(/^Type/).fill('hooks.example');
    await page.getByRole('button', { name: 'Remove the webhook' }).click();
    await page.getByText('No webhooks yet').waitFor();
  });

  it('adds a provider of sign-in after the own password, and removes it', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'sign-in?provider=:new') });
    await page.getByLabel('Service').selectOption('github');
    await page.getByLabel('Client id').fill('shop');
    await page.getByLabel('Client secret').fill('hush');
    await page.getByLabel('Redirect URLs of the app').fill('https://shop.example/in');
    await page.getByRole('button', { name: 'Save' }).click();
    await reach(page, page.getByRole('button', { name: 'Remove github' }));
    await page.getByRole('button', { name: 'Remove github' }).click();
    await page.getByLabel(/^Type/).fill('github');
    await page.getByRole('button', { name: 'Remove the provider' }).click();
    await page.getByText('The provider is removed').waitFor();
  });

  it('adds an operator for one project, makes an owner of it, and removes it; not itself', async () => {
    const page = await openConsole(stage, { hash: '#/operators' });
    await page.getByText(`${OWNER} (you)`).waitFor();
    expect(await page.getByRole('button', { name: `Remove ${OWNER}` }).count()).toBe(0);
    await page.getByRole('link', { name: 'Add an operator' }).click();
    await page.getByLabel('Email', { exact: true }).fill('otto@example.test');
    await page.getByLabel('Password').fill('long enough');
    await page.getByLabel('All projects, including future ones').uncheck();
    await page.getByRole('checkbox', { name: 'shop' }).check();
    await page.getByRole('button', { name: 'Add the operator' }).click();
    const row = page.getByRole('row', { name: 'otto@example.test' });
    await reach(page, row.getByText('viewer'));
    await row.getByRole('cell', { name: 'shop' }).waitFor();
    await row.getByRole('link').click();
    await page.getByLabel('Role').selectOption('owner');
    await page.getByRole('button', { name: 'Save' }).click();
    await row.getByText('owner').waitFor();
    await page.getByRole('button', { name: 'Remove otto@example.test' }).click();
    await page.getByLabel(/^Type/).fill('otto@example.test');
    await page.getByLabel('Your password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Remove the operator' }).click();
    await row.waitFor({ state: 'detached' });
  });

  it('reads a kept mail as text, and stores the sender', async () => {
    const { app } = stage.test;
    const content = { kind: 'direct', text: { subject: XSS, html: XSS, text: XSS } } as const;
    await sendMail(app, stage.project, { to: ['ann@b.test'], variables: {}, content });
    await setTemplate(app, stage.project, 'hostile', { subject: XSS, text: XSS });
    const page = await openConsole(stage, { hash: at(stage, 'mail') });
    await drainJobs(app);
    await page.reload();
    const row = page.getByRole('row', { name: XSS });
    await row.getByText('kept', { exact: true }).waitFor();
    await row.getByText('kept in the outbox, not sent').waitFor();
    await page.getByRole('link', { name: XSS }).click();
    await page.getByRole('button', { name: 'Read the email' }).click();
    await expect.poll(() => page.locator('dialog pre').allTextContents()).toEqual([XSS, XSS]);
    expect(await page.evaluate(() => [document.title, document.querySelectorAll('img').length])).toEqual([
      'Email · bsvc console',
      0,
    ]);
    await visit(page, at(stage, 'mail?edit=1'));
    await page.getByLabel('Sender').fill('Shop <hello@shop.example>');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('from Shop <hello@shop.example>').waitFor();
  });

  it('finds by Ctrl-K a screen, a document by its id and a user by the address', async () => {
    await signUp(stage.test.app, stage.project, { email: 'findme@example.test', password: 'long enough' }, 'project');
    const page = await openConsole(stage, { hash: at(stage, 'users') });
    const find = async (typed: string, option: RegExp): Promise<void> => {
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: 'Find' }).fill(typed);
      await page.getByRole('option', { name: option }).first().waitFor();
      await page.keyboard.press('Enter');
    };
    await find('webh', /^Webhooks/);
    await page.getByRole('heading', { name: 'Webhooks' }).waitFor();
    await find(stage.ids[4]!, /posts/);
    await page.getByRole('dialog').getByText(stage.ids[4]!).first().waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await find('findme@', /findme@example.test/);
    await page.getByRole('heading', { name: 'findme@example.test' }).waitFor();
  });

  it('shows requests as they come, by status, with the way to their document', async () => {
    const path = `/api/data/posts/${stage.ids[9]!}`;
    await fetch(stage.test.url + path, { headers: { 'x-api-key': stage.secret } });
    await fetch(`${stage.test.url}/api/data/nowhere?secret=hush`, { headers: { 'x-api-key': stage.secret } });
    const page = await openConsole(stage, { hash: '#/requests?status=4' });
    await page.getByRole('link', { name: 'GET /api/data/nowhere' }).waitFor();
    expect(await page.getByText('hush').count()).toBe(0);
    await visit(page, `#/requests?q=${stage.ids[9]!}`);
    await page.getByRole('link', { name: `GET ${path}` }).click();
    await page.getByRole('link', { name: `posts ${stage.ids[9]!}` }).click();
    await page.getByRole('dialog').getByText(stage.ids[9]!).first().waitFor();
  });

  it('lists the settings of the server with where they came from, secrets masked', async () => {
    const page = await openConsole(stage, { hash: '#/server?name=bcrypt' });
    const row = page.getByRole('row', { name: /BSVC_BCRYPT_COST/ });
    await row.getByText('4', { exact: true }).waitFor();
    await row.getByText('test', { exact: true }).waitFor();
  });

  it('lets a viewer look at all of it, and change none', async () => {
    await signUp(stage.test.app, stage.project, { email: 'seen@example.test', password: 'long enough' }, 'project');
    const page = await openConsole(stage, { email: VIEWER, hash: '#/operators' });
    for (const hash of ['#/operators', '#/server', at(stage, 'sign-in'), at(stage, 'mail'), at(stage, 'users')]) {
      await visit(page, hash);
      await settle(page);
      expect({ hash, actions: await page.locator('.head .acts').count() }).toEqual({ hash, actions: 0 });
    }
    await page.getByRole('link', { name: 'seen@example.test' }).click();
    await page.getByText('not verified').waitFor();
    expect(await page.getByRole('dialog').locator('input, textarea').count()).toBe(0);
  });

  it('lists the kept backups, has one made, and shows the command that restores it', async () => {
    const page = await openConsole(stage, { hash: '#/backups' });
    await page.getByText('No backup yet').waitFor();
    await page.getByRole('button', { name: 'Make a backup' }).click();
    await page.getByText('A worker makes the backup').waitFor();
    // The stage has no worker: this is what one would run.
    const { app } = stage.test;
    expect(await jobStore(app).countDocuments({ name: 'backups.run', state: 'queued' })).toBe(1);
    const { signal } = new AbortController();
    await runBackupJob.run(app, {}, { jobId: new ObjectId(), attempt: 1, fence: 1, signal, stopping: signal });
    await page.reload();
    const row = page.getByRole('row', { name: /^bsvc-.*whole/ });
    await row.waitFor();
    const name = await row.locator('code').first().innerText();
    await page.getByText(`bsvc restore ${name}`).waitFor();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      row.getByRole('link', { name: 'Download' }).click(),
    ]);
    expect(file.suggestedFilename()).toBe(name);
    const path = join(BACKUPS, name);
    expect((await readFile(await file.path())).equals(await readFile(path))).toBe(true);
    await truncate(path, 200);
    await row.getByRole('button', { name: 'Check' }).click();
    await page.getByText('A worker reads the backup').waitFor();
    await checkBackupJob.run(app, { name }, { jobId: new ObjectId(), attempt: 1, fence: 1, signal, stopping: signal });
    await page.reload();
    await page.getByRole('row', { name: /^bsvc-.*damaged/ }).waitFor();
    const viewer = await openConsole(stage, { email: VIEWER, hash: '#/backups' });
    await viewer.getByText(name, { exact: true }).first().waitFor();
    expect(await viewer.getByRole('button', { name: 'Make a backup' }).count()).toBe(0);
  });
});
