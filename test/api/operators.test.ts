import supertest from 'supertest';
import { describe, expect, it } from 'vitest';
import { createApi, openApp } from '../world/app.js';
import {
  listActs,
  listOperatorSessions,
  logInOperator,
  removeOperator,
  requireOperatorNamed,
  setOperatorPassword,
} from '../world/operators.js';
import { operatorSessionStore, operatorStore } from '../world/stored.js';
import { buildProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { buildOperator, openOperatorClient, OPERATOR_PASSWORD } from '../helpers/operator-client.js';
import type { TestApp } from '../helpers/open-test-app.js';
import { use, useTestApp } from '../helpers/use.js';

const ADMIN_TOKEN = 'admin-token-for-tests';
const LOCK_MS = 15 * 60_000;

const clock = createFakeClock(Date.now());
const settings = { BSVC_ADMIN_TOKEN: ADMIN_TOKEN, BSVC_BCRYPT_COST: '4', BSVC_RATE_LIMIT: 'off' };
const test = await useTestApp({ settings, clock });

const logIn = (body: unknown) =>
  supertest(test.server)
    .post('/api/admin/login')
    .send(body as object);
const withToken = (token: string) => openOperatorClient(test, token);

describe('POST /api/admin/login', () => {
  it('answers a bearer token that opens the operators’ API, and nothing that could be one is stored', async () => {
    const { email } = await buildOperator(test);
    const answer = await logIn({ email: `  ${email.toUpperCase()} `, password: OPERATOR_PASSWORD }).expect(200);
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.body).toEqual({
      success: true,
      data: {
        token: expect.stringMatching(/^bsvc_op_[\w-]{43}$/) as string,
        expiresAt: new Date(clock.now() + 12 * 3_600_000).toISOString(),
        operator: {
          id: expect.stringMatching(/^[0-9a-f]{24}$/) as string,
          email,
          role: 'owner',
          projects: null,
          createdAt: expect.any(String) as string,
        },
      },
      message: 'Signed in',
    });
    const { token } = (answer.body as { data: { token: string } }).data;
    await withToken(token)('get', '/api/projects').expect(200);
    expect(JSON.stringify(await operatorSessionStore(test.app).find({}).toArray())).not.toContain(token);
    expect(JSON.stringify(await operatorStore(test.app).find({}).toArray())).not.toContain(OPERATOR_PASSWORD);
    const acts = await listActs(test.app, { limit: 1, action: 'operator login' });
    expect(acts).toMatchObject([{ actor: email, outcome: 'done', input: {} }]);
  });

  it.each([
    [{}, /email is required/],
    [{ email: 'a@b.test' }, /password is required/],
    [{ email: { $gt: '' }, password: { $gt: '' } }, /email must be a String/],
    [{ email: ['a@b.test'], password: 'x' }, /email must be a String/],
    [{ email: 'a@b.test', password: 'x'.repeat(73) }, /password must have at most 72 bytes/],
    [{ email: 'a@b.test', password: 'x', role: 'owner' }, /must not contain "role"/],
    [{ email: 'a@b.test', password: 'x', $where: '1' }, /must not contain "\$where"/],
    [[], /must be a JSON object/],
    [undefined, /must be a JSON object/],
  ])('answers 400 for %j', async (body, text) => {
    const answer = await logIn(body).expect(400);
    expect(answer.body).toMatchObject({ success: false, message: expect.stringMatching(text) as string });
  });

  it('answers the same for an unknown address as for a wrong password, after the same work', async () => {
    const { email } = await buildOperator(test);
    const compared: (string | null)[] = [];
    const { passwords } = test.app;
    const watched: TestApp['app'] = {
      ...test.app,
      passwords: {
        inTurn: (tenant, work) =>
          passwords.inTurn(tenant, (bcrypt) =>
            work({
              ...bcrypt,
              matches: (password, hash) => {
                compared.push(hash && 'a hash');
                return bcrypt.matches(password, hash);
              },
            }),
          ),
      },
    };
    const api = createApi(watched).callback();
    const refused = async (address: string) =>
      (await supertest(api).post('/api/admin/login').send({ email: address, password: 'wrong password' }).expect(401))
        .body as Record<string, unknown>;
    const known = await refused(email);
    const unknown = await refused('nobody@example.test');
    expect(known).toMatchObject({ code: 'INVALID_CREDENTIALS', message: 'Invalid e-mail or password' });
    expect({ ...unknown, requestId: '' }).toEqual({ ...known, requestId: '' });
    expect(compared).toEqual(['a hash', null]);
  });

  it('answers 423 after five failures in a row, to the right password too, until a quarter of an hour has passed', async () => {
    const { email } = await buildOperator(test);
    const right = { email, password: OPERATOR_PASSWORD };
    for (let n = 0; n < 4; n++) await logIn({ email, password: 'wrong password' }).expect(401);
    await logIn(right).expect(200);
    for (let n = 0; n < 5; n++) await logIn({ email, password: 'wrong password' }).expect(401);
    const locked = await logIn(right).expect(423);
    expect(locked.body).toMatchObject({ code: 'ACCOUNT_LOCKED' });
    expect(Number(locked.headers['retry-after'])).toBeGreaterThan(800);
    clock.advance(LOCK_MS + 1);
    await logIn(right).expect(200);
  });

  it('compares no more than five of many guesses at once', async () => {
    const { email } = await buildOperator(test);
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) => logIn({ email, password: `guess number ${n}` })),
    );
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(5);
    expect(answers.filter(({ status }) => status === 423)).toHaveLength(25);
    await logIn({ email, password: OPERATOR_PASSWORD }).expect(423);
  });

  it('refuses the credentials of an end user', async () => {
    const { publishable } = await buildProject(test.app);
    const user = { email: 'end.user@example.test', password: OPERATOR_PASSWORD };
    const signedUp = await supertest(test.server).post('/api/userAuth/signup').set('x-api-key', publishable).send(user);
    await logIn(user).expect(401);
    const { accessToken } = signedUp.body as { accessToken: string };
    expect((await withToken(accessToken)('get', '/api/projects').expect(401)).body).toMatchObject({
      code: 'TOKEN_INVALID',
    });
  });
});

describe('an operator’s token', () => {
  it('ends when the operator is removed: at once here, within a second in other processes', async () => {
    const { email, token } = await buildOperator(test);
    const elsewhere = use(await openApp(test.app.config, test.app.log));
    const other = createApi(elsewhere).callback();
    const me = () => supertest(other).get('/api/admin/me').set('authorization', `Bearer ${token}`);
    await me().expect(200);
    await removeOperator(test.app, await requireOperatorNamed(test.app, email));
    await withToken(token)('get', '/api/admin/me').expect(401);
    await eventually('it is refused there', async () => (await me()).status === 401, 1000);
    await logIn({ email, password: OPERATOR_PASSWORD }).expect(401);
  });

  it('is none once its operator is gone, though the session is still there', async () => {
    const { email, call } = await buildOperator(test);
    await operatorStore(test.app).deleteOne({ email });
    const { status, body } = await call('get', '/api/admin/me');
    expect([status, (body as { code: string }).code]).toEqual([401, 'TOKEN_INVALID']);
  });

  it('ends after its time with TOKEN_EXPIRED', async () => {
    const { email } = await buildOperator(test);
    const { body } = await logIn({ email, password: OPERATOR_PASSWORD });
    const { token } = (body as { data: { token: string } }).data;
    clock.advance(12 * 3_600_000 - 1);
    await withToken(token)('get', '/api/admin/me').expect(200);
    clock.advance(1);
    const answer = await withToken(token)('get', '/api/admin/me').expect(401);
    expect(answer.body).toMatchObject({ code: 'TOKEN_EXPIRED' });
  });

  it('is none where the password changes while its operator signs in', async () => {
    const { id, email } = await buildOperator(test);
    const operator = await requireOperatorNamed(test.app, id);
    const { passwords } = test.app;
    const inTurn: typeof passwords.inTurn = async (tenant, work, gone) => {
      const proven = await passwords.inTurn(tenant, work, gone);
      await setOperatorPassword(test.app, operator, 'incorrect horse');
      return proven;
    };
    const app = { ...test.app, passwords: Object.assign(Object.create(passwords) as typeof passwords, { inTurn }) };
    const signedIn = logInOperator(
      app,
      { email, password: OPERATOR_PASSWORD },
      { ip: '127.0.0.1', requestId: 'a-request' },
    );
    await expect(signedIn).rejects.toMatchObject({ code: 'INVALID_CREDENTIALS' });
    expect(await listOperatorSessions(test.app, operator)).toEqual([]);
    await logIn({ email, password: 'incorrect horse' }).expect(200);
  });

  it.each(['bsvc_op_', `bsvc_op_${'A'.repeat(43)}`, `${ADMIN_TOKEN}x`, 'null', `bsvc_op_${'A'.repeat(42)}$`])(
    '%s opens nothing',
    async (token) => {
      const answer = await withToken(token)('get', '/api/projects').expect(401);
      expect(answer.body).toMatchObject({ success: false, data: {}, code: 'TOKEN_INVALID' });
    },
  );
});

describe('POST /api/admin/logout', () => {
  it('ends this token only, a viewer’s too', async () => {
    const { email, call } = await buildOperator(test, 'viewer');
    const { body } = await logIn({ email, password: OPERATOR_PASSWORD });
    const other = withToken((body as { data: { token: string } }).data.token);
    expect((await call('post', '/api/admin/logout').expect(200)).body).toEqual({
      success: true,
      message: 'Signed out',
    });
    await call('get', '/api/admin/me').expect(401);
    await other('get', '/api/admin/me').expect(200);
  });

  it('leaves BSVC_ADMIN_TOKEN alone', async () => {
    await withToken(ADMIN_TOKEN)('post', '/api/admin/logout').expect(200);
    await withToken(ADMIN_TOKEN)('get', '/api/projects').expect(200);
  });
});

describe('GET /api/admin/me', () => {
  it('answers the operator of the token', async () => {
    const { project } = await buildProject(test.app);
    const { id, email, call } = await buildOperator(test, 'viewer', [project]);
    const me = (await call('get', '/api/admin/me').expect(200)).body as { data: object };
    expect(me.data).toMatchObject({ id, email, role: 'viewer', projects: [project._id.toHexString()] });
    const admin = (await withToken(ADMIN_TOKEN)('get', '/api/admin/me').expect(200)).body as { data: object };
    expect(admin.data).toMatchObject({ email: 'BSVC_ADMIN_TOKEN', role: 'owner', projects: null });
  });

  it('answers 401 without a token', async () => {
    const answer = await supertest(test.server).get('/api/admin/me').expect(401);
    expect(answer.body).toMatchObject({ code: 'AUTH_REQUIRED' });
  });
});

describe('GET /api/admin/audit', () => {
  it('lists operators’ changes newest first, with masked secrets and safe names', async () => {
    const { email, call } = await buildOperator(test);
    const { project } = await buildProject(test.app);
    const path = `/api/projects/${project._id.toHexString()}`;
    await call('patch', path, { providerApiKey: 're_very_hidden' }).expect(200);
    await call('patch', path, { project: 'another', $set: { 'a.b': 1 }, deep: { $x: 'y' } }).expect(400);
    const { body } = await call('get', '/api/admin/audit?limit=2&action=project update&since=1h').expect(200);
    expect(body).toMatchObject({
      data: {
        items: [
          {
            actor: email,
            action: 'project update',
            outcome: 'failed',
            code: 'VALIDATION_FAILED',
            input: { project: project._id.toHexString(), _set: { a_b: 1 }, deep: { _x: 'y' } },
          },
          {
            actor: email,
            outcome: 'done',
            code: null,
            input: { project: project._id.toHexString(), providerApiKey: '********' },
          },
        ],
      },
    });
  });

  it('answers 400 for a bad query, 403 to an operator who does not see all projects', async () => {
    const { call } = await buildOperator(test);
    for (const query of ['limit=0', 'limit=x', 'since=yesterday', 'action=a&action=b'])
      await call('get', `/api/admin/audit?${query}`).expect(400);
    const { project } = await buildProject(test.app);
    const some = await buildOperator(test, 'owner', [project]);
    const answer = await some.call('get', '/api/admin/audit').expect(403);
    expect(answer.body).toMatchObject({ code: 'ALL_PROJECTS_REQUIRED' });
  });
});
