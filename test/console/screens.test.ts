import type { Locator, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { addHook, addSchedule } from '../world/hooks.js';
import { addWebhook, testWebhook } from '../world/projects.js';
import { signUp } from '../world/users.js';
import { CHROMIUM } from '../helpers/chromium.js';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';
import { openStorageClient } from '../helpers/storage-client.js';
import { openWebhookReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.js';
import {
  at,
  findBarriers,
  measureOverflow,
  openConsole,
  openPage,
  OWNER,
  settle,
  useConsole,
  VIEWER,
  visit,
} from './console-stage.js';

/** Of the page: what is evaluated there. */
declare const localStorage: object;
declare const document: { activeElement: unknown };
interface Named {
  innerText: string;
  getAttribute(name: string): string | null;
}
declare const getComputedStyle: (of: unknown) => { fontWeight: string };

const SHOTS = process.env.BSVC_TEST_SHOTS;
/** Both themes and both widths. Which of them a state is looked at in is another with other commits. */
const ALL_LOOKS = [
  ['light', 1280],
  ['dark', 400],
  ['dark', 1280],
  ['light', 400],
] as const;
const random = openRandom(openSeed('looks of the console'));
/** Pictures are taken of all four. */
const someLooks = (): readonly (typeof ALL_LOOKS)[number][] => (SHOTS ? ALL_LOOKS : [random.pick(ALL_LOOKS)]);
/** How often a button that is drawn anew while it is pressed is looked for again. */
const MAX_MISSED = 3;
/** A place without what is open there. */
const screenOf = (hash: string): string => hash.split('?')[0]!.split('/').slice(3, 4).join() || 'service';

// Each looks at dozens of pages, with a reader of the whole page.
describe.skipIf(!CHROMIUM)('the console', { timeout: 480_000 }, () => {
  const stage = useConsole();
  let receiver: WebhookReceiver;
  let states: Record<string, () => string>;

  beforeAll(async () => {
    const { app } = stage.test;
    receiver = await openWebhookReceiver();
    const { webhook } = await addWebhook(app, stage.project, { url: receiver.url, events: ['*'] });
    const delivery = await testWebhook(app, stage.project, webhook.id.toHexString());
    const hook = { event: 'orders.create', url: receiver.url };
    await addHook(app, stage.project, hook);
    const nightly = { name: 'nightly', cron: '0 3 * * *', url: receiver.url };
    await addSchedule(app, stage.project, nightly);
    await receiver.close();
    await testWebhook(app, stage.project, webhook.id.toHexString());
    const user = await signUp(app, stage.project, { email: 'bob@example.test', password: 'long enough' }, 'project');
    const file = await openStorageClient(stage.test, stage.secret).upload('bytes', 'a photo.txt', 'text/plain');
    states = {
      overview: () => '#/',
      'overview of a month': () => '#/?range=30d',
      audit: () => '#/audit',
      jobs: () => '#/jobs',
      account: () => '#/account',
      documents: () => at(stage, 'documents/posts'),
      'documents filtered and sorted': () => at(stage, 'documents/posts?views_gte=10&sort=-title'),
      trash: () => at(stage, 'documents/posts?trash=1'),
      document: () => at(stage, `documents/posts?open=${stage.ids[3]!}`),
      'document as JSON': () => at(stage, `documents/posts?open=${stage.ids[3]!}&tab=json`),
      'references of a document': () => at(stage, `documents/posts?open=${stage.ids[3]!}&tab=references`),
      'files of a document': () => at(stage, `documents/posts?open=${stage.ids[3]!}&tab=files`),
      'access to a document': () => at(stage, `documents/posts?open=${stage.ids[3]!}&tab=access`),
      'new document': () => at(stage, 'documents/posts?open=new'),
      'import of documents': () => at(stage, 'documents/posts?import=1'),
      collections: () => at(stage, 'collections'),
      collection: () => at(stage, 'collections?open=posts'),
      'edited collection': () => at(stage, 'collections?open=posts&edit=1'),
      'edited collection as JSON': () => at(stage, 'collections?open=posts&edit=1&as=json'),
      'new collection': () => at(stage, 'collections?new=1'),
      schema: () => at(stage, 'collections?schema=1'),
      users: () => at(stage, 'users'),
      user: () => at(stage, `users?open=${user._id.toHexString()}`),
      webhooks: () => at(stage, 'webhooks'),
      webhook: () => at(stage, `webhooks/${webhook.id.toHexString()}`),
      delivery: () => at(stage, `webhooks/${webhook.id.toHexString()}?open=${delivery._id}`),
      'own code': () => at(stage, 'own-code'),
      'new hook': () => at(stage, 'own-code?hook=:new'),
      'new schedule': () => at(stage, 'own-code?schedule=:new'),
      hook: () => at(stage, 'own-code?hook=orders.create'),
      schedule: () => at(stage, 'own-code?schedule=nightly'),
      mail: () => at(stage, 'mail'),
      template: () => at(stage, 'mail?template=welcome'),
      files: () => at(stage, 'files'),
      file: () => at(stage, `files?open=${encodeURIComponent(file.body.path)}`),
      query: () => at(stage, 'query'),
      'query of a list': () => at(stage, 'query?q=views_gte%3D100%26sort%3D-views'),
      'query by a pipeline': () => at(stage, `query?as=pipeline&q=${encodeURIComponent('[{"$limit":3}]')}`),
      'new user': () => at(stage, 'users?new=1'),
      'invited user': () => at(stage, 'users?invite=1'),
      'sign-in': () => at(stage, 'sign-in'),
      'edited sign-in': () => at(stage, 'sign-in?edit=1'),
      'new provider': () => at(stage, 'sign-in?provider=:new'),
      'new webhook': () => at(stage, 'webhooks?edit=new'),
      'edited webhook': () => at(stage, `webhooks/${webhook.id.toHexString()}?edit=1`),
      'API keys': () => at(stage, 'keys'),
      project: () => at(stage, 'settings'),
      'edited project': () => at(stage, 'settings?edit=1'),
      'new project': () => '#/?new=project',
      storage: () => at(stage, 'storage'),
      'edited bucket': () => at(stage, 'storage?edit=1'),
      requests: () => '#/requests?live=off',
      'failed requests': () => '#/requests?kept=true',
      operators: () => '#/operators',
      'new operator': () => '#/operators?open=:new',
      server: () => '#/server',
      backups: () => '#/backups',
      'history of a document': () => at(stage, `documents/posts?open=${stage.ids[3]!}&tab=history`),
      'mail settings': () => at(stage, 'mail?edit=1'),
      nothing: () => '#/nowhere',
    };
  });

  /** Looks at the page as it is, in a theme and a width, and goes back to what it was. */
  async function judge(page: Page, what: Record<string, string>, shot: string): Promise<void> {
    for (const [colorScheme, width] of someLooks()) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await settle(page);
      if (SHOTS) await page.screenshot({ path: `${SHOTS}/${shot.replaceAll(' ', '-')}-${colorScheme}-${width}.png` });
      const found = { barriers: await findBarriers(page), overflow: await measureOverflow(page) };
      expect({ ...what, colorScheme, width, ...found }).toMatchObject({ ...what, barriers: [], overflow: 0 });
    }
  }

  it('is open to everybody in all its states, light and dark, wide and 400 px', async () => {
    const out = await openPage(stage);
    await out.goto('./');
    await out.getByRole('button', { name: 'Sign in' }).waitFor();
    await judge(out, { state: 'sign-in' }, 'sign-in');
    const page = await openConsole(stage);
    for (const [state, hash] of Object.entries(states)) {
      await visit(page, hash());
      await settle(page);
      await judge(page, { state }, state);
    }
  });

  it('is open to everybody in every dialog that a button opens', async () => {
    const page = await openConsole(stage);
    // Whatever a button does, nothing changes; downloads and links to elsewhere stay out too.
    await page.route(/\/api\//, (route) =>
      route.request().method() === 'GET' && !/export/.test(route.request().url()) ? route.continue() : route.abort(),
    );
    const met = new Set<string>();
    // What a screen has in several states is pressed in one of them.
    const pressed = new Set<string>();
    let missed = 0;
    for (const [state, hash] of Object.entries(states)) {
      // A button that opened nothing is gone on behind.
      for (let isAsBefore = false; ;) {
        if (!isAsBefore) await openState(page, hash());
        const found = await findButton(page, screenOf(hash()), pressed);
        if (found === null && !isAsBefore) break;
        isAsBefore = false;
        if (found === null) continue;
        const place = page.url();
        const before = await page.getByRole('dialog').count();
        // One that a late answer has drawn anew is looked for again, and left when that goes on.
        const [click] = await Promise.allSettled([found.button.click({ timeout: 5_000 })]);
        if (click.status === 'rejected' && ++missed < MAX_MISSED) continue;
        missed = 0;
        pressed.add(found.key);
        await settle(page);
        const after = await page.getByRole('dialog').count();
        isAsBefore = after === before && page.url() === place;
        if (after <= before) continue;
        const title = await page.getByRole('dialog').last().getByRole('heading').first().innerText();
        if (met.has(`${screenOf(hash())} ${title}`)) continue;
        met.add(`${screenOf(hash())} ${title}`);
        await judge(page, { state, title }, `dialog-${met.size}`);
        await page.emulateMedia({ colorScheme: 'light' });
        await page.setViewportSize({ width: 1280, height: 900 });
      }
    }
    expect([...met].sort()).toMatchInlineSnapshot(`
      [
        "collections Drop the collection",
        "files Delete the file",
        "keys Revoke the key",
        "keys Rotate the secret key",
        "own-code Remove the hook",
        "own-code Remove the schedule",
        "service Remove the operator",
        "settings Delete the project",
        "users Delete the account",
        "users Reset MFA",
        "users Set the password",
        "webhooks Disable the webhook",
        "webhooks Make a new secret",
        "webhooks Remove the webhook",
      ]
    `);
  });

  /** Goes to a state as it is at first, whatever was opened in it before. */
  async function openState(page: Page, hash: string): Promise<void> {
    await visit(page, '#/nowhere');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await visit(page, hash);
    // It comes when the collections have.
    if (/\/documents\/[^?]*\?(open|import)=/.test(hash)) await page.getByRole('dialog').first().waitFor();
    await settle(page);
  }

  /** A button of a name that was not pressed yet; rows have the same ones. Below a dialog nothing can be pressed. */
  async function findButton(
    page: Page,
    screen: string,
    pressed: ReadonlySet<string>,
  ): Promise<{ button: Locator; key: string } | null> {
    const dialogs = page.getByRole('dialog');
    const isDialog = (await dialogs.count()) > 0;
    const place = isDialog ? dialogs.last() : page.getByRole('main');
    const title = isDialog ? await place.getByRole('heading').first().innerText() : '';
    const names = await place
      .locator('button:enabled:visible')
      .evaluateAll((all: Named[]) => all.map((each) => each.getAttribute('aria-label') ?? each.innerText.trim()));
    for (const name of names) {
      const key = `${screen} ${title} ${name}`;
      if (name === '' || pressed.has(key) || /^(Close|Sign out|Copy)/.test(name)) continue;
      return { key, button: place.getByRole('button', { name, exact: true }).first() };
    }
    return null;
  }

  it('draws nothing for a viewer that would be refused', async () => {
    const page = await openConsole(stage, { email: VIEWER });
    for (const hash of Object.values(states)) {
      await visit(page, hash());
      await settle(page);
      const buttons = await page.locator('button, a.button').allTextContents();
      const changing =
        /trash|Save(?! the view)|Insert|Delete|Revoke|New |Rotate|Disable|Enable|Run now|Try|Send |Create|Remove|Invite|Withdraw|Edit|Add/;
      expect({ hash: hash(), found: buttons.filter((text) => changing.test(text)) }).toEqual({
        hash: hash(),
        found: [],
      });
    }
  });

  it('says on each screen why when the server fails, and shows what came before', async () => {
    const failing = [
      'audit',
      'jobs',
      'documents',
      'schema',
      'users',
      'webhook',
      'template',
      'files',
      'API keys',
      'project',
      'sign-in',
      'overview',
    ];
    // Several at a time: each waits until the page asks again.
    const one = async (page: Page, state: string): Promise<void> => {
      await page.route(/\/api\/(projects|admin)\//, (route) =>
        route.fulfill({
          status: 500,
          contentType: 'application/json',
          body: '{"success":false,"code":"INTERNAL","message":"Something went wrong","requestId":"req-1"}',
        }),
      );
      await visit(page, states[state]!());
      await page.getByText('Something went wrong (INTERNAL, request req-1)').first().waitFor();
      expect({ state, barriers: await findBarriers(page) }).toEqual({ state, barriers: [] });
      await page.unroute(/\/api\/(projects|admin)\//);
      // It is asked again by itself.
      await page.getByText('Something went wrong').first().waitFor({ state: 'detached' });
    };
    const work = async (): Promise<void> => {
      const page = await openConsole(stage, { hash: '#/account' });
      for (let state = failing.pop(); state !== undefined; state = failing.pop()) await one(page, state);
    };
    // The first page loads the console for the others.
    await openConsole(stage, { hash: '#/account' });
    await Promise.all([work(), work(), work(), work()]);
  });

  it('shows the form by one script, before any answer of the API', async () => {
    const page = await openPage(stage);
    const scripts: string[] = [];
    const asked: string[] = [];
    page.on('request', (each) => {
      if (each.resourceType() === 'script') scripts.push(each.url());
    });
    // Nobody has signed in here yet: a question who it is would stand as an error in the browser's own console.
    await page.route(/\/api\//, (_, request) => void asked.push(new URL(request.url()).pathname));
    await page.goto('./');
    // One can type at once.
    await expect
      .poll(() => page.getByLabel('Email', { exact: true }).evaluate((each) => each === document.activeElement))
      .toBe(true);
    await page.getByLabel('Password').fill('typed meanwhile');
    expect(scripts).toHaveLength(1);
    expect(asked).not.toContain('/api/admin/me');
  });

  it('has pages around it that are open to everybody', async () => {
    const page = await openPage(stage);
    for (const path of ['/', '/nothing', '/api/docs/guides/rules', '/api/docs/guides/limits']) {
      await page.goto(path);
      await judge(page, { path }, path);
    }
    // The head of a table is told from its rows.
    const weight = await page
      .locator('main th')
      .first()
      .evaluate((head) => getComputedStyle(head).fontWeight);
    expect(weight).toBe('600');
  });

  it('asks side by side for who it is, the projects and the collections of a place, then for the rows', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/posts') });
    await page.getByText('50 shown').waitFor();
    const asked: string[] = [];
    page.on('request', (each) => {
      if (/script|fetch/.test(each.resourceType())) asked.push(new URL(each.url()).pathname.split('/').at(-1)!);
    });
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    await page.route(/\/api\//, (route) => held.then(() => route.continue()));
    await page.reload();
    await expect.poll(() => asked.slice(1).sort()).toEqual(['collections', 'me', 'projects', 'status']);
    expect(asked[0]).toMatch(/^main-/);
    release();
    await page.getByText('50 shown').waitFor();
    expect(asked.slice(5)).toEqual(['documents']);
  });

  it('goes to the next page by one request, with the rows of this one on the screen', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/posts') });
    await page.getByText('50 shown').waitFor();
    const asked: string[] = [];
    page.on('request', (each) => asked.push(each.url()));
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    await page.route(/\/documents\?/, (route) => held.then(() => route.continue()));
    const table = page.getByRole('region', { name: 'Documents of posts' });
    const titles = (): Promise<string[]> => table.locator('tbody td:nth-child(3)').allTextContents();
    const first = await titles();
    await page.getByRole('link', { name: 'Next page' }).click();
    await expect.poll(() => table.getAttribute('aria-busy')).toBe('true');
    expect(await titles()).toEqual(first);
    release();
    await expect.poll(() => table.getAttribute('aria-busy')).toBe('false');
    expect((await titles()).filter((title) => first.includes(title))).toEqual([]);
    expect(asked).toHaveLength(1);
  });

  it('begins again at the form when the session has ended meanwhile', async () => {
    const page = await openConsole(stage, { scheme: 'dark' });
    await page.context().clearCookies();
    await page.reload();
    await page.getByLabel('Password').waitFor();
    expect(await page.getByText('Your session has ended').count()).toBe(0);
    expect(await page.evaluate(() => JSON.stringify({ ...localStorage }))).not.toContain(OWNER);
    // Nothing is left that would let the next page begin otherwise.
    await page.route(/\/api\//, () => undefined);
    await page.reload();
    await page.getByLabel('Password').waitFor();
  });

  it('says wrong credentials at the form, and how operators are added', async () => {
    const page = await openPage(stage);
    await page.goto('./');
    await page.getByLabel('Email', { exact: true }).fill(OWNER);
    await page.getByLabel('Password').fill('a wrong password');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Invalid e-mail or password').waitFor();
    await page.getByText('bsvc operator add').waitFor();
  });
});
