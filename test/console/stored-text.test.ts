import { ObjectId } from 'bson';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { setChanges } from '../world/collections.js';
import { addWebhook, createKey, sendMail, setTemplate, testWebhook } from '../world/projects.js';
import { jobStore } from '../world/stored.js';
import { signUp } from '../world/users.js';
import { buildCollection, placeDocuments } from '../helpers/build-project.js';
import { CHROMIUM } from '../helpers/chromium.js';
import { openStorageClient } from '../helpers/storage-client.js';
import { openWebhookReceiver } from '../helpers/webhook-receiver.js';
import { at, openConsole, settle, useConsole, visit } from './console-stage.js';

/** Of the page: what is evaluated there. */
declare const document: {
  body: { innerText: string };
  querySelectorAll(selector: string): Iterable<{ value?: string }>;
};

/** Short enough for the name of a key. */
const HOSTILE = '<img src=x onerror=document.title=9>';
const HOSTILE_NAME = '<svg onload=document.title=9>';

/** A place that shows what somebody else has stored, and what to do there before it is shown. */
interface Place {
  hash: string;
  open?: (page: Page) => Promise<void>;
  shows?: string;
}

describe.skipIf(!CHROMIUM)('text that others have stored, at the console', () => {
  const stage = useConsole({ settings: { BSVC_MAIL_FROM: 'shop@example.test' } });
  let places: Record<string, Place>;

  beforeAll(async () => {
    const { app } = stage.test;
    const { project, secret } = stage;
    const people = await buildCollection(app, project, {
      name: 'people',
      fields: [{ name: 'name', type: 'String', required: true }],
    });
    const [person] = await placeDocuments(app, people, [{ name: HOSTILE }]);
    const notes = await buildCollection(app, project, {
      name: 'notes',
      fields: [
        { name: 'text', type: 'String' },
        { name: 'tags', type: 'Array', items: { type: 'String' } },
        { name: 'by', type: 'Ref', ref: 'people' },
      ],
    });
    const [note, trashed, named] = await placeDocuments(app, notes, [
      { text: HOSTILE, tags: [HOSTILE] },
      { text: HOSTILE, isDeleted: true, deletedAt: new Date() },
      { text: 'plain', by: person },
    ]);
    await setChanges(app, project._id, 'notes', { on: true });
    await fetch(`${stage.test.url}/api/data/notes/${note!}`, {
      method: 'PATCH',
      headers: { 'x-api-key': secret, 'content-type': 'application/json' },
      body: JSON.stringify({ tags: [HOSTILE, 'more'] }),
    });
    const loose = await buildCollection(app, project, { name: 'loose', mode: 'flexible' });
    await placeDocuments(app, loose, [{ [HOSTILE_NAME]: HOSTILE }]);
    const files = openStorageClient(stage.test, secret);
    const file = await files.upload(HOSTILE, HOSTILE, 'text/plain');
    const receiver = await openWebhookReceiver();
    receiver.answer = (response) => void response.writeHead(500).end(HOSTILE);
    const { webhook } = await addWebhook(app, project, { url: receiver.url, events: ['*'], description: HOSTILE });
    const delivery = await testWebhook(app, project, webhook.id.toHexString());
    await receiver.close();
    const account = { email: 'eve@example.test', password: 'long enough', name: HOSTILE };
    const user = await signUp(app, project, account, 'project');
    await createKey(app, project, 'publishable', HOSTILE);
    const content = { kind: 'direct', text: { subject: HOSTILE, html: HOSTILE, text: HOSTILE } } as const;
    await sendMail(app, project, { to: ['ann@example.test'], variables: {}, content });
    await setTemplate(app, project, 'hostile', { subject: HOSTILE, text: HOSTILE });
    const now = new Date();
    await jobStore(app).insertOne({
      _id: new ObjectId(),
      name: 'mail.deliver',
      pool: 'shared',
      payload: {},
      state: 'dead',
      priority: 1,
      runAt: now,
      attempts: 1,
      fence: 1,
      error: HOSTILE,
      createdAt: now,
      updatedAt: now,
    });
    const record = `documents/notes?open=${note!}`;
    const csv = Buffer.from(`${HOSTILE},text\n1,"${HOSTILE}"\n`);
    places = {
      grid: { hash: at(stage, 'documents/notes') },
      trash: { hash: at(stage, 'documents/notes?trash=1') },
      'trashed record': { hash: at(stage, `documents/notes?open=${trashed!}`) },
      'Ref in the grid': { hash: at(stage, `documents/notes?by=${person!}`) },
      'Ref in the form': { hash: at(stage, `documents/notes?open=${named!}`) },
      'Ref picker': {
        hash: at(stage, 'documents/notes?open=new'),
        open: async (page) => {
          await page.getByRole('dialog').getByLabel('by', { exact: true }).focus();
          await page.getByRole('option', { name: HOSTILE }).waitFor();
        },
      },
      ...Object.fromEntries(
        ['form', 'json', 'history'].map((tab) => [`record, ${tab}`, { hash: at(stage, `${record}&tab=${tab}`) }]),
      ),
      'field names': { hash: at(stage, 'documents/loose'), shows: HOSTILE_NAME },
      import: {
        hash: at(stage, 'documents/notes?import=1'),
        open: async (page) => {
          await page.getByLabel(/^File:/).setInputFiles({ name: `${HOSTILE}.csv`, mimeType: 'text/csv', buffer: csv });
          await page.getByLabel(`Field for ${HOSTILE}`).waitFor();
        },
      },
      'query rows': { hash: at(stage, 'query?of=notes&q=limit%3D5') },
      'query refused': { hash: at(stage, `query?of=notes&q=${encodeURIComponent(`${HOSTILE}=1`)}`) },
      'filter of the address': { hash: at(stage, `documents/notes?text=${encodeURIComponent(HOSTILE)}`) },
      // Names are stored without such characters.
      files: { hash: at(stage, 'files'), shows: '' },
      file: { hash: at(stage, `files?open=${encodeURIComponent(file.body.path)}`) },
      webhooks: { hash: at(stage, 'webhooks') },
      'answer to a webhook': { hash: at(stage, `webhooks/${webhook.id.toHexString()}?open=${delivery._id}`) },
      user: { hash: at(stage, `users?open=${user._id.toHexString()}`) },
      keys: { hash: at(stage, 'keys') },
      mail: { hash: at(stage, 'mail') },
      template: { hash: at(stage, 'mail?template=hostile') },
      jobs: { hash: '#/jobs?state=dead' },
    };
  });

  it('is shown as it is: nothing of it becomes a part of the page', async () => {
    const page = await openConsole(stage);
    for (const [name, { hash, open, shows = HOSTILE }] of Object.entries(places)) {
      await visit(page, '#/nowhere');
      await visit(page, hash);
      await settle(page);
      await open?.(page);
      const isShown = (): Promise<boolean> =>
        page.evaluate((text) => {
          const typed = [...document.querySelectorAll('input, textarea')].map(({ value }) => value ?? '');
          return [document.body.innerText, ...typed].some((each) => each.includes(text));
        }, shows);
      // A place that does not show it would prove nothing.
      await expect.poll(isShown, { message: name }).toBe(true);
      const grown = page.locator('img[src="x"], svg[onload], main script, dialog script');
      expect({ name, title: await page.title(), grown: await grown.count() }).toMatchObject({
        name,
        title: expect.stringMatching(/bsvc console$/),
        grown: 0,
      });
    }
  });
});
