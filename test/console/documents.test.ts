import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildCollection, placeDocuments, storedDocuments } from '../helpers/build-project.js';
import { CHROMIUM } from '../helpers/chromium.js';
import type { Collection } from '../world/collections.js';
import { ObjectId } from 'bson';
import { at, findBarriers, measureOverflow, openConsole, settle, signIn, useConsole, visit } from './console-stage.js';

/** Of the page: what is evaluated there. */
declare const document: { activeElement: { id: string; getAttribute(name: string): string | null } | null };
declare const localStorage: { clear(): void };

const RTL = 'ملاحظة طويلة باللغة العربية';

describe.skipIf(!CHROMIUM)('documents at the console', () => {
  const stage = useConsole();
  let articles: Collection;
  let ids: string[];
  let author: string;

  beforeAll(async () => {
    const { app } = stage.test;
    const authors = await buildCollection(app, stage.project, {
      name: 'authors',
      fields: [{ name: 'name', type: 'String', required: true }],
    });
    [author] = (await placeDocuments(app, authors, [{ name: 'Ada Lovelace' }, { name: 'Grace Hopper' }])) as [string];
    articles = await buildCollection(app, stage.project, {
      name: 'articles',
      fields: [
        { name: 'title', type: 'String', required: true, minLength: 3 },
        { name: 'status', type: 'String', enum: ['draft', 'live'] },
        { name: 'views', type: 'Number', min: 0 },
        { name: 'author', type: 'Ref', ref: 'authors' },
        { name: 'tags', type: 'Array', items: { type: 'String' } },
        { name: 'featured', type: 'Boolean' },
        { name: 'published', type: 'Date' },
        { name: 'meta', type: 'Object', fields: [{ name: 'lang', type: 'String', enum: ['en', 'ar'] }] },
        ...Array.from({ length: 52 }, (_, n) => ({ name: `more${n}`, type: 'String' as const })),
      ],
      indexes: ['views'],
    });
    const documents = Array.from({ length: 60 }, (_, n) => ({
      title: n === 0 ? RTL : `Article ${n}`,
      status: n % 2 === 0 ? 'live' : 'draft',
      views: n,
      author,
      more0: n === 1 ? 'long '.repeat(600) : 'short',
    }));
    ids = await placeDocuments(app, articles, documents);
  });

  const stored = (id: string) => storedDocuments(stage.test.app, articles).findOne({ _id: new ObjectId(id) });
  const drafts = (page: Page): Promise<number> =>
    page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith('bsvc.draft.')).length);
  const openRecord = async (page: Page, id: string): Promise<void> => {
    await visit(page, at(stage, `documents/articles?open=${id}`));
    await page.getByRole('dialog').getByLabel('title', { exact: true }).waitFor();
  };
  const titleOf = (page: Page) => page.getByRole('dialog').first().getByLabel('title', { exact: true });

  it('loses nothing that is typed: Esc asks, and Back, reload and a server that is away keep it', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/articles') });
    await page.getByText(/^50 shown of/).waitFor();
    await openRecord(page, ids[2]!);
    await titleOf(page).fill('Typed and not stored');
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { name: 'Leave without saving?' }).waitFor();
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    await page.getByRole('button', { name: 'Keep editing' }).click();
    await page.goBack();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await openRecord(page, ids[2]!);
    await page.getByText('What you typed before is still here').waitFor();
    expect(await titleOf(page).inputValue()).toBe('Typed and not stored');
    await page.reload();
    await expect.poll(() => titleOf(page).inputValue()).toBe('Typed and not stored');
    await page.context().setOffline(true);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The server does not answer: try again.').first().waitFor();
    await page.context().setOffline(false);
    await page.reload();
    await expect.poll(() => titleOf(page).inputValue()).toBe('Typed and not stored');
    const sent = page.waitForRequest((each) => each.method() === 'PATCH');
    await page.getByRole('button', { name: 'Save' }).click();
    expect((await sent).postDataJSON()).toEqual({ title: 'Typed and not stored' });
    await page.getByText('Document changed').waitFor();
    expect(await drafts(page)).toBe(0);
    // What is discarded is gone.
    await openRecord(page, ids[3]!);
    await titleOf(page).fill('Not wanted');
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Discard', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await openRecord(page, ids[3]!);
    expect(await titleOf(page).inputValue()).toBe('Article 3');
    expect(await drafts(page)).toBe(0);
  });

  it('keeps drafts within bounds, the newest ones', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/articles?open=new') });
    await page.evaluate(() => {
      const store = localStorage as unknown as { setItem(name: string, text: string): void };
      for (let n = 0; n < 40; n++)
        store.setItem(`bsvc.draft.old ${n}`, JSON.stringify({ at: Date.now() - 1000 + n, draft: n }));
      store.setItem('bsvc.draft.ancient', JSON.stringify({ at: 0, draft: 'x' }));
    });
    await titleOf(page).fill('One more');
    await expect.poll(() => drafts(page)).toBe(30);
    const names = await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith('bsvc.draft.')));
    expect(names).not.toContain('bsvc.draft.ancient');
    expect(names).not.toContain('bsvc.draft.old 0');
    expect(names).toContain('bsvc.draft.old 39');
    await page.evaluate(() => {
      for (const name of Object.keys(localStorage))
        if (name.startsWith('bsvc.draft.old'))
          (localStorage as unknown as { removeItem(key: string): void }).removeItem(name);
    });
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it.each([1280, 400])(
    'stores a record by its form, with every broken rule at its field: %i px wide',
    async (width) => {
      const page = await openConsole(stage, { hash: at(stage, 'documents/articles?open=new'), width });
      const form = page.getByRole('dialog');
      await titleOf(page).fill('x');
      await form.getByLabel('views', { exact: true }).fill('-1');
      await form.getByRole('button', { name: 'Insert' }).click();
      await form.getByText('title must have at least 3 characters').last().waitFor();
      await form.getByText('views must be at least 0').last().waitFor();
      expect(await form.locator('.field.wrong label').allTextContents()).toEqual(['title', 'views']);
      expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
      await titleOf(page).fill(`${RTL} ${width}`);
      await form.getByLabel('views', { exact: true }).fill('9007199254740993');
      await form.getByText('more digits than a number').waitFor();
      expect(await form.getByRole('button', { name: 'Insert' }).isDisabled()).toBe(true);
      await form.getByLabel('views', { exact: true }).fill('12');
      await form.getByLabel('status', { exact: true }).selectOption('live');
      await form.getByLabel('featured', { exact: true }).check();
      await form.getByLabel('author', { exact: true }).fill('lovel');
      await form.getByRole('option', { name: 'Ada Lovelace' }).click();
      await form.getByRole('link', { name: 'Ada Lovelace' }).waitFor();
      await form.getByLabel('tags', { exact: true }).fill('one, two');
      await form.getByLabel('tags', { exact: true }).press('Enter');
      await form.getByLabel('lang', { exact: true }).selectOption('ar');
      const answer = page.waitForResponse(
        (each) => each.request().method() === 'POST' && each.url().endsWith('/documents'),
      );
      await form.getByRole('button', { name: 'Insert' }).click();
      const { data } = (await (await answer).json()) as { data: { _id: string } };
      await page.getByText('Document stored').waitFor();
      expect(await stored(data._id)).toMatchObject({
        title: `${RTL} ${width}`,
        status: 'live',
        views: 12,
        featured: true,
        author,
        tags: ['one', 'two'],
        meta: { lang: 'ar' },
      });
      await storedDocuments(stage.test.app, articles).deleteOne({ _id: new ObjectId(data._id) });
    },
  );

  it('changes cells in place by the keyboard, and says why one is refused', async () => {
    const page = await openConsole(stage, {
      hash: at(stage, 'documents/articles?views_gte=10&views_lte=11&sort=views'),
    });
    await page.getByText('2 shown').waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    const cell = page.getByRole('textbox', { name: 'title', exact: true });
    await cell.fill('By the keyboard');
    const title = page.waitForResponse((each) => each.request().method() === 'PATCH');
    await page.keyboard.press('Tab');
    expect((await title).status()).toBe(200);
    await page.getByRole('combobox', { name: 'status', exact: true }).waitFor();
    await page.keyboard.press('Escape');
    await expect
      .poll(() => page.evaluate(() => document.activeElement?.getAttribute('data-cell')))
      .toBe(`${ids[10]!} status`);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await page.getByRole('textbox', { name: 'views', exact: true }).fill('-3');
    await page.keyboard.press('Enter');
    await page.getByText('views must be at least 0').waitFor();
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    await page.reload();
    // What is typed into a cell outlives the page too.
    await expect.poll(() => page.getByRole('textbox', { name: 'views', exact: true }).inputValue()).toBe('-3');
    await page.getByRole('textbox', { name: 'views', exact: true }).press('Escape');
    expect(await stored(ids[10]!)).toMatchObject({ title: 'By the keyboard', views: 10 });
  });

  it('edits a cell by typing into it, and chooses lines from one to another', async () => {
    const page = await openConsole(stage, {
      hash: at(stage, 'documents/articles?views_gte=12&views_lte=16&sort=views'),
    });
    await page.getByText('5 shown').waitFor();
    await page.locator(`[data-cell="${ids[12]!} title"]`).click();
    await page.keyboard.type('Just typed');
    const changed = page.waitForResponse((each) => each.request().method() === 'PATCH');
    await page.keyboard.press('Enter');
    expect((await changed).status()).toBe(200);
    expect(await stored(ids[12]!)).toMatchObject({ title: 'Just typed' });

    const row = (n: number) => page.getByLabel(`Row ${ids[n]!}`);
    await row(15).click();
    await row(12).click({ modifiers: ['Shift'] });
    await page.getByText('4 selected').waitFor();
    await row(13).click({ modifiers: ['Shift'] });
    await page.getByText('2 selected').waitFor();
    expect(await row(14).isChecked()).toBe(true);
  });

  it('opens the collection that was seen last', async () => {
    await buildCollection(stage.test.app, stage.project, {
      name: 'zebras',
      fields: [{ name: 'label', type: 'String' }],
    });
    const page = await openConsole(stage, { hash: at(stage, 'documents') });
    const chosen = page.getByRole('combobox', { name: 'Collection' });
    await expect.poll(() => chosen.inputValue()).toBe('articles');
    await chosen.selectOption('zebras');
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('link', { name: 'Documents', exact: true }).click();
    await expect.poll(() => chosen.inputValue()).toBe('zebras');
  });

  it('keeps columns and views by collection, and takes pasted filters', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/articles') });
    await page.getByText(/^50 shown of/).waitFor();
    const heads = async (): Promise<string[]> =>
      (await page.locator('thead th[scope=col]').allTextContents()).map((each) => each.replace(/ [↑↓]$/, ''));
    await page.getByText('Columns', { exact: true }).click();
    await page.getByRole('checkbox', { name: 'more0', exact: true }).check();
    await page.getByRole('checkbox', { name: 'tags', exact: true }).uncheck();
    await page.getByRole('button', { name: 'Move views left' }).click();
    await page.keyboard.press('Escape');
    const chosen = await heads();
    expect(chosen.slice(0, 4)).toEqual(['_id', 'title', 'views', 'status']);
    expect(chosen).toContain('more0');
    await page.reload();
    await page.getByText(/^50 shown of/).waitFor();
    expect(await heads()).toEqual(chosen);
    await page.getByRole('button', { name: 'Sort by views' }).click();
    await expect.poll(() => page.url()).toContain('sort=views');
    await page.keyboard.press('/');
    await page.keyboard.insertText('/api/data/articles?views_lt=5&status=live&limit=3');
    await page.keyboard.press('Enter');
    await page.getByText('3 shown').waitFor();
    await page.getByRole('link', { name: 'Remove the filter status is live' }).waitFor();
    await page.getByText('Views', { exact: true }).click();
    await page.getByLabel('Save this view as').fill('few views');
    await page.keyboard.press('Enter');
    await page.getByText('The view few views is saved').waitFor();
    await page.getByText('Views (1)').waitFor();
    await page.keyboard.press('Escape');
    await visit(page, at(stage, 'documents/articles'));
    // As in another browser of the same operator.
    await page.evaluate(() => localStorage.clear());
    await page.reload();
    await signIn(page);
    await page.getByText(/^50 shown of/).waitFor();
    await page.getByText('Views', { exact: true }).click();
    await page.getByRole('link', { name: 'few views' }).click();
    await page.getByText('3 shown').waitFor();
    await visit(page, at(stage, 'documents/articles'));
    await page.getByRole('combobox', { name: 'Filter' }).fill('article 4');
    await page.keyboard.press('Enter');
    await page.getByText('11 shown').waitFor();
    await page.getByText('Columns', { exact: true }).click();
    await page.getByRole('button', { name: 'Reset columns' }).click();
    await page.keyboard.press('Escape');
  });

  it('imports a CSV with its columns mapped to fields', async () => {
    const target = await buildCollection(stage.test.app, stage.project, {
      name: 'goods',
      fields: [
        { name: 'name', type: 'String', required: true },
        { name: 'price', type: 'Number' },
        { name: 'sold', type: 'Boolean' },
      ],
    });
    const page = await openConsole(stage, { hash: at(stage, 'documents/goods?import=1') });
    const csv = 'Title;price;sold\n"A ""fine"" cup; blue";3.5;yes\nPlate;cheap;no\n';
    await page
      .getByLabel(/^File:/)
      .setInputFiles({ name: 'goods.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) });
    await page.getByLabel('Field for Title').selectOption('name');
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    await page.getByRole('button', { name: 'Preview import of 2' }).click();
    await page.getByText(/^Document 2: .*price/).waitFor();
    await page.getByRole('button', { name: 'Store 1 document' }).click();
    await page.getByText('1 document stored, 1 refused').waitFor();
    const found = await storedDocuments(stage.test.app, target).find({}).toArray();
    expect(found).toMatchObject([{ name: 'A "fine" cup; blue', price: 3.5, sold: true }]);
  });

  it('gives nothing a prototype by the columns of a file', async () => {
    const target = await buildCollection(stage.test.app, stage.project, { name: 'loose', mode: 'flexible' });
    await placeDocuments(stage.test.app, target, [{ a: 1 }]);
    const page = await openConsole(stage, { hash: at(stage, 'documents/loose?import=1') });
    const files = [
      ['x.json', '[{"name":"ann","__proto__.query":{"permanent":true},"constructor.prototype.body":1}]'],
      ['x.csv', 'name,__proto__.query,constructor.prototype.form\nann,x,y\n'],
    ] as const;
    for (const [name, text] of files) {
      const field = page.getByLabel(/^File:/);
      await field.setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
      await page.getByRole('button', { name: 'Preview import of 1' }).waitFor();
      expect(await page.evaluate(() => ['query', 'body', 'form'].filter((each) => each in {}))).toEqual([]);
    }
  });

  it('shows the files of a document, each by its link', async () => {
    const form = new FormData();
    form.set('attach', JSON.stringify({ collection: 'articles', id: ids[4]! }));
    form.set('file', new File(['what the plan says'], 'plan.txt', { type: 'text/plain' }));
    const headers = { 'x-api-key': stage.secret };
    const sent = await fetch(`${stage.test.url}/api/storage/upload`, { method: 'POST', headers, body: form });
    expect(sent.status).toBe(201);
    const page = await openConsole(stage, { hash: at(stage, `documents/articles?open=${ids[4]!}&tab=files`) });
    await page.getByText('what the plan says').waitFor();
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    await visit(page, at(stage, `documents/articles?open=${ids[5]!}&tab=files`));
    await page.getByText('No attached files').waitFor();
    await visit(page, at(stage, 'files'));
    await page.getByText('plan.txt').click();
    await page.getByText('it is read by links, by those who may read its document').waitFor();
  });

  it('deletes for good what is in the trash, after its number was typed', async () => {
    const page = await openConsole(stage, { hash: at(stage, 'documents/articles?views_gte=58') });
    await page.getByText('2 shown').waitFor();
    await page.getByLabel('All rows').check();
    await page.getByRole('button', { name: 'Move to the trash' }).click();
    await page.getByText('2 moved to the trash').waitFor();
    await page.getByRole('link', { name: 'Trash', exact: true }).click();
    await page.getByText('2 shown').waitFor();
    await settle(page);
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    await page.getByLabel(`Row ${ids[59]!}`).check();
    await page.getByRole('button', { name: 'Delete permanently…' }).click();
    await page.getByLabel(/^Type/).fill('1');
    await page.getByRole('button', { name: 'Delete permanently', exact: true }).click();
    await page.getByText('1 document deleted permanently').waitFor();
    await page.getByText('1 shown').waitFor();
    expect(await stored(ids[59]!)).toBeNull();
  });

  it('changes a collection in the table of its fields, and keeps what is typed there', async () => {
    await buildCollection(stage.test.app, stage.project, {
      name: 'shelves',
      fields: [{ name: 'label', type: 'String' }],
    });
    const page = await openConsole(stage, { hash: at(stage, 'collections?open=shelves&edit=1') });
    await page.getByRole('button', { name: 'Add a field' }).click();
    await page.getByLabel('Name of the new field').fill('height');
    await page.getByLabel('Type of height').selectOption('Number');
    await page.getByText('Rules of height').click();
    await page.getByLabel('From', { exact: true }).fill('1');
    await page.reload();
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    const changes = page.getByRole('region', { name: 'Changes' }).getByRole('listitem');
    await expect.poll(() => changes.allTextContents()).toEqual(['+ field height: Number, min 1']);
    await page.getByRole('button', { name: 'Check stored documents' }).click();
    await page.getByText('No stored document violates the new settings.').waitFor();
    const sent = page.waitForRequest((each) => each.method() === 'PATCH' && !each.url().includes('check'));
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    expect(Object.keys((await sent).postDataJSON() as object)).toEqual(['fields']);
    await page.getByText('Collection changed').waitFor();
    expect(await drafts(page)).toBe(0);
  });

  it('marks a field that is compared in any case, whose documents follow', async () => {
    const people = await buildCollection(stage.test.app, stage.project, {
      name: 'cased',
      fields: [
        { name: 'email', type: 'String' },
        { name: 'n', type: 'Number' },
      ],
    });
    await placeDocuments(stage.test.app, people, [{ email: 'Ann@X.org' }, { email: 'Bob' }]);
    const page = await openConsole(stage, { hash: at(stage, 'collections?open=cased&edit=1') });
    const row = (name: string) => page.getByRole('listitem').filter({ has: page.getByLabel(`Name of ${name}`) });
    expect(await row('n').getByLabel('any case').count()).toBe(0);
    await row('email').getByLabel('any case').check();
    const changes = page.getByRole('region', { name: 'Changes' }).getByRole('listitem');
    await expect.poll(() => changes.allTextContents()).toEqual(['field email: String → email: String, nocase']);
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Collection changed').waitFor();
    await visit(page, at(stage, 'documents/cased?email=ann@x.ORG'));
    await page.getByText('1 shown').waitFor();
  });

  it('adds a field in five steps from its documents, and shows first invalid documents', async () => {
    const boxes = await buildCollection(stage.test.app, stage.project, {
      name: 'boxes',
      fields: [{ name: 'label', type: 'String' }],
    });
    await placeDocuments(stage.test.app, boxes, [{ label: 'a long label' }]);
    const page = await openConsole(stage, { hash: at(stage, 'documents/boxes') });
    await page.getByRole('link', { name: 'Schema' }).click();
    await page.getByRole('button', { name: 'Add a field' }).click();
    await page.keyboard.type('height');
    await page.getByLabel('Type of height').selectOption('Number');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Collection changed').waitFor();
    await visit(page, at(stage, 'documents/boxes'));
    await page.getByText('Columns', { exact: true }).click();
    await page.getByRole('link', { name: 'New field…' }).click();
    // Ready to be typed into as soon as it is there.
    await page.locator('input:focus').and(page.getByLabel('Name of the new field')).waitFor();
    await page.keyboard.type('weight');
    await page.getByLabel('Type of weight').waitFor();
    await page.getByText('Rules of label').click();
    await page.getByLabel('to', { exact: true }).first().fill('5');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText(/^1 of 1 stored document would be invalid/).waitFor();
    expect([await findBarriers(page), await measureOverflow(page)]).toEqual([[], 0]);
    await page.getByRole('button', { name: 'Save anyway' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await drafts(page)).toBe(0);
  });

  it('asks before signing out discards drafts, and then keeps none', async () => {
    const page = await openConsole(stage, { hash: at(stage, `documents/articles?open=${ids[4]!}`), scheme: 'dark' });
    await titleOf(page).fill('Somebody else must not read this');
    await visit(page, at(stage, 'documents/articles'));
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('banner').getByRole('button', { name: 'ann@example.test' }).click();
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await page.getByText('1 draft that you have typed').waitFor();
    await page.getByRole('button', { name: 'Sign out and discard' }).click();
    await page.getByLabel('Password').waitFor();
    expect(await drafts(page)).toBe(0);
  });
});
