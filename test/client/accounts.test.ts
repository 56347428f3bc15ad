import { describe, expect, it } from 'vitest';
import { createClient } from '../world/client.js';
import { drainJobs, listOutbox } from '../world/jobs.js';
import { changeProject } from '../world/projects.js';
import { totpCode } from '../world/users.js';
import type { ApiError } from '../world/client.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { readMailedCode } from '../helpers/user-client.js';
import { useTestApp } from '../helpers/use.js';

const clock = createFakeClock();

const test = await useTestApp({ clock });
const shop = await buildProject(test.app);
await buildCollection(test.app, shop.project, {
  name: 'notes',
  fields: [{ name: 'text', type: 'String', required: true }],
  rls: { mode: 'private', ownerField: 'userId' },
});

let made = 0;
const buildAccount = () => ({ email: `ann${++made}@example.test`, password: 'correct horse battery' });

/** A client, and the paths that it has asked for; `answered` runs before it gets an answer. */
function open(answered?: (path: string) => Promise<unknown>) {
  const paths: string[] = [];
  const api = createClient({
    url: test.url,
    key: shop.publishable,
    fetch: async (address, init) => {
      const path = new URL(String(address)).pathname;
      paths.push(path);
      const reply = await fetch(address, init);
      await answered?.(path);
      return reply;
    },
  });
  return { api, paths };
}
const EXPIRED_MS = 16 * 60_000;

describe('auth of the client', () => {
  it('shows and ends the own sessions, after a proof', async () => {
    const { api } = open();
    const account = buildAccount();
    await open().api.auth.signUp(account);
    await api.auth.signIn(account);
    clock.advance(11 * 60_000);
    const both = await api.auth.sessions.list();
    expect(both.map(({ current, amr }) => [current, amr])).toEqual(
      expect.arrayContaining([
        [true, ['pwd']],
        [false, ['pwd']],
      ]) as never,
    );
    await expect(api.auth.sessions.end('others')).rejects.toMatchObject({ code: 'STEP_UP_REQUIRED' });
    await api.auth.stepUp({ currentPassword: account.password });
    expect(await api.auth.sessions.end('others')).toBe(1);
    expect(await api.auth.sessions.list()).toHaveLength(1);
    await expect(api.auth.sessions.end('nonesuch')).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
  });

  it('signs in by a mailed code', async () => {
    await changeProject(test.app, shop.project, { signIn: { codeLogin: 'signup' } });
    const { api } = open();
    const { email } = buildAccount();
    await api.auth.code.send(email);
    const otp = await readMailedCode(test, email);
    expect(await api.auth.code.signIn({ email, otp })).toMatchObject({ email, emailVerified: true });
    expect(await api.auth.me()).toEqual(api.auth.user);
  });

  it('sends, shows, accepts and withdraws invitations', async () => {
    await changeProject(test.app, shop.project, {
      signIn: { codeLogin: 'signup', redirects: ['https://shop.example/join'] },
    });
    const server = createClient({ url: test.url, key: shop.secret });
    const { email } = buildAccount();
    const set = { collection: 'notes', document: { text: 'welcome', userId: '=user.id' } };
    const sent = await server.auth.invites.send({ email, redirect: 'https://shop.example/join', set });
    expect(await server.auth.invites.list()).toEqual([sent]);
    await drainJobs(test.app);
    const [mail] = await listOutbox(test.app, { to: email, limit: 1 });
    const token = /#invite=([\w-]+)/.exec(mail!.text!)![1]!;
    const { api } = open();
    expect(await api.auth.invites.show(token)).toMatchObject({ email, roles: [] });
    await api.auth.signUp(buildAccount());
    await expect(api.auth.invites.accept(token)).rejects.toMatchObject({ code: 'EMAIL_MISMATCH' });
    await api.auth.code.send(email);
    await api.auth.code.signIn({ email, otp: await readMailedCode(test, email) });
    expect(await api.auth.invites.accept(token)).toMatchObject({ email });
    expect((await api.collection('notes').list()).items).toMatchObject([{ text: 'welcome' }]);
    const { id } = await server.auth.invites.send({
      email: buildAccount().email,
      redirect: 'https://shop.example/join',
    });
    await server.auth.invites.withdraw(id);
    expect(await server.auth.invites.list()).toEqual([]);
  });

  it('begins as a guest, who stays under the same id', async () => {
    await changeProject(test.app, shop.project, { signIn: { anonymous: true } });
    const { api } = open();
    const guest = await api.auth.anonymous({ name: 'Guest' });
    expect(guest).toMatchObject({ isAnonymous: true, emailVerified: false });
    const account = buildAccount();
    await api.auth.updateProfile(account);
    await api.auth.verifyEmail({ email: account.email, otp: await readMailedCode(test, account.email) });
    const { api: later } = open();
    expect(await later.auth.signIn(account)).toMatchObject({ _id: guest._id, emailVerified: true });
    expect(later.auth.user).not.toHaveProperty('isAnonymous');
  });

  it('enrols a second factor and signs in with it', async () => {
    await changeProject(test.app, shop.project, { signIn: { mfa: 'optional' } });
    const server = createClient({ url: test.url, key: shop.secret });
    const account = buildAccount();
    const { api } = open();
    await api.auth.signUp(account);
    await api.auth.verifyEmail({ email: account.email, otp: await readMailedCode(test, account.email) });
    const { secret } = await api.auth.mfa.beginTotp();
    const codes = await api.auth.mfa.confirmTotp(totpCode(secret, clock.now()));
    expect(await api.auth.mfa.show()).toMatchObject({ recoveryCodes: codes.length, resetAt: null });
    const other = open().api;
    const refused: unknown = await other.auth.signIn(account).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'MFA_REQUIRED', data: { expiresIn: '5m' } });
    clock.advance(30_000);
    const totp = totpCode(secret, clock.now());
    const user = await other.auth.mfa.signIn(refused as ApiError, { totp });
    expect(user).toMatchObject({ email: account.email });
    expect(await other.auth.mfa.renewRecoveryCodes()).toHaveLength(10);
    await other.auth.mfa.removeTotp();
    expect((await other.auth.mfa.show()).totp).toBeNull();
    await server.auth.signIn(account);
  });

  it('deletes the account and signs out', async () => {
    const { api } = open();
    const account = buildAccount();
    await api.auth.signUp(account);
    await expect(api.auth.deleteAccount({ currentPassword: 'guessed' })).rejects.toMatchObject({
      code: 'INVALID_CREDENTIALS',
    });
    await api.auth.deleteAccount();
    expect(api.auth.user).toBeNull();
    await expect(api.auth.signIn(account)).rejects.toMatchObject({ code: 'INVALID_CREDENTIALS' });
  });

  it('hands out an access token that works, renewed when it has expired', async () => {
    const { api } = open();
    expect(await api.auth.token()).toBeNull();
    const account = buildAccount();
    await api.auth.signUp(account);
    const first = await api.auth.token();
    const claims = JSON.parse(atob(first!.split('.')[1]!)) as { sub: string };
    expect(claims.sub).toBe(api.auth.user?._id);
  });

  it('signs up, writes as the user, signs out and in again', async () => {
    const { api } = open();
    const account = buildAccount();
    const seen: unknown[] = [];
    api.auth.onChange((user) => seen.push(user?.email ?? null));
    expect(await api.auth.signUp(account)).toMatchObject({ email: account.email });
    const note = await api.collection('notes').insert({ text: 'mine' });
    expect(note.userId).toBe(api.auth.user?._id);
    await api.auth.signOut();
    expect(api.auth.user).toBeNull();
    await expect(api.collection('notes').list()).rejects.toMatchObject({ code: 'AUTH_REQUIRED' });
    await api.auth.signIn(account);
    expect((await api.collection('notes').list()).items).toHaveLength(1);
    await api.auth.updateProfile({ name: 'Ann' });
    expect([api.auth.user?.name, (await api.auth.me()).name]).toEqual(['Ann', 'Ann']);
    const newPassword = 'staple correct horse';
    await api.auth.changePassword({ currentPassword: account.password, newPassword });
    await expect(open().api.auth.signIn(account)).rejects.toMatchObject({ code: 'INVALID_CREDENTIALS' });
    await open().api.auth.signIn({ ...account, password: newPassword });
    // The changed profile is the last.
    expect(seen).toEqual([account.email, null, account.email, account.email]);
  });

  it('renews an expired token once for all requests that met it, and repeats them', async () => {
    const { api, paths } = open();
    await api.auth.signUp(buildAccount());
    clock.advance(EXPIRED_MS);
    paths.length = 0;
    const notes = api.collection('notes');
    await Promise.all([notes.insert({ text: 'a' }), notes.insert({ text: 'b' }), notes.count(), api.auth.me()]);
    expect(paths.filter((path) => path.endsWith('/refresh-token'))).toHaveLength(1);
    expect(await notes.count()).toBe(2);
  });

  it.each(['refresh', 'me'] as const)('stays signed out, or somebody else, while %s is under way', async (call) => {
    const [ann, bob] = [buildAccount(), buildAccount()];
    await open().api.auth.signUp(bob);
    let meanwhile: (() => Promise<unknown>) | undefined;
    const { api } = open(async (path) => {
      const run = /refresh-token|me$/.test(path) ? meanwhile : undefined;
      meanwhile = undefined;
      await run?.();
    });
    await api.auth.signUp(ann);
    meanwhile = () => api.auth.signIn(bob);
    await api.auth[call]();
    expect(api.auth.user?.email).toBe(bob.email);
    expect((await api.auth.me()).email).toBe(bob.email);
    meanwhile = () => api.auth.signOut();
    await api.auth[call]().catch(() => undefined);
    expect(api.auth.user).toBeNull();
  });

  it('is signed out when the session is over, and tells so', async () => {
    const account = buildAccount();
    const { api } = open();
    await api.auth.signUp(account);
    const seen: unknown[] = [];
    api.auth.onChange((user) => seen.push(user));
    // A change of password elsewhere ends this session.
    const other = open().api;
    await other.auth.signIn(account);
    await other.auth.changePassword({ currentPassword: account.password, newPassword: 'another password' });
    clock.advance(EXPIRED_MS);
    await expect(api.collection('notes').list()).rejects.toMatchObject({ status: 401 });
    await expect(api.auth.refresh()).rejects.toMatchObject({ code: 'REFRESH_INVALID' });
    expect([api.auth.user, seen]).toEqual([null, [null]]);
  });

  it('keeps the session where it is told, for the next start', async () => {
    const memory = new Map<string, string>();
    const storage = {
      getItem: (key: string) => memory.get(key) ?? null,
      setItem: (key: string, value: string) => void memory.set(key, value),
      removeItem: (key: string) => void memory.delete(key),
    };
    const options = { url: test.url, key: shop.publishable, storage };
    await createClient(options).auth.signUp(buildAccount());
    const again = createClient(options);
    expect(again.auth.user).not.toBeNull();
    expect(await again.collection('notes').count()).toBe(0);
    expect(createClient({ url: test.url, key: shop.publishable }).auth.user).toBeNull();
  });
});

it.each(['', '{', 'null', '5', '"text"', '[]', '{}', '{"accessToken":5}', '{"accessToken":'])(
  'a client finds nobody signed in where its storage holds %s, and signs in',
  async (text) => {
    const kept = new Map<string, string>();
    const storage = {
      getItem: (key: string) => kept.get(key) ?? text,
      setItem: (key: string, value: string) => void kept.set(key, value),
      removeItem: (key: string) => void kept.delete(key),
    };
    const api = createClient({ url: test.url, key: shop.publishable, storage });
    expect(api.auth.user).toBeNull();
    await expect(api.collection('notes').list()).rejects.toMatchObject({ code: 'AUTH_REQUIRED' });
    await api.auth.signOut();
    const { email } = await api.auth.signUp(buildAccount());
    expect(api.auth.user).toMatchObject({ email });
  },
);

describe('files of the client', () => {
  it('sends a file to a signed address, tells how far it is, and removes it', async () => {
    const server = createClient({ url: test.url, key: shop.secret });
    const steps: [number, number][] = [];
    const file = await server.files.upload(new Blob(['some text'], { type: 'text/plain' }), {
      filename: 'a.txt',
      onProgress: (sent, total) => steps.push([sent, total]),
    });
    expect(await (await fetch(file.url!)).text()).toBe('some text');
    expect([steps[0], steps.at(-1)]).toEqual([
      [0, 9],
      [9, 9],
    ]);
    await server.files.remove(file.path);
    expect((await fetch(file.url!)).status).toBe(404);
  });
});
