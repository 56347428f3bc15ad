import { createServer } from 'node:http';
import { chromium, type Browser, type CDPSession, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readPackageFile } from '../world/app.js';
import { drainJobs, listOutbox } from '../world/jobs.js';
import { changeProject, setSocialProvider } from '../world/projects.js';
import { totpCode } from '../world/users.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { CHROMIUM } from '../helpers/chromium.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { listen, type Listening } from '../helpers/listen.js';
import { openSocialIssuer, type SocialIssuer } from '../helpers/social-issuer.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

const PASSWORD = 'correct horse battery';
const clock = createFakeClock(Date.now());
let test: TestApp;
let shop: TestProject;
let site: Listening;
let issuer: SocialIssuer;
let browser: Browser;
let page: Page;
let cdp: CDPSession;
let address: string;

/** The example page, with key, server and provider of this test. */
const examplePage = (): string =>
  readPackageFile('templates', 'examples', 'sign-in.html')
    .replaceAll('http://localhost:4000', test.url)
    .replace('pk_live_…', shop.publishable)
    .replace("PROVIDER = 'google'", "PROVIDER = 'acme'");

beforeAll(async () => {
  test = await openTestApp({ clock, settings: { BSVC_BCRYPT_COST: '4', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
  shop = await buildProject(test.app);
  issuer = await openSocialIssuer();
  site = await listen(createServer((_, reply) => reply.setHeader('content-type', 'text/html').end(examplePage())));
  const origin = site.url.replace('127.0.0.1', 'localhost').replace(/\/$/, '');
  address = `${origin}/sign-in.html`;
  await changeProject(test.app, shop.project, {
    signIn: {
      codeLogin: 'signup',
      mfa: 'optional',
      anonymous: true,
      passkeys: { rpId: 'localhost', origins: [origin] },
      redirects: [address],
    },
  });
  const { clientId, clientSecret, url } = issuer;
  const provider = { name: 'acme', issuer: url, clientId, clientSecret, redirectUrls: [address] };
  await setSocialProvider(test.app, shop.project, provider);
  if (!CHROMIUM) return;
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  page = await (await browser.newContext()).newPage();
  cdp = await page.context().newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
});
afterAll(async () => {
  await browser?.close();
  await site.close();
  await issuer.close();
  await test.close();
});

/** Fills fields of a form and presses a button; what the page says then. */
async function press(form: string, way: string, given: Record<string, string> = {}): Promise<string> {
  for (const [name, value] of Object.entries(given)) await page.fill(`#${form} [name=${name}]`, value);
  await page.evaluate("document.getElementById('message').textContent = '…'");
  await page.click(`#${form} button[value=${way}]`);
  return said();
}
async function said(): Promise<string> {
  await page.waitForFunction("!['', '…'].includes(document.getElementById('message')?.textContent ?? '')");
  return page.innerText('#message');
}
const who = (): Promise<string> => page.innerText('#who');
const leave = (): Promise<string> => press('account', 'signOut');
async function mailTo(email: string): Promise<string> {
  await drainJobs(test.app);
  return (await listOutbox(test.app, { to: email, limit: 1 }))[0]!.text!;
}
const codeTo = async (email: string): Promise<string> => /\b\d{6}\b/.exec(await mailTo(email))![0];

describe.skipIf(!CHROMIUM)('the page of the guide “Auth”', () => {
  it('signs in by each way, and adds ways to an account', async () => {
    await page.goto(address);

    // A guest, who stays by an address.
    expect(await press('enter', 'guest')).toBe('Done');
    expect(await who()).toBe('Guest');
    expect(await press('account', 'stay', { email: 'ann@example.test' })).toBe('Done');
    const otp = await codeTo('ann@example.test');
    expect(await press('account', 'confirm', { email: 'ann@example.test', otp })).toBe('Done');
    expect(await who()).toBe('ann@example.test, confirmed');
    await leave();

    // A mailed code, by its link, which only fills it in.
    expect(await press('enter', 'mailCode', { email: 'ann@example.test' })).toMatch(/^If the address/);
    const link = /http:\S+#email=\S+/.exec(await mailTo('ann@example.test'))![0];
    await page.goto('about:blank');
    await page.goto(link);
    await page.waitForFunction("document.querySelector('#code [name=otp]')?.value.length === 6");
    expect(page.url()).toBe(address);
    expect(await press('code', 'useCode')).toBe('Done');
    expect(await who()).toBe('ann@example.test, confirmed');

    // A passkey.
    expect(await press('account', 'addPasskey')).toBe('Done');
    await leave();
    expect(await press('enter', 'passkey')).toBe('Done');
    expect(await who()).toBe('ann@example.test, confirmed');

    // An identity, linked and then signed in with; its address is another one.
    issuer.behaviour = { sub: 'ann-at-work', email: 'ann@work.example', emailVerified: true };
    await page.click('#account button[value=link]');
    await page.waitForFunction("document.getElementById('message')?.textContent === 'Done'");
    await leave();
    await page.click('#enter button[value=provider]');
    await page.waitForFunction("document.getElementById('who')?.textContent.startsWith('ann@example.test')");
    await leave();

    // A password, and an authenticator app.
    expect(await press('enter', 'signUp', { email: 'bob@example.test', password: PASSWORD })).toBe('Done');
    const proof = { email: 'bob@example.test', otp: await codeTo('bob@example.test') };
    expect(await press('account', 'confirm', proof)).toBe('Done');
    const uri = new URL(await press('account', 'beginApp'));
    const secret = uri.searchParams.get('secret')!;
    const shown = await press('account', 'confirmApp', { app: totpCode(secret, clock.now()) });
    const recovery = shown.split('\n');
    expect(recovery).toHaveLength(10);
    await leave();
    expect(await press('enter', 'signIn', { email: 'bob@example.test', password: PASSWORD })).toMatch(/^MFA_REQUIRED/);
    expect(await press('factor', 'useFactor', { totp: recovery[0]! })).toBe('Done');
    expect(await who()).toBe('bob@example.test, confirmed');
    clock.advance(11 * 60_000);
    expect(await press('account', 'endOthers')).toMatch(/^STEP_UP_REQUIRED/);
    expect(await press('account', 'prove', { proof: recovery[1]! })).toBe('Done');
    expect(await press('account', 'endOthers')).toMatch(/^\d+ ended$/);

    // An invitation.
    const sent = await fetch(`${test.url}/api/userAuth/invites`, {
      method: 'POST',
      headers: { 'x-api-key': shop.secret, 'content-type': 'application/json' },
      body: JSON.stringify({ email: 'bob@example.test', redirect: address }),
    });
    expect(sent.status).toBe(201);
    await page.goto('about:blank');
    await page.goto(/http:\S+#invite=[\w-]+/.exec(await mailTo('bob@example.test'))![0]);
    expect(await said()).toBe('Invited: bob@example.test');
    expect(await press('account', 'acceptInvite')).toBe('Done');
  });
});
