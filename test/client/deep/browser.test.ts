import { createServer } from 'node:http';
import type { BrowserContext, Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { createClient } from '../../world/client.js';
import { updateProject } from '../../world/projects.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { CHROMIUM, useChromium } from '../../helpers/chromium.js';
import { eventually } from '../../helpers/eventually.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { listen } from '../../helpers/listen.js';
import { use, useTestApp } from '../../helpers/use.js';

const DEADLINE_MS = 45_000;
const ADMIN_TOKEN = 'admin-token-of-the-browser-tests';
const clock = createFakeClock(Date.now());

/** An application of another origin, which takes the client from the service. */
const page = (): string => `<!doctype html><title>app</title><script type="module">
import { createClient } from '${test.url}/api/client.js';
globalThis.api = createClient({ url: '${test.url}', key: '${shop.publishable}' });
globalThis.shown = null;
globalThis.follow = (of) => api.collection('posts').follow.set({ filter: { of }, sort: 'n' }, (list) => {
  shown = list.map(({ text }) => text).join();
});
</script>`;

const test = await useTestApp({ clock, settings: { BSVC_MAX_FILE: '32mb', BSVC_ADMIN_TOKEN: ADMIN_TOKEN } });
const shop = await buildProject(test.app);
await updateProject(test.app, shop.project.name, { publishableUploads: true });
await buildCollection(test.app, shop.project, {
  name: 'posts',
  mode: 'flexible',
  rls: { mode: 'public-read', ownerField: 'userId' },
});
const writer = createClient({ url: test.url, key: shop.secret });
const site = use(
  await listen(createServer((_request, response) => response.setHeader('content-type', 'text/html').end(page()))),
);
const browser = await useChromium();

let made = 0;
/** Without care for what is stored too late, one in four would be renewed twice. */
const RENEWALS = 20;

const openStreams = async (): Promise<number> => {
  const reply = await fetch(`${test.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  return Number(/^bsvc_streams (\d+)$/m.exec(await reply.text())![1]);
};
const hasOneStream = () => eventually('all tabs follow by one stream', async () => (await openStreams()) === 1);

/** A browser of its own with tabs of the application, and the paths that they ask the service for. */
async function openTabs(count: number): Promise<{ context: BrowserContext; tabs: Page[]; asked: string[] }> {
  const context = await browser.newContext();
  const asked: string[] = [];
  context.on('request', (request) => {
    if (request.method() !== 'OPTIONS') asked.push(new URL(request.url()).pathname);
  });
  const tabs: Page[] = [];
  for (let n = 0; n < count; n++) {
    const tab = await context.newPage();
    await tab.goto(site.url);
    await tab.waitForFunction('globalThis.api');
    tabs.push(tab);
  }
  return { context, tabs, asked };
}

const shows = (tab: Page, text: string) =>
  tab.waitForFunction(`shown === ${JSON.stringify(text)}`, null, { timeout: DEADLINE_MS });

describe.skipIf(!CHROMIUM)('the client in a browser', () => {
  it('signs in all tabs at once, and renews their token once', async () => {
    const { context, tabs, asked } = await openTabs(2);
    await tabs[0]!.evaluate(`api.auth.signUp({ email: 'ann${++made}@example.test', password: 'secret word' })`);
    // What one tab stores reaches another one, in a process of its own, a moment later.
    await tabs[1]!.waitForFunction(`/^ann/.test(api.auth.user?.email)`);
    for (let round = 0; round < RENEWALS; round++) {
      clock.advance(16 * 60_000);
      asked.length = 0;
      await Promise.all(tabs.flatMap((tab) => [tab.evaluate('api.auth.me()'), tab.evaluate('api.auth.me()')]));
      expect(asked.filter((path) => path.endsWith('/refresh-token'))).toHaveLength(1);
    }
    await tabs[1]!.evaluate('api.auth.signOut()');
    await tabs[0]!.waitForFunction('api.auth.user === null');
    await context.close();
  });

  it('follows by one stream for all tabs, which another one takes over when its tab is closed', async () => {
    const { context, tabs, asked } = await openTabs(3);
    const of = `tabs ${++made}`;
    const posts = writer.collection('posts');
    await tabs[0]!.evaluate(`void follow('${of}')`);
    await shows(tabs[0]!, '');
    for (const tab of tabs.slice(1)) await tab.evaluate(`void follow('${of}')`);
    await posts.insert({ of, n: 1, text: 'one' });
    for (const tab of tabs) await shows(tab, 'one');
    await hasOneStream();
    await tabs[0]!.close();
    await posts.insert({ of, n: 2, text: 'two' });
    for (const tab of tabs.slice(1)) await shows(tab, 'one,two');
    await hasOneStream();
    // Each follower that is heard of later is another request, which ends the one before: three tabs, then two.
    expect(asked.filter((path) => path.endsWith('/realtime')).length).toBeLessThanOrEqual(3 + 2);
    await context.close();
  });

  it('goes on after it was offline, with what happened meanwhile', async () => {
    const { context, tabs } = await openTabs(1);
    const of = `offline ${++made}`;
    const posts = writer.collection('posts');
    const { _id } = await posts.insert({ of, n: 1, text: 'goes' });
    await tabs[0]!.evaluate(`void follow('${of}')`);
    await shows(tabs[0]!, 'goes');
    await context.setOffline(true);
    await posts.remove(_id);
    await posts.insert({ of, n: 2, text: 'came' });
    await context.setOffline(false);
    await shows(tabs[0]!, 'came');
    await context.close();
  });

  it('catches up with another page, which went on by an EventSource of a ticket', async () => {
    const away = await openTabs(1);
    const there = await openTabs(1);
    const of = `pages ${++made}`;
    const posts = writer.collection('posts');
    const { _id } = await posts.insert({ of, n: 1, text: 'goes' });
    await away.tabs[0]!.evaluate(`void follow('${of}')`);
    await shows(away.tabs[0]!, 'goes');
    await there.tabs[0]!.evaluate(`(async () => {
      const headers = { 'x-api-key': '${shop.publishable}' };
      const asked = await fetch('${test.url}/api/realtime/ticket', { method: 'POST', headers });
      const query = new URLSearchParams({ of: '${of}', ticket: (await asked.json()).data.ticket });
      const source = new EventSource('${test.url}/api/data/posts/changes?' + query);
      const texts = new Map();
      source.addEventListener('change', ({ data }) => {
        const { type, id, document } = JSON.parse(data);
        if (type === 'gone') texts.delete(id);
        else texts.set(id, document.text);
      });
      source.addEventListener('ready', () => (shown = [...texts.values()].join()));
    })()`);
    await shows(there.tabs[0]!, 'goes');
    await away.context.setOffline(true);
    await posts.remove(_id);
    await posts.insert({ of, n: 2, text: 'came' });
    await shows(there.tabs[0]!, 'came');
    await away.context.setOffline(false);
    await shows(away.tabs[0]!, 'came');
    await away.context.close();
    await there.context.close();
  });

  it('uploads 20 MB and tells how far it is', async () => {
    const { context, tabs } = await openTabs(1);
    // A browser tells of progress every 50 ms: by loopback all may be sent before the first time.
    const session = await context.newCDPSession(tabs[0]!);
    const aSecond = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 20 * 1024 * 1024 };
    await session.send('Network.emulateNetworkConditions', aSecond);
    const { steps, url } = await tabs[0]!.evaluate<{ steps: number[]; url: string }>(`(async () => {
      const steps = [];
      const file = new File([new Uint8Array(20 * 1024 * 1024)], 'large.bin', { type: 'application/octet-stream' });
      const { url } = await api.files.upload(file, { onProgress: (sent, total) => steps.push(sent / total) });
      return { steps, url };
    })()`);
    expect([steps[0], steps.at(-1)]).toEqual([0, 1]);
    expect(steps.some((share) => share > 0 && share < 1)).toBe(true);
    expect([...steps].sort((a, b) => a - b)).toEqual(steps);
    const head = await fetch(url, { method: 'HEAD' });
    expect(head.headers.get('content-length')).toBe(String(20 * 1024 * 1024));
    await context.close();
  });
});
