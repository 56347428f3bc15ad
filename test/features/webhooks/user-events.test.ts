import { beforeEach, describe, expect, it } from 'vitest';
import { changeCollection } from '../../../src/features/collections/change-collection.js';
import { deleteUser } from '../../../src/features/users/accounts/delete-user.js';
import { disableUser, enableUser } from '../../../src/features/users/accounts/change-user.js';
import { endSession } from '../../../src/features/users/sessions/end-sessions.js';
import { setPassword } from '../../../src/features/users/accounts/password.js';
import type { SocialProvider } from '../../../src/features/users/social/social-provider.js';
import { resolveSocialUser } from '../../../src/features/users/social/social-user.js';
import type { User } from '../../../src/features/users/user.js';
import { requireUser } from '../../../src/features/users/user-store.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import { buildWebhook, settleWebhooks } from '../../helpers/build-webhook.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import {
  bearer,
  buildEmail,
  openUserClient,
  PASSWORD,
  readMailedCode,
  type UserClient,
} from '../../helpers/user-client.js';
import { openWebhookReceiver } from '../../helpers/webhook-receiver.js';
import { use, useTestApp } from '../../helpers/use.js';
import { Crash, crashAfter } from '../files/crashing-app.js';

const clock = createFakeClock();
const provider = { name: 'acme', issuer: 'https://acme.test' } as SocialProvider;
let owner: TestProject;
let client: UserClient;

const test = await useTestApp({ clock, settings: { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_BCRYPT_COST: '4' } });
const receiver = use(await openWebhookReceiver());
beforeEach(async () => {
  await settleWebhooks(test.app);
  receiver.received = [];
  owner = await buildProject(test.app);
  client = openUserClient(test, owner.publishable);
  await buildWebhook(test.app, owner.project, receiver.url, ['users.*']);
});

const findUser = (email: string): Promise<User> => requireUser(test.app, owner.project._id, email);
const signInAt = (subject: string, email: string): Promise<unknown> =>
  resolveSocialUser(
    test.app,
    owner.project,
    provider,
    { subject, verifiedEmail: email, name: null },
    { ip: '', userAgent: '' },
  );

interface Told {
  action: unknown;
  data: Record<string, unknown>;
}

/** What was told of a user, in order. */
async function optionOf({ _id }: User): Promise<Told[]> {
  await settleWebhooks(test.app);
  const own = receiver.received.filter(({ event }) => event.documentId === _id.toHexString());
  return own.map(({ event }) => ({ action: event.action, data: event.data }));
}

describe('a change of an account', () => {
  it('is told: sign-up, confirmation of the address, profile, deletion', async () => {
    const email = buildEmail();
    const reply = await client.signUp({ email, name: 'Ada' });
    const user = await findUser(email);
    const { accessToken } = reply.body as { accessToken: string };
    await client.post('/verify-email', { email, otp: await readMailedCode(test, email) }, bearer(accessToken));
    expect((await client.send('patch', '/update-profile', { name: 'Lovelace' }, bearer(accessToken))).status).toBe(200);
    await deleteUser(test.app, owner.project, user);
    expect(await optionOf(user)).toMatchObject([
      { action: 'insert', data: { email, name: 'Ada', emailVerified: false } },
      { action: 'update', data: { email, name: 'Ada', emailVerified: true } },
      { action: 'update', data: { email, name: 'Lovelace', emailVerified: true } },
      { action: 'delete', data: { email, isDeleted: true } },
    ]);
  });

  it('is told when a password changes, by its owner, a mailed code or the operator, and the password is not', async () => {
    const email = buildEmail();
    const reply = await client.signUp({ email });
    const user = await findUser(email);
    clock.advance(1000);
    const changed = await client.post(
      '/change-password',
      { currentPassword: PASSWORD, newPassword: 'a second password' },
      bearer((reply.body as { accessToken: string }).accessToken),
    );
    expect(changed.status).toBe(200);
    clock.advance(1000);
    await client.post('/request-password-reset', { email });
    const otp = await readMailedCode(test, email);
    expect((await client.post('/reset-password', { email, otp, newPassword: 'a third password' })).status).toBe(200);
    clock.advance(1000);
    await setPassword(test.app, owner.project, user, 'a fourth password');
    const told = await optionOf(user);
    expect(told.map(({ action }) => action)).toEqual(['insert', 'update', 'update', 'update']);
    expect(told.map(({ data }) => data.emailVerified)).toEqual([false, false, true, true]);
    expect(new Set(told.map(({ data }) => data.updatedAt)).size).toBe(4);
    for (const { data } of told) {
      expect(Object.keys(data).sort()).toEqual(
        ['_id', 'createdAt', 'deletedAt', 'email', 'emailVerified', 'isDeleted', 'updatedAt'].sort(),
      );
    }
  });

  it('is told when it is disabled and enabled', async () => {
    const email = buildEmail();
    await client.signUp({ email });
    const user = await findUser(email);
    clock.advance(1000);
    await disableUser(test.app, owner.project, user);
    clock.advance(1000);
    await enableUser(test.app, owner.project, user);
    const told = await optionOf(user);
    expect(told.map(({ action }) => action)).toEqual(['insert', 'update', 'update']);
    expect(told[2]!.data.updatedAt).toBe(new Date(clock.now()).toISOString());
  });

  it('is told of those who come through a provider: a new account, and one that becomes its owner’s', async () => {
    const [fresh, squatted] = [buildEmail(), buildEmail()];
    await signInAt('1', fresh);
    await client.signUp({ email: squatted });
    await signInAt('2', squatted);
    expect(await optionOf(await findUser(fresh))).toMatchObject([{ action: 'insert', data: { emailVerified: true } }]);
    expect(await optionOf(await findUser(squatted))).toMatchObject([
      { action: 'insert', data: { emailVerified: false } },
      { action: 'update', data: { emailVerified: true } },
    ]);
  });

  it('is told though its process died right after the write', async () => {
    const email = buildEmail();
    await client.signUp({ email });
    const user = await findUser(email);
    const mortal = {
      ...crashAfter(test.app, 1).app,
      backgroundTasks: { add: () => undefined, idle: async () => undefined },
    };
    await expect(disableUser(mortal, owner.project, user)).rejects.toThrow(Crash);
    clock.advance(5_000);
    const { sweepWebhooksJob } = await import('../../../src/features/webhooks/events/sweep-webhooks.job.js');
    await test.app.jobs.enqueue(sweepWebhooksJob, {});
    expect((await optionOf(user)).map(({ action }) => action)).toEqual(['insert', 'update']);
  });
});

describe('what is no change of an account’s data', () => {
  it('is not told: signing in, refreshing, ending sessions, refusals', async () => {
    const email = buildEmail();
    const reply = await client.signUp({ email });
    const user = await findUser(email);
    await client.logIn(email);
    await client.logIn(email, 'wrong password');
    await client.refresh(reply.headers['x-refresh-token'] as string);
    await client.post('/verify-email', { email, otp: '000000' });
    await endSession(test.app, owner.project, user, 'all');
    expect((await optionOf(user)).map(({ action }) => action)).toEqual(['insert']);
  });
});

describe('confidential fields of an account', () => {
  it('are never told, at whatever depth they are', async () => {
    await changeCollection(test.app, owner.project._id, 'users', ({ fields }) => ({
      fields: [...fields, { name: 'apiToken', type: 'String' }, { name: 'devices', type: 'Array' }],
    }));
    const email = buildEmail();
    const devices = [{ name: 'phone', pushToken: 'p', nested: { clientSecret: 's', model: 'x' } }];
    expect((await client.signUp({ email, apiToken: 't', devices })).status).toBe(201);
    const [told] = await optionOf(await findUser(email));
    expect(told!.data).not.toHaveProperty('apiToken');
    expect(told!.data.devices).toEqual([{ name: 'phone', nested: { model: 'x' } }]);
  });
});
