import { describe, expect, it } from 'vitest';
import { changeCollection } from '../../world/collections.js';
import { updateProject } from '../../world/projects.js';
import { buildCollection, buildProject, placeDocuments } from '../../helpers/build-project.js';
import { sdk, type UrBackendClient, type UrBackendError } from '../../helpers/hosted-sdk.js';
import { readMigrationTable } from '../../helpers/migration-table.js';
import { openSocialBrowser } from '../../helpers/social-browser.js';
import { openSocialIssuer } from '../../helpers/social-issuer.js';
import { buildEmail, openUserClient, PASSWORD, readMailedCode } from '../../helpers/user-client.js';
import { use, useTestApp } from '../../helpers/use.js';

// The package of the hosted service as it is published. Each function of it is called, and does what the guide
// "Migration from the hosted service" says: a function without a line there fails, and a line without a function.
const promised = readMigrationTable('SDK');
const START_MS = Date.UTC(2026, 0, 31, 12, 0, 0);
const NEW_PASSWORD = 'a brand new password';

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
const shop = await buildProject(test.app);
await changeCollection(test.app, shop.project._id, 'users', ({ fields }) => ({
  fields: [...fields, { name: 'username', type: 'String', unique: true, public: true }],
}));
await buildCollection(test.app, shop.project, {
  name: 'authors',
  fields: [{ name: 'name', type: 'String', required: true }],
});
await buildCollection(test.app, shop.project, {
  name: 'books',
  fields: [
    { name: 'title', type: 'String', required: true },
    { name: 'stars', type: 'Number' },
    { name: 'author', type: 'Ref', ref: 'authors' },
  ],
});
const many = await buildCollection(test.app, shop.project, { name: 'many' });
await placeDocuments(
  test.app,
  many,
  Array.from({ length: 25 }, (_, n) => ({ n })),
  START_MS,
);
await updateProject(test.app, shop.project.name, { publishableUploads: true });
const issuer = use(await openSocialIssuer());
const browser = await openSocialBrowser(test, issuer, shop, openUserClient(test, shop.publishable), 'google');
/** As a page has it, and as a server does. */
const open = () => sdk.default({ apiKey: shop.publishable, baseUrl: test.url });
const server = sdk.default({ apiKey: shop.secret, baseUrl: test.url });

/** A client whose user has just signed up. */
async function signedUp(fields: Record<string, unknown> = {}): Promise<{ client: UrBackendClient; email: string }> {
  const client = open();
  const email = buildEmail();
  await client.auth.signUp({ email, password: PASSWORD, ...fields });
  return { client, email };
}

const called = new Map<string, string>();

/** Calls a function of the package; it must do so as the guide says. */
function calls(name: string, does: 'works' | 'differs', call: () => Promise<void> | void): void {
  called.set(name, does);
  it(`${name} ${does}`, async () => {
    expect(promised.get(name)).toBe(does);
    await call();
  });
}

describe('the SDK of the hosted service', () => {
  it('has no function of which the guide says nothing', () => {
    const methodsOf = (type: { prototype: object }): string[] =>
      // Marked private in its types.
      Object.getOwnPropertyNames(type.prototype).filter((name) => !['constructor', 'buildQueryString'].includes(name));
    const modules: [string, { prototype: object }][] = [
      ['auth', sdk.AuthModule],
      ['db', sdk.DatabaseModule],
      ['storage', sdk.StorageModule],
      ['schema', sdk.SchemaModule],
      ['mail', sdk.MailModule],
    ];
    const names = modules.map(([name]) => name);
    const all = [
      'urBackend',
      'StorageModule.uploadToPresignedUrl',
      ...Object.keys(sdk).filter((name) => name !== 'default'),
      ...methodsOf(sdk.UrBackendClient).filter((name) => !names.includes(name)),
      ...modules.flatMap(([name, type]) => methodsOf(type).map((method) => `${name}.${method}`)),
    ];
    expect([...promised.keys()].sort()).toEqual([...all].sort());
    expect([...called.keys()].sort()).toEqual([...all].sort());
  });

  calls('urBackend', 'works', async () => {
    expect(await open().db.getAll('books')).toEqual([]);
  });
  calls('UrBackendClient', 'works', async () => {
    const client = new sdk.UrBackendClient({ apiKey: shop.publishable, baseUrl: test.url });
    expect(await client.db.count('many')).toBe(25);
  });
  calls('getBaseUrl', 'works', () => expect(open().getBaseUrl()).toBe(test.url));
  calls('getApiKey', 'works', () => expect(open().getApiKey()).toBe(shop.publishable));
  calls('request', 'works', async () => {
    expect(await open().request('GET', '/api/data/many?count=true')).toEqual({ count: 25 });
  });
  for (const name of ['AuthModule', 'DatabaseModule', 'StorageModule', 'SchemaModule', 'MailModule'] as const) {
    calls(name, 'works', () => {
      const { auth, db, storage, schema, mail } = open();
      expect([auth, db, storage, schema, mail].filter((module) => module instanceof sdk[name])).toHaveLength(1);
    });
  }
});

describe('auth of the SDK', () => {
  calls('auth.signUp', 'differs', async () => {
    const [email, username] = [buildEmail(), 'grace'];
    const client = open();
    const reply = await client.auth.signUp({ email, password: PASSWORD, name: 'Grace', username });
    expect(reply).toMatchObject({ user: { email, name: 'Grace', username } });
    expect(reply).toHaveProperty('accessToken', client.auth.getToken());
    expect(reply).not.toHaveProperty('email');
    const plain = await buildProject(test.app);
    const without = sdk.default({ apiKey: plain.publishable, baseUrl: test.url });
    await expect(without.auth.signUp({ email, password: PASSWORD, username })).rejects.toThrow(
      /username is not a field/,
    );
  });
  calls('auth.login', 'works', async () => {
    const { email } = await signedUp();
    const client = open();
    const reply = await client.auth.login({ email, password: PASSWORD });
    expect(reply).toMatchObject({ accessToken: client.auth.getToken(), expiresIn: '15m', user: { email } });
    expect(reply.refreshToken).toBe(client.auth.getRefreshToken());
  });
  calls('auth.me', 'works', async () => {
    const { client, email } = await signedUp();
    expect(await client.auth.me()).toMatchObject({ email });
  });
  calls('auth.refreshToken', 'works', async () => {
    const { client, email } = await signedUp();
    const before = client.auth.getRefreshToken();
    const reply = await client.auth.refreshToken();
    expect(reply.refreshToken).toEqual(expect.any(String));
    expect(client.auth.getRefreshToken()).toBe(reply.refreshToken);
    expect(reply.refreshToken).not.toBe(before);
    expect(await client.auth.me()).toMatchObject({ email });
  });
  calls('auth.logout', 'works', async () => {
    const { client } = await signedUp();
    await client.auth.logout();
    expect(client.auth.getToken()).toBeUndefined();
    // The package keeps its refresh token, which is of no more use.
    await expect(client.auth.refreshToken()).rejects.toThrow(sdk.AuthError);
  });
  calls('auth.getToken', 'works', async () => {
    expect((await signedUp()).client.auth.getToken()).toMatch(/^ey/);
  });
  calls('auth.setToken', 'works', async () => {
    const { client, email } = await signedUp();
    const other = open();
    other.auth.setToken(client.auth.getToken());
    expect(await other.auth.me()).toMatchObject({ email });
  });
  calls('auth.getRefreshToken', 'works', async () => {
    expect((await signedUp()).client.auth.getRefreshToken()).toEqual(expect.any(String));
  });
  calls('auth.setRefreshToken', 'works', async () => {
    const { client, email } = await signedUp();
    const other = open();
    other.auth.setRefreshToken(client.auth.getRefreshToken());
    await other.auth.refreshToken();
    expect(await other.auth.me()).toMatchObject({ email });
  });
  calls('auth.updateProfile', 'differs', async () => {
    const { client, email } = await signedUp();
    const reply = await client.auth.updateProfile({ name: 'Ada Lovelace' });
    expect(reply).toMatchObject({ email, name: 'Ada Lovelace' });
    expect(reply).not.toHaveProperty('message');
  });
  calls('auth.changePassword', 'works', async () => {
    const { client, email } = await signedUp();
    const elsewhere = open();
    await elsewhere.auth.login({ email, password: PASSWORD });
    const reply = await client.auth.changePassword({ currentPassword: PASSWORD, newPassword: NEW_PASSWORD });
    expect(reply.message).toEqual(expect.any(String));
    await expect(elsewhere.auth.refreshToken()).rejects.toThrow(sdk.AuthError);
    expect(await client.auth.me()).toMatchObject({ email });
  });
  calls('auth.requestPasswordReset', 'works', async () => {
    const { client, email } = await signedUp();
    expect(await client.auth.requestPasswordReset({ email })).toMatchObject({ message: expect.any(String) as string });
    expect(await readMailedCode(test, email)).toMatch(/^\d{6}$/);
  });
  calls('auth.resetPassword', 'works', async () => {
    const { client, email } = await signedUp();
    await client.auth.requestPasswordReset({ email });
    const otp = await readMailedCode(test, email);
    const reply = await open().auth.resetPassword({ email, otp, newPassword: NEW_PASSWORD });
    expect(reply.message).toEqual(expect.any(String));
    await expect(client.auth.refreshToken()).rejects.toThrow(sdk.AuthError);
    expect(await client.auth.login({ email, password: NEW_PASSWORD })).toMatchObject({ user: { email } });
  });
  calls('auth.verifyEmail', 'works', async () => {
    const { client, email } = await signedUp();
    const otp = await readMailedCode(test, email);
    expect(await client.auth.verifyEmail({ email, otp })).toMatchObject({ message: expect.any(String) as string });
    expect(await client.auth.me()).toMatchObject({ emailVerified: true });
  });
  calls('auth.resendVerificationOtp', 'works', async () => {
    const { client } = await signedUp();
    // A code that was mailed within the minute is told as such: the SDK throws what the server answers.
    const email = buildEmail();
    expect(await client.auth.resendVerificationOtp({ email })).toMatchObject({ message: expect.any(String) as string });
    await expect(client.auth.resendVerificationOtp({ email })).rejects.toMatchObject({ statusCode: 429 });
  });
  calls('auth.publicProfile', 'differs', async () => {
    await signedUp({ username: 'hopper' });
    expect(await open().auth.publicProfile('hopper')).toMatchObject({ username: 'hopper' });
    const plain = await buildProject(test.app);
    const without = sdk.default({ apiKey: plain.publishable, baseUrl: test.url });
    await expect(without.auth.publicProfile('hopper')).rejects.toThrow(sdk.NotFoundError);
  });
  calls('auth.socialStart', 'works', async () => {
    const { status, headers } = await fetch(open().auth.socialStart('google'), { redirect: 'manual' });
    expect([status, headers.get('location')]).toEqual([302, expect.stringContaining(`${issuer.url}/authorize`)]);
  });
  calls('auth.socialExchange', 'works', async () => {
    const [client, email] = [open(), buildEmail()];
    const home = await browser.visit({ sub: 'person-7', email, emailVerified: true });
    const reply = await client.auth.socialExchange({ token: '', rtCode: home.searchParams.get('rtCode')! });
    expect(client.auth.getRefreshToken()).toBe(reply.refreshToken);
    await client.auth.refreshToken();
    expect(await client.auth.me()).toMatchObject({ email });
  });
});

describe('db of the SDK', () => {
  const addBook = (title: string, more: object = {}) => server.db.insert('books', { title, ...more });

  calls('db.getAll', 'differs', async () => {
    expect(await open().db.getAll('many')).toHaveLength(20);
    expect(await open().db.getAll('many', { limit: 100, sort: 'n' })).toHaveLength(25);
    expect(await open().db.getAll('many', { filter: { n_gte: 23 }, sort: '-n' })).toMatchObject([{ n: 24 }, { n: 23 }]);
    // What it sends of a date has no milliseconds: half a second after the third document is that moment.
    const after = new Date(START_MS + 2_500);
    const found = await open().db.getAll('many', { filter: { createdAt_gte: after }, limit: 100 });
    expect(found).toHaveLength(23);
    expect(await open().db.getAll('nothing')).toEqual([]);
  });
  calls('db.count', 'works', async () => {
    expect(await open().db.count('many', { filter: { n_lt: 5 } })).toBe(5);
  });
  calls('db.getOne', 'works', async () => {
    const author = await server.db.insert('authors', { name: 'Ada' });
    const book = await addBook('Notes', { author: author._id });
    expect(await open().db.getOne('books', book._id)).toMatchObject({ title: 'Notes', author: author._id });
    for (const option of [{ populate: 'author' }, { populate: ['author'] }, { expand: 'author' }])
      expect(await open().db.getOne('books', book._id, option)).toMatchObject({ author: { name: 'Ada' } });
    await expect(open().db.getOne('books', 'f'.repeat(24))).rejects.toThrow(sdk.NotFoundError);
  });
  calls('db.insert', 'works', async () => {
    expect(await addBook('Inserted', { stars: 5 })).toMatchObject({ title: 'Inserted', stars: 5 });
    // The package takes the one field of that name for the envelope of a reply.
    expect(await server.db.insert('many', { data: { kept: true }, n: 100 })).toEqual({ kept: true });
    const [stored] = await server.db.getAll('many', { filter: { n: 100 } });
    expect(stored).toMatchObject({ data: { kept: true }, n: 100 });
    await server.db.delete('many', stored!._id);
  });
  calls('db.update', 'works', async () => {
    const { _id } = await addBook('Before', { stars: 1 });
    expect(await server.db.update('books', _id, { title: 'After' })).toMatchObject({ _id, title: 'After' });
  });
  calls('db.patch', 'works', async () => {
    const { _id } = await addBook('Patched', { stars: 1 });
    expect(await server.db.patch('books', _id, { stars: 2 })).toMatchObject({ title: 'Patched', stars: 2 });
  });
  calls('db.delete', 'works', async () => {
    const { _id } = await addBook('Gone');
    expect(await server.db.delete('books', _id)).toEqual({ deleted: true });
    await expect(server.db.getOne('books', _id)).rejects.toThrow(sdk.NotFoundError);
  });
  calls('schema.getSchema', 'works', async () => {
    const { name, model } = await server.schema.getSchema('books');
    expect([name, model.map(({ key, type, required }) => [key, type, required])]).toEqual([
      'books',
      [
        ['title', 'String', true],
        ['stars', 'Number', false],
        ['author', 'Ref', false],
      ],
    ]);
  });
});

describe('storage of the SDK', () => {
  const text = Buffer.from('hello');
  const read = async (url: string): Promise<string> => (await fetch(url)).text();

  calls('storage.upload', 'works', async () => {
    const { url, path } = await open().storage.upload(new Blob(['hello'], { type: 'text/plain' }), 'hello.txt');
    expect([path, await read(url)]).toEqual([expect.stringContaining('hello.txt'), 'hello']);
    const closed = await buildProject(test.app);
    const client = sdk.default({ apiKey: closed.publishable, baseUrl: test.url });
    await expect(client.storage.upload(text, 'hello.txt')).rejects.toThrow(sdk.AuthError);
  });
  const request = () => open().storage.requestUploadUrl('hello.txt', 'text/plain', text.length);
  calls('storage.requestUploadUrl', 'works', async () => {
    expect(await request()).toMatchObject({ signedUrl: expect.any(String) as string });
  });
  calls('StorageModule.uploadToPresignedUrl', 'works', async () => {
    const { signedUrl } = await request();
    await sdk.StorageModule.uploadToPresignedUrl(text, signedUrl, 'text/plain');
  });
  calls('storage.confirmUpload', 'works', async () => {
    const { signedUrl, filePath } = await request();
    await sdk.StorageModule.uploadToPresignedUrl(text, signedUrl, 'text/plain');
    const { url } = await open().storage.confirmUpload(filePath, text.length);
    expect(await read(url)).toBe('hello');
  });
  calls('storage.deleteFile', 'differs', async () => {
    const { url, path } = await server.storage.upload(text, 'gone.txt');
    expect(await server.storage.deleteFile(path)).toEqual({});
    expect((await fetch(url)).status).toBe(404);
  });
});

describe('mail and errors of the SDK', () => {
  calls('mail.send', 'differs', async () => {
    const [to, plain] = [buildEmail(), { subject: 'Hello', text: 'There' }];
    expect(await server.mail.send({ to, ...plain })).toMatchObject({
      provider: 'default',
      monthlyUsage: expect.any(Number) as number,
      monthlyLimit: expect.any(Number) as number,
    });
    for (const templateName of ['verification', 'welcome'])
      await server.mail.send({ to, templateName, variables: { projectName: 'shop', code: '123456', name: 'Ada' } });
    for (const templateName of ['otp', 'welcome-2'])
      await expect(server.mail.send({ to, templateName })).rejects.toThrow(sdk.NotFoundError);
  });

  const thrownBy = (call: () => Promise<unknown>): Promise<UrBackendError> =>
    call().then(
      () => expect.fail('it was answered'),
      (error: unknown) => error as UrBackendError,
    );
  const refusals: Record<string, [call: () => Promise<unknown>, status: number]> = {
    AuthError: [() => sdk.default({ apiKey: 'pk_live_wrong', baseUrl: test.url }).db.count('many'), 401],
    NotFoundError: [() => open().db.getOne('many', 'f'.repeat(24)), 404],
    StorageError: [() => open().storage.requestUploadUrl('big.bin', 'application/octet-stream', 1e12), 413],
    ValidationError: [() => server.db.insert('books', { stars: 'many' }), 400],
    RateLimitError: [
      async () => {
        const busy = await buildProject(test.app);
        await updateProject(test.app, busy.project.name, { limits: { requests: 0 } });
        return sdk.default({ apiKey: busy.publishable, baseUrl: test.url }).db.count('users');
      },
      429,
    ],
    UrBackendError: [
      async () => {
        const { client, email } = await signedUp();
        return client.auth.signUp({ email, password: PASSWORD });
      },
      409,
    ],
  };
  for (const [name, [call, status]] of Object.entries(refusals)) {
    calls(name, 'works', async () => {
      const error = await thrownBy(call);
      expect([error.name, error.statusCode, error instanceof sdk.UrBackendError]).toEqual([name, status, true]);
      expect(error.message).not.toBe('An unexpected error occurred');
      if (error instanceof sdk.RateLimitError) expect(error.retryAfter).toBeGreaterThan(0);
    });
  }
  calls('parseApiError', 'works', async () => {
    const error = await sdk.parseApiError(await fetch(`${test.url}/api/data/many`));
    expect([error.name, error.statusCode, error.endpoint]).toEqual(['AuthError', 401, '/api/data/many']);
  });
});
