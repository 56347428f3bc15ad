import { createServer } from 'node:http';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { BrowserContext, Page } from 'playwright-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { setSocialProvider, updateProject } from '../../world/projects.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { CHROMIUM, useChromium } from '../../helpers/chromium.js';
import { listen } from '../../helpers/listen.js';
import { sdk } from '../../helpers/hosted-sdk.js';
import { readMigrationTable } from '../../helpers/migration-table.js';
import { openSocialIssuer } from '../../helpers/social-issuer.js';
import { buildEmail, PASSWORD, readMailedCode } from '../../helpers/user-client.js';
import { use, useTestApp } from '../../helpers/use.js';

// The React package of the hosted service as it is published, in a browser, on a page of another origin than the
// service: it does what the guide "Migration from the hosted service" says.
const promised = readMigrationTable('React package');
const NEW_PASSWORD = 'a brand new password';

let context: BrowserContext;
let page: Page;

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
const shop = await buildProject(test.app);
await updateProject(test.app, shop.project.name, { publishableUploads: true });
await buildCollection(test.app, shop.project, {
  name: 'notes',
  fields: [
    { name: 'text', type: 'String', required: true },
    { name: 'userId', type: 'String' },
  ],
  rls: { mode: 'private', ownerField: 'userId' },
});
const bundled = await build({
  entryPoints: [join(import.meta.dirname, '../hosted-react-app.js')],
  bundle: true,
  format: 'esm',
  platform: 'browser',
  define: { 'process.env.NODE_ENV': '"production"' },
  write: false,
});
const settings = JSON.stringify({ key: shop.publishable, url: test.url });
const html = `<!doctype html><title>app</title><div id="app"></div>
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
const issuer = use(await openSocialIssuer());
const { url, clientId, clientSecret } = issuer;
const home = { issuer: url, clientId, clientSecret, redirectUrls: [`${site.url}/`] };
await setSocialProvider(test.app, shop.project, { ...home, name: 'google', tokenInAddress: true });
await setSocialProvider(test.app, shop.project, { ...home, name: 'github' });
const browser = await useChromium();

const settled = () => page.waitForFunction('globalThis.shown && !shown.useUser.isInitializing');
const shows = (expression: string) => page.waitForFunction(expression);
/** What a function of `useAuth` answers; the page has rendered since. */
const ask = <T>(name: string, payload: object = {}): Promise<T> =>
  page.evaluate(`shown.useAuth.${name}(${JSON.stringify(payload)})`);
const failure = (name: string, payload: object): Promise<string> =>
  page.evaluate(`shown.useAuth.${name}(${JSON.stringify(payload)}).then(() => 'answered', ({ name }) => name)`);

async function signUp(): Promise<string> {
  const email = buildEmail();
  await ask('signUp', { email, password: PASSWORD, name: 'Ada' });
  await ask('login', { email, password: PASSWORD });
  await shows('shown.useUser.isAuthenticated');
  return email;
}

describe.skipIf(!CHROMIUM)('the React package of the hosted service', () => {
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
    await page.goto(site.url);
    await settled();
  });
  afterEach(() => context.close());

  it('has no export, and no member of useAuth, of which the guide says nothing', async () => {
    const exported = await page.evaluate<string[]>('exported');
    const members = await page.evaluate<string[]>('Object.keys(shown.useAuth)');
    // All of the SDK comes along.
    const own = exported.filter((name) => !Object.hasOwn(sdk, name));
    expect(exported.filter((name) => Object.hasOwn(sdk, name)).sort()).toEqual(
      Object.keys(sdk)
        .filter((name) => name !== 'default')
        .sort(),
    );
    expect([...promised.keys()].sort()).toEqual([...own, ...members.map((name) => `useAuth.${name}`)].sort());
    const differs = [...promised].filter(([, does]) => does !== 'works').map(([name]) => name);
    expect(differs).toEqual(['useAuth.socialLogin']);
  });

  it('signs up and in, lets users in and guests out, and is signed in after a reload until it signs out', async () => {
    expect(await page.textContent('#closed')).toBe('Sign in first');
    expect(await page.evaluate('[routes.refused, routes.left, shown.useUser.user]')).toEqual([1, 0, null]);
    const email = await signUp();
    for (const hook of ['useAuth', 'useUser', 'useUrContext'])
      expect(await page.evaluate(`shown.${hook}.user.email`)).toBe(email);
    expect(await page.textContent('#inside')).toBe('Only for users');
    expect(await page.evaluate('[routes.left, document.querySelector("#guest")]')).toEqual([1, null]);
    await page.reload();
    await shows(`shown?.useUser.user?.email === '${email}'`);
    expect(await page.evaluate('shown.useAuth.isLoading')).toBe(false);
    await ask('logout');
    await page.waitForSelector('#closed');
    await page.reload();
    await settled();
    expect(await page.evaluate('shown.useAuth.isAuthenticated')).toBe(false);
  });

  it('keeps private documents and files', async () => {
    await signUp();
    const { text, userId } = await page.evaluate<Record<string, string>>(
      `shown.useDb.insert('notes', { text: 'Buy milk' })`,
    );
    expect([text, userId]).toEqual(['Buy milk', await page.evaluate('shown.useUser.user._id')]);
    expect(await page.evaluate(`shown.useDb.getAll('notes').then((all) => all.map(({ text }) => text))`)).toEqual([
      text,
    ]);
    const read = await page.evaluate(`(async () => {
      const { url } = await shown.useStorage.upload(new File(['hello'], 'hello.txt', { type: 'text/plain' }));
      return (await fetch(url)).text();
    })()`);
    expect(read).toBe('hello');
    await ask('logout');
    await signUp();
    expect(await page.evaluate(`shown.useDb.getAll('notes')`)).toEqual([]);
  });

  it('confirms the address, changes the password and resets a forgotten one', async () => {
    const email = await signUp();
    await ask('verifyEmail', { email, otp: await readMailedCode(test, email) });
    expect(await page.evaluate('shown.useAuth.authApi.me().then(({ emailVerified }) => emailVerified)')).toBe(true);
    await ask('changePassword', { currentPassword: PASSWORD, newPassword: NEW_PASSWORD });
    await ask('logout');
    expect(await failure('login', { email, password: PASSWORD })).toBe('AuthError');
    await shows('shown.useAuth.error');
    await page.evaluate('shown.useAuth.clearError()');
    await shows('shown.useAuth.error === null');
    await ask('requestPasswordReset', { email });
    await ask('resetPassword', { email, otp: await readMailedCode(test, email), newPassword: PASSWORD });
    await ask('login', { email, password: PASSWORD });
    await shows('shown.useUser.isAuthenticated');
  });

  it('shows a form to sign up, and a button to sign out', async () => {
    const email = buildEmail();
    await page.click('#guest button:has-text("Sign up")');
    await page.fill('#guest input[type="text"]', 'Ada');
    await page.fill('#guest input[type="email"]', email);
    await page.fill('#guest input[type="password"]', PASSWORD);
    await page.click('#guest button[type="submit"]');
    await shows(`shown.useUser.user?.email === '${email}'`);
    await page.click('#app > div button');
    await page.click('text=Logout');
    await page.waitForSelector('#guest');
  });

  it('comes back signed in from a provider that may send a token, and from no other', async () => {
    issuer.behaviour = { sub: 'person-1', email: buildEmail(), emailVerified: true };
    await page.click('#guest button:has-text("Google")');
    await page.waitForURL(`${site.url}/`);
    await shows(`shown?.useUser.user?.email === '${issuer.behaviour.email}'`);
    expect(page.url()).toBe(`${site.url}/`);
    await ask('logout');
    await page.waitForSelector('#guest');
    issuer.behaviour = { sub: '2', email: buildEmail(), emailVerified: true };
    await page.evaluate(`shown.useAuth.socialLogin('github')`);
    await page.waitForURL(`${site.url}/?rtCode=*`);
    await settled();
    expect(await page.evaluate('shown.useUser.user')).toBeNull();
  });
});
