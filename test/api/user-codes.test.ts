import { describe, expect, it } from 'vitest';
import type { Response } from 'supertest';
import { drainJobs, listOutbox } from '../world/jobs.js';
import { mailLogStore } from '../world/stored.js';
import { buildProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, buildEmail, countMails, openUserClient, readMailedCode } from '../helpers/user-client.js';

const clock = createFakeClock();
const NEW_PASSWORD = 'a brand new password';

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
const project = await buildProject(test.app, 'Book shop');
const client = openUserClient(test, project.publishable);
const server = openUserClient(test, project.secret);

const codeOf = (reply: Response): [number, string] => [reply.status, (reply.body as { code: string }).code];
const OTP_INVALID = [400, 'OTP_INVALID'];

async function signUp(): Promise<{ email: string; accessToken: string; refreshToken: string }> {
  const email = buildEmail();
  const reply = await client.signUp({ email });
  const { accessToken } = reply.body as { accessToken: string };
  return { email, accessToken, refreshToken: reply.headers['x-refresh-token'] as string };
}

/** Six digits that are not the code. */
const otherThan = (code: string): string => (code === '000000' ? '000001' : '000000');

describe('POST /api/userAuth/verify-email', () => {
  it('confirms the address with the code mailed at signup, once', async () => {
    const { email, accessToken } = await signUp();
    const otp = await readMailedCode(test, email);
    const reply = await client.post('/verify-email', { email: email.toUpperCase(), otp }, bearer(accessToken));
    expect([reply.status, reply.body]).toEqual([200, { success: true, message: 'E-mail address confirmed' }]);
    expect((await client.me(accessToken)).body).toMatchObject({ emailVerified: true });
    expect(codeOf(await client.post('/verify-email', { email, otp }))).toEqual(OTP_INVALID);
  });

  it('refuses a wrong code, another user’s, one for another purpose, one of another project', async () => {
    const { email } = await signUp();
    const { email: neighbour } = await signUp();
    const otp = await readMailedCode(test, email);
    expect(codeOf(await client.post('/verify-email', { email, otp: otherThan(otp) }))).toEqual(OTP_INVALID);
    const foreign = await readMailedCode(test, neighbour);
    if (foreign !== otp) expect((await client.post('/verify-email', { email, otp: foreign })).status).toBe(400);
    const reset = { email, otp, newPassword: NEW_PASSWORD };
    expect(codeOf(await client.post('/reset-password', reset))).toEqual(OTP_INVALID);
    const other = openUserClient(test, (await buildProject(test.app)).publishable);
    expect(codeOf(await other.post('/verify-email', { email, otp }))).toEqual(OTP_INVALID);
    expect((await client.post('/verify-email', { email, otp })).status).toBe(200);
  });

  it('accepts no code after five tries, however many come at once', async () => {
    const { email } = await signUp();
    const otp = await readMailedCode(test, email);
    const wrong = Array.from({ length: 20 }, () => client.post('/verify-email', { email, otp: otherThan(otp) }));
    expect(new Set((await Promise.all(wrong)).map(({ status }) => status))).toEqual(new Set([400]));
    expect(codeOf(await client.post('/verify-email', { email, otp }))).toEqual(OTP_INVALID);
  });

  it('accepts a code for five minutes', async () => {
    const { email } = await signUp();
    const { email: late } = await signUp();
    const [otp, expired] = [await readMailedCode(test, email), await readMailedCode(test, late)];
    clock.advance(5 * 60_000 - 1);
    expect((await client.post('/verify-email', { email, otp })).status).toBe(200);
    clock.advance(1);
    expect(codeOf(await client.post('/verify-email', { email: late, otp: expired }))).toEqual(OTP_INVALID);
  });

  it('accepts a code once of many requests at once', async () => {
    const { email } = await signUp();
    const otp = await readMailedCode(test, email);
    const replies = await Promise.all(Array.from({ length: 5 }, () => client.post('/verify-email', { email, otp })));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  it.each([
    ['no email', { otp: '123456' }, 'email is required'],
    ['no code', { email: 'a@b.c' }, 'otp is required'],
    ['a number as code', { email: 'a@b.c', otp: 123456 }, 'otp must be a String'],
    ['an operator', { email: { $ne: null }, otp: '123456' }, 'email must be a String'],
  ])('answers 400 for %s', async (_what, body, message) => {
    const reply = await client.post('/verify-email', body);
    expect((reply.body as { message: string }).message).toBe(`Validation failed: ${message}`);
  });
});

describe('POST /api/userAuth/resend-verification-otp', () => {
  it('mails a new code after a minute and ends the old one', async () => {
    const { email } = await signUp();
    const first = await readMailedCode(test, email);
    await client.post('/resend-verification-otp', { email });
    expect(await countMails(test, email)).toBe(1);
    clock.advance(60_000);
    await client.post('/resend-verification-otp', { email });
    expect(await countMails(test, email)).toBe(2);
    const second = await readMailedCode(test, email);
    if (first !== second) expect((await client.post('/verify-email', { email, otp: first })).status).toBe(400);
    expect((await client.post('/verify-email', { email, otp: second })).status).toBe(200);
  });

  it('mails a code that works on the day after one was mailed', async () => {
    const { email } = await signUp();
    expect(await countMails(test, email)).toBe(1);
    clock.advance(25 * 60 * 60_000);
    await client.post('/resend-verification-otp', { email });
    expect(await countMails(test, email)).toBe(2);
    const otp = await readMailedCode(test, email);
    expect((await client.post('/verify-email', { email, otp })).status).toBe(200);
  });

  it('answers the same for an unknown address, a confirmed one and one that waits for its code', async () => {
    const { email } = await signUp();
    const confirmed = buildEmail();
    await server.signUp({ email: confirmed, emailVerified: true });
    const unknown = buildEmail();
    clock.advance(61_000);
    const replies = await Promise.all(
      [email, confirmed, unknown].map((address) => client.post('/resend-verification-otp', { email: address })),
    );
    expect(new Set(replies.map(({ status, body }) => `${status} ${JSON.stringify(body)}`)).size).toBe(1);
    expect(replies[0]!.status).toBe(200);
    expect(await countMails(test, confirmed)).toBe(0);
    expect(await countMails(test, unknown)).toBe(0);
  });
});

describe('password reset', () => {
  it('sets a new password by a mailed code, ends every session and confirms the address', async () => {
    const { email, accessToken, refreshToken } = await signUp();
    const asked = await client.post('/request-password-reset', { email: ` ${email}` });
    expect([asked.status, Object.keys(asked.body as object)]).toEqual([200, ['success', 'message']]);
    const otp = await readMailedCode(test, email);
    const reply = await client.post('/reset-password', { email, otp, newPassword: NEW_PASSWORD });
    expect([reply.status, reply.body]).toEqual([200, { success: true, message: 'Password changed; please sign in' }]);
    expect((await client.me(accessToken)).status).toBe(401);
    expect((await client.refresh(refreshToken)).status).toBe(401);
    expect((await client.logIn(email)).status).toBe(401);
    const fresh = await client.logIn(email, NEW_PASSWORD);
    expect((fresh.body as { user: object }).user).toMatchObject({ emailVerified: true });
    expect((await client.me((fresh.body as { accessToken: string }).accessToken)).status).toBe(200);
    expect(codeOf(await client.post('/reset-password', { email, otp, newPassword: NEW_PASSWORD }))).toEqual(
      OTP_INVALID,
    );
  });

  it('does the same for an address that was confirmed before', async () => {
    const { email, accessToken, refreshToken } = await signUp();
    await client.post('/verify-email', { email, otp: await readMailedCode(test, email) });
    await client.post('/request-password-reset', { email });
    const otp = await readMailedCode(test, email);
    expect((await client.post('/reset-password', { email, otp, newPassword: NEW_PASSWORD })).status).toBe(200);
    expect((await client.me(accessToken)).status).toBe(401);
    expect((await client.refresh(refreshToken)).status).toBe(401);
    expect((await client.logIn(email)).status).toBe(401);
    expect((await client.logIn(email, NEW_PASSWORD)).status).toBe(200);
  });

  it('answers alike for an address without an account, and mails nothing', async () => {
    const { email } = await signUp();
    const unknown = buildEmail();
    const replies = [
      await client.post('/request-password-reset', { email }),
      await client.post('/request-password-reset', { email: unknown }),
    ];
    expect(replies[0]!.body).toEqual(replies[1]!.body);
    expect(await countMails(test, unknown)).toBe(0);
    const guess = { otp: '123456', newPassword: NEW_PASSWORD };
    const known = await client.post('/reset-password', { email, ...guess });
    const guessed = await client.post('/reset-password', { email: unknown, ...guess });
    expect(codeOf(known)).toEqual(OTP_INVALID);
    expect(codeOf(guessed)).toEqual(OTP_INVALID);
  });

  it('mails at most once a minute', async () => {
    const { email } = await signUp();
    await Promise.all(Array.from({ length: 10 }, () => client.post('/request-password-reset', { email })));
    expect(await countMails(test, email)).toBe(2);
  });

  it('spends a code once of many requests at once', async () => {
    const { email } = await signUp();
    await client.post('/request-password-reset', { email });
    const otp = await readMailedCode(test, email);
    const passwords = Array.from({ length: 5 }, (_, index) => `${NEW_PASSWORD} ${index}`);
    const replies = await Promise.all(
      passwords.map((newPassword) => client.post('/reset-password', { email, otp, newPassword })),
    );
    const winners = passwords.filter((_, index) => replies[index]!.status === 200);
    expect(winners).toHaveLength(1);
    expect((await client.logIn(email, winners[0])).status).toBe(200);
  });

  it('ends the lock of the address it was asked from', async () => {
    const { email } = await signUp();
    for (let count = 0; count < 5; count++) await client.logIn(email, 'wrong');
    expect((await client.logIn(email)).status).toBe(423);
    await client.post('/request-password-reset', { email });
    const otp = await readMailedCode(test, email);
    await client.post('/reset-password', { email, otp, newPassword: NEW_PASSWORD });
    expect((await client.logIn(email, NEW_PASSWORD)).status).toBe(200);
  });

  it.each([
    ['no email', { email: undefined }, 'email is required'],
    ['no code', { otp: undefined }, 'otp is required'],
    ['no password', { newPassword: undefined }, 'newPassword is required'],
    ['a password of 5 bytes', { newPassword: 'abcde' }, 'newPassword must have at least 6 bytes'],
    ['a password of 73 bytes', { newPassword: 'a'.repeat(73) }, 'newPassword must have at most 72 bytes'],
    ['an object as code', { otp: { $gt: '' } }, 'otp must be a String'],
  ])('answers 400 for %s', async (_what, change, message) => {
    const input = { email: 'a@b.c', otp: '123456', newPassword: NEW_PASSWORD, ...change };
    const reply = await client.post('/reset-password', input);
    expect(reply.status).toBe(400);
    expect((reply.body as { message: string }).message).toBe(`Validation failed: ${message}`);
  });
});

describe('mails to end users', () => {
  it('come from the templates verification and password-reset, with the project’s name', async () => {
    const { email } = await signUp();
    await client.post('/request-password-reset', { email });
    await drainJobs(test.app);
    const [reset, verification] = await listOutbox(test.app, { to: email });
    expect(verification!.subject).toMatch(/^Confirm your email address for Book shop: \d{6}$/);
    expect(verification!.html).toContain('<strong>');
    expect(reset!.subject).toBe('Reset your password for Book shop');
    expect(reset!.text).toMatch(/Your code is \d{6}\..* 5 minutes/);
  });

  it('stand in the log without their code', async () => {
    const { email } = await signUp();
    await drainJobs(test.app);
    const [log] = await mailLogStore(test.app).find({ to: email }).toArray();
    expect(log!.subject).toBe('Confirm your email address for Book shop: ••••••');
  });
});
