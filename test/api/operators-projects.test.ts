import { ObjectId } from 'bson';
import supertest from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import { documentsName } from '../world/collections.js';
import { CALLERS, addWebhook, requireProject, findByokKey } from '../world/projects.js';
import { projectStore, reserveMailQuota } from '../world/stored.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { buildOperator } from '../helpers/operator-client.js';
import { useTestApp } from '../helpers/use.js';

let owner: TestProject;
let path: string;

const settings = { BSVC_BCRYPT_COST: '4', BSVC_RATE_LIMIT: 'off', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' };
const test = await useTestApp({ settings });
const { call } = await buildOperator(test);

beforeEach(async () => {
  owner = await buildProject(test.app);
  path = `/api/projects/${owner.project._id.toHexString()}`;
});

type Data<T = Record<string, unknown>> = { data: T; message: string };
const dataOf = <T>(answer: { body: unknown }): T => (answer.body as Data<T>).data;
const listAs = (key: string, collection: string) =>
  supertest(test.server).get(`/api/data/${collection}`).set('x-api-key', key);

describe('POST /api/projects', () => {
  it('creates a project with working keys, shown once', async () => {
    const answer = await call('post', '/api/projects', { name: 'made over http', plan: 'pro' }).expect(201);
    const { project, keys, created } = dataOf<{
      project: { id: string; plan: string };
      keys: { publishable: string; secret: string };
      created: boolean;
    }>(answer);
    expect({ plan: project.plan, created }).toEqual({ plan: 'pro', created: true });
    await listAs(keys.secret, 'nothing').expect(404);
    const shown = await call('get', `/api/projects/${project.id}`).expect(200);
    expect(JSON.stringify(shown.body)).not.toMatch(/[ps]k_live_|hash|encrypted/);
  });

  it('answers 409 for a name that is taken, or the project itself with ifNotExists', async () => {
    const { name, _id } = owner.project;
    const answer = await call('post', '/api/projects', { name }).expect(409);
    expect(answer.body).toMatchObject({ success: false, data: {}, code: 'PROJECT_EXISTS' });
    const again = await call('post', '/api/projects', { name, ifNotExists: true }).expect(200);
    expect(dataOf(again)).toMatchObject({ project: { id: _id.toHexString() }, keys: null, created: false });
  });

  it.each([
    [{}, /name is required/],
    [{ name: '' }, /project name/],
    [{ name: '../x' }, /project name/],
    [{ name: { $ne: '' } }, /name must be a String/],
    [{ name: 'fine', plan: 'gold' }, /plan must be one of free, pro/],
    [{ name: 'fine', keys: [] }, /must not contain "keys"/],
    [[], /must be a JSON object/],
    ['x', /must be a JSON object/],
  ])('answers 400 for %j', async (body, text) => {
    const answer = await call('post', '/api/projects')
      .set('content-type', 'application/json')
      .send(JSON.stringify(body))
      .expect(400);
    expect(answer.body).toMatchObject({ success: false, message: expect.stringMatching(text) as string });
  });
});

describe('PATCH /api/projects/:projectId', () => {
  it('changes settings of every kind by one write, and shows secrets masked', async () => {
    const changes = {
      name: `renamed ${owner.project.name}`,
      plan: 'pro',
      allowedDomains: ['https://App.example'],
      limits: { mail: 7 },
      providerApiKey: 're_0123456789abcd',
      providerFromEmail: 'Shop <a@b.co>',
      providerWebhookSecret: `whsec_${'a'.repeat(24)}`,
      storage: { publishableUploads: true },
    };
    const answer = await call('patch', path, changes).expect(200);
    expect(dataOf(answer)).toMatchObject({
      name: changes.name,
      plan: 'pro',
      allowedDomains: ['https://app.example'],
      limits: { mail: 7 },
      providerApiKey: 're_…abcd',
      providerFromEmail: 'Shop <a@b.co>',
      providerWebhookSecret: 'whsec_…',
      storage: { publishableUploads: true, bucket: null },
    });
    expect(findByokKey(test.app, await requireProject(test.app, changes.name))).toBe('re_0123456789abcd');
    const cleared = await call('patch', path, { providerApiKey: null, limits: { mail: null } }).expect(200);
    expect(dataOf(cleared)).toMatchObject({ providerApiKey: null, providerFromEmail: 'Shop <a@b.co>', limits: {} });
  });

  it('changes nothing when one of the values is refused', async () => {
    const before = (await call('get', path)).body as object;
    await call('patch', path, { plan: 'pro', providerApiKey: 'sk_wrong' }).expect(400);
    await call('patch', path, { providerApiKey: 're_good', allowedDomains: ['not a domain'] }).expect(400);
    expect((await call('get', path)).body).toEqual(before);
  });

  it.each([
    [{}, 400, 'VALIDATION_FAILED'],
    [{ unknown: 1 }, 400, 'VALIDATION_FAILED'],
    [{ limits: { mail: -1 } }, 400, 'VALIDATION_FAILED'],
    [{ limits: { tables: 1 } }, 400, 'VALIDATION_FAILED'],
    [{ limits: { mail: 1.5 } }, 400, 'VALIDATION_FAILED'],
    [{ allowedDomains: [] }, 400, 'VALIDATION_FAILED'],
    [{ allowedDomains: ['not a domain'] }, 400, 'INVALID_DOMAIN'],
    [{ providerApiKey: 'sk_x' }, 400, 'INVALID_MAIL_KEY'],
    [{ providerApiKey: 're_x y' }, 400, 'INVALID_MAIL_KEY'],
    [{ providerApiKey: { $set: 1 } }, 400, 'VALIDATION_FAILED'],
    [{ providerFromEmail: 'a@b.co\r\nBcc: x@y.z' }, 400, 'INVALID_MAIL'],
    [{ storage: { bucket: {} } }, 400, 'VALIDATION_FAILED'],
    [{ 'keys.0.hash': 'x' }, 400, 'VALIDATION_FAILED'],
    [{ state: 'deleting' }, 400, 'VALIDATION_FAILED'],
  ])('answers %j with %i %s', async (body, status, code) => {
    const answer = await call('patch', path, body);
    expect(answer).toMatchObject({ status, body: { success: false, code } });
  });

  it('answers 409 for a name that is taken', async () => {
    const other = await buildProject(test.app);
    const answer = await call('patch', path, { name: other.project.name, plan: 'pro' }).expect(409);
    expect(answer.body).toMatchObject({ code: 'PROJECT_EXISTS' });
    expect(dataOf(await call('get', path))).toMatchObject({ plan: 'free' });
  });
});

describe('/api/projects/:projectId/collections', () => {
  const TITLE = { name: 'title', type: 'String', required: true };

  it('registers a collection whose endpoint accepts requests at once', async () => {
    const body = { name: 'posts', fields: [TITLE], rls: { mode: 'private' }, indexes: ['title'] };
    const answer = await call('post', `${path}/collections`, body).expect(201);
    expect(dataOf(answer)).toMatchObject({
      name: 'posts',
      mode: 'enforced',
      fields: [TITLE],
      rls: { enabled: true, mode: 'private', ownerField: 'userId' },
      indexes: ['title'],
      created: true,
    });
    await listAs(owner.secret, 'posts').expect(200);
    await call('post', `${path}/collections`, body).expect(409);
    await call('post', `${path}/collections`, { ...body, ifNotExists: true }).expect(200);
    const listed = dataOf<{ items: { name: string }[] }>(await call('get', `${path}/collections`));
    expect(listed.items.map(({ name }) => name)).toEqual(['posts', 'users']);
  });

  it.each([[{ name: 'posts' }], [{ name: 'posts', fields: [] }], [{ name: 'posts', mode: 'enforced', fields: [] }]])(
    'answers 400 "At least one field is required" for %j',
    async (body) => {
      const answer = await call('post', `${path}/collections`, body).expect(400);
      expect(answer.body).toEqual({
        success: false,
        data: {},
        message: 'At least one field is required',
        error: 'At least one field is required',
        code: 'EMPTY_SCHEMA',
        requestId: answer.headers['x-request-id'],
        docs: expect.stringMatching('^/api/docs/'),
      });
      await call('get', `${path}/collections/posts`).expect(404);
    },
  );

  it('answers the same when an edit would leave no field, and leaves the collection as it was', async () => {
    await call('post', `${path}/collections`, { name: 'posts', fields: [TITLE] }).expect(201);
    for (const body of [{ fields: [] }, { dropFields: ['title'] }, { fields: [], mode: 'enforced' }]) {
      const answer = await call('patch', `${path}/collections/posts`, body).expect(400);
      expect(answer.body).toMatchObject({ success: false, message: 'At least one field is required' });
    }
    expect(dataOf(await call('get', `${path}/collections/posts`))).toMatchObject({ fields: [TITLE], version: 1 });
  });

  it('edits fields, mode, indexes and access by one write', async () => {
    const { name } = await buildCollection(test.app, owner.project, { fields: [{ name: 'a', type: 'String' }] });
    const body = {
      addFields: [{ name: 'b', type: 'Number' }],
      dropFields: ['a'],
      indexes: ['b'],
      rls: { enabled: true, mode: 'public-read', ownerField: 'by' },
    };
    const edited = await call('patch', `${path}/collections/${name}`, body).expect(200);
    expect(dataOf(edited)).toMatchObject({
      fields: [{ name: 'b', type: 'Number' }],
      indexes: ['b'],
      rls: { enabled: true, mode: 'public-read', ownerField: 'by' },
      version: 2,
    });
    const whole = await call('patch', `${path}/collections/${name}`, { fields: [TITLE], indexes: [] }).expect(200);
    expect(dataOf(whole)).toMatchObject({ fields: [TITLE], rls: { enabled: true, mode: 'public-read' }, version: 3 });
    const open = await call('put', `${path}/collections/${name}/rls`, { enabled: false }).expect(200);
    expect(dataOf(open)).toMatchObject({ rls: { enabled: false } });
    await call('put', `${path}/collections/${name}/rls`, { enabled: true }).expect(400);
  });

  it('reports with ?check=true which stored documents violate the new settings, and changes nothing', async () => {
    const { name } = await buildCollection(test.app, owner.project);
    await supertest(test.server)
      .post(`/api/data/${name}`)
      .set('x-api-key', owner.secret)
      .send({ title: 7 })
      .expect(201);
    const body = { mode: 'enforced', fields: [TITLE] };
    const answer = await call('patch', `${path}/collections/${name}?check=true`, body).expect(200);
    expect(dataOf(answer)).toMatchObject({
      checked: 1,
      violations: 1,
      examples: [{ message: 'title must be a String' }],
    });
    expect(dataOf(await call('get', `${path}/collections/${name}`))).toMatchObject({ mode: 'flexible', version: 1 });
  });

  it('answers 409 with the values when a field cannot become unique', async () => {
    const { name } = await buildCollection(test.app, owner.project, { fields: [{ name: 'sku', type: 'String' }] });
    for (let n = 0; n < 2; n++)
      await supertest(test.server).post(`/api/data/${name}`).set('x-api-key', owner.secret).send({ sku: 'same' });
    const body = { setFields: [{ name: 'sku', type: 'String', unique: true }] };
    const answer = await call('patch', `${path}/collections/${name}`, body).expect(409);
    expect((answer.body as Data).message).toContain('same');
  });

  it('renames and drops; documents stay, then go', async () => {
    const { name } = await buildCollection(test.app, owner.project);
    await supertest(test.server).post(`/api/data/${name}`).set('x-api-key', owner.secret).send({ a: 1 }).expect(201);
    await call('post', `${path}/collections/${name}/rename`, { name: 'renamed' }).expect(200);
    expect(dataOf(await listAs(owner.secret, 'renamed').expect(200))).toMatchObject({ total: 1 });
    await call('post', `${path}/collections/renamed/rename`, { name: 'users' }).expect(403);
    await call('delete', `${path}/collections/renamed`).expect(200);
    await listAs(owner.secret, 'renamed').expect(404);
    await call('delete', `${path}/collections/renamed`).expect(404);
    expect((await call('delete', `${path}/collections/users`).expect(403)).body).toMatchObject({
      code: 'USERS_BLOCKED',
    });
  });

  it.each([
    [400, { name: 'x', fields: [{ name: 'a', type: 'Text' }] }],
    [400, { name: 'x', fields: [{ name: '$where', type: 'String' }] }],
    [400, { name: 'x', fields: [{ name: 'a', type: 'Date', default: 'now' }] }],
    [400, { name: 'x', fields: [{ name: 'a', type: 'String' }], rls: { mode: 'secret' } }],
    [400, { name: 'x', fields: [{ name: 'a', type: 'String' }], rls: {} }],
    [400, { name: 'x', fields: [{ name: 'a', type: 'String' }], state: 'active' }],
    [400, { name: '../x', mode: 'flexible' }],
    [403, { name: 'users', mode: 'flexible' }],
    [400, { name: { $gt: '' }, mode: 'flexible' }],
  ])('answers %i for %j and registers nothing', async (status, body) => {
    await call('post', `${path}/collections`, body).expect(status);
    expect(dataOf<{ total: number }>(await call('get', `${path}/collections`)).total).toBe(1);
  });

  it.each([
    [{}],
    [{ fields: [{ name: 'a', type: 'String' }], addFields: [{ name: 'b', type: 'String' }] }],
    [{ addFields: [] }],
    [{ name: 'other' }],
    [{ version: 7 }],
  ])('answers 400 for the edit %j', async (body) => {
    const { name } = await buildCollection(test.app, owner.project, { fields: [{ name: 'a', type: 'String' }] });
    await call('patch', `${path}/collections/${name}`, body).expect(400);
    expect(dataOf(await call('get', `${path}/collections/${name}`))).toMatchObject({ version: 1 });
  });
});

describe('/api/projects/:projectId/keys', () => {
  it('shows a value once, when its key is made, and never again', async () => {
    const made = dataOf<{ key: { id: string }; value: string }>(
      await call('post', `${path}/keys`, { type: 'secret' }).expect(201),
    );
    await listAs(made.value, 'users').expect(403);
    const listed = await call('get', `${path}/keys`).expect(200);
    expect(dataOf(listed)).toMatchObject({ total: 3 });
    expect(JSON.stringify(listed.body)).not.toMatch(/[ps]k_live_|hash/);
    await call('delete', `${path}/keys/${made.key.id}`).expect(200);
    await listAs(made.value, 'users').expect(401);
    await call('delete', `${path}/keys/${'f'.repeat(24)}`).expect(404);
  });

  it('may have a name, which is one short line', async () => {
    await call('post', `${path}/keys`, { type: 'secret', name: 'nightly import' }).expect(201);
    const { items } = dataOf<{ items: { name: string | null }[] }>(await call('get', `${path}/keys`).expect(200));
    expect(items.map(({ name }) => name)).toEqual([null, null, 'nightly import']);
    for (const name of ['', ' ', 'a\nb', 'a\u202eb', 'x'.repeat(101), 7]) {
      await call('post', `${path}/keys`, { type: 'secret', name }).expect(400);
    }
  });

  it('tell to the minute when a request last came with them, and never that of one that is revoked', async () => {
    const { app } = test;
    const use = async (key = owner.secret): Promise<(string | null)[]> => {
      app.cache.forgetAll(CALLERS);
      await listAs(key, 'nothing');
      await app.backgroundTasks.idle();
      const { items } = dataOf<{ items: { lastUsedAt: string | null }[] }>(await call('get', `${path}/keys`));
      return items.map(({ lastUsedAt }) => lastUsedAt);
    };
    const [publishable, first] = await use();
    expect([publishable, Date.now() - Date.parse(first!) < 60_000]).toEqual([null, true]);
    expect(await use()).toEqual([null, first]);
    const ago = new Date(Date.now() - 61_000);
    await projectStore(app).updateOne({ _id: owner.project._id }, { $set: { 'keys.1.lastUsedAt': ago } });
    expect(Date.parse((await use())[1]!)).toBeGreaterThan(ago.getTime() + 60_000);
    await call('delete', `${path}/keys/${owner.project.keys[0]!.id.toHexString()}`).expect(200);
    expect((await use(owner.publishable))[0]).toBeNull();
  });

  it('rotates with a grace of 24 hours, or at once', async () => {
    const graced = await call('post', `${path}/keys/rotate`, { type: 'secret' }).expect(201);
    await listAs(owner.secret, 'nothing').expect(404);
    const { value } = dataOf<{ value: string }>(graced);
    await call('post', `${path}/keys/rotate`, { type: 'secret', grace: '0s' }).expect(201);
    await listAs(value, 'nothing').expect(401);
    await listAs(owner.publishable, 'nothing').expect(404);
  });

  it.each([{}, { type: 'root' }, { type: 'secret', grace: 'soon' }, { type: 'secret', value: 'sk_live_mine' }])(
    'answers 400 for %j',
    async (body) => {
      await call('post', `${path}/keys/rotate`, body).expect(400);
    },
  );
});

describe('/api/projects/:projectId/users', () => {
  const user = { email: 'Ann@B.test', password: 'long enough', name: 'Ann' };
  const logIn = (password: string) =>
    supertest(test.server)
      .post('/api/userAuth/login')
      .set('x-api-key', owner.publishable)
      .send({ email: user.email, password });

  it('creates a user who can sign in, and never shows a password', async () => {
    const made = await call('post', `${path}/users`, { ...user, emailVerified: true }).expect(201);
    expect(dataOf(made)).toMatchObject({ email: 'ann@b.test', name: 'Ann', emailVerified: true, disabled: false });
    await logIn(user.password).expect(200);
    const listed = await call('get', `${path}/users?email=ann`).expect(200);
    expect(dataOf(listed)).toMatchObject({ total: 1, page: 1, limit: 50, items: [{ email: 'ann@b.test' }] });
    expect(JSON.stringify([made.body, listed.body])).not.toMatch(/\$2b\$|passwordHash|"password"|_bsvc/);
    expect((await call('post', `${path}/users`, user).expect(409)).body).toMatchObject({ code: 'EMAIL_TAKEN' });
    expect(dataOf(await call('get', `${path}/users/ann@b.test`).expect(200))).toMatchObject({ name: 'Ann' });
  });

  it('finds users by their id, and by a part of any of their texts', async () => {
    const made = await call('post', `${path}/users`, user).expect(201);
    await call('post', `${path}/users`, { email: 'bob@b.test', password: 'long enough', name: 'B. (Ob)' }).expect(201);
    const found = async (q: string) =>
      dataOf<{ items: { email: string }[]; total: number }>(
        await call('get', `${path}/users?${new URLSearchParams({ q })}`).expect(200),
      );
    expect(await found('ANN')).toMatchObject({ total: 1, items: [{ email: 'ann@b.test' }] });
    expect(await found('. (o')).toMatchObject({ total: 1, items: [{ email: 'bob@b.test' }] });
    expect(await found('@b.test')).toMatchObject({ total: 2 });
    expect(await found(dataOf<{ _id: string }>(made)._id)).toMatchObject({ items: [{ email: 'ann@b.test' }] });
    // Neither a pattern nor the hash of a password.
    for (const q of ['.*', '$2b$', 'long enough']) expect(await found(q)).toMatchObject({ total: 0 });
    await call('get', `${path}/users?q=${'a'.repeat(201)}`).expect(400);
    const both = await call('get', `${path}/users?q=b.test&email=bob`).expect(200);
    expect(dataOf(both)).toMatchObject({ total: 1, items: [{ email: 'bob@b.test' }] });
  });

  it('sets a password, disables, enables and signs out: sessions end each time', async () => {
    await call('post', `${path}/users`, user).expect(201);
    const { accessToken } = (await logIn(user.password).expect(200)).body as { accessToken: string };
    const me = () =>
      supertest(test.server)
        .get('/api/userAuth/me')
        .set({ 'x-api-key': owner.publishable, authorization: `Bearer ${accessToken}` });
    const sessions = dataOf<{ items: { id: string }[] }>(await call('get', `${path}/users/ann@b.test/sessions`));
    expect(sessions.items).toHaveLength(1);
    expect(JSON.stringify(sessions)).not.toMatch(/[0-9a-f]{64}/);
    await call('delete', `${path}/users/ann@b.test/sessions/${sessions.items[0]!.id}`).expect(200);
    await me().expect(401);
    await call('post', `${path}/users/ann@b.test/set-password`, { password: 'another one' }).expect(200);
    await logIn(user.password).expect(401);
    await logIn('another one').expect(200);
    await call('post', `${path}/users/ann@b.test/disable`).expect(200);
    await logIn('another one').expect(403);
    await call('post', `${path}/users/ann@b.test/enable`).expect(200);
    await logIn('another one').expect(200);
    expect(dataOf(await call('delete', `${path}/users/ann@b.test/sessions`))).toEqual({ ended: 1 });
    await call('delete', `${path}/users/ann@b.test`).expect(200);
    await call('get', `${path}/users/ann@b.test`).expect(404);
    await logIn('another one').expect(401);
  });

  it.each([
    ['', {}],
    ['', { email: { $ne: null }, password: 'long enough' }],
    ['', { email: 'a@b.test', password: 'short' }],
    ['', { email: 'a@b.test', password: 'long enough', _bsvc: {} }],
    ['', { email: 'a@b.test', password: 'long enough', unknown: 1 }],
    ['/ann@b.test/set-password', { password: 'short' }],
    ['/ann@b.test/set-password', { password: ['long enough'] }],
    ['/ann@b.test/set-password', { password: 'long enough', $set: {} }],
    ['/ann@b.test/set-password', {}],
  ])('answers 400 for POST %s %j', async (rest, body) => {
    await call('post', `${path}/users`, user);
    await call('post', `${path}/users${rest}`, body).expect(400);
  });

  it('answers 400 for a bad page, and never more than 200 at once', async () => {
    for (const query of ['page=0', 'limit=-1', 'limit=1e3', 'page=1&page=2', 'email=a&email=b'])
      await call('get', `${path}/users?${query}`).expect(400);
    expect(dataOf(await call('get', `${path}/users?limit=9999`))).toMatchObject({ limit: 200 });
  });
});

describe('GET /api/projects/:projectId/usage and POST …/recount', () => {
  it('answer a project’s use beside its plan’s limits', async () => {
    const collection = await buildCollection(test.app, owner.project);
    const { name } = collection;
    await supertest(test.server).post(`/api/data/${name}`).set('x-api-key', owner.secret).send({ a: 1 });
    await reserveMailQuota(test.app, owner.project, [new ObjectId(), new ObjectId()]);
    await addWebhook(test.app, owner.project, { url: 'https://example.com/hooks', events: ['*'] });
    expect(dataOf(await call('get', `${path}/usage`).expect(200))).toMatchObject({
      plan: 'free',
      documents: 1,
      limits: { webhooks: 3 },
      mail: { used: 2, limit: 50 },
      webhooks: 1,
    });
    // What the quota counts: the document and, beside it, what the service keeps.
    const { database } = dataOf<{ database: { used: number; kept: number } }>(await call('get', `${path}/usage`));
    expect(database).toMatchObject({ limit: 50 * 2 ** 20 });
    expect(database.used).toBeGreaterThan(database.kept);
    const { publishable } = owner;
    const signUp = supertest(test.server).post('/api/userAuth/signup').set('x-api-key', publishable);
    await signUp.send({ email: 'kept@example.com', password: 'correct horse 1' }).expect(201);
    const after = dataOf<{ database: { kept: number } }>(await call('get', `${path}/usage`)).database;
    expect(after.kept).toBeGreaterThanOrEqual(database.kept + 1_024);
    // As the database keeps count of them, without counting.
    const listed = dataOf<{ items: object[] }>(await call('get', `${path}/collections?sizes=true`).expect(200));
    const bytes = (await test.app.db.measure(documentsName(collection))).bytes;
    expect(listed.items).toContainEqual(expect.objectContaining({ name, size: { documents: 1, bytes } }));
    expect(dataOf(await call('get', `${path}/usage`))).toMatchObject({
      collections: expect.arrayContaining([{ name, documents: 1, trashed: 0, bytes, log: null }]) as object,
    });
    expect(dataOf(await call('post', `${path}/recount`).expect(200))).toEqual({ storage: { before: 0, after: 0 } });
  });
});

describe('/api/projects/:projectId/bucket and /mail/templates', () => {
  it('stores a bucket encrypted and shows it masked', async () => {
    const body = { bucket: 'shop-files', accessKeyId: 'id', secretAccessKey: 'very-hidden', verify: false };
    const set = await call('put', `${path}/bucket`, body).expect(200);
    expect(dataOf(set)).toMatchObject({ bucket: 'shop-files', region: 'us-east-1', secretAccessKey: '********' });
    expect(JSON.stringify((await call('get', `${path}/bucket`)).body)).not.toContain('very-hidden');
    expect(dataOf(await call('get', path))).toMatchObject({ storage: { bucket: 'shop-files' } });
    expect(dataOf(await call('delete', `${path}/bucket`))).toEqual({ bucket: null });
    await call('put', `${path}/bucket`, { bucket: 'shop-files' }).expect(400);
  });

  it('sets, shows and removes templates; a system template shows through again', async () => {
    const text = { subject: 'Hello {{name}}', text: 'Hi' };
    await call('put', `${path}/mail/templates/welcome`, text).expect(200);
    expect(dataOf(await call('get', `${path}/mail/templates/welcome`))).toMatchObject({ scope: 'project', ...text });
    await call('delete', `${path}/mail/templates/welcome`).expect(200);
    expect(dataOf(await call('get', `${path}/mail/templates/welcome`))).toMatchObject({ scope: 'system' });
    await call('delete', `${path}/mail/templates/welcome`).expect(404);
    await call('put', `${path}/mail/templates/welcome`, { subject: ' ', text: 'x' }).expect(400);
    await call('put', `${path}/mail/templates/welcome`, { ...text, extra: 1 }).expect(400);
  });

  it('shows a template as a page that has no rights, whatever is in it', async () => {
    const html = '<p style="color:red">Hello {{name}}</p><script>alert(1)</script>';
    await call('put', `${path}/mail/templates/odd`, { subject: 's', html }).expect(200);
    const page = await call('get', `${path}/mail/templates/odd/preview`).expect(200);
    expect([page.text, page.headers['content-type']]).toEqual([html, 'text/html; charset=utf-8']);
    expect(page.headers['content-security-policy']).toBe(
      "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox",
    );
    await call('put', `${path}/mail/templates/plain`, { subject: 's', text: 'Hi' }).expect(200);
    expect((await call('get', `${path}/mail/templates/plain/preview`).expect(200)).text).toContain('text part alone');
    await call('get', `${path}/mail/templates/none/preview`).expect(404);
  });
});

describe('paths and methods', () => {
  it('answers 404 for an id in another form and 405 with Allow for another method', async () => {
    for (const id of ['x', encodeURIComponent(owner.project.name), '0'.repeat(23)])
      expect((await call('get', `/api/projects/${id}`).expect(404)).body).toMatchObject({ code: 'PROJECT_NOT_FOUND' });
    const answer = await call('put', path, {}).expect(405);
    expect(answer.headers.allow).toBe('DELETE, GET, HEAD, OPTIONS, PATCH');
    await call('get', `${path}/nothing`).expect(404);
  });
});
