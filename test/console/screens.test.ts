import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { addWebhook } from '../../src/features/webhooks/add-webhook.js';
import { testWebhook } from '../../src/features/webhooks/deliveries/test-webhook.js';
import { signUp } from '../../src/features/users/sign-up.js';
import { CHROMIUM } from '../helpers/chromium.js';
import { openStorageClient } from '../helpers/storage-client.js';
import { openWebhookReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.js';
import {
  at,
  findBarriers,
  measureOverflow,
  openConsole,
  openPage,
  OWNER,
  useConsole,
  VIEWER,
  visit,
} from './console-stage.js';

/** Of the page: what is evaluated there. */
declare const document: {
  documentElement: { scrollWidth: number; clientWidth: number };
  body: { innerText: string };
  activeElement: { textContent: string; getAttribute(name: string): string | null } | null;
  querySelector(selector: string): unknown;
};

const SHOTS = process.env.BSVC_TEST_SHOTS;

describe.skipIf(!CHROMIUM)('the console', () => {
  const stage = useConsole();
  let receiver: WebhookReceiver;
  let states: Record<string, () => string>;

  beforeAll(async () => {
    const { app } = stage.test;
    receiver = await openWebhookReceiver();
    const { webhook } = await addWebhook(app, stage.project, { url: receiver.url, events: ['*'] });
    const delivery = await testWebhook(app, stage.project, webhook.id.toHexString());
    await receiver.close();
    await testWebhook(app, stage.project, webhook.id.toHexString());
    const user = await signUp(app, stage.project, { email: 'bob@example.test', password: 'long enough' }, 'project');
    await openStorageClient(stage.test, stage.secret).upload('bytes', 'a photo.txt', 'text/plain');
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
      'new document': () => at(stage, 'documents/posts?open=new'),
      collections: () => at(stage, 'collections'),
      collection: () => at(stage, 'collections?open=posts'),
      users: () => at(stage, 'users'),
      user: () => at(stage, `users?open=${user._id.toHexString()}`),
      webhooks: () => at(stage, 'webhooks'),
      webhook: () => at(stage, `webhooks/${webhook.id.toHexString()}`),
      delivery: () => at(stage, `webhooks/${webhook.id.toHexString()}?open=${delivery._id}`),
      mail: () => at(stage, 'mail'),
      files: () => at(stage, 'files'),
      'keys and project': () => at(stage, 'settings'),
      nothing: () => '#/nowhere',
    };
  });

  /** Waits until nothing is loading any more. */
  async function settle(page: Page): Promise<void> {
    await page.waitForFunction(
      () => !document.querySelector('[aria-busy="true"]') && !/Loading…/.test(document.body.innerText),
    );
  }

  it.each([
    // Colours do not depend on the width.
    ['light', 1280],
    ['dark', 1280],
    ['light', 390],
  ] as const)('is open to everybody in all its states: %s, %i px wide', async (scheme, width) => {
    const out = await openPage(stage, { scheme, width });
    await out.goto('./');
    await out.getByRole('button', { name: 'Sign in' }).waitFor();
    expect({ state: 'sign-in', barriers: await findBarriers(out) }).toEqual({ state: 'sign-in', barriers: [] });
    if (SHOTS) await out.screenshot({ path: `${SHOTS}/sign-in-${scheme}-${width}.png` });
    const page = await openConsole(stage, { scheme, width });
    for (const [state, hash] of Object.entries(states)) {
      await visit(page, hash());
      await settle(page);
      if (SHOTS) await page.screenshot({ path: `${SHOTS}/${state.replaceAll(' ', '-')}-${scheme}-${width}.png` });
      expect({ state, barriers: await findBarriers(page), overflow: await measureOverflow(page) }).toEqual({
        state,
        barriers: [],
        overflow: 0,
      });
    }
  });

  it('draws nothing for a viewer that would be refused', async () => {
    const page = await openConsole(stage, { email: VIEWER });
    for (const hash of Object.values(states)) {
      await visit(page, hash());
      await settle(page);
      const buttons = await page.getByRole('button').allTextContents();
      const changing = /trash|Save|Insert|Delete|Revoke|New |Rotate|Disable|Enable|Run now|Try|Send a/;
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
      'collections',
      'users',
      'webhook',
      'mail',
      'files',
      'keys and project',
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

  it('says wrong credentials at the form, and how operators are added', async () => {
    const page = await openPage(stage);
    await page.goto('./');
    await page.getByLabel('E-mail').fill(OWNER);
    await page.getByLabel('Password').fill('a wrong password');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Invalid e-mail or password').waitFor();
    await page.getByText('bsvc operator add').waitFor();
  });
});
