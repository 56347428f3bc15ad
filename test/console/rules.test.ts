import { ObjectId } from 'bson';
import { describe, expect, it } from 'vitest';
import { defaultUsersCollection, documentsName, requireCollection } from '../world/collections.js';
import { buildCollection, placeDocuments } from '../helpers/build-project.js';
import { CHROMIUM } from '../helpers/chromium.js';
import {
  at,
  findBarriers,
  measureOverflow,
  openConsole,
  reach,
  settle,
  useConsole,
  visit,
  VIEWER,
} from './console-stage.js';

/** Of the page: what is evaluated there. */
declare const location: { hash: string };

const ADA = 'ada@example.test';

describe.skipIf(!CHROMIUM)('rules at the console', () => {
  const stage = useConsole();

  /** A collection of cards, two of them readable for Ada. */
  async function buildCards(name: string): Promise<void> {
    const { app } = stage.test;
    const fields = [
      { name: 'title', type: 'String' as const },
      { name: 'owner', type: 'String' as const },
      { name: 'open', type: 'Boolean' as const },
    ];
    const cards = await buildCollection(app, stage.project, { name, fields, rules: { read: 'nobody' } });
    const users = app.db.collection(documentsName(defaultUsersCollection(stage.project._id)));
    const known = await users.findOne({ email: ADA });
    const ada = known?._id ?? new ObjectId();
    if (!known) await users.insertOne({ _id: ada, email: ADA, isDeleted: false, _bsvc: {} } as never);
    await placeDocuments(app, cards, [
      { title: 'of Ada', owner: String(ada), open: false },
      { title: 'for all', owner: 'somebody', open: true },
      { title: 'of others', owner: 'somebody', open: false },
    ]);
  }

  it('are edited with each mistake at its character, and asked about before they let more in', async () => {
    await buildCards('cards');
    const page = await openConsole(stage, { hash: at(stage, 'collections?open=cards') });
    await page.getByRole('link', { name: 'Rules…' }).click();
    const read = page.getByLabel('read', { exact: true });
    await read.fill('doc.open or doc.owmer = user.id');
    await page.getByRole('button', { name: 'Save the rules' }).click();
    await page.getByRole('alert').getByText('owmer').first().waitFor();
    expect(await page.locator('mark').textContent()).toBe('d');
    expect(await findBarriers(page)).toEqual([]);
    await page.getByRole('button', { name: 'Go to character 13' }).click();
    const selected = await read.evaluate((input: { selectionStart: number; selectionEnd: number }) => [
      input.selectionStart,
      input.selectionEnd,
    ]);
    expect(selected).toEqual([12, 13]);
    await page.getByLabel('update', { exact: true }).fill('user and');
    await page.getByRole('button', { name: 'Check without saving' }).click();
    await page.getByRole('button', { name: 'Go to character 9' }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(2);
    await page.getByLabel('update', { exact: true }).fill('');
    await read.fill('doc.open or doc.owner = user.id');
    await page.getByRole('button', { name: 'Check without saving' }).click();
    await page.getByText('Grants more access: rule read').waitFor();
    expect([await page.getByRole('alert').count(), await findBarriers(page)]).toEqual([0, []]);
    await page.getByRole('button', { name: 'Save the rules' }).click();
    await page.getByLabel(/^Type/).fill('shop');
    await page.getByRole('button', { name: 'Change the rules' }).click();
    await reach(page, page.getByText('Rules changed'));
    const { rules } = await requireCollection(stage.test.app, stage.project._id, 'cards');
    expect(rules).toMatchObject({ read: 'doc.open or doc.owner = user.id', create: 'nobody' });
  });

  it('are shown as a table of who may do what', async () => {
    await buildCards('notes');
    const page = await openConsole(stage, { email: VIEWER, hash: at(stage, 'collections?open=notes&rules=1') });
    await page
      .getByRole('row', { name: /anyone/ })
      .getByText('no')
      .first()
      .waitFor();
    await page.getByLabel('Another user: address or id').fill(ADA);
    await page.getByRole('button', { name: 'Show access of this user' }).click();
    const row = page.getByRole('row', { name: new RegExp(ADA) });
    await row.getByText('no').first().waitFor();
    await settle(page);
    expect(await row.locator('.tag').allTextContents()).toEqual(['no', 'no', 'no', 'no']);
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    expect(await page.getByRole('button', { name: 'Save the rules' }).count()).toBe(0);
  });

  it('are tried by looking at the list as a user, without writing meanwhile', async () => {
    await buildCards('tasks');
    const page = await openConsole(stage, { hash: at(stage, 'collections?open=tasks&rules=1') });
    await page.getByLabel('read', { exact: true }).fill('doc.open or doc.owner = user.id');
    await page.getByRole('button', { name: 'Save the rules' }).click();
    await page.getByLabel(/^Type/).fill('shop');
    await page.getByRole('button', { name: 'Change the rules' }).click();
    await reach(page, page.getByText('Rules changed'));
    await visit(page, at(stage, 'documents/tasks'));
    await page.getByText('of others').waitFor();
    await page.getByText('View as…').click();
    await page.getByLabel('Email or id; empty for an anonymous caller').fill(ADA);
    await page.getByRole('button', { name: 'See the list as this user' }).click();
    await page.getByRole('status').getByText(ADA).waitFor();
    await settle(page);
    expect(await page.getByText('of Ada').count()).toBe(1);
    expect(await page.getByText('of others').count()).toBe(0);
    expect(await page.getByRole('link', { name: 'New document' }).count()).toBe(0);
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    await page.locator('a.opens').first().click();
    await page.getByRole('link', { name: 'Access' }).click();
    await page.getByRole('columnheader', { name: ADA }).waitFor();
    const row = page.getByRole('row', { name: /^read/ });
    expect(await row.locator('.tag').textContent()).toBe('yes');
    // Who goes on at once is not taken back by the sheet that closes.
    const closing = page.getByRole('button', { name: 'Close', exact: true });
    await closing.evaluate(
      (button: { click(): void }, next) => {
        button.click();
        location.hash = next;
      },
      at(stage, 'documents/tasks?as=anyone'),
    );
    await closing.waitFor({ state: 'detached' });
    await page.getByText('of Ada').waitFor({ state: 'detached' });
    await settle(page);
    expect([await page.getByText('for all').count(), await page.getByText('of Ada').count()]).toEqual([1, 0]);
    // While the list of somebody else is on its way, no line of the last one stands under the new name.
    let answer = (): void => undefined;
    const isAnswered = new Promise<void>((resolve) => (answer = resolve));
    await page.route(/documents\?.*as=/, (route) => isAnswered.then(() => route.continue()));
    await visit(page, at(stage, `documents/tasks?as=${ADA}`));
    await page.getByText('for all').waitFor({ state: 'detached' });
    answer();
    await page.getByText('of Ada').waitFor();
    await page.getByRole('link', { name: 'See all again' }).click();
    await page.getByText('of others').waitFor();
    await page.getByRole('link', { name: 'New document' }).waitFor();
  });
});
