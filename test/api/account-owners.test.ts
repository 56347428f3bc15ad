import { beforeEach, describe, expect, it } from 'vitest';
import type { Response } from 'supertest';
import { drainJobs, listOutbox } from '../world/jobs.js';
import { updateProject } from '../world/projects.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { buildOperator } from '../helpers/operator-client.js';
import { openSocialBrowser, type SocialBrowser } from '../helpers/social-browser.js';
import { openSocialIssuer } from '../helpers/social-issuer.js';
import { use, useTestApp } from '../helpers/use.js';
import {
  bearer,
  buildEmail,
  countMails,
  openUserClient,
  PASSWORD,
  readMailedCode,
  type UserClient,
} from '../helpers/user-client.js';
import { identityStore } from '../world/stored.js';
import { countMailTo } from '../world/users.js';

const NEW_PASSWORD = 'a brand new password';
const clock = createFakeClock();
let project: TestProject;
let client: UserClient;
let server: UserClient;
let browser: SocialBrowser;
let people = 0;

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' }, clock });
const issuer = use(await openSocialIssuer());
beforeEach(async () => {
  project = await buildProject(test.app);
  client = openUserClient(test, project.publishable);
  server = openUserClient(test, project.secret);
  browser = await openSocialBrowser(test, issuer, project, client);
});

interface SignedIn {
  accessToken: string;
  user: { _id: string; email: string };
}
const signedIn = (reply: Response): SignedIn & { refreshToken: string } => ({
  ...(reply.body as SignedIn),
  refreshToken: reply.headers['x-refresh-token'] as string,
});
const codeOf = (reply: Response): [number, string] => [reply.status, (reply.body as { code: string }).code];
const person = (email: string) => ({ sub: `person-${++people}`, email, emailVerified: true });

/** An account that its first owner opened by a provider and by a password, now under an address that is not proven. */
async function prepareHijack(victim: string) {
  const attacker = person(buildEmail('attacker'));
  const { accessToken } = await browser.signIn(attacker);
  // The project's own server trusted the address; nobody proved it.
  const moved = await server.send('patch', '/update-profile', { email: victim }, bearer(accessToken));
  expect((moved.body as { data: object }).data).toMatchObject({ email: victim, emailVerified: false });
  const again = await client.post('/social/exchange', {
    rtCode: (await browser.visit(attacker)).searchParams.get('rtCode'),
  });
  return { attacker, ...signedIn(again) };
}

const PROOFS: [string, (victim: string, id: string) => Promise<unknown>][] = [
  ['a provider’s word', (victim) => browser.signIn(person(victim))],
  [
    'a password reset by mail',
    async (victim) => {
      await client.post('/request-password-reset', { email: victim });
      const otp = await readMailedCode(test, victim);
      expect((await client.post('/reset-password', { email: victim, otp, newPassword: NEW_PASSWORD })).status).toBe(
        200,
      );
    },
  ],
  [
    'the code of a verification',
    async (victim) => {
      const otp = await readMailedCode(test, victim);
      expect((await client.post('/verify-email', { email: victim, otp })).status).toBe(200);
    },
  ],
  [
    'an operator who sets emailVerified',
    async (_victim, id) => {
      const operator = await buildOperator(test, 'owner');
      const path = `/api/projects/${project.project._id.toHexString()}/users/${id}`;
      expect((await operator.call('patch', path, { emailVerified: true })).status).toBe(200);
    },
  ],
];

describe.each(PROOFS)('first proof of an address by %s', (_by, prove) => {
  it('ends identities, sessions and access tokens of the earlier owner', async () => {
    const victim = buildEmail('victim');
    const before = await prepareHijack(victim);
    const waiting = await browser.visit(before.attacker);
    await prove(victim, before.user._id);
    expect((await client.me(before.accessToken)).status).toBe(401);
    expect((await client.refresh(before.refreshToken)).status).toBe(401);
    const exchanged = await client.post('/social/exchange', { rtCode: waiting.searchParams.get('rtCode') });
    expect(codeOf(exchanged)).toEqual([401, 'SOCIAL_CODE_INVALID']);
    const later = await browser.signIn(before.attacker);
    expect(later.user._id).not.toBe(before.user._id);
    expect(later.user.email).toBe(before.attacker.email);
  });
});

describe('first proof of an address in a session of the account', () => {
  it('keeps that session and the identity that opened it, and ends the others', async () => {
    const next = buildEmail();
    const own = person(buildEmail());
    const { user, accessToken } = await browser.signIn(own);
    const other = signedIn(
      await client.post('/social/exchange', { rtCode: (await browser.visit(own)).searchParams.get('rtCode') }),
    );
    expect((await client.send('patch', '/update-profile', { email: next }, bearer(accessToken))).status).toBe(200);
    const otp = await readMailedCode(test, next);
    expect((await client.post('/verify-email', { email: next, otp }, bearer(accessToken))).status).toBe(200);
    expect((await client.me(accessToken)).body).toMatchObject({ _id: user._id, email: next, emailVerified: true });
    expect((await client.me(other.accessToken)).status).toBe(401);
    expect((await client.refresh(other.refreshToken)).status).toBe(401);
    expect((await browser.signIn(own)).user._id).toBe(user._id);
  });

  it('refuses the token of another account', async () => {
    const { user, ...squatter } = signedIn(await client.signUp());
    const stranger = signedIn(await client.signUp());
    const otp = await readMailedCode(test, user.email);
    await client.post('/verify-email', { email: user.email, otp }, bearer(stranger.accessToken));
    expect((await client.me(squatter.accessToken)).status).toBe(401);
    expect((await client.me(stranger.accessToken)).status).toBe(200);
  });
});

const signUpFirst = async (victim: string) => signedIn(await client.signUp({ email: victim }));
/** A guest who asks for the address and a password; its code then comes to the owner. */
const comeAsGuest = async (victim: string) => {
  const guest = signedIn(await client.post('/signup/anonymous', {}));
  const asked = { email: victim, password: PASSWORD };
  expect((await client.send('patch', '/update-profile', asked, bearer(guest.accessToken))).status).toBe(200);
  return guest;
};
const confirm = async (victim: string): Promise<void> => {
  const reply = await client.post('/verify-email', { email: victim, otp: await readMailedCode(test, victim) });
  expect([reply.status, (reply.body as { message: string }).message]).toEqual([
    200,
    expect.stringContaining('request-password-reset'),
  ]);
};
type Claim = Record<'byStranger', (victim: string) => ReturnType<typeof signUpFirst>> &
  Record<'byOwner', (victim: string) => Promise<unknown>>;
/** Every way in which an address is proven outside the sessions of who asked for it first. */
const CLAIMS: [string, Claim][] = [
  ['the code of the sign-up', { byStranger: signUpFirst, byOwner: confirm }],
  ['the code that a guest asked for', { byStranger: comeAsGuest, byOwner: confirm }],
  ['a provider', { byStranger: signUpFirst, byOwner: (victim) => browser.signIn(person(victim)) }],
  [
    'a sign-in code',
    {
      byStranger: signUpFirst,
      async byOwner(victim) {
        await client.post('/login/code', { email: victim });
        const code = { email: victim, otp: await readMailedCode(test, victim) };
        expect((await client.post('/login/code/verify', code)).status).toBe(200);
      },
    },
  ],
  [
    'a password reset',
    {
      byStranger: signUpFirst,
      async byOwner(victim) {
        await client.post('/request-password-reset', { email: victim });
        const reset = { email: victim, otp: await readMailedCode(test, victim), newPassword: NEW_PASSWORD };
        expect((await client.post('/reset-password', reset)).status).toBe(200);
      },
    },
  ],
];

describe('account opened with a stranger’s address', () => {
  it.each(CLAIMS)(
    'lets nobody in by what its first claimant made, once its owner has come by %s',
    async (_by, claim) => {
      await updateProject(test.app, project.project.name, { signIn: { codeLogin: 'existing', anonymous: true } });
      const victim = buildEmail('victim');
      const stranger = await claim.byStranger(victim);
      await claim.byOwner(victim);
      expect(codeOf(await client.logIn(victim))).toEqual([401, 'INVALID_CREDENTIALS']);
      expect((await client.me(stranger.accessToken)).status).toBe(401);
      expect((await client.refresh(stranger.refreshToken)).status).toBe(401);
      // Nor does another proof bring it back.
      await browser.signIn(person(victim));
      expect((await client.logIn(victim)).status).toBe(401);
    },
  );

  it('keeps the password that was proven in its own session', async () => {
    const email = buildEmail();
    const { accessToken } = signedIn(await client.signUp({ email }));
    await client.post('/verify-email', { email, otp: await readMailedCode(test, email) }, bearer(accessToken));
    await browser.signIn(person(email));
    expect((await client.logIn(email)).status).toBe(200);
  });
});

describe('GET and DELETE /api/userAuth/identities', () => {
  it('lists the identities of the account and unlinks one, with all sessions but this', async () => {
    const email = buildEmail();
    const github = await openSocialBrowser(test, issuer, project, client, 'github-of-ours');
    const mine = person(email);
    const { accessToken } = await browser.signIn(mine);
    clock.advance(1);
    const other = await github.signIn(person(email));
    const listed = await client.get('/identities', bearer(accessToken));
    expect(listed.body).toMatchObject({
      success: true,
      data: { total: 2, items: [{ provider: 'acme' }, { provider: 'github-of-ours' }] },
    });
    expect(
      (await client.send('delete', '/identities/github-of-ours', undefined, bearer(accessToken))).body,
    ).toMatchObject({
      success: true,
    });
    expect((await client.me(other.accessToken)).status).toBe(401);
    const left = await client.get('/identities', bearer(accessToken));
    expect((left.body as { data: { items: object[] } }).data.items).toEqual([
      { provider: 'acme', linkedAt: expect.any(String) as string },
    ]);
    expect(codeOf(await client.send('delete', '/identities/github-of-ours', undefined, bearer(accessToken)))).toEqual([
      404,
      'IDENTITY_NOT_FOUND',
    ]);
  });

  it('refuses to unlink the last way to sign in, also when two are unlinked at once', async () => {
    const email = buildEmail();
    const github = await openSocialBrowser(test, issuer, project, client, 'github-of-ours');
    const { accessToken } = await browser.signIn(person(email));
    await github.signIn(person(email));
    const replies = await Promise.all(
      ['acme', 'github-of-ours'].map((name) =>
        client.send('delete', `/identities/${name}`, undefined, bearer(accessToken)),
      ),
    );
    expect(replies.map(codeOf).sort()).toEqual([
      [200, undefined],
      [409, 'LAST_SIGN_IN_METHOD'],
    ]);
    const left = await client.get('/identities', bearer(accessToken));
    expect((left.body as { data: { total: number } }).data.total).toBe(1);
  });

  it('unlinks the last identity of an account with a password', async () => {
    const email = buildEmail();
    await server.signUp({ email, emailVerified: true });
    const { accessToken, user } = await browser.signIn(person(email));
    expect((await client.send('delete', '/identities/acme', undefined, bearer(accessToken))).status).toBe(200);
    expect((await client.logIn(email)).status).toBe(200);
    expect(
      await identityStore(test.app).countDocuments({
        userId: { $exists: true },
        provider: 'acme',
        projectId: project.project._id,
      }),
    ).toBe(0);
    expect((await browser.signIn(person(email))).user._id).toBe(user._id);
  });

  it('answers 401 without a token, and shows only the account’s own', async () => {
    await browser.signIn(person(buildEmail()));
    expect((await client.get('/identities')).status).toBe(401);
    expect((await client.send('delete', '/identities/acme')).status).toBe(401);
    const { accessToken } = signedIn(await client.signUp());
    expect((await client.get('/identities', bearer(accessToken))).body).toMatchObject({
      data: { items: [], total: 0 },
    });
    expect(codeOf(await client.send('delete', '/identities/acme', undefined, bearer(accessToken)))[0]).toBe(404);
  });
});

describe('another e-mail address in update-profile', () => {
  const change = (accessToken: string, body: object): Promise<Response> =>
    client.send('patch', '/update-profile', body, bearer(accessToken)) as unknown as Promise<Response>;

  it('is pending until its code is confirmed, and the old address gets a notice', async () => {
    const [old, next] = [buildEmail(), buildEmail()];
    const { accessToken } = signedIn(await server.signUp({ email: old, emailVerified: true }));
    const reply = await change(accessToken, { email: next.toUpperCase(), currentPassword: PASSWORD, name: 'Ada' });
    expect([reply.status, reply.body]).toEqual([
      200,
      {
        success: true,
        data: expect.objectContaining({ email: old, emailVerified: true, name: 'Ada' }) as object,
        pendingEmail: next,
        message: 'Profile updated; the new e-mail address counts once the code mailed to it is confirmed',
      },
    ]);
    expect((await client.logIn(next)).status).toBe(401);
    const otp = await readMailedCode(test, next);
    const [notice] = await listOutbox(test.app, { to: old, limit: 1 });
    expect(notice!.subject).toMatch(/is about to change$/);
    expect(notice!.text).not.toContain(otp);
    expect((await client.logIn(old)).status).toBe(200);
    const confirmed = await client.post('/verify-email', { email: next, otp }, bearer(accessToken));
    expect(confirmed.body).toEqual({ success: true, message: 'E-mail address confirmed' });
    expect((await client.me(accessToken)).body).toMatchObject({ email: next, emailVerified: true });
    expect((await client.logIn(old)).status).toBe(401);
    expect((await client.logIn(next)).status).toBe(200);
    expect(codeOf(await client.post('/verify-email', { email: next, otp }))).toEqual([400, 'OTP_INVALID']);
  });

  it('needs the current password where there is one, and counts a wrong one like a failed sign-in', async () => {
    const { accessToken, user } = signedIn(await client.signUp());
    const email = buildEmail();
    expect(codeOf(await change(accessToken, { email, name: 'Eve' }))).toEqual([400, 'CURRENT_PASSWORD_REQUIRED']);
    for (let count = 0; count < 5; count++) {
      const wrong = await change(accessToken, { email, currentPassword: 'wrong', name: 'Eve' });
      expect(codeOf(wrong)).toEqual([401, 'INVALID_CREDENTIALS']);
    }
    expect(codeOf(await change(accessToken, { email, currentPassword: PASSWORD }))).toEqual([423, 'ACCOUNT_LOCKED']);
    expect((await client.logIn(user.email)).status).toBe(423);
    expect((await client.me(accessToken)).body).toEqual(user);
    expect(await countMails(test, email)).toBe(0);
  });

  it('is refused when it is taken, at the request and at the confirmation', async () => {
    const [taken, next] = [buildEmail(), buildEmail()];
    await client.signUp({ email: taken });
    const { accessToken, user } = signedIn(await client.signUp());
    const refused = await change(accessToken, { email: taken, currentPassword: PASSWORD });
    expect(codeOf(refused)).toEqual([409, 'EMAIL_TAKEN']);
    await change(accessToken, { email: next, currentPassword: PASSWORD });
    const otp = await readMailedCode(test, next);
    await server.signUp({ email: next, emailVerified: true });
    for (const session of [{}, bearer(accessToken)]) {
      const late = await client.post('/verify-email', { email: next, otp }, session);
      expect(codeOf(late)).toEqual([409, 'EMAIL_TAKEN']);
      // What a guest has may be moved to the other account, which is theirs then.
      expect(late.body).not.toHaveProperty('details');
    }
    expect((await client.me(accessToken)).body).toEqual({ ...user, updatedAt: expect.any(String) as string });
  });

  it('goes to one of two accounts that confirm it at once', async () => {
    const next = buildEmail();
    const owners = [signedIn(await client.signUp()), signedIn(await client.signUp())];
    for (const { accessToken } of owners) await change(accessToken, { email: next, currentPassword: PASSWORD });
    // The address gets one code: the first account's; the second asks again.
    const otp = await readMailedCode(test, next);
    const replies = await Promise.all(owners.map(() => client.post('/verify-email', { email: next, otp })));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 400]);
    const [first, second] = await Promise.all(owners.map(({ user }) => client.logIn(user.email)));
    // Confirmed outside its sessions, the account has no password any more.
    expect([first!.status, second!.status]).toEqual([401, 200]);
    expect((await client.logIn(next)).status).toBe(401);
  });

  it('is forgotten when a password reset, a password change or the end of all sessions comes between', async () => {
    const next = buildEmail();
    const { accessToken, user } = signedIn(await client.signUp());
    await change(accessToken, { email: next, currentPassword: PASSWORD });
    const otp = await readMailedCode(test, next);
    await client.post('/request-password-reset', { email: user.email });
    const reset = { email: user.email, otp: await readMailedCode(test, user.email), newPassword: NEW_PASSWORD };
    expect((await client.post('/reset-password', reset)).status).toBe(200);
    expect(codeOf(await client.post('/verify-email', { email: next, otp }))).toEqual([400, 'OTP_INVALID']);
    expect((await client.logIn(user.email, NEW_PASSWORD)).status).toBe(200);
  });

  it('ends identities, sessions and tokens of the account when a stranger to them confirms it', async () => {
    const victim = buildEmail('victim');
    const attacker = person(buildEmail('attacker'));
    const { accessToken, user } = await browser.signIn(attacker);
    await change(accessToken, { email: victim });
    expect(
      (await client.post('/verify-email', { email: victim, otp: await readMailedCode(test, victim) })).status,
    ).toBe(200);
    expect((await client.me(accessToken)).status).toBe(401);
    expect((await browser.signIn(attacker)).user._id).not.toBe(user._id);
    expect((await browser.signIn(person(victim))).user._id).toBe(user._id);
  });

  it('has its code mailed again by resend-verification-otp, after a minute', async () => {
    const next = buildEmail();
    const { accessToken } = signedIn(await client.signUp());
    await change(accessToken, { email: next, currentPassword: PASSWORD });
    const again = await change(accessToken, { email: next, currentPassword: PASSWORD });
    expect((again.body as { message: string }).message).toContain('no code was mailed');
    expect(await countMails(test, next)).toBe(1);
    clock.advance(60_000);
    await client.post('/resend-verification-otp', { email: next });
    expect(await countMails(test, next)).toBe(2);
    const otp = await readMailedCode(test, next);
    expect((await client.post('/verify-email', { email: next, otp }, bearer(accessToken))).status).toBe(200);
  });

  it('mails one code a minute, to whatever addresses', async () => {
    const [next, other] = [buildEmail(), buildEmail()];
    const { accessToken } = signedIn(await client.signUp());
    await change(accessToken, { email: next, currentPassword: PASSWORD });
    expect(await countMails(test, next)).toBe(1);
    const soon = await change(accessToken, { email: other, currentPassword: PASSWORD });
    expect((soon.body as { message: string }).message).toContain('no code was mailed');
    expect(await countMails(test, other)).toBe(0);
  });

  it('mails the code and the notice to the present address, or neither', async () => {
    const old = buildEmail();
    const { accessToken } = signedIn(await server.signUp({ email: old, emailVerified: true }));
    const notices = (): Promise<number> => countMails(test, old);
    // More than three an hour: it is the caller’s own address.
    for (let sent = 1; sent <= 4; sent++) {
      const next = buildEmail();
      await change(accessToken, { email: next, currentPassword: PASSWORD });
      expect([await countMails(test, next), await notices()]).toEqual([1, sent]);
      clock.advance(61_000);
    }
    while (await countMailTo(test.app, project.project._id, old, 'owner'));
    const next = buildEmail();
    const reply = await change(accessToken, { email: next, currentPassword: PASSWORD });
    // What others had mailed to the present address is not told.
    expect((reply.body as { message: string }).message).toContain('once the code mailed to it is confirmed');
    expect([await countMails(test, next), await notices()]).toEqual([0, 4]);
  });

  it('counts at once for the secret key, without a password', async () => {
    const next = buildEmail();
    const { accessToken } = signedIn(await client.signUp());
    const reply = await server.send('patch', '/update-profile', { email: next }, bearer(accessToken));
    expect((reply.body as { data: object }).data).toMatchObject({ email: next, emailVerified: false });
    await drainJobs(test.app);
    expect((await client.post('/verify-email', { email: next, otp: await readMailedCode(test, next) })).status).toBe(
      200,
    );
  });
});
