import { createServer } from 'node:http';
import { join } from 'node:path';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { createClient } from '../../world/client.js';
import { CHROMIUM, useChromium } from '../../helpers/chromium.js';
import { listen } from '../../helpers/listen.js';
import { use, useTestApp } from '../../helpers/use.js';

// What the guide "React, Next.js, React Native" shows, with React 18 itself.
const APP = `
import { useSyncExternalStore, useState, createElement, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { createClient } from './client.ts';
import { useDocument, useFollow, useUser } from './client-react.ts';

const api = createClient(globalThis.settings);
globalThis.api = api;
globalThis.renders = 0;
const useConnection = () => useSyncExternalStore(api.connection.onChange, () => api.connection.state, () => 'online');
function App() {
  globalThis.renders++;
  const user = useUser(api);
  return createElement('p', null, (user ? user.name : 'nobody') + ' ' + useConnection());
}
globalThis.onServer = renderToString(createElement(App));
createRoot(document.getElementById('app')).render(createElement(App));

function List() {
  const [board, setBoard] = useState('a');
  globalThis.showBoard = setBoard;
  const { data, error } = useFollow(api, 'cards', { filter: { board }, sort: 'title' });
  return createElement('ol', null, error ? error.code : data ? data.map(({ title }) => title).join(' ') : 'loading');
}
function Card({ id }) {
  const { data } = useDocument(api, 'cards', id);
  return createElement('b', null, data === undefined ? 'loading' : data === null ? 'none' : data.title);
}
globalThis.showCards = (id) => {
  const both = createElement(StrictMode, null, createElement(List), createElement(Card, { id }));
  globalThis.cardsOnServer = renderToString(both);
  const root = createRoot(document.getElementById('cards'));
  root.render(both);
  return root;
};
`;

const test = await useTestApp();
const shop = await buildProject(test.app);
await buildCollection(test.app, shop.project, { name: 'cards' });
const bundled = await build({
  stdin: { contents: APP, resolveDir: join(import.meta.dirname, '../../../src/client') },
  bundle: true,
  format: 'esm',
  platform: 'browser',
  splitting: false,
  define: { 'process.env.NODE_ENV': '"production"' },
  write: false,
});
const settings = JSON.stringify({ url: test.url, key: shop.publishable });
const html = `<!doctype html><title>app</title><div id="app"></div><div id="cards"></div>
<script>globalThis.settings = ${settings}</script><script type="module" src="/app.js"></script>`;
const site = use(
  await listen(
    createServer((request, response) => {
      const isScript = request.url === '/app.js';
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
      response.end(isScript ? bundled.outputFiles[0]!.contents : html);
    }),
  ),
);
const browser = await useChromium();

describe.skipIf(!CHROMIUM)('a component of React that shows the user', () => {
  it('renders once for each change, in all tabs, and says when the network is gone', async () => {
    const context = await browser.newContext();
    const [page, other] = [await context.newPage(), await context.newPage()];
    const errors: Error[] = [];
    for (const tab of [page, other]) {
      tab.on('pageerror', (error) => errors.push(error));
      await tab.goto(site.url);
      await tab.waitForFunction(`document.body.innerText.trim() === 'nobody online'`);
    }
    expect(await page.evaluate('onServer')).toContain('nobody online');
    const shows = (text: string) =>
      Promise.all([page, other].map((tab) => tab.waitForFunction(`document.body.innerText.trim() === '${text}'`)));
    const before = await page.evaluate<number>('renders');
    const account = `{ email: 'ann@example.test', password: 'secret word', name: 'Ann' }`;
    await page.evaluate(`api.auth.signUp(${account})`);
    await shows('Ann online');
    await page.evaluate(`api.auth.refresh()`);
    await page.evaluate(`api.auth.updateProfile({ name: 'Anna' })`);
    await shows('Anna online');
    await context.setOffline(true);
    await shows('Anna offline');
    expect(await page.evaluate(`api.auth.me().catch(({ code }) => code)`)).toBe('OFFLINE');
    await context.setOffline(false);
    await shows('Anna online');
    await other.evaluate(`api.auth.signOut()`);
    await shows('nobody online');
    // Sign-up, profile, offline, online, sign-out; one more where the profile says more than the sign-up.
    expect((await page.evaluate<number>('renders')) - before).toBeLessThanOrEqual(6);
    expect(errors).toEqual([]);
    await context.close();
  });
});

describe.skipIf(!CHROMIUM)('a component of React that shows documents', () => {
  it('follows a list and a document, those of other options when they change, until it is gone', async () => {
    const page = await browser.newPage();
    const errors: Error[] = [];
    page.on('pageerror', (error) => errors.push(error));
    await page.goto(site.url);
    const server = createClient({ url: test.url, key: shop.secret }).collection('cards');
    const { _id } = await server.insert({ board: 'a', title: 'one' });
    await server.insert({ board: 'b', title: 'other' });
    const shows = (list: string, card: string) =>
      page.waitForFunction(
        `document.querySelector('ol')?.innerText === '${list}' && document.querySelector('b').innerText === '${card}'`,
      );
    await page.evaluate(`{ globalThis.root = showCards('${_id}') }`);
    expect(await page.evaluate('cardsOnServer')).toBe('<ol>loading</ol><b>loading</b>');
    await shows('one', 'one');
    await server.insert({ board: 'a', title: 'again' });
    await server.update(_id, { title: 'two' });
    await shows('again two', 'two');
    await page.evaluate(`showBoard('b')`);
    await shows('other', 'two');
    await server.remove(_id);
    await shows('other', 'none');
    // With its last follower ends the stream.
    const ended = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/api/realtime'));
    await page.evaluate('root.unmount()');
    await ended;
    expect(errors).toEqual([]);
    await page.close();
  });
});
