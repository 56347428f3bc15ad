import { describe, it } from 'vitest';
import { CHROMIUM } from '../helpers/chromium.js';
import { openWebhookReceiver } from '../helpers/webhook-receiver.js';
import { at, openConsole, reach, useConsole } from './console-stage.js';

describe.skipIf(!CHROMIUM)('the screen of own code', () => {
  const stage = useConsole();

  it('adds a hook, calls it with a document, and shows what it has answered', async () => {
    const receiver = await openWebhookReceiver();
    receiver.answer = (response) => response.writeHead(200).end('{"allow":true,"set":{}}');
    try {
      const page = await openConsole(stage, { hash: at(stage, 'own-code') });
      await page.getByText('No hooks yet').waitFor();
      await page.getByRole('link', { name: 'Add a hook' }).click();
      await page.getByLabel('Event').fill('orders.create');
      await page.getByRole('textbox', { name: 'URL' }).fill(receiver.url);
      await page.getByRole('button', { name: 'Add the hook' }).click();
      await reach(page, page.getByText(/^whsec_/));
      await page.keyboard.press('Escape');
      await page.getByRole('link', { name: 'orders.create' }).click();
      await page.getByLabel('Test document').fill('{"quantity":2}');
      await page.getByRole('button', { name: 'Call it once' }).click();
      await page.getByText('Answered: {"allow":true,"set":{}}').waitFor();
      await page.getByText('answered 200').first().waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Remove the hook of orders.create' }).click();
      await page.getByLabel(/^Type/).fill('orders.create');
      await page.getByRole('button', { name: 'Remove the hook', exact: true }).click();
      await page.getByText('No hooks yet').waitFor();
    } finally {
      await receiver.close();
    }
  });

  it('adds a schedule, runs it now, and says why that failed', async () => {
    const receiver = await openWebhookReceiver();
    receiver.answer = (response) => response.writeHead(500).end('out of paper');
    try {
      const page = await openConsole(stage, { hash: at(stage, 'own-code?schedule=:new') });
      await page.getByLabel('Name', { exact: true }).fill('nightly');
      await page.getByLabel('Cron expression').fill('0 3 * * *');
      await page.getByLabel('Time zone').fill('Europe/Berlin');
      await page.getByRole('textbox', { name: 'URL' }).fill(receiver.url);
      await page.getByRole('button', { name: 'Add the schedule' }).click();
      await reach(page, page.getByText(/^whsec_/));
      await page.keyboard.press('Escape');
      await page.getByText('0 3 * * * (Europe/Berlin)').waitFor();
      await page.getByRole('link', { name: 'nightly' }).click();
      await page.getByRole('button', { name: 'Run now' }).click();
      await page.getByText('out of paper').waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Remove the schedule nightly' }).click();
      await page.getByLabel(/^Type/).fill('nightly');
      await page.getByRole('button', { name: 'Remove the schedule', exact: true }).click();
      await page.getByText('No schedules.').waitFor();
    } finally {
      await receiver.close();
    }
  });
});
