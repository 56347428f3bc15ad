import { createHmac, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Response } from 'supertest';
import { requireProject, rotateTokenSecret, requireSigningKey } from '../world/projects.js';
import { sessionStore } from '../world/stored.js';
import { deleteUser, disableUser, enableUser, requireUser, setPassword } from '../world/users.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, buildEmail, openUserClient, PASSWORD } from '../helpers/user-client.js';

const clock = createFakeClock();

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
const project = await buildProject(test.app);
const client = openUserClient(test, project.publishable);

interface SignedIn {
  accessToken: string;
  user: { _id: string; email: string };
}

const signedIn = (reply: Response): SignedIn => reply.body as SignedIn;
const refreshOf = (reply: Response): string => reply.headers['x-refresh-token'] as string;
const codeOf = (reply: Response): [number, string] => [reply.status, (reply.body as { code: string }).code];

describe('POST /api/userAuth/refresh-token', () => {
  it('answers new tokens and makes the old refresh token worthless', async () => {
    const first = refreshOf(await client.signUp());
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}\.[0-9a-f]{64}$/);
    const reply = await client.refresh(first);
    expect(reply.status).toBe(200);
    expect(Object.keys(reply.body as object).sort()).toEqual(['accessToken', 'expiresIn', 'success', 'token']);
    expect(reply.body).toMatchObject({ success: true, expiresIn: '15m', token: signedIn(reply).accessToken });
    expect(refreshOf(reply)).not.toBe(first);
    expect((await client.me(signedIn(reply).accessToken)).status).toBe(200);
    clock.advance(11_000);
    expect(codeOf(await client.refresh(first))).toEqual([401, 'REFRESH_REUSED']);
  });

  it('stores the declared fields of a session and no others, when it begins and when it goes on', async () => {
    const reply = await client.signUp();
    const fields = ['_id', 'createdAt', 'expiresAt', 'ip', 'projectId', 'revokedAt', 'revokedFor', 'rotated'];
    const all = [...fields, 'tokenHash', 'usedAt', 'userAgent', 'userId'];
    const stored = async () => sessionStore(test.app).findOne({ _id: refreshOf(reply).split('.')[0]! });
    expect(Object.keys((await stored())!).sort()).toEqual(all);
    await client.refresh(refreshOf(reply));
    expect(Object.keys((await stored())!).sort()).toEqual(all);
  });

  it('gives 50 refreshes at once the same successor of one family', async () => {
    const { user } = signedIn(await client.signUp());
    const reply = await client.logIn(user.email);
    const replies = await Promise.all(Array.from({ length: 50 }, () => client.refresh(refreshOf(reply))));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    const successors = new Set(replies.map(refreshOf));
    expect(successors.size).toBe(1);
    const [successor] = successors;
    expect(successor!.split('.')[0]).toBe(refreshOf(reply).split('.')[0]);
    const mine = await Promise.all(replies.slice(0, 5).map((each) => client.me(signedIn(each).accessToken)));
    expect(mine.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    clock.advance(11_000);
    expect((await client.refresh(successor!)).status).toBe(200);
  });

  it('ends the family, its access tokens too, when a token is used again after the window', async () => {
    const reply = await client.signUp();
    const other = await client.logIn(signedIn(reply).user.email);
    const first = refreshOf(reply);
    const second = await client.refresh(first);
    clock.advance(10_001);
    expect(codeOf(await client.refresh(first))).toEqual([401, 'REFRESH_REUSED']);
    expect(codeOf(await client.refresh(refreshOf(second)))).toEqual([401, 'REFRESH_REUSED']);
    expect(codeOf(await client.me(signedIn(second).accessToken))).toEqual([401, 'TOKEN_INVALID']);
    expect((await client.refresh(refreshOf(other))).status).toBe(200);
    expect((await client.me(signedIn(other).accessToken)).status).toBe(200);
    const session = first.split('.')[0]!;
    const told = test.logLines.filter((line) => line.includes('refresh token used twice') && line.includes(session));
    expect(told.map((line) => JSON.parse(line) as object)).toMatchObject([
      { session, projectId: project.project._id.toHexString() },
    ]);
  });

  it('ends the family for any of its older tokens, however old', async () => {
    const tokens = [refreshOf(await client.signUp())];
    for (let count = 0; count < 12; count++) {
      tokens.push(refreshOf(await client.refresh(tokens.at(-1)!)));
      clock.advance(1000);
    }
    clock.advance(60_000);
    expect(codeOf(await client.refresh(tokens[1]!))).toEqual([401, 'REFRESH_REUSED']);
    expect((await client.refresh(tokens.at(-1)!)).status).toBe(401);
  });

  it('knows the latest of many replaced tokens: two refreshes at once are honest however long a session lasts', async () => {
    const tokens = [refreshOf(await client.signUp())];
    for (let count = 0; count < 10; count++) {
      clock.advance(20_000);
      const replies = await Promise.all([1, 2].map(() => client.refresh(tokens.at(-1)!)));
      expect(replies.map(({ status }) => status)).toEqual([200, 200]);
      expect(refreshOf(replies[0]!)).toBe(refreshOf(replies[1]!));
      tokens.push(refreshOf(replies[0]!));
    }
  });

  it('lets a straggler of the window have its successor although that one was replaced as well', async () => {
    const first = refreshOf(await client.signUp());
    const second = refreshOf(await client.refresh(first));
    const third = refreshOf(await client.refresh(second));
    expect(refreshOf(await client.refresh(first))).toBe(second);
    expect(refreshOf(await client.refresh(second))).toBe(third);
    expect((await client.refresh(third)).status).toBe(200);
  });

  it('slides: a session in use lasts, one that is not used ends after 7 days', async () => {
    let token = refreshOf(await client.signUp());
    for (let week = 0; week < 3; week++) {
      clock.advance(6.9 * 86_400_000);
      const reply = await client.refresh(token);
      expect(reply.status).toBe(200);
      token = refreshOf(reply);
    }
    clock.advance(7 * 86_400_000);
    expect(codeOf(await client.refresh(token))).toEqual([401, 'REFRESH_INVALID']);
  });

  it('refuses a tampered token without harm to the session', async () => {
    const token = refreshOf(await client.signUp());
    const last = token.at(-1) === '0' ? '1' : '0';
    expect(codeOf(await client.refresh(token.slice(0, -1) + last))).toEqual([401, 'REFRESH_INVALID']);
    expect((await client.refresh(token)).status).toBe(200);
  });

  const id = `${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}`;
  const forms = [`${id}.`, `${id}.${'g'.repeat(64)}`, `${id}.${'a'.repeat(65)}`, `.${'a'.repeat(64)}`];
  it.each(['', 'x', 'a.b', ...forms, `${id}.${'0'.repeat(64)}`, '{"$gt":""}'])(
    'answers 401 REFRESH_INVALID for %j',
    async (token) => {
      expect(codeOf(await client.refresh(token))).toEqual([401, 'REFRESH_INVALID']);
    },
  );

  it('refuses a token of another project', async () => {
    const token = refreshOf(await client.signUp());
    const other = openUserClient(test, (await buildProject(test.app)).publishable);
    expect(codeOf(await other.refresh(token))).toEqual([401, 'REFRESH_INVALID']);
    expect((await client.refresh(token)).status).toBe(200);
  });
});

describe('POST /api/userAuth/logout', () => {
  it('ends the presented session and clears the cookie', async () => {
    const reply = await client.signUp();
    const out = await client.post('/logout', undefined, { 'x-refresh-token': refreshOf(reply) });
    expect([out.status, out.body]).toEqual([200, { success: true, message: 'Signed out' }]);
    expect(out.headers['set-cookie']?.[0]).toMatch(/^bsvc_rt_[0-9a-f]{24}=; Path=\/api\/userAuth; Max-Age=0/);
    expect(codeOf(await client.refresh(refreshOf(reply)))).toEqual([401, 'REFRESH_INVALID']);
  });

  it('ends the session for an older token of it, too', async () => {
    const first = refreshOf(await client.signUp());
    const second = refreshOf(await client.refresh(first));
    await client.post('/logout', undefined, { 'x-refresh-token': first });
    expect((await client.refresh(second)).status).toBe(401);
  });

  it('answers 200 when nothing or nonsense was presented', async () => {
    expect((await client.post('/logout')).status).toBe(200);
    expect((await client.post('/logout', undefined, { 'x-refresh-token': 'x' })).status).toBe(200);
  });
});

describe('access tokens', () => {
  it.each([
    ['with alg none', (token: string) => `${encode({ alg: 'none', typ: 'JWT' })}.${token.split('.')[1]}.`],
    ['with alg none and our key id', (token: string) => `${rehead(token, { alg: 'none' })}.${token.split('.')[1]}.`],
    ['signed with the right secret by HS512', (token: string) => resign(token, { alg: 'HS512' })],
    ['signed with the right secret for another project', (token: string) => resign(token, {}, { projectId: 'x' })],
    ['signed with another secret', (token: string) => resign(token, {}, {}, createSecretKey(randomBytes(48)))],
    ['signed with an empty secret', (token: string) => resign(token, {}, {}, createSecretKey(Buffer.alloc(0)))],
    ['with a changed user', (token: string) => reclaim(token, { sub: '0'.repeat(24), userId: '0'.repeat(24) })],
    ['with a later end', (token: string) => reclaim(token, { exp: 9_999_999_999 })],
    ['signed with the right secret, but without an end', (token: string) => resign(token, {}, { exp: undefined })],
    [
      'signed with the right secret, whose users differ',
      (token: string) => resign(token, {}, { userId: '0'.repeat(24) }),
    ],
    ['signed with the right secret, but without an id', (token: string) => resign(token, {}, { jti: undefined })],
    [
      'with an unknown key id',
      (token: string) => `${rehead(token, { kid: 'nope' })}.${token.split('.').slice(1).join('.')}`,
    ],
    ['with its signature cut off', (token: string) => `${token.split('.').slice(0, 2).join('.')}.`],
    ['cut short', (token: string) => token.slice(0, -2)],
    ['of 10,000 characters', () => 'a'.repeat(10_000)],
    ['that are no token', () => 'x.y.z'],
  ])('%s answer 401 TOKEN_INVALID', async (_what, attack) => {
    const { accessToken } = signedIn(await client.signUp());
    expect(codeOf(await client.me(attack(accessToken)))).toEqual([401, 'TOKEN_INVALID']);
    expect((await client.me(accessToken)).status).toBe(200);
  });

  it('signed as the service signs are accepted, so the refusals above mean something', async () => {
    const { accessToken } = signedIn(await client.signUp());
    expect((await client.me(resign(accessToken, {}))).status).toBe(200);
  });

  it('of another project answer 401 TOKEN_INVALID', async () => {
    const { accessToken } = signedIn(await client.signUp());
    const other = openUserClient(test, (await buildProject(test.app)).publishable);
    expect(codeOf(await other.me(accessToken))).toEqual([401, 'TOKEN_INVALID']);
  });

  it('answer 401 TOKEN_EXPIRED after 15 minutes', async () => {
    const { accessToken } = signedIn(await client.signUp());
    clock.advance(14 * 60_000);
    expect((await client.me(accessToken)).status).toBe(200);
    clock.advance(61_000);
    expect(codeOf(await client.me(accessToken))).toEqual([401, 'TOKEN_EXPIRED']);
  });

  it('outlive a rotation of the project’s secret by its grace, and end with it', async () => {
    const own = await buildProject(test.app);
    const users = openUserClient(test, own.publishable);
    const reply = await users.signUp();
    await rotateTokenSecret(test.app, own.project, 60_000);
    expect((await users.me(signedIn(reply).accessToken)).status).toBe(200);
    const renewed = signedIn(await users.refresh(refreshOf(reply)));
    const kid = (token: string): string => (decode(token.split('.')[0]!) as { kid: string }).kid;
    expect(kid(renewed.accessToken)).not.toBe(kid(signedIn(reply).accessToken));
    clock.advance(60_001);
    expect(codeOf(await users.me(signedIn(reply).accessToken))).toEqual([401, 'TOKEN_INVALID']);
    expect((await users.me(renewed.accessToken)).status).toBe(200);
    await rotateTokenSecret(test.app, own.project, 0);
    expect((await users.me(renewed.accessToken)).status).toBe(401);
    const { tokenSecrets } = await requireProject(test.app, own.project._id.toHexString());
    expect(tokenSecrets.length).toBeLessThanOrEqual(2);
  });
});

describe('an account that is closed', () => {
  it.each([
    ['deleted', deleteUser, 401, 'INVALID_CREDENTIALS'],
    ['disabled', disableUser, 403, 'ACCOUNT_DISABLED'],
  ] as const)('by being %s loses tokens and sessions everywhere', async (_what, close, status, code) => {
    await buildCollection(test.app, project.project, {
      name: `notes${status}`,
      rls: { mode: 'private', ownerField: 'userId' },
    });
    const reply = await client.signUp();
    const { accessToken, user } = signedIn(reply);
    const notes = `${test.url}/api/data/notes${status}`;
    const headers = { 'x-api-key': project.publishable, 'content-type': 'application/json', ...bearer(accessToken) };
    const insert = (): Promise<globalThis.Response> => fetch(notes, { method: 'POST', headers, body: '{}' });
    expect((await insert()).status).toBe(201);
    await close(test.app, project.project, await requireUser(test.app, project.project._id, user._id));
    const refused = await insert();
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([401, 'TOKEN_INVALID']);
    expect(codeOf(await client.me(accessToken))).toEqual([401, 'TOKEN_INVALID']);
    expect(codeOf(await client.refresh(refreshOf(reply)))).toEqual([401, 'REFRESH_INVALID']);
    expect(codeOf(await client.logIn(user.email))).toEqual([status, code]);
    expect((await client.logIn(user.email, 'wrong password')).status).toBe(401);
  });

  it('works again when it is enabled, with new tokens from the same moment on', async () => {
    const reply = await client.signUp();
    const { accessToken, user } = signedIn(reply);
    await disableUser(test.app, project.project, await requireUser(test.app, project.project._id, user._id));
    await enableUser(test.app, project.project, await requireUser(test.app, project.project._id, user._id));
    const again = await client.logIn(user.email);
    expect(again.status).toBe(200);
    expect((await client.me(signedIn(again).accessToken)).status).toBe(200);
    expect((await client.me(accessToken)).status).toBe(401);
    expect((await client.refresh(refreshOf(reply))).status).toBe(401);
  });

  it('cannot be signed in to by a request that was already under way', async () => {
    const { user } = signedIn(await client.signUp());
    const stored = await requireUser(test.app, project.project._id, user._id);
    const logins = Array.from({ length: 8 }, () => client.logIn(user.email).then((reply) => reply));
    await disableUser(test.app, project.project, stored);
    const replies = await Promise.all(logins);
    const mine = await Promise.all(
      replies.filter(({ status }) => status === 200).map((reply) => client.me(signedIn(reply).accessToken)),
    );
    expect(mine.filter(({ status }) => status !== 401)).toEqual([]);
    const live = await sessionStore(test.app).countDocuments({ userId: stored._id, revokedAt: null });
    expect(live).toBe(0);
  });
});

describe('POST and PUT /api/userAuth/change-password', () => {
  it('changes the password, keeps this session and ends all others', async () => {
    const { user } = signedIn(await client.signUp());
    const [mine, other] = [await client.logIn(user.email), await client.logIn(user.email)];
    const input = { currentPassword: PASSWORD, newPassword: 'another password' };
    const reply = await client.post('/change-password', input, bearer(signedIn(mine).accessToken));
    expect([reply.status, Object.keys(reply.body as object)]).toEqual([200, ['success', 'message']]);
    expect((await client.me(signedIn(mine).accessToken)).status).toBe(200);
    expect((await client.me(signedIn(other).accessToken)).status).toBe(401);
    expect((await client.refresh(refreshOf(other))).status).toBe(401);
    const renewed = await client.refresh(refreshOf(mine));
    expect(renewed.status).toBe(200);
    expect((await client.me(signedIn(renewed).accessToken)).status).toBe(200);
    expect((await client.logIn(user.email)).status).toBe(401);
    const fresh = await client.logIn(user.email, 'another password');
    expect((await client.me(signedIn(fresh).accessToken)).status).toBe(200);
  });

  it.each([
    ['no current password', { newPassword: 'another password' }, 400, 'VALIDATION_FAILED'],
    ['no new password', { currentPassword: PASSWORD }, 400, 'VALIDATION_FAILED'],
    ['a short new password', { currentPassword: PASSWORD, newPassword: 'abc' }, 400, 'VALIDATION_FAILED'],
    [
      'a new password of 73 bytes',
      { currentPassword: PASSWORD, newPassword: 'a'.repeat(73) },
      400,
      'VALIDATION_FAILED',
    ],
    [
      'a wrong current password',
      { currentPassword: 'wrong', newPassword: 'another password' },
      401,
      'INVALID_CREDENTIALS',
    ],
  ])('refuses %s', async (_what, input, status, code) => {
    const { accessToken, user } = signedIn(await client.signUp());
    const reply = await client.send('put', '/change-password', input, bearer(accessToken));
    expect(codeOf(reply)).toEqual([status, code]);
    expect((await client.logIn(user.email)).status).toBe(200);
  });

  it('locks after five wrong current passwords', async () => {
    const { accessToken } = signedIn(await client.signUp());
    const input = { currentPassword: 'wrong', newPassword: 'another password' };
    const statuses: number[] = [];
    for (let count = 0; count < 6; count++) {
      statuses.push((await client.post('/change-password', input, bearer(accessToken))).status);
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 423]);
  });

  it('answers 401 without a token', async () => {
    const input = { currentPassword: PASSWORD, newPassword: 'another password' };
    expect(codeOf(await client.post('/change-password', input))).toEqual([401, 'AUTH_REQUIRED']);
  });

  it('by the operator ends every session', async () => {
    const reply = await client.signUp();
    const { user, accessToken } = signedIn(reply);
    const stored = await requireUser(test.app, project.project._id, user.email);
    await setPassword(test.app, project.project, stored, 'set by the operator');
    expect((await client.me(accessToken)).status).toBe(401);
    expect((await client.refresh(refreshOf(reply))).status).toBe(401);
    expect((await client.logIn(user.email, 'set by the operator')).status).toBe(200);
    await expect(setPassword(test.app, project.project, stored, 'abc')).rejects.toMatchObject({ kind: 'invalid' });
  });
});

describe('lockout', () => {
  it('answers 423 with Retry-After after five failures in a row, for 15 minutes', async () => {
    const { user } = signedIn(await client.signUp());
    for (let count = 0; count < 5; count++) expect((await client.logIn(user.email, 'wrong')).status).toBe(401);
    const locked = await client.logIn(user.email);
    expect(codeOf(locked)).toEqual([423, 'ACCOUNT_LOCKED']);
    expect(locked.headers['retry-after']).toBe('900');
    clock.advance(15 * 60_000 - 1000);
    expect((await client.logIn(user.email)).headers['retry-after']).toBe('1');
    clock.advance(1000);
    expect((await client.logIn(user.email)).status).toBe(200);
  });

  it('is counted from the last failure, and tells five wrong passwords again when it is over', async () => {
    const { user } = signedIn(await client.signUp());
    const guess = async (): Promise<number> => (await client.logIn(user.email, 'wrong')).status;
    for (let count = 0; count < 4; count++) expect(await guess()).toBe(401);
    clock.advance(14 * 60_000);
    expect(await guess()).toBe(401);
    expect((await client.logIn(user.email)).headers['retry-after']).toBe('900');
    clock.advance(15 * 60_000);
    for (let count = 0; count < 5; count++) expect(await guess()).toBe(401);
    expect(await guess()).toBe(423);
  });

  it('starts to count anew after a success', async () => {
    const { user } = signedIn(await client.signUp());
    for (let round = 0; round < 3; round++) {
      for (let count = 0; count < 4; count++) expect((await client.logIn(user.email, 'wrong')).status).toBe(401);
      expect((await client.logIn(user.email)).status).toBe(200);
    }
  });

  it('treats an address without an account the same', async () => {
    const email = buildEmail();
    for (let count = 0; count < 5; count++) expect((await client.logIn(email, 'wrong')).status).toBe(401);
    expect((await client.logIn(email, 'wrong')).status).toBe(423);
  });

  it('compares no more than five of many guesses at once', async () => {
    const { user } = signedIn(await client.signUp());
    const replies = await Promise.all(Array.from({ length: 30 }, () => client.logIn(user.email, 'wrong')));
    expect(replies.filter(({ status }) => status === 401)).toHaveLength(5);
    expect(replies.filter(({ status }) => status === 423)).toHaveLength(25);
  });

  it('is one account’s and one project’s alone', async () => {
    const { user } = signedIn(await client.signUp());
    const other = openUserClient(test, (await buildProject(test.app)).publishable);
    await other.signUp({ email: user.email });
    for (let count = 0; count < 6; count++) await client.logIn(user.email, 'wrong');
    expect((await other.logIn(user.email)).status).toBe(200);
    const { user: neighbour } = signedIn(await client.signUp());
    expect((await client.logIn(neighbour.email)).status).toBe(200);
  });
});

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function decode(part: string): unknown {
  return JSON.parse(Buffer.from(part, 'base64url').toString());
}

function rehead(token: string, change: object): string {
  return encode({ ...(decode(token.split('.')[0]!) as object), ...change });
}

function reclaim(token: string, change: object): string {
  const [head, claims, signature] = token.split('.');
  return `${head}.${encode({ ...(decode(claims!) as object), ...change })}.${signature}`;
}

/** Signed anew, by default with the project's own secret: what only a rule beyond the signature can refuse. */
function resign(token: string, head: { alg?: string }, claims: object = {}, key?: KeyObject): string {
  const body = `${rehead(token, head)}.${reclaim(token, claims).split('.')[1]}`;
  const secret = key ?? requireSigningKey(test.app, project.project).key.signing;
  return `${body}.${createHmac(head.alg === 'HS512' ? 'sha512' : 'sha256', secret)
    .update(body)
    .digest('base64url')}`;
}
