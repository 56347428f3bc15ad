import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { drainJobs } from '../world/jobs.js';
import { sessionStore } from '../world/stored.js';
import { deleteUser, requireUser } from '../world/users.js';
import { Crash, crashAfter } from '../features/files/crashing-app.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, buildEmail, openUserClient, PASSWORD, readMailedCode } from '../helpers/user-client.js';

const clock = createFakeClock();

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
const project = await buildProject(test.app);
const client = openUserClient(test, project.publishable);

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
interface Account {
  _id: string;
  email: string;
  emailVerified: boolean;
  hasPassword: boolean;
  roles?: string[];
}

/** A call of the project's server. */
const serve = (method: Method, path: string, body?: object, of = project) =>
  request(test.server)[method](`/api/userAuth/users${path}`).set('x-api-key', of.secret).send(body);
const dataOf = <T>(reply: request.Response): T => (reply.body as { data: T }).data;
const codeOf = (reply: request.Response): string => `${reply.status} ${(reply.body as { code?: string }).code ?? ''}`;
const refreshOf = (reply: request.Response): string => reply.headers['x-refresh-token'] as string;
const tokenOf = (reply: request.Response): string => (reply.body as { accessToken: string }).accessToken;
const userOf = (reply: request.Response): Account => (reply.body as { user: Account }).user;

describe('users under the secret key', () => {
  it('are created without a password, and get in by one that they set by mail', async () => {
    const email = buildEmail();
    const made = await serve('post', '', { email, name: 'Ann', roles: ['guest'] });
    expect([made.status, dataOf<Account>(made)]).toEqual([
      201,
      expect.objectContaining({ email, name: 'Ann', roles: ['guest'], hasPassword: false, emailVerified: false }),
    ]);
    for (const guess of ['without a password', '', PASSWORD]) {
      expect((await client.logIn(email, guess)).status).toBeGreaterThanOrEqual(400);
    }
    await client.post('/request-password-reset', { email });
    const otp = await readMailedCode(test, email);
    expect(codeOf(await client.post('/reset-password', { email, otp, newPassword: PASSWORD }))).toBe('200 ');
    expect(codeOf(await client.logIn(email))).toBe('200 ');
    expect(codeOf(await serve('post', '', { email }))).toBe('409 EMAIL_TAKEN');
    expect(codeOf(await serve('post', '', { email: buildEmail(), password: 'short' }))).toBe('400 VALIDATION_FAILED');
    expect(codeOf(await serve('post', '', {}))).toBe('400 VALIDATION_FAILED');
  });

  it('still need a password where users sign up', async () => {
    const server = openUserClient(test, project.secret);
    expect(codeOf(await server.post('/signup', { email: buildEmail() }))).toBe('400 VALIDATION_FAILED');
  });

  it('are listed in parts that shift by nobody who comes or goes, by address, text and role', async () => {
    const own = await buildProject(test.app);
    const make = async (email: string, roles: string[] = []): Promise<Account> => {
      clock.advance(1);
      return dataOf<Account>(await serve('post', '', { email, roles }, own));
    };
    const accounts: Account[] = [];
    for (let at = 0; at < 7; at++) accounts.push(await make(`u${at}@example.test`, at % 2 ? ['odd'] : []));
    const part = async (query: string) =>
      dataOf<{ items: Account[]; nextCursor: string | null }>(await serve('get', `?${query}`, undefined, own));
    const seen: string[] = [];
    let next: string | null = null;
    do {
      const { items, nextCursor } = await part(`limit=3${next === null ? '' : `&cursor=${next}`}`);
      seen.push(...items.map(({ email }) => email));
      await make(`late${seen.length}@example.test`);
      next = nextCursor;
    } while (next !== null);
    expect(seen).toEqual(accounts.map(({ email }) => email).reverse());
    const emails = async (query: string) => (await part(query)).items.map(({ email }) => email);
    expect(await emails('role=odd')).toEqual(['u5@example.test', 'u3@example.test', 'u1@example.test']);
    expect(await emails('email=u4')).toEqual(['u4@example.test']);
    expect(await emails('q=U6@')).toEqual(['u6@example.test']);
    for (const cursor of ['x', '%24gt', 'zzzzzzzzzzz.64b7f0c2a1b2c3d4e5f60718']) {
      expect(codeOf(await serve('get', `?cursor=${cursor}`, undefined, own))).toBe('400 INVALID_QUERY');
    }
    expect(JSON.stringify(await part('limit=20'))).not.toMatch(/_bsvc|passwordHash|\$2b\$/);
  });

  it('are read, changed, closed, opened and deleted, with their sessions', async () => {
    const signedUp = await client.signUp();
    const { _id, email } = userOf(signedUp);
    expect(dataOf(await serve('get', `/${email}`))).toMatchObject({ _id, disabled: false, hasPassword: true });
    expect(dataOf(await serve('patch', `/${_id}`, { name: 'Ann', emailVerified: true }))).toMatchObject({
      name: 'Ann',
      emailVerified: true,
    });
    const again = await client.logIn(email);
    expect(dataOf(await serve('delete', `/${_id}/sessions`))).toEqual({ ended: 1 });
    expect(codeOf(await client.refresh(refreshOf(again)))).toBe('401 REFRESH_INVALID');
    expect(dataOf(await serve('post', `/${_id}/disable`))).toMatchObject({ disabled: true });
    expect(codeOf(await client.logIn(email))).toBe('403 ACCOUNT_DISABLED');
    expect(dataOf(await serve('post', `/${_id}/enable`))).toMatchObject({ disabled: false });
    const last = await client.logIn(email);
    expect(codeOf(await serve('delete', `/${_id}`))).toBe('200 ');
    expect(codeOf(await client.me(tokenOf(last)))).toBe('401 TOKEN_INVALID');
    expect(codeOf(await serve('get', `/${_id}`))).toBe('404 USER_NOT_FOUND');
  });

  it('are nobody else’s: not another project’s, not a publishable key’s', async () => {
    const { _id } = userOf(await client.signUp());
    const other = await buildProject(test.app);
    const calls: [Method, string, object?][] = [
      ['get', `/${_id}`],
      ['patch', `/${_id}`, { name: 'x' }],
      ['delete', `/${_id}`],
      ['post', `/${_id}/disable`],
      ['delete', `/${_id}/sessions`],
    ];
    for (const [method, path, body] of calls) {
      expect(codeOf(await serve(method, path, body, other))).toBe('404 USER_NOT_FOUND');
      expect(codeOf(await client.send(method, `/users${path}`, body))).toBe('403 SECRET_KEY_REQUIRED');
    }
    expect(dataOf<{ items: Account[] }>(await serve('get', '', undefined, other)).items).toEqual([]);
  });
});

describe('DELETE /api/userAuth/me', () => {
  const deleteMe = (token: string, body?: object) => client.send('delete', '/me', body, bearer(token));

  it('wants a proof of the last ten minutes, and leaves nothing that opens anything', async () => {
    const first = await client.signUp();
    const { _id, email } = userOf(first);
    const second = await client.logIn(email);
    clock.advance(10 * 60_000);
    expect(codeOf(await deleteMe(tokenOf(second)))).toBe('403 STEP_UP_REQUIRED');
    expect(codeOf(await deleteMe(tokenOf(second), { currentPassword: 'guessed' }))).toBe('401 INVALID_CREDENTIALS');
    const deleted = await deleteMe(tokenOf(second), { currentPassword: PASSWORD });
    expect(codeOf(deleted)).toBe('200 ');
    expect(deleted.headers['set-cookie']?.[0]).toMatch(/^bsvc_rt_\w+=;/);
    for (const session of [first, second]) {
      expect(codeOf(await client.me(tokenOf(session)))).toBe('401 TOKEN_INVALID');
      expect(codeOf(await client.refresh(refreshOf(session)))).toBe('401 REFRESH_INVALID');
    }
    expect(codeOf(await client.logIn(email))).toBe('401 INVALID_CREDENTIALS');
    const renewed = await client.post('/signup', { email, password: PASSWORD });
    expect(userOf(renewed)._id).not.toBe(_id);
    expect(codeOf(await client.refresh(refreshOf(first)))).toBe('401 REFRESH_INVALID');
  });

  it('is finished by a worker when its process dies after the account is gone', async () => {
    const signedUp = await client.signUp();
    const user = await requireUser(test.app, project.project._id, userOf(signedUp)._id);
    const { name } = await buildCollection(test.app, project.project, {
      rls: { mode: 'private', ownerField: 'owner' },
    });
    const list = () =>
      request(test.server)
        .get(`/api/data/${name}`)
        .set('x-api-key', project.publishable)
        .set(bearer(tokenOf(signedUp)));
    expect(codeOf(await list())).toBe('200 ');
    await expect(deleteUser(crashAfter(test.app, 1).app, project.project, user)).rejects.toThrow(Crash);
    // Data routes do not look the account up: the cutoff is there without the worker.
    await eventually('its tokens are over', async () => codeOf(await list()) === '401 TOKEN_INVALID');
    expect(await sessionStore(test.app).findOne({ userId: user._id })).not.toBeNull();
    await drainJobs(test.app);
    expect(await sessionStore(test.app).findOne({ userId: user._id })).toBeNull();
  });

  it('ends nothing of an account that a document keeps', async () => {
    const signedUp = await client.signUp();
    const user = await requireUser(test.app, project.project._id, userOf(signedUp)._id);
    const fields = [{ name: 'keeper', type: 'Ref', ref: 'users', onDelete: 'restrict' } as const];
    const keeping = await buildCollection(test.app, project.project, { fields });
    await placeDocuments(test.app, keeping, [{ keeper: userOf(signedUp)._id }]);
    await expect(deleteUser(test.app, project.project, user)).rejects.toMatchObject({ code: 'DOCUMENT_REFERRED_TO' });
    await drainJobs(test.app);
    expect(codeOf(await client.me(tokenOf(signedUp)))).toBe('200 ');
    expect(codeOf(await client.refresh(refreshOf(signedUp)))).toBe('200 ');
  });
});
