import { beforeEach, describe, expect, it } from 'vitest';
import { openApp, type App } from '../../../src/app.js';
import type { Project } from '../../../src/features/projects/project.js';
import { deleteUser } from '../../../src/features/users/accounts/delete-user.js';
import { disableUser, enableUser } from '../../../src/features/users/accounts/change-user.js';
import { endSession } from '../../../src/features/users/sessions/end-sessions.js';
import { logIn } from '../../../src/features/users/sign-in/log-in.js';
import { refreshSession } from '../../../src/features/users/sessions/refresh-session.js';
import { setPassword } from '../../../src/features/users/accounts/password.js';
import type { SocialProvider } from '../../../src/features/users/social/social-provider.js';
import { resolveSocialUser } from '../../../src/features/users/social/social-user.js';
import type { User } from '../../../src/features/users/user.js';
import { requireUser } from '../../../src/features/users/user-store.js';
import { openLogger } from '../../../src/platform/observe/logger.js';
import { buildProject } from '../../helpers/build-project.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openUserClient, PASSWORD, type UserClient } from '../../helpers/user-client.js';
import { useTestApp } from '../../helpers/use.js';
import { Crash, crashAfter, sleepBefore } from '../files/crashing-app.js';

const CLIENT = { ip: '203.0.113.9', userAgent: '' };
const NEW_PASSWORD = 'another password';
const clock = createFakeClock();
let project: Project;
let client: UserClient;
let user: User;
let refreshToken: string;
let accessToken: string;

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
beforeEach(async () => {
  const owner = await buildProject(test.app);
  project = owner.project;
  client = openUserClient(test, owner.publishable);
  const reply = await client.signUp();
  refreshToken = reply.headers['x-refresh-token'] as string;
  accessToken = (reply.body as { accessToken: string }).accessToken;
  user = await requireUser(test.app, project._id, (reply.body as { user: { email: string } }).user.email);
});

const provider = { name: 'acme', issuer: 'https://acme.test' } as SocialProvider;
const claim = (app: App): Promise<unknown> =>
  resolveSocialUser(app, project, provider, { subject: '1', verifiedEmail: user.email!, name: null }, CLIENT);

const ENDINGS: [string, (app: App) => Promise<unknown>][] = [
  ['the password', (app) => setPassword(app, project, user, NEW_PASSWORD)],
  ['the account’s being open', (app) => disableUser(app, project, user)],
  ['whose account it is, by a provider’s word', claim],
  ['nothing but ends all sessions', (app) => endSession(app, project, user, 'all')],
];

it('nobody ends the sessions of an account that has gone meanwhile', async () => {
  await deleteUser(test.app, project, user);
  for (const [which, current] of [['all', null] as const, ['others', 'a session'] as const]) {
    await expect(endSession(test.app, project, user, which, current)).rejects.toMatchObject({ code: 'USER_NOT_FOUND' });
  }
});

describe.each(ENDINGS)('a write that changes %s', (_what, end) => {
  it('has ended the sessions and their access tokens even if its process dies right after it', async () => {
    await expect(end(crashAfter(test.app, 1).app)).rejects.toThrow(Crash);
    await enableUser(test.app, project, user);
    expect((await client.me(accessToken)).status).toBe(401);
    const reply = await client.refresh(refreshToken);
    expect([reply.status, (reply.body as { code: string }).code]).toEqual([401, 'REFRESH_INVALID']);
  });

  it('lets no refresh through that was already under way', async () => {
    // Steps of a refresh: the session gets its new token, the user is read.
    const sleeper = sleepBefore(test.app, 2);
    const late = refreshSession(sleeper.app, project, refreshToken, CLIENT);
    await sleeper.reached;
    await end(test.app);
    await enableUser(test.app, project, user);
    sleeper.wake();
    await expect(late).rejects.toMatchObject({ code: 'REFRESH_INVALID' });
  });

  it('ends access tokens that a process signed whose clock is ahead', async () => {
    const ahead = { now: () => clock.now() + 4 * 60_000 };
    const other = await openApp(test.app.config, openLogger({ level: 'silent', format: 'json' }), ahead);
    const { tokens } = await logIn(other, project, { email: user.email!, password: PASSWORD }, CLIENT);
    expect((await client.me(tokens.accessToken)).status).toBe(200);
    await end(test.app);
    await enableUser(test.app, project, user);
    expect((await client.me(tokens.accessToken)).status).toBe(401);
    await other.close();
  });
});

describe('an account whose sessions were ended', () => {
  it('is signed in to anew in the same moment, and each of its sessions can be ended for itself', async () => {
    await setPassword(test.app, project, user, NEW_PASSWORD);
    const [one, other] = [await client.logIn(user.email!, NEW_PASSWORD), await client.logIn(user.email!, NEW_PASSWORD)];
    const tokenOf = (reply: typeof one): string => (reply.body as { accessToken: string }).accessToken;
    expect((await client.me(tokenOf(one))).status).toBe(200);
    const session = (one.headers['x-refresh-token'] as string).split('.')[0]!;
    expect(await endSession(test.app, project, user, session)).toBe(1);
    expect((await client.me(tokenOf(one))).status).toBe(401);
    expect((await client.me(tokenOf(other))).status).toBe(200);
    expect((await client.refresh(other.headers['x-refresh-token'] as string)).status).toBe(200);
  });
});
