import { describe, expect, it } from 'vitest';
import { changeCollection } from '../world/collections.js';
import { changeUser, requireUser, updateProfile } from '../world/users.js';
import { buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, buildEmail, openUserClient, PASSWORD, type UserClient } from '../helpers/user-client.js';

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' } });
const project = await buildProject(test.app);
const client = openUserClient(test, project.publishable);
const server = openUserClient(test, project.secret);

interface SignedIn {
  accessToken: string;
  user: { _id: string; email: string };
}

const signedIn = (reply: { body: unknown }): SignedIn => reply.body as SignedIn;
const codeOf = (reply: { status: number; body: unknown }): [number, string] => [
  reply.status,
  (reply.body as { code: string }).code,
];

/** A project whose users have more fields than the fixed ones. */
async function buildProfiles(): Promise<{ client: UserClient; server: UserClient }> {
  const own = await buildProject(test.app);
  await changeCollection(test.app, own.project._id, 'users', ({ fields }) => ({
    fields: [
      ...fields,
      { name: 'username', type: 'String', unique: true, public: true },
      { name: 'avatar', type: 'String', public: true },
      { name: 'age', type: 'Number' },
      { name: 'preferences', type: 'Object', fields: [{ name: 'theme', type: 'String' }] },
      { name: 'role', type: 'String', default: 'member', protected: true },
    ],
  }));
  return { client: openUserClient(test, own.publishable), server: openUserClient(test, own.secret) };
}

describe('POST /api/userAuth/signup', () => {
  it('answers 201 with the user and tokens, nothing else', async () => {
    const email = buildEmail();
    const reply = await client.post('/signup', { email, password: PASSWORD, name: 'Ada' });
    expect(reply.status).toBe(201);
    expect(Object.keys(reply.body as object).sort()).toEqual(['accessToken', 'expiresIn', 'token', 'user']);
    expect(reply.body).toMatchObject({ expiresIn: '15m', token: signedIn(reply).accessToken });
    expect(signedIn(reply).user).toEqual({
      _id: expect.stringMatching(/^[0-9a-f]{24}$/) as string,
      email,
      name: 'Ada',
      emailVerified: false,
      createdAt: expect.stringMatching(/Z$/) as string,
      updatedAt: expect.stringMatching(/Z$/) as string,
    });
  });

  it('signs a token with the claims of the contract', async () => {
    const { accessToken, user } = signedIn(await client.signUp());
    const [head, claims] = accessToken
      .split('.')
      .slice(0, 2)
      .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>);
    expect(head).toEqual({ alg: 'HS256', typ: 'JWT', kid: expect.any(String) as string });
    expect(Object.keys(claims!).sort()).toEqual([
      'amr',
      'auth_time',
      'exp',
      'iat',
      'jti',
      'projectId',
      'sub',
      'userId',
    ]);
    expect(claims).toMatchObject({ sub: user._id, userId: user._id, projectId: project.project._id.toHexString() });
    expect(Number(claims!['exp']) - Number(claims!['iat'])).toBe(900);
  });

  it('stores the address trimmed and lower-cased', async () => {
    const email = buildEmail();
    const reply = await client.signUp({ email: `  ${email.toUpperCase()} ` });
    expect(signedIn(reply).user.email).toBe(email);
    expect((await client.signUp({ email })).status).toBe(409);
  });

  it('answers 409 EMAIL_TAKEN for an address that has an account', async () => {
    const email = buildEmail();
    await client.signUp({ email });
    const reply = await client.signUp({ email });
    expect(codeOf(reply)).toEqual([409, 'EMAIL_TAKEN']);
  });

  it('makes one account of many signups at once', async () => {
    const email = buildEmail();
    const replies = await Promise.all(Array.from({ length: 10 }, () => client.signUp({ email })));
    expect(replies.map(({ status }) => status).sort()).toEqual([201, ...Array<number>(9).fill(409)]);
  });

  it('lets the same address have an account in another project', async () => {
    const email = buildEmail();
    const other = await buildProject(test.app);
    expect((await client.signUp({ email })).status).toBe(201);
    expect((await openUserClient(test, other.publishable).signUp({ email })).status).toBe(201);
  });

  it.each([
    ['no email', { email: undefined }, 'email is required'],
    ['a null email', { email: null }, 'email is required'],
    ['no password', { password: undefined }, 'password is required'],
    ['a number as email', { email: 7 }, 'email must be a String'],
    ['a number as password', { password: 12345678 }, 'password must be a String'],
    ['an operator as email', { email: { $gt: '' } }, null],
    ['an object as email', { email: { a: '' } }, 'email must be a String'],
    ['an array as email', { email: ['a@b.c'] }, 'email must be a String'],
    ['a boolean as name', { name: true }, 'name must be a String'],
    ['no address', { email: 'ada' }, 'email must be an e-mail address'],
    ['a look-alike address', { email: 'аda@example.test' }, 'email must be an e-mail address'],
    ['full-width letters', { email: 'ａda@example.test' }, 'email must be an e-mail address'],
    ['a header in the address', { email: 'a@b.c\r\nBcc: d@e.f' }, 'email must be an e-mail address'],
    ['10,000 characters of address', { email: `${'a'.repeat(9_988)}@example.test` }, 'email must be an e-mail address'],
    ['a password of 5 bytes', { password: 'abcde' }, 'password must have at least 6 bytes'],
    ['a password of 73 bytes', { password: 'a'.repeat(73) }, 'password must have at most 72 bytes'],
    ['a password of 37 two-byte letters', { password: 'ä'.repeat(37) }, 'password must have at most 72 bytes'],
    ['an unknown field', { shoeSize: 44 }, 'shoeSize is not a field of this collection'],
    ['emailVerified', { emailVerified: true }, 'emailVerified cannot be set by users'],
    ['an id', { _id: '0'.repeat(24) }, '_id is set by the service'],
    ['a system field', { isDeleted: false }, 'isDeleted is set by the service'],
    ['hidden notes', { _bsvc: { disabledAt: null } }, '_bsvc is set by the service'],
  ])('answers 400 for %s', async (_what, fields, message) => {
    const reply = await client.signUp(fields);
    expect(reply.status).toBe(400);
    expect(reply.body).toMatchObject({ success: false, data: {} });
    if (message) expect((reply.body as { message: string }).message).toBe(`Validation failed: ${message}`);
  });

  it.each(['[]', '"text"', 'null', '7', '{"email":', ''])('answers 400 for the body %s', async (text) => {
    expect((await postText(text)).status).toBe(400);
  });

  it('answers 400 for keys that would reach into a prototype', async () => {
    const text = `{"email":"${buildEmail()}","password":"${PASSWORD}","__proto__":{"role":"admin"}}`;
    expect((await postText(text)).status).toBe(400);
  });

  const postText = (body: string): Promise<Response> =>
    fetch(`${test.url}/api/userAuth/signup`, {
      method: 'POST',
      headers: { 'x-api-key': project.publishable, 'content-type': 'application/json' },
      body,
    });

  it('lists every problem under details', async () => {
    const reply = await client.signUp({ email: 'no', password: 'abc', name: 7 });
    const { details } = reply.body as { details: { field: string; rule: string }[] };
    expect(details.map(({ field, rule }) => `${field} ${rule}`).sort()).toEqual([
      'email format',
      'name type',
      'password length',
    ]);
  });

  it('validates and answers further fields of the schema, with their defaults', async () => {
    const own = await buildProfiles();
    const fields = { username: 'ada', age: 36, preferences: { theme: 'dark' } };
    expect(signedIn(await own.client.signUp(fields)).user).toMatchObject({ ...fields, role: 'member' });
    expect((await own.client.signUp({ age: '36' })).body).toMatchObject({
      message: 'Validation failed: age must be a Number',
    });
    expect(codeOf(await own.client.signUp({ username: 'ada' }))).toEqual([409, 'DUPLICATE_VALUE']);
  });

  it('lets the secret key set fields that end users may not', async () => {
    const own = await buildProfiles();
    expect((await own.client.signUp({ role: 'admin' })).body).toMatchObject({
      code: 'VALIDATION_FAILED',
      message: 'Validation failed: role cannot be set by users',
    });
    const reply = await own.server.signUp({ role: 'admin', emailVerified: true });
    expect(signedIn(reply).user).toMatchObject({ role: 'admin', emailVerified: true });
    expect((await own.server.signUp({ _id: '0'.repeat(24) })).status).toBe(400);
  });
});

describe('POST /api/userAuth/login', () => {
  it('answers 200 with the user and tokens, whatever the spelling of the address', async () => {
    const email = buildEmail();
    const signedUp = await client.signUp({ email, name: 'Ada' });
    const reply = await client.logIn(` ${email.toUpperCase()}`);
    expect(reply.status).toBe(200);
    expect(Object.keys(reply.body as object).sort()).toEqual(['accessToken', 'expiresIn', 'token', 'user']);
    expect(signedIn(reply).user).toEqual(signedIn(signedUp).user);
    expect(reply.headers['cache-control']).toBe('no-store');
  });

  it('answers 401 INVALID_CREDENTIALS alike for a wrong password and an unknown address', async () => {
    const email = buildEmail();
    await client.signUp({ email });
    const replies = [await client.logIn(email, 'wrong password'), await client.logIn(buildEmail(), 'wrong password')];
    for (const reply of replies) {
      expect(codeOf(reply)).toEqual([401, 'INVALID_CREDENTIALS']);
      expect(reply.body).toMatchObject({ message: 'Invalid e-mail or password' });
    }
  });

  it.each([
    ['no email', { email: undefined }, 'email is required'],
    ['an empty email', { email: '' }, 'email is required'],
    ['no password', { password: undefined }, 'password is required'],
    ['an operator as email', { email: { $gt: '' } }, 'email must be a String'],
    ['an operator as password', { password: { $ne: null } }, 'password must be a String'],
    [
      '10,000 characters of address',
      { email: `${'a'.repeat(9_988)}@example.test` },
      'email must have at most 254 characters',
    ],
    ['a password of 73 bytes', { password: 'a'.repeat(73) }, 'password must have at most 72 bytes'],
  ])('answers 400 for %s', async (_what, fields, message) => {
    const reply = await client.post('/login', { email: buildEmail(), password: PASSWORD, ...fields });
    expect(reply.status).toBe(400);
    expect((reply.body as { message: string }).message).toBe(`Validation failed: ${message}`);
  });

  it('tells passwords of 72 bytes apart to the last one', async () => {
    const email = buildEmail();
    await client.signUp({ email, password: 'ä'.repeat(36) });
    expect((await client.logIn(email, `${'ä'.repeat(35)}ö`)).status).toBe(401);
    expect((await client.logIn(email, 'ä'.repeat(36))).status).toBe(200);
  });

  it('needs a live key', async () => {
    const none = await client.logIn(buildEmail(), PASSWORD, { 'x-api-key': '' });
    expect(codeOf(none)).toEqual([401, 'API_KEY_MISSING']);
    const foreign = await client.logIn(buildEmail(), PASSWORD, { 'x-api-key': `pk_live_${'A'.repeat(43)}` });
    expect(codeOf(foreign)).toEqual([401, 'API_KEY_INVALID']);
  });

  it('knows the users of its own project only', async () => {
    const email = buildEmail();
    await client.signUp({ email });
    const other = openUserClient(test, (await buildProject(test.app)).publishable);
    expect((await other.logIn(email)).status).toBe(401);
  });
});

describe('GET /api/userAuth/me', () => {
  it('answers the bare user document', async () => {
    const { accessToken, user } = signedIn(await client.signUp({ name: 'Ada' }));
    const reply = await client.me(accessToken);
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual(user);
  });

  it('answers 401 without a token', async () => {
    expect(codeOf(await client.get('/me'))).toEqual([401, 'AUTH_REQUIRED']);
  });
});

describe('PATCH and PUT /api/userAuth/update-profile', () => {
  it('changes the fields given and keeps the others', async () => {
    const own = await buildProfiles();
    const fields = { name: 'Ada', age: 36, preferences: { theme: 'dark' } };
    const { accessToken } = signedIn(await own.client.signUp(fields));
    const change = { age: 37, 'preferences.theme': 'light' };
    const reply = await own.client.send('patch', '/update-profile', change, bearer(accessToken));
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({
      success: true,
      message: 'Profile updated',
      data: { name: 'Ada', age: 37, preferences: { theme: 'light' } },
    });
    const put = await own.client.send('put', '/update-profile', { name: null }, bearer(accessToken));
    expect((put.body as { data: object }).data).not.toHaveProperty('name');
    expect((await own.client.me(accessToken)).body).toEqual((put.body as { data: object }).data);
  });

  it('takes a fetched profile back as it is', async () => {
    const { accessToken, user } = signedIn(await client.signUp({ name: 'Ada' }));
    expect((await client.send('put', '/update-profile', user, bearer(accessToken))).status).toBe(200);
  });

  it.each([
    ['a protected field', { role: 'admin' }, 'role cannot be set by users'],
    ['a path into a protected field', { 'role.x': 'admin' }, 'role.x cannot be set by users'],
    ['emailVerified', { emailVerified: true }, 'emailVerified cannot be set by users'],
    ['password', { password: 'another password' }, 'password is changed by change-password only'],
    ['an unknown field', { nope: 1 }, 'nope is not a field of this collection'],
    ['a wrong type', { age: 'x' }, 'age must be a Number'],
    ['no address', { email: 'x' }, 'email must be an e-mail address'],
    ['hidden notes', { '_bsvc.disabledAt': null }, '_bsvc.disabledAt is kept by the service and cannot be changed'],
  ])('answers 400 for %s', async (_what, change, message) => {
    const own = await buildProfiles();
    const { accessToken, user } = signedIn(await own.client.signUp());
    const reply = await own.client.send('patch', '/update-profile', change, bearer(accessToken));
    expect(reply.status).toBe(400);
    expect((reply.body as { message: string }).message).toBe(`Validation failed: ${message}`);
    expect((await own.client.me(accessToken)).body).toEqual(user);
  });

  it('does not bring back an address, confirmed, that was changed while the request was under way', async () => {
    const own = await buildProject(test.app);
    const [old, next] = [buildEmail(), buildEmail()];
    await openUserClient(test, own.publishable).signUp({ email: old });
    const asRead = await requireUser(test.app, own.project._id, old);
    const byProject = { setter: 'project', ip: '203.0.113.9', session: null } as const;
    const byUser = { ...byProject, setter: 'user' } as const;
    await updateProfile(test.app, own.project, asRead, { email: next }, byProject);
    await changeUser(test.app, own.project, { _id: asRead._id }, { emailVerified: true });
    const { user: late } = await updateProfile(test.app, own.project, asRead, { email: old, name: 'Ada' }, byUser);
    expect(late).toMatchObject({ email: next, emailVerified: true, name: 'Ada' });
    expect((await updateProfile(test.app, own.project, late, { email: next }, byUser)).user).toEqual(late);
  });

  it('lets the secret key beside a user’s token set protected fields', async () => {
    const own = await buildProfiles();
    const { accessToken } = signedIn(await own.client.signUp());
    const change = { role: 'admin', emailVerified: true };
    const reply = await own.server.send('patch', '/update-profile', change, bearer(accessToken));
    expect((reply.body as { data: object }).data).toMatchObject(change);
  });

  it('answers 401 without a token', async () => {
    expect((await client.send('patch', '/update-profile', { name: 'x' })).status).toBe(401);
  });
});

describe('GET /api/userAuth/public/:username', () => {
  it('answers the id and the public fields only', async () => {
    const own = await buildProfiles();
    const { user } = signedIn(await own.client.signUp({ username: 'ada', avatar: 'a.png', age: 36 }));
    const reply = await own.client.get('/public/ada');
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({ _id: user._id, username: 'ada', avatar: 'a.png' });
    expect(codeOf(await own.client.get('/public/bob'))).toEqual([404, 'USER_NOT_FOUND']);
    expect((await own.client.get('/public/__proto__')).status).toBe(404);
  });

  it('answers 404 where users have no unique username, and says how to give them one', async () => {
    const { status, body } = await client.get('/public/ada');
    expect([status, (body as { message: string }).message]).toEqual([
      404,
      "Users of this project have no names. This adds the unique field they are found by: bsvc collection edit users --add-field 'username:String&'",
    ]);
  });
});

describe('methods, paths and keys of /api/userAuth', () => {
  it('answers 405 with Allow for another method and 404 for an unknown path', async () => {
    const wrong = await client.get('/signup');
    expect([wrong.status, wrong.headers['allow']]).toEqual([405, 'OPTIONS, POST']);
    expect((await client.get('/nothing')).status).toBe(404);
  });

  it('takes the secret key as well', async () => {
    const email = buildEmail();
    expect((await server.signUp({ email })).status).toBe(201);
    expect((await server.logIn(email)).status).toBe(200);
  });
});
