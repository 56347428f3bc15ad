import { beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../../../src/app.js';
import type { Project } from '../../../../src/features/projects/project.js';
import { changeUser } from '../../../../src/features/users/accounts/change-user.js';
import {
  identityStore,
  isLinkOf,
  unlinkIdentity,
  type LinkedIdentity,
} from '../../../../src/features/users/accounts/sign-in-methods.js';
import { countMailTo } from '../../../../src/features/users/codes/mail-allowance.js';
import { openCode } from '../../../../src/features/users/codes/one-time-code.js';
import { BY_PASSWORD } from '../../../../src/features/users/sessions/session.js';
import { openSession } from '../../../../src/features/users/sessions/open-session.js';
import { refreshSession } from '../../../../src/features/users/sessions/refresh-session.js';
import { BY_STRANGER } from '../../../../src/features/users/codes/send-code.js';
import { resetPassword } from '../../../../src/features/users/codes/reset-password.js';
import type { SocialProvider } from '../../../../src/features/users/social/social-provider.js';
import { resolveSocialUser, type SocialUser } from '../../../../src/features/users/social/social-user.js';
import { updateProfile } from '../../../../src/features/users/profile/update-profile.js';
import { requireUser } from '../../../../src/features/users/user-store.js';
import { verifyEmail } from '../../../../src/features/users/codes/verify-email.js';
import type { User } from '../../../../src/features/users/user.js';
import { buildProject } from '../../../helpers/build-project.js';
import { createFakeClock } from '../../../helpers/fake-clock.js';
import { buildEmail, openUserClient, readMailedCode, type UserClient } from '../../../helpers/user-client.js';
import { useTestApp } from '../../../helpers/use.js';
import { Crash, crashAfter } from '../../files/crashing-app.js';
import { CUTOFFS } from '../../../../src/features/access/token-cutoff.js';

const CLIENT = { ip: '203.0.113.9', userAgent: '' };
const provider = { name: 'acme', issuer: 'https://acme.test' } as SocialProvider;
const clock = createFakeClock();
let project: Project;
let client: UserClient;
let people = 0;

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
beforeEach(async () => {
  const owner = await buildProject(test.app);
  project = owner.project;
  client = openUserClient(test, owner.publishable);
});

const signIn = (app: App, subject: string, verifiedEmail: string): Promise<SocialUser> =>
  resolveSocialUser(app, project, provider, { subject, verifiedEmail, name: null }, CLIENT) as Promise<SocialUser>;

/** An account that a stranger opened by a provider, and that bears an address which nobody has proven. */
async function openHijacked() {
  const stranger = `stranger-${++people}`;
  const strangersEmail = buildEmail('stranger');
  const { user } = await signIn(test.app, stranger, strangersEmail);
  const victim = buildEmail('victim');
  const moved = (await changeUser(test.app, project, { _id: user._id }, { email: victim, emailVerified: false }))!;
  const tokens = await openSession(test.app, project, moved, CLIENT, BY_PASSWORD);
  return { stranger, strangersEmail, victim, user: moved, tokens };
}

const PROOFS: [string, (app: App, victim: string, user: User) => Promise<() => Promise<unknown>>][] = [
  ['a provider’s word', (app, victim) => Promise.resolve(() => signIn(app, `victim-${++people}`, victim))],
  [
    'a reset',
    async (app, victim) => {
      await openMailedCode('password-reset', victim);
      const otp = await readMailedCode(test, victim);
      return () =>
        resetPassword(app, project, { email: victim, otp, newPassword: 'a new password' }, CLIENT, BY_STRANGER);
    },
  ],
  [
    'a verification',
    async (app, victim) => {
      await openMailedCode('verification', victim);
      const otp = await readMailedCode(test, victim);
      return () => verifyEmail(app, project, { email: victim, otp }, null, BY_STRANGER);
    },
  ],
  [
    'the project',
    (app, _victim, user) =>
      Promise.resolve(() =>
        updateProfile(app, project, user, { emailVerified: true }, { setter: 'project', ip: CLIENT.ip, session: null }),
      ),
  ],
];

async function openMailedCode(purpose: 'password-reset' | 'verification', email: string): Promise<void> {
  const path = purpose === 'verification' ? '/resend-verification-otp' : '/request-password-reset';
  expect((await client.post(path, { email })).status).toBe(200);
}

describe.each(PROOFS)('first proof of an address by %s', (_by, prepare) => {
  it('leaves no identity, session or token of the account’s earlier owner, wherever its process is killed', async () => {
    let finished = false;
    for (let after = 1; !finished; after++) {
      const { stranger, strangersEmail, victim, user, tokens } = await openHijacked();
      const mortal = crashAfter(test.app, after);
      const prove = await prepare(mortal.app, victim, user);
      finished = await prove().then(
        () => true,
        (error: unknown) => {
          if (error instanceof Crash) return false;
          throw error;
        },
      );
      const now = await requireUser(test.app, project._id, user._id.toHexString());
      if (!now.emailVerified) continue;
      await expect(refreshSession(test.app, project, tokens.refreshToken, CLIENT)).rejects.toMatchObject({
        code: 'REFRESH_INVALID',
      });
      // As half a second later: the copy was the dead process's, too.
      test.app.cache.forget(CUTOFFS, project._id.toHexString());
      expect((await client.me(tokens.accessToken)).status).toBe(401);
      const again = await signIn(test.app, stranger, strangersEmail);
      expect(again.user._id.toHexString()).not.toBe(user._id.toHexString());
    }
  });
});

describe('identities linked to an account', () => {
  it('are all the rightful owner’s when two of his claim it at once', async () => {
    const { stranger, strangersEmail, victim, user } = await openHijacked();
    const ids = [`victim-${++people}`, `victim-${++people}`];
    const claims = await Promise.all(ids.map((subject) => signIn(test.app, subject, victim)));
    expect(claims.map((claim) => claim.user._id.toHexString())).toEqual(ids.map(() => user._id.toHexString()));
    for (const subject of ids)
      expect((await signIn(test.app, subject, victim)).user._id.toHexString()).toBe(user._id.toHexString());
    expect((await signIn(test.app, stranger, strangersEmail)).user._id.toHexString()).not.toBe(user._id.toHexString());
  });

  it('are refused when they were being linked under the earlier owner', async () => {
    const { user, victim } = await openHijacked();
    await signIn(test.app, `victim-${++people}`, victim);
    // Written by a process that read the account before the claim.
    const late: LinkedIdentity = {
      _id: `late-${people}`,
      projectId: project._id,
      userId: user._id,
      provider: 'acme',
      createdAt: new Date(clock.now()),
    };
    expect(isLinkOf(late, await requireUser(test.app, project._id, victim))).toBe(false);
  });

  it('stay unlinked when the process is killed right after the account’s write', async () => {
    const email = buildEmail();
    await client.signUp({ email });
    await client.post('/verify-email', { email, otp: await readMailedCode(test, email) });
    // The owner’s claim leaves no password; a reset gives one.
    const { user, identity } = await signIn(test.app, `owner-${++people}`, email);
    await openMailedCode('password-reset', email);
    const otp = await readMailedCode(test, email);
    await resetPassword(test.app, project, { email, otp, newPassword: 'a new password' }, CLIENT, BY_STRANGER);
    await expect(unlinkIdentity(crashAfter(test.app, 1).app, project, user, 'acme', null)).rejects.toThrow(Crash);
    const link = (await identityStore(test.app).findOne({ _id: identity })) as LinkedIdentity;
    expect(isLinkOf(link, await requireUser(test.app, project._id, email))).toBe(false);
    // Signing in anew links it anew, as the address is the account’s.
    clock.advance(1);
    await signIn(test.app, `owner-${people}`, email);
    const relinked = (await identityStore(test.app).findOne({ _id: identity })) as LinkedIdentity;
    expect(isLinkOf(relinked, await requireUser(test.app, project._id, email))).toBe(true);
  });
});

describe('mailed codes of an address', () => {
  it('are a minute apart of a kind; of all kinds three an hour and ten a day, then again', async () => {
    const email = buildEmail();
    const KINDS = ['password-reset', 'verification'] as const;
    const mayMail = async () => {
      const counted = await countMailTo(test.app, project._id, email);
      return counted && [counted];
    };
    const open = async (kind: (typeof KINDS)[number]): Promise<string | null> => {
      const opened = await openCode(test.app, project._id, kind, email, mayMail, { network: '' });
      return opened && 'id' in opened ? opened.id : null;
    };
    const opened: number[] = [];
    for (let minute = 0; minute < 24 * 60; minute += 2) {
      const kind = KINDS[minute % 3 === 0 ? 0 : 1]!;
      if ((await open(kind)) !== null) opened.push(minute);
      expect(await open(kind)).toBeNull();
      clock.advance(2 * 60_000);
    }
    expect(opened).toEqual([0, 2, 4, 60, 62, 64, 120, 122, 124, 180]);
    expect(await open('password-reset')).not.toBeNull();
  });

  it('can be tried thirty times a day', async () => {
    const email = buildEmail();
    await client.signUp({ email });
    let right = await readMailedCode(test, email);
    for (let code = 0; code < 6; code++) {
      for (let guess = 0; guess < 5; guess++) {
        const otp = right === '000000' ? '000001' : '000000';
        expect((await client.post('/verify-email', { email, otp })).status).toBe(400);
      }
      clock.advance(60_000);
      await client.post('/resend-verification-otp', { email });
      right = await readMailedCode(test, email);
    }
    expect((await client.post('/verify-email', { email, otp: right })).status).toBe(400);
    clock.advance(24 * 3_600_000);
    await client.post('/resend-verification-otp', { email });
    expect((await client.post('/verify-email', { email, otp: await readMailedCode(test, email) })).status).toBe(200);
  });
});
