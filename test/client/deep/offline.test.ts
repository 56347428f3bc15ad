import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type UntypedProject, createClient } from '../../world/client.js';
import { CHROMIUM } from '../../helpers/chromium.js';
import { eventually } from '../../helpers/eventually.js';
import { findFreePort, listen, type Listening } from '../../helpers/listen.js';
import { runOrThrow, startService, type RunningService } from '../../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../../helpers/temp-dir.js';

const BOUNDS = { timeout: 60_000 };
/** What every signed-in user may read and write. */
const DECLARATION = `format: bsvc/1
projects:
  - name: field
    collections:
      - name: notes
        fields: ['text:String!', 'title:String', 'count:Number=0']
        rules: { read: user, create: user, update: user, delete: user }
`;

let dir: TempDir;
let settings: Record<string, string>;
let port: number;
let service: RunningService;
let site: Listening;
let browser: Browser;
let server: Client<UntypedProject>;
let publishable: string;

const url = (): string => `http://127.0.0.1:${port}`;
const start = async (): Promise<void> => {
  service = await startService(['serve', '--port', String(port)], settings);
};

/** An application whose files a service worker would keep: they come from another server than the documents. */
const page = (): string => `<!doctype html><title>notes</title><script type="module">
import { createClient } from '/client.js';
import { openOfflineStore } from '/client-offline.js';
globalThis.store = openOfflineStore('notes');
globalThis.events = [];
store.onEvent((event) => events.push(event));
globalThis.api = createClient({ url: '${url()}', key: '${publishable}', offline: store });
globalThis.notes = api.collection('notes');
globalThis.shown = null;
notes.follow.set({ sort: 'text' }, (list) => (shown = list.map(({ text, title = '', count }) => text + title + count).join()));
</script>`;

beforeAll(async () => {
  if (!CHROMIUM) return;
  dir = await openTempDir();
  settings = { BSVC_DATA_DIR: join(dir.path, 'data'), BSVC_DURABILITY: 'relaxed', BSVC_BCRYPT_COST: '4' };
  port = await findFreePort();
  writeFileSync(join(dir.path, 'bsvc.yaml'), DECLARATION);
  const applied = await runOrThrow(['apply', '-f', join(dir.path, 'bsvc.yaml'), '--json'], settings);
  const { changes } = JSON.parse(applied) as { changes: { keys?: { publishable: string; secret: string } }[] };
  const keys = changes.find((change) => change.keys)!.keys!;
  ({ publishable } = keys);
  await start();
  server = createClient({ url: url(), key: keys.secret });
  const files = new Map<string, string>();
  for (const name of ['client.js', 'client-accounts.js', 'client-tabs.js', 'client-offline.js']) {
    files.set(`/${name}`, await (await fetch(`${url()}/api/${name}`)).text());
  }
  site = await listen(
    createServer(({ url: path = '' }, response) => {
      const file = files.get(path);
      response.setHeader('content-type', file === undefined ? 'text/html' : 'text/javascript').end(file ?? page());
    }),
  );
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
});
afterAll(async () => {
  await browser?.close();
  await site?.close();
  await service?.stop();
  await dir?.remove();
});

let made = 0;

async function openTab(context: BrowserContext): Promise<Page> {
  const tab = await context.newPage();
  await tab.goto(site.url);
  await tab.waitForFunction('globalThis.notes');
  return tab;
}

/** Opens the application as a new user who has a copy of the notes. */
async function enter(tab: Page): Promise<void> {
  await tab.goto(site.url);
  await tab.waitForFunction('globalThis.notes');
  await tab.evaluate(`api.auth.signUp({ email: 'user${++made}@example.test', password: 'secret word' })`);
  await tab.waitForFunction('shown !== null', null, BOUNDS);
}

/** A browser of its own whose user has a copy of the notes. */
async function openBrowser(): Promise<{ context: BrowserContext; tab: Page }> {
  const context = await browser.newContext();
  const tab = await context.newPage();
  await enter(tab);
  return { context, tab };
}

/** As a tab that the system kills: its page goes, without a word to its scripts. */
async function kill(tab: Page): Promise<void> {
  const session = await tab.context().newCDPSession(tab);
  const crashed = new Promise((resolve) => tab.once('crash', resolve));
  void session.send('Page.crash').catch(() => undefined);
  await crashed;
  await tab.close();
}

const isSent = (tab: Page) => tab.waitForFunction('store.pending === 0', null, BOUNDS);
const emptied = async (): Promise<void> => {
  const count = await server.collection('notes').count();
  if (count > 0)
    await server.collection('notes').removeMatching({ count_gte: -1 }, { confirm: count, permanent: true });
};

describe.skipIf(!CHROMIUM)('a client with a local database in a browser', () => {
  it('sends the thousand writes of an hour without a network, once each, though its tab was killed', async () => {
    const { context, tab } = await openBrowser();
    await context.setOffline(true);
    const queued = await tab.evaluate<number>(`(async () => {
      const begun = performance.now();
      const [first] = [await notes.insert({ text: '0000' })];
      for (let n = 1; n < 500; n++) await notes.insert({ text: String(n).padStart(4, '0') });
      for (let n = 0; n < 500; n++) await notes.update(first._id, { $inc: { count: 1 } });
      return performance.now() - begun;
    })()`);
    expect(await tab.evaluate('store.pending')).toBe(1000);
    await kill(tab);
    await context.setOffline(false);
    const back = await context.newPage();
    // The network comes back an hour later, when the access token has long expired.
    await back.addInitScript(`{ const now = Date.now; Date.now = () => now() + 3600_000; }`);
    const begun = performance.now();
    await back.goto(site.url);
    await back.waitForFunction('globalThis.store && shown !== null', null, BOUNDS);
    await isSent(back);
    console.log(`1000 writes: queued in ${Math.round(queued)} ms, sent in ${Math.round(performance.now() - begun)} ms`);
    const { items, total } = await server.collection('notes').list({ sort: 'text', limit: 1000 });
    expect(total).toBe(500);
    expect(items[0]!.count).toBe(500);
    expect(new Set(items.map(({ text }) => text as string)).size).toBe(500);
    await back.waitForFunction(`shown?.startsWith('0000500,0001') && shown.endsWith('04990')`, null, BOUNDS);
    await context.close();
    await emptied();
  });

  it('agrees with another browser after conflicts, killed tabs and a killed service', async () => {
    const [one, two] = [await openBrowser(), await openBrowser()];
    const { _id } = await server.collection('notes').insert({ text: 'a', title: '' });
    for (const { tab } of [one, two]) await tab.waitForFunction(`shown === 'a0'`, null, BOUNDS);
    for (const { context } of [one, two]) await context.setOffline(true);
    const change = (name: string) => `(async () => {
      for (let n = 0; n < 20; n++) await notes.update('${_id}', { title: '${name}' + n, $inc: { count: 1 } });
      await notes.insert({ text: 'b of ${name}' });
    })()`;
    for (const [n, { tab }] of [one, two].entries()) await tab.evaluate(change(`${n}`));
    // A second tab of the first browser, which takes over from the one that is killed.
    await one.context.setOffline(false);
    const other = await openTab(one.context);
    await kill(one.tab);
    const killing = service.stop('SIGKILL').then(start);
    await two.context.setOffline(false);
    await killing;
    for (const tab of [other, two.tab]) await isSent(tab);
    const stored = await server.collection('notes').list({ sort: 'text' });
    expect(stored.items.map(({ text }) => text as string)).toEqual(['a', 'b of 0', 'b of 1']);
    expect(stored.items[0]!.count).toBe(40);
    const all = stored.items.map(({ text, title, count }) => `${text}${title ?? ''}${count}`).join();
    for (const tab of [other, two.tab]) await tab.waitForFunction(`shown === ${JSON.stringify(all)}`, null, BOUNDS);
    const conflicts = await Promise.all(
      [other, two.tab].map((tab) => tab.evaluate<number>(`events.filter(({ type }) => type === 'conflict').length`)),
    );
    // Whoever came second has met the title of the other.
    expect(Math.max(...conflicts)).toBeGreaterThan(0);
    for (const { context } of [one, two]) await context.close();
    await emptied();
  });

  it('goes on without its database when the device is full, and says so', async () => {
    const context = await browser.newContext();
    const tab = await context.newPage();
    const session = await context.newCDPSession(tab);
    await session.send('Storage.overrideQuotaForOrigin', { origin: site.url, quotaSize: 1_000_000 });
    await enter(tab);
    await tab.evaluate(`(async () => {
      const digits = (count) => Array.from(crypto.getRandomValues(new Uint8Array(count)), (byte) => byte.toString(16));
      for (let n = 0; n < 12; n++) await notes.insert({ text: digits(60_000).join('') });
    })()`);
    await tab.waitForFunction(`events.some(({ type }) => type === 'fault')`, null, BOUNDS);
    await eventually('the service has them', async () => (await server.collection('notes').count()) === 12);
    await tab.waitForFunction(`shown.split(',').length === 12`, null, BOUNDS);
    expect(await tab.evaluate('notes.list().then(({ total }) => total)')).toBe(12);
    await context.close();
    await emptied();
  });
});
