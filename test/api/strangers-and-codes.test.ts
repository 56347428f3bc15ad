import { beforeEach, describe, expect, it } from 'vitest';
import { updateProject } from '../world/projects.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, buildEmail, countMails, openUserClient, readMailedCode } from '../helpers/user-client.js';

// What people without a session of an account can do to the mails and codes of its owner.

const OWNER = '198.51.100.7';
const clock = createFakeClock();
let shop: TestProject;
let email: string;
let token: string;

const test = await useTestApp({
  settings: { BSVC_BCRYPT_COST: '4', BSVC_TRUST_PROXY: '1', BSVC_ACCESS_TOKEN_TTL: '30d' },
  clock,
});

interface Answer {
  status: number;
  code?: string;
  retryAfter: string | null;
}
async function ask(path: string, body: object, from: string, headers: Record<string, string> = {}): Promise<Answer> {
  const reply = await fetch(`${test.url}/api/userAuth${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': shop.publishable,
      'x-forwarded-for': from,
      ...headers,
    },
    body: JSON.stringify(body),
  });
  const { code } = (await reply.json()) as { code?: string };
  return { status: reply.status, code, retryAfter: reply.headers.get('retry-after') };
}

beforeEach(async () => {
  shop = await buildProject(test.app);
  await updateProject(test.app, shop.project.name, { signIn: { codeLogin: 'existing' } });
  email = buildEmail('owner');
  const owner = openUserClient(test, shop.publishable);
  const signedUp = await owner.signUp({ email }, { 'x-forwarded-for': OWNER });
  token = (signedUp.body as { accessToken: string }).accessToken;
  const otp = await readMailedCode(test, email);
  expect((await owner.post('/verify-email', { email, otp }, bearer(token))).status).toBe(200);
  clock.advance(2 * 3_600_000);
});

/** Every route by which a caller without a session has a mail sent to an address. */
const ASKING = ['/login/code', '/request-password-reset', '/resend-verification-otp'];
/** Each kind of code, and where it is sent back. */
const GUESSING: [string, string, object][] = [
  ['/login/code', '/login/code/verify', {}],
  ['/request-password-reset', '/reset-password', { newPassword: 'a new password' }],
];

describe('strangers who ask for mails again and again', () => {
  it.each(ASKING)('by %s leave mails to the owner, in each hour of a day', async (path) => {
    let mailed = 0;
    for (let hour = 0; hour < 5; hour++) {
      for (let minute = 0; minute < 3; minute++) {
        for (const each of new Set([path, ...ASKING])) await ask(each, { email }, `203.0.113.${minute}`);
        clock.advance(61_000);
        await countMails(test, email);
      }
      mailed = await countMails(test, email);
      clock.advance(58 * 60_000);
    }
    // Two of an hour's three, and seven of a day's ten with that of the sign-up; what is asked for counts, whether or
    // not an account wants it.
    expect(mailed).toBeGreaterThan(3);
    expect(mailed).toBeLessThan(8);
    // From the network where the owner is signed in, without a token; then in the owner's session elsewhere.
    expect((await ask('/login/code', { email }, OWNER)).status).toBe(200);
    expect(await countMails(test, email)).toBe(mailed + 1);
    clock.advance(61_000);
    expect((await ask('/request-password-reset', { email }, '192.0.2.9', bearer(token))).status).toBe(200);
    expect(await countMails(test, email)).toBe(mailed + 2);
  });

  it.each(GUESSING)(
    'and guess a code of %s leave tries to who asked for it, five in all',
    async (path, verify, more) => {
      await ask(path, { email }, OWNER);
      const otp = await readMailedCode(test, email);
      const wrong = otp === '000000' ? '000001' : '000000';
      for (let n = 0; n < 8; n++) {
        const guess = await ask(verify, { email, otp: wrong, ...more }, `203.0.113.${n}`);
        expect(guess.code).toBe('OTP_INVALID');
      }
      expect((await ask(verify, { email, otp, ...more }, '203.0.113.99')).code).toBe('OTP_INVALID');
      expect((await ask(verify, { email, otp: wrong, ...more }, OWNER)).code).toBe('OTP_INVALID');
      expect((await ask(verify, { email, otp, ...more }, OWNER)).status).toBe(200);
    },
  );

  it('and guess all day leave tries to the owner', async () => {
    for (let code = 0; code < 8; code++) {
      await ask('/login/code', { email }, '203.0.113.1');
      for (let n = 0; n < 5; n++) await ask('/login/code/verify', { email, otp: '000000' }, '203.0.113.1');
      await countMails(test, email);
      clock.advance(3_600_000);
    }
    await ask('/login/code', { email }, OWNER);
    const otp = await readMailedCode(test, email);
    expect((await ask('/login/code/verify', { email, otp }, OWNER)).status).toBe(200);
  });
});

describe('a code that was asked for a moment ago', () => {
  it.each(ASKING)('by %s is said to be so, alike without an account', async (path) => {
    for (const to of [email, buildEmail('nobody')]) {
      expect((await ask(path, { email: to }, '203.0.113.2')).status).toBe(200);
      clock.advance(20_000);
      const again = await ask(path, { email: to }, '203.0.113.3');
      expect(again).toEqual({ status: 429, code: 'CODE_SENT_RECENTLY', retryAfter: '40' });
      clock.advance(40_000);
      expect((await ask(path, { email: to }, '203.0.113.3')).status).toBe(200);
    }
  });
});
