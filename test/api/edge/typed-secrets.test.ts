import { beforeEach, describe, expect, it } from 'vitest';
import { updateProject } from '../../world/projects.js';
import { totpCode } from '../../world/users.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { useTestApp } from '../../helpers/use.js';
import {
  bearer,
  buildEmail,
  openUserClient,
  PASSWORD,
  readMailedCode,
  type UserClient,
} from '../../helpers/user-client.js';

// What people type or paste in place of a code or password, for every route that takes one.

const clock = createFakeClock();
let shop: TestProject;
let client: UserClient;
const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
beforeEach(async () => {
  shop = await buildProject(test.app);
  await updateProject(test.app, shop.project.name, { signIn: { codeLogin: 'existing', mfa: 'optional' } });
  client = openUserClient(test, shop.publishable);
});

const inScript = (zero: number) => (code: string) =>
  code.replace(/[0-9]/g, (digit) => String.fromCodePoint(zero + Number(digit)));
const FORMS: [string, (code: string) => string][] = [
  ['with a space in the middle', (code) => `${code.slice(0, 3)} ${code.slice(3)}`],
  ['with a dash in the middle', (code) => `${code.slice(0, 3)}-${code.slice(3)}`],
  ['with spaces all over', (code) => [...code].join(' ')],
  ['with a line end', (code) => `${code}\r\n`],
  ['with a tab and a no-break space', (code) => `\t${code}\u00a0`],
  ['with marks of direction', (code) => `\u200e${code}\u200f`],
  ['in full-width digits', inScript(0xff10)],
  ['in Arabic digits', inScript(0x0660)],
  ['in Persian digits', inScript(0x06f0)],
  ['in Devanagari digits', inScript(0x0966)],
  ['in bold mathematical digits', inScript(0x1d7ce)],
];

const tokenOf = ({ body }: { body: unknown }): string => (body as { accessToken: string }).accessToken;
const signedUp = async () => {
  const email = buildEmail();
  return { email, token: tokenOf(await client.signUp({ email })) };
};

describe.each(FORMS)('a code %s', (_form, typed) => {
  it('is the code that was mailed', async () => {
    const { email, token } = await signedUp();
    const otp = typed(await readMailedCode(test, email));
    expect((await client.post('/verify-email', { email, otp }, bearer(token))).status).toBe(200);
    await client.post('/login/code', { email });
    const login = { email, otp: typed(await readMailedCode(test, email)) };
    expect((await client.post('/login/code/verify', login)).status).toBe(200);
    clock.advance(61_000);
    await client.post('/step-up/code', undefined, bearer(token));
    const proof = { otp: typed(await readMailedCode(test, email)) };
    expect((await client.post('/step-up', proof, bearer(token))).status).toBe(200);
    // An address gets three mails an hour.
    clock.advance(3_600_000);
    await client.post('/request-password-reset', { email });
    const reset = { email, otp: typed(await readMailedCode(test, email)), newPassword: PASSWORD };
    expect((await client.post('/reset-password', reset)).status).toBe(200);
  });

  it('is the code of the app, and a recovery code', async () => {
    const { email, token } = await signedUp();
    await client.post('/verify-email', { email, otp: await readMailedCode(test, email) }, bearer(token));
    const begun = await client.post('/mfa/totp', { currentPassword: PASSWORD }, bearer(token));
    const { secret } = (begun.body as { data: { secret: string } }).data;
    const confirmed = await client.post(
      '/mfa/totp/confirm',
      { code: typed(totpCode(secret, clock.now())) },
      bearer(token),
    );
    expect(confirmed.status).toBe(200);
    const [recoveryCode] = (confirmed.body as { data: { recoveryCodes: string[] } }).data.recoveryCodes;
    clock.advance(31_000);
    for (const second of [
      { totp: typed(totpCode(secret, clock.now())) },
      { recoveryCode: typed(recoveryCode!).toUpperCase() },
    ]) {
      const { mfaToken } = ((await client.logIn(email)).body as { data: { mfaToken: string } }).data;
      expect((await client.post('/login/mfa', { mfaToken, ...second })).status).toBe(200);
    }
  });
});

describe('a password', () => {
  const VISIBLE = ['Pässwörd-1', 'Ǻngström', '한국어 비밀번호', 'ﬁne ﬁsh', '１２３４５６', 'ä'.repeat(36)];
  const TYPED = ['NFC', 'NFD', 'NFKC', 'NFKD'] as const;

  it.each(VISIBLE)('%s is the same however a keyboard composes it, wherever it is asked for', async (visible) => {
    for (const chosen of TYPED) {
      const email = buildEmail();
      const token = tokenOf(await client.signUp({ email, password: visible.normalize(chosen) }));
      for (const typed of TYPED) {
        const password = visible.normalize(typed);
        expect([chosen, typed, (await client.logIn(email, password)).status]).toEqual([chosen, typed, 200]);
        const proof = { currentPassword: password };
        expect((await client.post('/step-up', proof, bearer(token))).status).toBe(200);
      }
      expect((await client.logIn(email, 'another password')).status).toBe(401);
    }
  });

  it('has 6 to 72 bytes in the form that is compared, and is never cut off', async () => {
    const statusOf = async (password: string) => (await client.signUp({ email: buildEmail(), password })).status;
    expect(await statusOf('ä'.repeat(37).normalize('NFD'))).toBe(400);
    expect(await statusOf('é'.repeat(2).normalize('NFD'))).toBe(400);
    // Its normal form is eleven times as long.
    const email = buildEmail();
    const long = '\ufdfa'.repeat(20);
    expect((await client.signUp({ email, password: long })).status).toBe(201);
    expect((await client.logIn(email, long)).status).toBe(200);
    expect((await client.logIn(email, `${'\ufdfa'.repeat(19)}x`)).status).toBe(401);
  });
});
