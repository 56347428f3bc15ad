import type { Locator, Page } from 'playwright-core';

/** Of the page: what is evaluated there. */
declare const document: { activeElement: unknown };

/** How somebody uses the console: with a mouse, or with the keyboard alone. */
export interface Hands {
  /** Presses a link, a button or a box. */
  press(target: Locator): Promise<void>;
  /** Puts a text in the place of what a field holds. */
  write(target: Locator, text: string): Promise<void>;
  choose(target: Locator, option: string): Promise<void>;
  /** Begins to edit a cell of the grid. */
  edit(cell: Locator): Promise<void>;
}

/** More stops than this before a control is reached is no way to work. */
const MOST_STOPS = 150;
const FEW_STOPS = 12;

export function withMouse(page: Page): Hands {
  return {
    press: (target) => target.first().click(),
    async write(target, text) {
      await target.first().click();
      await page.keyboard.press('Control+a');
      await page.keyboard.insertText(text);
    },
    async choose(target, option) {
      await target.first().selectOption(option);
    },
    edit: (cell) => cell.first().dblclick(),
  };
}

export function withKeyboard(page: Page): Hands {
  const holds = (target: Locator): Promise<boolean> =>
    target.first().evaluate((element) => element === document.activeElement);
  const reachFor = async (target: Locator): Promise<void> => {
    await target.first().waitFor();
    // What stands at the end of a long form is nearer from its beginning.
    for (let stops = 0; stops < FEW_STOPS && !(await holds(target)); stops++) await page.keyboard.press('Shift+Tab');
    for (let stops = 0; !(await holds(target)); stops++) {
      if (stops > MOST_STOPS) throw new Error(`not reached by ${MOST_STOPS} times Tab: ${String(target)}`);
      await page.keyboard.press('Tab');
    }
  };
  /** The lines of a list follow each other by the key j. */
  const goToRow = async (opener: Locator): Promise<void> => {
    await opener.waitFor();
    // Out of what is typed into.
    while (await page.locator('input:focus, textarea:focus').count()) await page.keyboard.press('Tab');
    for (let steps = 0; !(await holds(opener)); steps++) {
      if (steps > MOST_STOPS) throw new Error(`not reached by the key j: ${String(opener)}`);
      await page.keyboard.press('j');
    }
  };
  return {
    async press(target) {
      await reachFor(target);
      const kind = await target.first().evaluate((element: { type?: string }) => element.type);
      await page.keyboard.press(kind === 'checkbox' ? 'Space' : 'Enter');
    },
    async write(target, text) {
      await reachFor(target);
      await page.keyboard.press('Control+a');
      await page.keyboard.insertText(text);
    },
    async choose(target, option) {
      await reachFor(target);
      await page.keyboard.type(option);
    },
    async edit(cell) {
      const row = page.getByRole('row').filter({ has: cell });
      await goToRow(row.locator('a.opens'));
      for (let steps = 0; !(await holds(cell)); steps++) {
        if (steps > MOST_STOPS) throw new Error(`not reached by the arrows: ${String(cell)}`);
        await page.keyboard.press('ArrowRight');
      }
      await page.keyboard.press('Enter');
    },
  };
}
