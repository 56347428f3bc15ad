import type { Response } from 'supertest';
import { describe, expect, it } from 'vitest';
import { sessionStore } from '../world/stored.js';
import { buildProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, openUserClient, PASSWORD, readMailedCode } from '../helpers/user-client.js';

const clock = createFakeClock();

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
const project = await buildProject(test.app);
const client = openUserClient(test, project.publishable);

const MINUTE_MS = 60_000;

interface OwnSession {
  id: string;
  current: boolean;
  amr: string[];
  place: string;
}

const refreshOf = (reply: Response): string => reply.headers['x-refresh-token'] as string;
const tokenOf = (reply: Response): string => (reply.body as { accessToken: string }).accessToken;
const codeOf = (reply: Response): string => `${reply.status} ${(reply.body as { code?: string }).code ?? ''}`;
const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Record<string, unknown>;
const nowS = (): number => Math.floor(clock.now() / 1000);

/** A new account, and a second session of it. */
async function signInTwice(): Promise<{ email: string; first: Response; second: Response }> {
  const first = await client.signUp();
  const { email } = (first.body as { user: { email: string } }).user;
  return { email, first, second: await client.logIn(email) };
}
const stepUp = (token: string, body: object) => client.post('/step-up', body, bearer(token));
const end = (token: string, which: string, body?: object) =>
  client.send('delete', `/sessions/${which}`, body, bearer(token));
const list = async (token: string): Promise<OwnSession[]> =>
  ((await client.get('/sessions', bearer(token))).body as { data: { items: OwnSession[] } }).data.items;

describe('the proof behind a token', () => {
  it('is told by amr and auth_time, and stays what it was when the session is refreshed', async () => {
    const signedUp = await client.signUp();
    const since = nowS();
    expect(claimsOf(tokenOf(signedUp))).toMatchObject({ amr: ['pwd'], auth_time: since });
    clock.advance(20 * MINUTE_MS);
    const refreshed = await client.refresh(refreshOf(signedUp));
    expect(claimsOf(tokenOf(refreshed))).toMatchObject({ amr: ['pwd'], auth_time: since });
  });

  it('is a password at the beginning, of a session from before proofs were noted', async () => {
    const reply = await client.signUp();
    const stored = await sessionStore(test.app).findOne({ _id: refreshOf(reply).split('.')[0]! });
    expect(stored).not.toHaveProperty('amr');
    expect((await list(tokenOf(reply)))[0]).toMatchObject({ amr: ['pwd'], current: true });
  });
});

describe('POST /api/userAuth/step-up', () => {
  it.each(['pwd', 'otp'])('takes %s, keeps the session and its refresh token, and dates the proof', async (method) => {
    const signedUp = await client.signUp();
    const { email } = (signedUp.body as { user: { email: string } }).user;
    clock.advance(12 * MINUTE_MS);
    const token = tokenOf(signedUp);
    if (method === 'otp') expect(codeOf(await client.post('/step-up/code', undefined, bearer(token)))).toBe('200 ');
    const proof = method === 'pwd' ? { currentPassword: PASSWORD } : { otp: await readMailedCode(test, email) };
    const reply = await stepUp(token, proof);
    expect(codeOf(reply)).toBe('200 ');
    expect(reply.headers).not.toHaveProperty('x-refresh-token');
    const amr = [...new Set(['pwd', method])];
    expect(claimsOf(tokenOf(reply))).toMatchObject({ amr, auth_time: nowS() });
    expect(await list(tokenOf(reply))).toHaveLength(1);
    const refreshed = await client.refresh(refreshOf(signedUp));
    expect(claimsOf(tokenOf(refreshed))).toMatchObject({ amr, auth_time: nowS() });
  });

  it('names the ways when no proof is sent, and refuses wrong ones', async () => {
    const token = tokenOf(await client.signUp());
    const refused = await stepUp(token, {});
    expect(codeOf(refused)).toBe('403 STEP_UP_REQUIRED');
    expect(refused.body).toMatchObject({ details: [{ methods: ['currentPassword', 'otp'] }] });
    expect(codeOf(await stepUp(token, { currentPassword: 'guessed' }))).toBe('401 INVALID_CREDENTIALS');
    expect(codeOf(await stepUp(token, { otp: '000000' }))).toBe('400 OTP_INVALID');
    expect(codeOf(await client.post('/step-up', { currentPassword: PASSWORD }))).toBe('401 AUTH_REQUIRED');
  });

  it('counts wrong passwords like failed sign-ins, and takes a code once however many send it', async () => {
    const { email, second } = await signInTwice();
    const token = tokenOf(second);
    await client.post('/step-up/code', undefined, bearer(token));
    const otp = await readMailedCode(test, email);
    const replies = await Promise.all(Array.from({ length: 4 }, () => stepUp(token, { otp })));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    for (let guess = 0; guess < 5; guess++) await stepUp(token, { currentPassword: `guess ${guess}` });
    expect(codeOf(await stepUp(token, { currentPassword: PASSWORD }))).toBe('423 ACCOUNT_LOCKED');
    expect(codeOf(await client.logIn(email))).toBe('423 ACCOUNT_LOCKED');
  });

  it('takes no code that was mailed for something else, and gives none to another account', async () => {
    const [mine, other] = [await signInTwice(), await signInTwice()];
    const verification = await readMailedCode(test, mine.email);
    expect(codeOf(await stepUp(tokenOf(mine.second), { otp: verification }))).toBe('400 OTP_INVALID');
    await client.post('/step-up/code', undefined, bearer(tokenOf(other.second)));
    const otp = await readMailedCode(test, other.email);
    expect(codeOf(await stepUp(tokenOf(mine.second), { otp }))).toBe('400 OTP_INVALID');
    expect(codeOf(await client.post('/verify-email', { email: other.email, otp }))).toBe('400 OTP_INVALID');
    const reset = { email: other.email, otp, newPassword: 'another one' };
    expect(codeOf(await client.post('/reset-password', reset))).toBe('400 OTP_INVALID');
  });
});

describe('the own sessions', () => {
  it('are listed with their place and proofs, the one of the request marked', async () => {
    const { first, second } = await signInTwice();
    await client.signUp();
    const sessions = await list(tokenOf(second));
    expect(sessions.map(({ id }) => id).sort()).toEqual(
      [first, second].map((one) => refreshOf(one).split('.')[0]).sort(),
    );
    expect(sessions.filter(({ current }) => current).map(({ id }) => id)).toEqual([refreshOf(second).split('.')[0]]);
    expect(Object.keys(sessions[0]!).sort()).toEqual(
      ['amr', 'createdAt', 'current', 'expiresAt', 'id', 'place', 'usedAt', 'userAgent'].sort(),
    );
    expect(sessions[0]!.place).toMatch(/^127\.0\.0\.0\/24$|::\/64$/);
  });

  it('end one at a time, with their tokens, and nobody else’s do', async () => {
    const { first, second } = await signInTwice();
    const stranger = tokenOf(await client.signUp());
    const id = refreshOf(first).split('.')[0]!;
    expect(codeOf(await end(stranger, id))).toBe('404 SESSION_NOT_FOUND');
    expect((await end(tokenOf(second), id)).body).toMatchObject({ data: { ended: 1 } });
    expect(codeOf(await client.me(tokenOf(first)))).toBe('401 TOKEN_INVALID');
    expect(codeOf(await client.refresh(refreshOf(first)))).toBe('401 REFRESH_INVALID');
    expect(codeOf(await client.me(tokenOf(second)))).toBe('200 ');
    expect(codeOf(await end(tokenOf(second), id))).toBe('404 SESSION_NOT_FOUND');
  });

  it.each(['others', 'all'])('end together as %s by a proof of the last ten minutes', async (which) => {
    const { first, second } = await signInTwice();
    clock.advance(11 * MINUTE_MS);
    expect(codeOf(await end(tokenOf(second), which))).toBe('403 STEP_UP_REQUIRED');
    expect(codeOf(await end(tokenOf(second), which, { currentPassword: 'guessed' }))).toBe('401 INVALID_CREDENTIALS');
    const ended = await end(tokenOf(second), which, { currentPassword: PASSWORD });
    expect(ended.body).toMatchObject({ data: { ended: which === 'all' ? 2 : 1 } });
    expect(codeOf(await client.refresh(refreshOf(first)))).toBe('401 REFRESH_INVALID');
    const own = which === 'all' ? '401 TOKEN_INVALID' : '200 ';
    expect(codeOf(await client.me(tokenOf(second)))).toBe(own);
  });

  it('need no proof beside a fresh one of the session', async () => {
    const { second } = await signInTwice();
    clock.advance(9 * MINUTE_MS);
    expect((await end(tokenOf(second), 'others')).body).toMatchObject({ data: { ended: 1 } });
  });
});
