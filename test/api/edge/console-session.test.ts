import supertest, { type Test } from 'supertest';
import { describe, expect, it } from 'vitest';
import { ROUTE_LISTS } from '../../world/app.js';
import { changeCollection } from '../../world/collections.js';
import { removeProjectContents } from '../../world/jobs.js';
import {
  listActs,
  makeSignInLink,
  removeOperator,
  requireOperatorNamed,
  listOperators,
  saveView,
} from '../../world/operators.js';
import { SIGNED_IN_OPERATORS, operatorSessionStore } from '../../world/stored.js';
import { signUp } from '../../world/users.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { buildOperator, openOperatorClient, OPERATOR_PASSWORD, type Method } from '../../helpers/operator-client.js';
import { useTestApp } from '../../helpers/use.js';

const HOUR_MS = 3_600_000;
const VIEWS = '/api/admin/me/views';
/** What a browser sends with a request of the console. */
const OURS = { 'sec-fetch-site': 'same-origin', 'x-bsvc-console': '1' };

const clock = createFakeClock(Date.now());
const test = await useTestApp({
  settings: { BSVC_BCRYPT_COST: '4', BSVC_ADMIN_TOKEN: 'admin-token-for-tests' },
  clock,
});

const send = (method: Method, path: string, headers: Record<string, string>, body?: unknown): Test => {
  const request = supertest(test.server)[method](path).set(headers);
  return body === undefined ? request : request.send(body as object);
};
const codeOf = ({ body }: { body: unknown }) => (body as { code?: string }).code;
const dataOf = <T = Record<string, unknown>>({ body }: { body: unknown }): T => (body as { data: T }).data;
const cookieOf = ({ headers }: { headers: Record<string, unknown> }): string =>
  (headers['set-cookie'] as unknown as string[])[0]!;

async function signIn(email: string): Promise<string> {
  const body = { email, password: OPERATOR_PASSWORD, cookie: true };
  return cookieOf(await send('post', '/api/admin/login', OURS, body).expect(200)).split(';')[0]!;
}

describe('signing in at the console', () => {
  it('hands the token over as a cookie that scripts cannot read, and not in the body', async () => {
    const { email } = await buildOperator(test);
    const body = { email, password: OPERATOR_PASSWORD, cookie: true };
    const answer = await send('post', '/api/admin/login', OURS, body).expect(200);
    expect(cookieOf(answer)).toMatch(
      /^bsvc_console=bsvc_op_[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    );
    expect(Object.keys(dataOf(answer))).toEqual(['expiresAt', 'operator']);
    const cookie = cookieOf(answer).split(';')[0]!;
    expect(dataOf(await send('get', '/api/admin/me', { ...OURS, cookie }).expect(200))).toMatchObject({ email });
  });

  it('makes the cookie one of the public address: its path, and for https alone', async () => {
    const proxied = await useTestApp({
      settings: { BSVC_BCRYPT_COST: '4', BSVC_PUBLIC_URL: 'https://tools.example/bsvc' },
    });
    const { email } = await buildOperator(proxied);
    const answer = await supertest(proxied.server)
      .post('/api/admin/login')
      .set({ origin: 'https://tools.example', 'x-bsvc-console': '1' })
      .send({ email, password: OPERATOR_PASSWORD, cookie: true })
      .expect(200);
    expect(cookieOf(answer)).toMatch(/; Path=\/bsvc; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/);
  });

  it('is refused to pages of other sites, which would sign somebody in as whom they like', async () => {
    const { email } = await buildOperator(test);
    const body = { email, password: OPERATOR_PASSWORD, cookie: true };
    const foreign: Record<string, string>[] = [
      {},
      { ...OURS, 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-origin' },
    ];
    for (const headers of foreign)
      expect(codeOf(await send('post', '/api/admin/login', headers, body).expect(403))).toBe('FOREIGN_REQUEST');
  });

  it('ends after twelve hours, and after one hour without a request', async () => {
    const { email } = await buildOperator(test);
    const cookie = await signIn(email);
    const me = () => send('get', '/api/admin/me', { ...OURS, cookie });
    for (let minutes = 0; minutes < 90; minutes += 30) {
      await me().expect(200);
      await test.app.backgroundTasks.idle();
      test.app.cache.forgetAll(SIGNED_IN_OPERATORS);
      clock.advance(HOUR_MS / 2);
    }
    clock.advance(HOUR_MS / 2);
    expect(codeOf(await me().expect(401))).toBe('TOKEN_EXPIRED');
    const other = await signIn(email);
    clock.advance(12 * HOUR_MS);
    expect(codeOf(await send('get', '/api/admin/me', { ...OURS, cookie: other }).expect(401))).toBe('TOKEN_EXPIRED');
  });

  it('out takes the cookie back and ends its token, as a bearer too', async () => {
    const { email } = await buildOperator(test);
    const cookie = await signIn(email);
    const answer = await send('post', '/api/admin/logout', { ...OURS, cookie }).expect(200);
    expect(cookieOf(answer)).toMatch(/^bsvc_console=; Path=\/; Max-Age=0;/);
    await send('get', '/api/admin/me', { ...OURS, cookie }).expect(401);
    await openOperatorClient(test, cookie.split('=')[1]!)('get', '/api/admin/me').expect(401);
  });
});

describe('the cookie of the console', () => {
  /** Everything a browser may say about where a request comes from, beside what is ours. */
  const SITES = [undefined, 'same-origin', 'same-site', 'cross-site', 'none'];
  const ORIGINS = [undefined, 'own', 'https://evil.example', 'null'];
  const combinations = SITES.flatMap((site) =>
    ORIGINS.flatMap((origin) => [false, true].map((marked) => ({ site, origin, marked }))),
  );

  it.each(['get', 'delete', 'patch', 'post'] as const)('counts with %s for the console alone', async (method) => {
    const { email } = await buildOperator(test);
    const { project } = await buildProject(test.app);
    const cookie = await cookieFor(email);
    const path = `/api/projects/${project._id.toHexString()}`;
    // Each has an answer of its own that changes nothing, or the same again.
    const [target, body, taken] = {
      get: [path, undefined, 200],
      delete: [`${path}/collections/none/documents/${'0'.repeat(24)}`, undefined, 404],
      patch: [path, { allowedDomains: ['*'] }, 200],
      post: [`${path}/webhooks/none/test`, undefined, 404],
    }[method] as [string, unknown, number];
    for (const { site, origin, marked } of combinations) {
      const headers = {
        cookie,
        ...(site !== undefined && { 'sec-fetch-site': site }),
        ...(origin !== undefined && { origin: origin === 'own' ? test.url : origin }),
        ...(marked && { 'x-bsvc-console': '1' }),
      };
      const answer = await send(method, target, headers, body);
      const reads = method === 'get';
      const said = origin === undefined ? reads && marked : origin === 'own';
      const admitted = (site === undefined ? said : site === 'same-origin') && (reads || marked);
      expect({ site, origin, marked, status: answer.status }).toEqual({
        site,
        origin,
        marked,
        status: admitted ? taken : 403,
      });
      if (!admitted) expect(codeOf(answer)).toBe('FOREIGN_REQUEST');
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    }
  });

  it('opens nothing but the operators’ API', async () => {
    const { email } = await buildOperator(test);
    const cookie = await signIn(email);
    const at = (path: string) => send('get', path, { ...OURS, cookie });
    expect(codeOf(await at('/api/data/notes').expect(401))).toBe('API_KEY_MISSING');
    expect(codeOf(await at('/api/userAuth/me').expect(401))).toBe('API_KEY_MISSING');
    expect(codeOf(await at('/api/mail/logs').expect(401))).toBe('API_KEY_MISSING');
    expect(codeOf(await at('/metrics').expect(401))).toBe('AUTH_REQUIRED');
  });

  it('is never a token that was made for scripts, nor BSVC_ADMIN_TOKEN: those could be planted', async () => {
    const { token } = await buildOperator(test);
    for (const planted of [token, 'admin-token-for-tests', 'nonsense', 'bsvc_op_'])
      expect(
        codeOf(await send('get', '/api/admin/me', { ...OURS, cookie: `bsvc_console=${planted}` }).expect(401)),
      ).toBe('TOKEN_INVALID');
  });

  it('is answered no preflight, so no page of another origin may send the header', async () => {
    const answer = await supertest(test.server).options('/api/projects').set({
      origin: 'https://evil.example',
      'access-control-request-method': 'DELETE',
      'access-control-request-headers': 'x-bsvc-console',
    });
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  async function cookieFor(email: string): Promise<string> {
    const operator = await requireOperatorNamed(test.app, email);
    const { link } = await makeSignInLink(test.app, operator);
    return cookieOf(await send('post', '/api/admin/login/link', OURS, { link }).expect(200)).split(';')[0]!;
  }
});

describe('a link to sign in', () => {
  const open = (link: string, headers: Record<string, string> = OURS) =>
    send('post', '/api/admin/login/link', headers, { link });
  const linkFor = async (email: string) =>
    (await makeSignInLink(test.app, await requireOperatorNamed(test.app, email))).link;

  it('works once, of ten requests at the same moment too, and is recorded', async () => {
    const { email } = await buildOperator(test);
    const link = await linkFor(email);
    const statuses = (await Promise.all(Array.from({ length: 10 }, () => open(link)))).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, ...Array<number>(9).fill(401)]);
    expect(codeOf(await open(link).expect(401))).toBe('LINK_INVALID');
    expect(await listActs(test.app, { limit: 1 })).toMatchObject([
      { actor: email, action: 'operator login', input: { by: 'link' } },
    ]);
  });

  it('is nothing after five minutes, after its operator’s removal, and to another site', async () => {
    const { email } = await buildOperator(test);
    const [old, late, foreign] = [await linkFor(email), await linkFor(email), await linkFor(email)];
    expect(codeOf(await open(foreign, {}).expect(403))).toBe('FOREIGN_REQUEST');
    await open(foreign).expect(200);
    clock.advance(5 * 60_000);
    await open(old).expect(401);
    await removeOperator(test.app, await requireOperatorNamed(test.app, email));
    await open(late).expect(401);
  });

  it('is stored as a hash alone, and is no token', async () => {
    const { email } = await buildOperator(test);
    const link = await linkFor(email);
    expect(JSON.stringify(await operatorSessionStore(test.app).find({}).toArray())).not.toContain(link);
    await openOperatorClient(test, link)('get', '/api/admin/me').expect(401);
    await send('get', '/api/admin/me', { ...OURS, cookie: `bsvc_console=${link}` }).expect(401);
    await open(link).expect(200);
  });
});

describe('an operator’s own account', () => {
  it('changes its password, which ends all other sessions', async () => {
    const { email, call } = await buildOperator(test);
    const cookie = await signIn(email);
    const wrong = { currentPassword: 'wrong password', newPassword: 'another good one' };
    expect(codeOf(await call('post', '/api/admin/me/password', wrong).expect(401))).toBe('INVALID_CREDENTIALS');
    const short = { currentPassword: OPERATOR_PASSWORD, newPassword: 'x' };
    expect(codeOf(await call('post', '/api/admin/me/password', short).expect(400))).toBe('VALIDATION_FAILED');
    await send('get', '/api/admin/me', { ...OURS, cookie }).expect(200);
    const good = { currentPassword: OPERATOR_PASSWORD, newPassword: 'another good one' };
    await call('post', '/api/admin/me/password', good).expect(200);
    await send('get', '/api/admin/me', { ...OURS, cookie }).expect(401);
    await call('get', '/api/admin/me').expect(200);
    await send('post', '/api/admin/login', {}, { email, password: OPERATOR_PASSWORD }).expect(401);
    await send('post', '/api/admin/login', {}, { email, password: 'another good one' }).expect(200);
    expect(JSON.stringify(await listActs(test.app, { limit: 5 }))).not.toContain('another good one');
  });

  it('lists its sessions without what would open them, and ends the others', async () => {
    const { email, call, token } = await buildOperator(test);
    clock.advance(1);
    await signIn(email);
    const listed = await call('get', '/api/admin/me/sessions').expect(200);
    expect(dataOf(listed)).toMatchObject({
      items: [
        { console: true, current: false },
        { console: false, current: true, usedAt: null },
      ],
      total: 2,
    });
    expect(JSON.stringify(listed.body)).not.toContain(token);
    expect(dataOf(await call('delete', '/api/admin/me/sessions').expect(200))).toEqual({ ended: 1 });
    expect(dataOf(await call('get', '/api/admin/me/sessions').expect(200))).toMatchObject({ total: 1 });
  });

  it('keeps views of collections under names, one of each, nobody else’s and no more than 200', async () => {
    const { email, call } = await buildOperator(test);
    const { call: other } = await buildOperator(test);
    const views = async (ask = call): Promise<{ id: string; name: string; query: string }[]> =>
      dataOf<{ items: { id: string; name: string; query: string }[] }>(await ask('get', VIEWS).expect(200)).items;
    const projectId = (await buildProject(test.app)).project._id.toHexString();
    const view = { projectId, collection: 'posts', name: 'Much read', query: 'views_gte=100' };
    expect(await views()).toEqual([]);
    const nowhere = await call('post', VIEWS, { ...view, projectId: 'a'.repeat(24) }).expect(404);
    expect(codeOf(nowhere)).toBe('PROJECT_NOT_FOUND');
    const saved = dataOf<{ id: string }>(await call('post', VIEWS, view).expect(201));
    await call('post', VIEWS, { ...view, collection: 'pages' }).expect(201);
    await call('post', VIEWS, { ...view, query: 'views_gte=200' }).expect(201);
    expect(await views()).toMatchObject([{ ...view, query: 'views_gte=200' }, { collection: 'pages' }]);
    // Ten browsers at the same moment.
    const ten = Array.from({ length: 10 }, (_, n) => call('post', VIEWS, { ...view, name: 'Ten', query: `n=${n}` }));
    expect((await Promise.all(ten)).map(({ status }) => status)).toEqual(Array<number>(10).fill(201));
    expect((await views()).map(({ name }) => name)).toEqual(['Much read', 'Much read', 'Ten']);

    expect(await views(other)).toEqual([]);
    expect(codeOf(await other('delete', `${VIEWS}/${saved.id}`).expect(404))).toBe('VIEW_NOT_FOUND');
    // Neither a session nor a list of operators carries them along.
    expect(dataOf(await call('get', '/api/admin/me').expect(200))).not.toHaveProperty('views');
    expect((await listOperators(test.app)).filter((each) => 'views' in each)).toEqual([]);
    await call('delete', `${VIEWS}/${saved.id}`).expect(200);
    expect((await views()).map(({ name }) => name)).toEqual(['Much read', 'Ten']);

    for (const wrong of [{ name: ' ' }, { name: 'x'.repeat(61) }, { query: 'x'.repeat(2_001) }, { projectId: 'mine' }])
      await call('post', VIEWS, { ...view, ...wrong }).expect(400);
    for (let n = 0; n < 200; n++)
      await saveView(test.app, await requireOperatorNamed(test.app, email), { ...view, name: `View ${n}` });
    expect((await views()).map(({ name }) => name)).toEqual(Array.from({ length: 200 }, (_, n) => `View ${n}`));

    const { project } = await buildProject(test.app, 'passing');
    await other('post', VIEWS, view).expect(201);
    await other('post', VIEWS, { ...view, projectId: project._id.toHexString() }).expect(201);
    await removeProjectContents(test.app, project, []);
    expect(await views(other)).toMatchObject([view]);
  });

  it('does not list a session of the console that has ended by itself', async () => {
    const { email } = await buildOperator(test);
    await signIn(email);
    clock.advance(HOUR_MS);
    const cookie = await signIn(email);
    const listed = await send('get', '/api/admin/me/sessions', { ...OURS, cookie }).expect(200);
    expect(dataOf(listed)).toMatchObject({ items: [{ current: true }], total: 1 });
  });
});

describe('an act at the console that cannot be taken back', () => {
  const MINUTE_MS = 60_000;
  /** Names that a credential has in a body. */
  const CREDENTIAL = /password|secret|key$/i;

  it('asks for the password again, which counts for five minutes and for this session alone', async () => {
    const { email, call } = await buildOperator(test);
    const { project } = await buildProject(test.app);
    const path = `/api/projects/${project._id.toHexString()}`;
    const rls = { mode: 'private', ownerField: 'userId' } as const;
    const posts = await buildCollection(test.app, project, { name: 'posts', rls });
    const notes = await buildCollection(test.app, project, { name: 'notes', rls });
    const tasks = await buildCollection(test.app, project, { name: 'tasks', rls });
    const cards = await buildCollection(test.app, project, { name: 'cards', rules: { read: 'nobody' } });
    const user = `${path}/users/${(await signUp(test.app, project, { email: 'a@b.test', password: 'long enough' }, 'project'))._id.toHexString()}`;
    const { id } = dataOf<{ id: string }>(
      await call('post', `${path}/webhooks`, { url: 'https://hooks.example/', events: ['*'] }).expect(201),
    );
    await call('patch', path, { allowedDomains: ['https://shop.example'] }).expect(200);
    const [cookie, other] = [await signIn(email), await signIn(email)];
    const acts: readonly (readonly [Method, string, object?])[] = [
      ['post', `${path}/webhooks/${id}/rotate-secret`],
      ['post', `${path}/keys/rotate`, { type: 'secret' }],
      ['post', `${path}/keys`, { type: 'secret' }],
      ['put', `${path}/collections/${posts.name}/rls`, { enabled: false }],
      ['put', `${path}/collections/${posts.name}/rules`, { rules: null }],
      // Whatever lets somebody do more than before, by each route that can.
      ['patch', `${path}/collections/${notes.name}`, { rls: null }],
      ['put', `${path}/collections/${tasks.name}/rls`, { mode: 'public-read' }],
      ['put', `${path}/collections/${cards.name}/rules?confirm=${project.name}`, { rules: { read: 'anyone' } }],
      [
        'put',
        `${path}/schema?confirm=${project.name}`,
        { format: 'bsvc-schema/1', collections: [{ name: tasks.name, rls: 'off' }] },
      ],
      ['patch', `${path}/webhooks/${id}`, { url: 'https://evil.example/' }],
      ['patch', user, { email: 'evil@b.test' }],
      ['put', `${user}/roles`, { roles: ['editor'] }],
      ['patch', path, { allowedDomains: ['*'] }],
      ['patch', path, { storage: { publishableUploads: true } }],
      ['patch', path, { signIn: { anonymous: true } }],
      ['patch', path, { providerApiKey: 're_another' }],
      ['post', `${path}/rotate-tokens`, { grace: '0s' }],
      ['delete', `${user}/mfa`],
      ['delete', path],
    ];
    const outcomes = async (by: string) => {
      const found: unknown[] = [];
      for (const [method, to, body] of acts) {
        const answer = await send(method, to, { ...OURS, cookie: by }, body);
        found.push(codeOf(answer) ?? answer.status);
      }
      return found;
    };
    const refused = acts.map(() => 'PASSWORD_REQUIRED');
    expect(await outcomes(cookie)).toEqual(refused);
    const confirm = (password: string) => send('post', '/api/admin/me/confirm', { ...OURS, cookie }, { password });
    expect(codeOf(await confirm('wrong password').expect(401))).toBe('INVALID_CREDENTIALS');
    expect(await outcomes(cookie)).toEqual(refused);
    await confirm(OPERATOR_PASSWORD).expect(200);
    expect(await outcomes(other)).toEqual(refused);
    const closed = { mode: 'private' };
    await send('put', `${path}/collections/${tasks.name}/rls`, { ...OURS, cookie: other }, closed).expect(200);
    const fewer = { allowedDomains: ['https://shop.example'], signIn: { anonymous: false } };
    await send('patch', path, { ...OURS, cookie: other }, fewer).expect(200);
    clock.advance(5 * MINUTE_MS);
    expect(await outcomes(cookie)).toEqual(refused);
    await confirm(OPERATOR_PASSWORD).expect(200);
    expect(await outcomes(cookie)).toEqual([200, 201, 201, ...Array<number>(14).fill(200), 'TOTP_NOT_ENROLLED', 200]);
    // Everything else goes on without.
    await send('get', '/api/projects', { ...OURS, cookie }).expect(200);
    expect(JSON.stringify(await listActs(test.app, { limit: 20 }))).not.toContain(OPERATOR_PASSWORD);
  });

  it('is each that touches what proves a user, or what mails hold', async () => {
    const { email } = await buildOperator(test);
    const { project } = await buildProject(test.app);
    const { _id: projectId } = project;
    await changeCollection(test.app, projectId, 'users', ({ fields }) => ({
      fields: [...fields, { name: 'groups', type: 'Array', items: { type: 'String' }, protected: true }],
    }));
    const user = await signUp(test.app, project, { email: 'u@b.test', password: 'correct horse' }, 'project');
    const cookie = await signIn(email);
    const at = (path: string) => path.replace(':projectId', projectId.toHexString()).replace(':user', 'u@b.test');
    const ask = async (method: string, path: string, body?: unknown) =>
      codeOf(await send(method.toLowerCase() as Method, at(path), { ...OURS, cookie }, body)) ?? 'done';
    const free: string[] = [];
    for (const { method, path, id, access, example } of ROUTE_LISTS.flatMap(({ routes }) => routes)) {
      if (!/^\/api\/projects\/:projectId\/(users|mail|invites)\b/.test(path) || access.action === undefined) continue;
      if (id === 'updateUserOfProject') continue;
      const answer = await ask(method, path.replace(/:(?!projectId|user\b)\w+/g, 'any'), example);
      if (answer !== 'PASSWORD_REQUIRED') free.push(id);
    }
    // They take something away, or send what the console shows: none of them lets anybody in.
    const ENDS = [
      'deleteUserOfProject',
      'disableUserOfProject',
      'endSessionOfUser',
      'endSessionsOfProject',
      'withdrawInviteOfProject',
    ];
    const BY_PROVIDER = /Audience|Contact|Broadcast|TestMail/;
    expect(free.filter((id) => !BY_PROVIDER.test(id)).sort()).toEqual(ENDS.sort());
    const again = await signUp(test.app, project, { email: 'v@b.test', password: 'correct horse' }, 'project');
    const path = `/api/projects/:projectId/users/${again._id.toHexString()}`;
    const TRUST = [
      { email: 'w@b.test' },
      { emailVerified: true },
      { emailVerified: false },
      { roles: ['editor'] },
      { groups: ['staff'] },
      { 'groups.0': 'staff' },
      { name: 'V', emailVerified: true },
    ];
    for (const change of TRUST)
      expect([change, await ask('PATCH', path, change)]).toEqual([change, 'PASSWORD_REQUIRED']);
    expect(await ask('PATCH', path, { name: 'V' })).toBe('done');
    expect(user.emailVerified).toBe(false);
  });

  it('is each that makes or takes a credential, by whichever route', async () => {
    const { email } = await buildOperator(test);
    const { project } = await buildProject(test.app);
    const cookie = await signIn(email);
    const told: Record<string, string[]> = {};
    for (const { method, path, id, access, body, openBody, example, answers } of ROUTE_LISTS.flatMap(
      ({ routes }) => routes,
    )) {
      const { properties = {} } = (body ?? openBody ?? {}) as { properties?: Record<string, unknown> };
      const given = Object.keys(properties).filter((name) => properties[name] !== false && CREDENTIAL.test(name));
      if (access.action === undefined || method === 'GET') continue;
      if (given.length === 0 && !/shown only now/i.test(JSON.stringify(answers))) continue;
      const to = path.replace(':projectId', project._id.toHexString()).replace(/:\w+/g, 'any');
      const sent = { ...Object.fromEntries(given.map((name) => [name, 'a long one'])), ...(example as object) };
      const answer = await send(method.toLowerCase() as Method, to, { ...OURS, cookie }, sent);
      (told[codeOf(answer) ?? answer.status] ??= []).push(id);
    }
    // The keys of a new project open nothing that was there.
    expect(Object.keys(told)).toEqual(['201', 'PASSWORD_REQUIRED']);
    expect(told['201']).toEqual(['createProject']);
    expect(told.PASSWORD_REQUIRED!.length).toBeGreaterThan(10);
  });

  it('belongs to names that nobody else can point here, unless BSVC_PUBLIC_URL says which', async () => {
    const { email } = await buildOperator(test);
    const cookie = await signIn(email);
    const at = async (host: string) => codeOf(await send('get', '/api/admin/me', { ...OURS, cookie, host }));
    for (const host of ['evil.example', 'evil.example:4000', '127.0.0.1.evil.example']) {
      expect(await at(host)).toBe('FOREIGN_REQUEST');
    }
    // Behind a proxy: who signs in at its name is told at once what to set, before a session is made.
    const body = { email, password: OPERATOR_PASSWORD, cookie: true };
    const refused = await send('post', '/api/admin/login', { ...OURS, host: 'api.example.com' }, body).expect(403);
    expect((refused.body as { message: string }).message).toContain('Set BSVC_PUBLIC_URL to the address');
    expect(refused.headers['set-cookie']).toBeUndefined();
    for (const host of ['localhost:4000', '127.0.0.1:4000', '[::1]:4000', 'server', 'server.lan']) {
      expect(await at(host)).toBeUndefined();
    }
  });

  it('is done by a token of the command line as it is', async () => {
    const { call } = await buildOperator(test);
    const { project } = await buildProject(test.app);
    await call('delete', `/api/projects/${project._id.toHexString()}`).expect(200);
  });

  it.each(['confirm', 'password'])(
    'is no way to try passwords: %s is locked after five, and signing in is not',
    async (route) => {
      const { email, call } = await buildOperator(test);
      const cookie = await signIn(email);
      const guess = (password: string) =>
        route === 'confirm'
          ? send('post', '/api/admin/me/confirm', { ...OURS, cookie }, { password })
          : call('post', '/api/admin/me/password', { currentPassword: password, newPassword: 'another good one' });
      for (let n = 0; n < 4; n++) expect(codeOf(await guess(`guess ${n}`))).toBe('INVALID_CREDENTIALS');
      await guess('the fifth');
      expect(codeOf(await guess(OPERATOR_PASSWORD).expect(423))).toBe('ACCOUNT_LOCKED');
      await send('post', '/api/admin/login', {}, { email, password: OPERATOR_PASSWORD }).expect(200);
      const action = route === 'confirm' ? 'operator confirm' : 'operator set-password';
      const acts = await listActs(test.app, { limit: 20, actor: email, action });
      expect(acts.filter(({ code }) => code === 'INVALID_CREDENTIALS')).toHaveLength(5);
      expect(await listActs(test.app, { limit: 20, actor: email, action: 'operator login' })).not.toContainEqual(
        expect.objectContaining({ code: 'INVALID_CREDENTIALS' }),
      );
    },
  );

  it('is taken from who has signed in while strangers have locked the form', async () => {
    const { email } = await buildOperator(test);
    const cookie = await signIn(email);
    const logIn = () => send('post', '/api/admin/login', {}, { email, password: 'a wrong one' });
    for (let n = 0; n < 5; n++) await logIn();
    await logIn().expect(423);
    await send('post', '/api/admin/me/confirm', { ...OURS, cookie }, { password: OPERATOR_PASSWORD }).expect(200);
  });

  it('is not confirmed by BSVC_ADMIN_TOKEN, which is nobody’s', async () => {
    const call = openOperatorClient(test, 'admin-token-for-tests');
    const answer = await call('post', '/api/admin/me/confirm', { password: 'admin-token-for-tests' }).expect(403);
    expect(codeOf(answer)).toBe('NOT_SIGNED_IN');
  });
});

describe('the audit log', () => {
  it('names the request by which an act was asked for', async () => {
    const call = openOperatorClient(test, (await buildOperator(test)).token);
    await call('delete', '/api/admin/me/sessions').expect(200);
    const renewed = { currentPassword: OPERATOR_PASSWORD, newPassword: `${OPERATOR_PASSWORD} anew` };
    await call('post', '/api/admin/me/password', renewed).expect(200);
    const acts = await listActs(test.app, { limit: 1000 });
    expect(new Set(acts.map(({ action }) => action))).toContain('operator set-password');
    expect(acts.filter(({ requestId }) => requestId === undefined).map(({ action }) => action)).toEqual([]);
  });

  it('tells failed sign-ins, of addresses that nobody has too', async () => {
    const email = 'nobody.here@example.test';
    await send('post', '/api/admin/login', {}, { email, password: 'guessed it' }).expect(401);
    expect(await listActs(test.app, { limit: 1, actor: email })).toMatchObject([
      { action: 'operator login', outcome: 'failed', code: 'INVALID_CREDENTIALS' },
    ]);
  });

  it('is read by project, actor and page, a project’s part by its operators too', async () => {
    const { project } = await buildProject(test.app);
    const id = project._id.toHexString();
    const { call: all } = await buildOperator(test);
    const { email, call } = await buildOperator(test, 'owner', [project]);
    for (let n = 0; n < 3; n++) await call('patch', `/api/projects/${id}`, { allowedDomains: ['*'] }).expect(200);
    const items = async (query: string) =>
      dataOf<{ items: { id: string; actor: string }[] }>(await all('get', `/api/admin/audit?${query}`).expect(200))
        .items;
    const whole = await items(`actor=${email}`);
    expect(whole.map(({ actor }) => actor)).toEqual([email, email, email]);
    const first = await items(`actor=${email}&limit=2`);
    expect([...first, ...(await items(`actor=${email}&limit=2&before=${first[1]!.id}`))]).toEqual(whole);
    const own = await call('get', `/api/admin/audit?project=${id}`).expect(200);
    expect(dataOf(own)).toEqual({ items: whole });
    expect(codeOf(await call('get', '/api/admin/audit').expect(403))).toBe('ALL_PROJECTS_REQUIRED');
    const other = await buildProject(test.app);
    const foreign = `/api/admin/audit?project=${other.project._id.toHexString()}`;
    expect(codeOf(await call('get', foreign).expect(404))).toBe('PROJECT_NOT_FOUND');
    expect(codeOf(await all('get', '/api/admin/audit?before=x').expect(400))).toBe('INVALID_QUERY');
  });
});

describe('the limit of requests of operators', () => {
  it('is thirty times that of anybody, for who presents a token in the form of theirs', async () => {
    const limited = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', BSVC_RATE_LIMIT: '2/15m' } });
    const { call } = await buildOperator(limited);
    const limits = async (request: Test) => (await request).headers['ratelimit-limit'] as string;
    expect(await limits(call('get', '/api/admin/me'))).toBe('60');
    expect(await limits(openOperatorClient(limited, 'guess')('get', '/api/admin/me'))).toBe('2');
    expect(await limits(supertest(limited.server).get('/api/projects'))).toBe('2');
    for (let n = 0; n < 58; n++) await call('get', '/api/admin/me').expect(200);
    await call('get', '/api/projects').expect(200);
    expect(codeOf(await call('get', '/api/projects').expect(429))).toBe('RATE_LIMITED');
  });
});

describe('the console that is switched off', () => {
  it('is at no address', async () => {
    const off = await useTestApp({ settings: { BSVC_CONSOLE: 'off' } });
    for (const path of ['/console', '/console/', '/console/console.js']) {
      expect(codeOf(await supertest(off.server).get(path).expect(404))).toBe('NOT_FOUND');
    }
  });
});
