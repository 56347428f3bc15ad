import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ObjectId } from 'bson';
import type { Locator, Page } from 'playwright-core';
import { afterAll, describe, expect, it } from 'vitest';
import { runBackupJob } from '../world/jobs.js';
import { CHROMIUM } from '../helpers/chromium.js';
import { at, openConsole, openPage, OWNER, PASSWORD, useConsole, visit } from './console-stage.js';

const BACKUPS = mkdtempSync(join(tmpdir(), 'bsvc-backups-'));
afterAll(() => rmSync(BACKUPS, { recursive: true, force: true }));

/** A step is a click, a key, or a field that is filled or chosen; a double click is two. */
class Steps {
  taken = 0;
  constructor(private readonly page: Page) {}

  async click(target: Locator, modifiers: 'Shift'[] = []): Promise<void> {
    this.taken++;
    await target.first().click({ modifiers });
  }
  async doubleClick(target: Locator): Promise<void> {
    this.taken += 2;
    await target.first().dblclick();
  }
  async press(key: string): Promise<void> {
    this.taken++;
    await this.page.keyboard.press(key);
  }
  /** Into a field, or into whatever has the focus. */
  async type(text: string, into?: Locator): Promise<void> {
    this.taken++;
    if (into) return into.first().fill(text);
    await this.page.keyboard.press('Control+a');
    await this.page.keyboard.insertText(text);
  }
  async choose(target: Locator, option: string): Promise<void> {
    this.taken++;
    await target.first().selectOption(option);
  }
}

const FIELDS = [
  ['title', 'String'],
  ['views', 'Number'],
  ['price', 'Number'],
  ['day', 'Date'],
  ['shown', 'Boolean'],
] as const;

describe.skipIf(!CHROMIUM)('the ten tasks of an admin', () => {
  const stage = useConsole({ settings: { BSVC_BACKUP_TO: BACKUPS } });

  /** What each takes here, and in the dashboard of PocketBase 0.40, counted in the same way on 2026-11-26. */
  const TASKS = {
    'sign in': [3, 3],
    'a collection with five fields': [15, 18],
    'add a record': [7, 7],
    'find one by a value': [3, 3],
    'change one field': [4, 4],
    'remove ten': [3, 5],
    'make a field unique': [3, 7],
    'own records only': [3, 14],
    'failed requests': [2, 3],
    'make and download a backup': [3, 5],
  } as const;
  type Task = keyof typeof TASKS;
  const counted = new Map<Task, number>();
  const count = async (task: Task, page: Page, work: (steps: Steps) => Promise<unknown>): Promise<void> => {
    const steps = new Steps(page);
    await work(steps);
    counted.set(task, steps.taken);
  };

  const get = async (collection: string, query = ''): Promise<unknown> => {
    const headers = { 'x-api-key': stage.secret };
    const answer = await fetch(`${stage.test.url}/api/data/${collection}?${query}`, { headers });
    return ((await answer.json()) as { data?: { items: unknown } }).data?.items;
  };

  it('take no more steps than in another dashboard, and most of them fewer', async () => {
    const stranger = await openPage(stage);
    await stranger.goto('./');
    await count('sign in', stranger, async (steps) => {
      await steps.type(OWNER, stranger.getByLabel('Email', { exact: true }));
      await steps.type(PASSWORD, stranger.getByLabel('Password'));
      await steps.click(stranger.getByRole('button', { name: 'Sign in' }));
      await stranger.getByRole('banner').getByText(OWNER).waitFor();
    });

    const page = await openConsole(stage, { hash: at(stage, 'collections') });
    const button = (name: string | RegExp): Locator => page.getByRole('button', { name, exact: true });
    const field = (name: string): Locator => page.getByRole('dialog').getByLabel(name, { exact: true });
    await count('a collection with five fields', page, async (steps) => {
      await steps.click(page.getByText('Register a collection…'));
      await steps.type('notes', page.getByLabel('Name', { exact: true }));
      // The first is there already.
      for (const [name, type] of FIELDS.slice(1)) {
        await steps.click(button('Add a field'));
        await steps.type(name, page.getByLabel('Name of the new field'));
        await steps.choose(page.getByLabel(`Type of ${name}`), type);
      }
      await steps.click(button('Register'));
      await page.getByText('Collection registered').waitFor();
    });

    await visit(page, at(stage, 'documents/notes'));
    await count('add a record', page, async (steps) => {
      await steps.click(page.getByRole('link', { name: 'New document' }));
      await steps.type('First', field('title'));
      await steps.type('1', field('views'));
      await steps.type('2', field('price'));
      await steps.type('2026-11-26T10:00', field('day'));
      await steps.click(field('shown'));
      await steps.click(button('Insert'));
      await page.getByText('Document stored').waitFor();
    });
    expect(await get('notes')).toMatchObject([{ title: 'First', views: 1, price: 2, shown: true }]);

    await visit(page, at(stage, 'documents/posts'));
    await count('find one by a value', page, async (steps) => {
      await steps.click(page.getByRole('combobox', { name: 'Filter' }));
      await steps.type('title = Post 77');
      await steps.press('Enter');
      await page.getByText('1 shown').waitFor();
      await page.getByText('Post 77', { exact: true }).waitFor();
    });

    await visit(page, at(stage, 'documents/posts?sort=views'));
    await count('change one field', page, async (steps) => {
      await steps.doubleClick(page.locator(`[data-cell="${stage.ids[3]!} title"]`));
      await steps.type('Changed');
      const changed = page.waitForResponse((each) => each.request().method() === 'PATCH');
      await steps.press('Enter');
      expect((await changed).status()).toBe(200);
    });
    expect(await get('posts', 'views=3')).toMatchObject([{ title: 'Changed' }]);

    await count('remove ten', page, async (steps) => {
      await steps.click(page.getByLabel(`Row ${stage.ids[10]!}`));
      await steps.click(page.getByLabel(`Row ${stage.ids[19]!}`), ['Shift']);
      await page.getByText('10 selected').waitFor();
      await steps.click(button('Move to the trash'));
      await page.getByText('10 moved to the trash').waitFor();
    });

    await visit(page, at(stage, 'documents/notes'));
    await count('make a field unique', page, async (steps) => {
      await steps.click(page.getByRole('link', { name: 'Schema' }));
      await steps.click(
        page
          .getByRole('listitem')
          .filter({ has: page.getByLabel('Name of title') })
          .getByLabel('unique'),
      );
      await steps.click(button('Save'));
      await page.getByText('Collection changed').waitFor();
    });

    await visit(page, at(stage, 'documents/posts'));
    await count('own records only', page, async (steps) => {
      await steps.click(page.getByRole('link', { name: 'Schema' }));
      await steps.choose(page.getByLabel('Who may access it'), 'private');
      await steps.click(button('Save'));
      await page.getByText('Collection changed').waitFor();
    });

    await get('nowhere');
    await count('failed requests', page, async (steps) => {
      await steps.click(page.getByRole('link', { name: 'Requests' }));
      await steps.choose(page.getByLabel('Status'), '4xx: refused');
      await page.getByRole('row').filter({ hasText: 'nowhere' }).getByText('404').waitFor();
    });

    await count('make and download a backup', page, async (steps) => {
      await steps.click(page.getByRole('link', { name: 'Backups' }));
      await steps.click(button('Make a backup'));
      await page.getByText('A worker makes the backup').waitFor();
      // The stage has no worker: this is what one would run.
      const { signal } = new AbortController();
      const run = { jobId: new ObjectId(), attempt: 1, fence: 1, signal, stopping: signal };
      await runBackupJob.run(stage.test.app, {}, run);
      const file = page.waitForEvent('download');
      await steps.click(page.getByRole('link', { name: 'Download' }));
      expect((await file).suggestedFilename()).toMatch(/^bsvc-/);
    });

    expect(Object.fromEntries(counted)).toEqual(
      Object.fromEntries(Object.entries(TASKS).map(([task, [here]]) => [task, here])),
    );
    const compared = Object.values(TASKS);
    expect(compared.filter(([here, there]) => here > there)).toEqual([]);
    expect(compared.filter(([here, there]) => here < there).length).toBeGreaterThanOrEqual(6);
  });
});
