import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildCollection, placeDocuments } from '../helpers/build-project.js';
import { CHROMIUM } from '../helpers/chromium.js';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';
import { at, measureOverflow, openPage, OWNER, PASSWORD, reach, settle, useConsole, VIEWER } from './console-stage.js';
import { withKeyboard, withMouse, type Hands } from './hands.js';

const SHOTS = process.env.BSVC_TEST_SHOTS;
const DOCUMENTS = 20_000;
const FIELDS = 60;
const BATCH = 5_000;
/** What an admin meets who has not made the data: long texts, and texts from right to left. */
const LONG = 'A long value. '.repeat(215).trim();
const FROM_RIGHT = 'שלום עולם, זה טקסט מימין לשמאל';

/** A day's work of an admin, by each way of working, on a desk and on a phone. */
describe.skipIf(!CHROMIUM)('a day at the console', () => {
  const stage = useConsole();
  const ids: string[] = [];

  beforeAll(async () => {
    const more = Array.from({ length: FIELDS - 4 }, (_, n) => ({ name: `field${n}`, type: 'String' as const }));
    const things = await buildCollection(stage.test.app, stage.project, {
      name: 'things',
      fields: [
        { name: 'title', type: 'String', required: true },
        { name: 'stock', type: 'Number' },
        { name: 'story', type: 'String' },
        { name: 'greeting', type: 'String' },
        ...more,
      ],
      indexes: ['stock', 'title'],
    });
    const make = (n: number) => ({
      title: `Thing ${n}`,
      stock: n,
      story: n < 200 ? LONG : 'short',
      greeting: FROM_RIGHT,
      field0: `value ${n}`,
    });
    for (let from = 0; from < DOCUMENTS; from += BATCH) {
      ids.push(
        ...(await placeDocuments(
          stage.test.app,
          things,
          Array.from({ length: BATCH }, (_, n) => make(from + n)),
        )),
      );
    }
  });

  const look = async (page: Page, name: string): Promise<void> => {
    await settle(page);
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/${name}.png` });
    expect([name, await measureOverflow(page)]).toEqual([name, 0]);
  };
  const stored = async (id: string): Promise<Record<string, unknown>> => {
    const answer = await fetch(`${stage.test.url}/api/data/things/${id}`, { headers: { 'x-api-key': stage.secret } });
    return (await answer.json()) as Record<string, unknown>;
  };
  const signIn = async (page: Page, { press, write }: Hands, email: string): Promise<void> => {
    await page.goto(`./${at(stage, 'documents/things?sort=stock')}`);
    await write(page.getByLabel('Email', { exact: true }), email);
    await write(page.getByLabel('Password'), PASSWORD);
    await press(page.getByRole('button', { name: 'Sign in' }));
    await page.getByText(/^50 shown of 20,00\d/).waitFor();
  };

  /** Which way goes with which width is another with other commits. Pictures are taken of all four. */
  const ALL_WAYS = [
    ['mouse', withMouse, 1280],
    ['keyboard', withKeyboard, 400],
    ['mouse', withMouse, 400],
    ['keyboard', withKeyboard, 1280],
  ] as const;
  const from = openRandom(openSeed('a day at the console')).pick([0, 2]);
  const WAYS = SHOTS ? ALL_WAYS : ALL_WAYS.slice(from, from + 2);

  it.each(WAYS)('of an owner, by %s %#', async (way, hands, width) => {
    const page = await openPage(stage, { width });
    const hand = hands(page);
    const { press, write, choose, edit } = hand;
    const shot = (step: string) => look(page, `owner-${way}-${width}-${step}`);
    const number = WAYS.findIndex((each) => each[0] === way && each[2] === width);
    // Each way has documents of its own.
    const base = 1_000 * (number + 1);
    await signIn(page, hand, OWNER);
    await shot('list');

    // Finds one, and changes it in its cell and in the form.
    await write(page.getByRole('combobox', { name: 'Filter' }), `stock >= ${base}`);
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: `Remove the filter stock ≥ ${base}` }).waitFor();
    const first = page.getByText(`Thing ${base}`, { exact: true });
    await first.waitFor();
    // Wherever the last list was scrolled to.
    expect((await first.boundingBox())!.y).toBeGreaterThan(0);
    await shot('filtered');
    await edit(page.locator(`[data-cell="${ids[base]!} title"]`));
    await page.getByRole('textbox', { name: 'title', exact: true }).waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText(`By ${way} ${FROM_RIGHT}`);
    const changed = page.waitForResponse((each) => each.request().method() === 'PATCH');
    await page.keyboard.press('Enter');
    expect((await changed).status()).toBe(200);
    await press(page.locator(`a.opens[href*="${ids[base + 1]!}"]`));
    await page.getByRole('dialog').waitFor();
    await write(page.getByRole('dialog').getByLabel('field0', { exact: true }), LONG);
    await shot('form');
    await press(page.getByRole('dialog').getByRole('button', { name: 'Save' }));
    await page.getByText('Document changed').first().waitFor();
    expect([await stored(ids[base]!), await stored(ids[base + 1]!)]).toMatchObject([
      { title: `By ${way} ${FROM_RIGHT}` },
      { field0: LONG },
    ]);

    // Puts three in the trash, and takes them back.
    for (const n of [2, 3, 4]) await press(page.getByLabel(`Row ${ids[base + n]!}`));
    await page.getByText('3 selected').waitFor();
    await shot('selected');
    await press(page.getByRole('button', { name: 'Move to the trash' }));
    await page.getByText('3 moved to the trash').first().waitFor();
    await press(page.getByRole('button', { name: 'Undo' }));
    await page.getByText('3 restored').first().waitFor();

    // Makes a new one.
    await press(page.getByRole('link', { name: 'New document' }));
    await write(page.getByRole('dialog').getByLabel('title', { exact: true }), `New by ${way} ${width}`);
    await press(page.getByRole('dialog').getByRole('button', { name: 'Insert' }));
    await page.getByText('Document stored').first().waitFor();

    // Adds a field.
    await page.goto(`./${at(stage, 'collections?open=things&edit=1')}`);
    await press(page.getByRole('button', { name: 'Add a field' }));
    const name = `added${number}`;
    await write(page.getByLabel('Name of the new field'), name);
    await choose(page.getByLabel(`Type of ${name}`), 'Number');
    await shot('field');
    await press(page.getByRole('button', { name: 'Save', exact: true }));
    await page.getByText('Collection changed').first().waitFor();

    // Says who may read it, with a mistake first.
    await page.goto(`./${at(stage, 'collections?open=things&rules=1')}`);
    await write(page.getByLabel('read', { exact: true }), 'doc.titel = "x"');
    await press(page.getByRole('button', { name: 'Check without saving' }));
    await page.getByRole('alert').getByText('titel').first().waitFor();
    await shot('mistake');
    await write(page.getByLabel('read', { exact: true }), `user or doc.title = "${way} ${width}"`);
    await press(page.getByRole('button', { name: 'Save the rules' }));
    await reach(page, page.getByText('Rules changed').or(page.getByLabel(/^Type/)));
    const named = page.getByLabel(/^Type/);
    if (await named.isVisible()) {
      await write(named, 'shop');
      await press(page.getByRole('button', { name: 'Change the rules' }));
    }
    await reach(page, page.getByText('Rules changed'));

    // Looks at requests, and goes on by the palette.
    await page.goto(`./${at(stage, 'documents/things')}`);
    await page.getByText('50 shown').first().waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('Requests');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Requests' }).first().waitFor();
    await shot('requests');
  });

  it.each(WAYS)('of a viewer, by %s %#', async (way, hands, width) => {
    const page = await openPage(stage, { width });
    const hand = hands(page);
    await signIn(page, hand, VIEWER);
    await look(page, `viewer-${way}-${width}-list`);
    await hand.press(page.locator(`a.opens[href*="${ids[0]!}"]`));
    await page.getByRole('dialog').waitFor();
    await look(page, `viewer-${way}-${width}-form`);
    const offered = async (): Promise<string[]> =>
      (await page.getByRole('button', { name: /^(Save|Insert|Move to the trash|Delete)/ }).allTextContents()).sort();
    expect(await offered()).toEqual([]);
    await hand.press(page.getByRole('dialog').getByRole('button', { name: 'Close', exact: true }));
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect([await offered(), await page.getByRole('link', { name: 'New document' }).count()]).toEqual([[], 0]);
    await hand.edit(page.locator(`[data-cell="${ids[1]!} title"]`));
    expect(await page.getByRole('textbox', { name: 'title', exact: true }).count()).toBe(0);
    await page.goto(`./${at(stage, 'collections?open=things&edit=1')}`);
    await look(page, `viewer-${way}-${width}-collection`);
    expect(await offered()).toEqual([]);
  });
});
