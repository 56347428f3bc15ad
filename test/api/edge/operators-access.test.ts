import supertest from 'supertest';
import { describe, expect, it } from 'vitest';
import { PROJECT_ROUTES, ROUTE_LISTS, type Route } from '../../world/app.js';
import { addHook, addSchedule } from '../../world/hooks.js';
import { listActs } from '../../world/operators.js';
import {
  type Project,
  addWebhook,
  presentKey,
  setSocialProvider,
  setTemplate,
  testWebhook,
} from '../../world/projects.js';
import { signUp } from '../../world/users.js';
import { buildCollection, buildProject, placeDocuments } from '../../helpers/build-project.js';
import { buildOperator, openOperatorClient, type Method, type OperatorClient } from '../../helpers/operator-client.js';
import { useTestApp } from '../../helpers/use.js';

const ADMIN_TOKEN = 'admin-token-for-tests';
const BUCKET = {
  bucket: 'files',
  accessKeyId: 'id',
  secretAccessKey: 'key',
  endpoint: 'http://127.0.0.1:9',
  verify: false,
};

const PROVIDER = { clientId: 'shop', clientSecret: 'hush', redirectUrls: ['https://shop.example/in'] };

/**
 * Every setting of a project: may who looks after that project alone change it? One that is not here fails the tests.
 */
const PROJECT_SETTINGS: Record<string, { value: unknown; mayProject: boolean }> = {
  name: { value: 'renamed by its own operator', mayProject: true },
  plan: { value: 'pro', mayProject: false },
  allowedDomains: { value: ['*'], mayProject: true },
  limits: { value: { requests: 1_000_000_000 }, mayProject: false },
  providerApiKey: { value: 're_own', mayProject: true },
  providerFromEmail: { value: 'a@example.test', mayProject: true },
  providerWebhookSecret: { value: `whsec_${'a'.repeat(24)}`, mayProject: true },
  storage: { value: { publishableUploads: true }, mayProject: true },
  signIn: { value: { codeLogin: 'existing' }, mayProject: true },
};
const SETTINGS = Object.keys(
  PROJECT_ROUTES.routes.find(({ id }) => id === 'updateProject')!.body!.properties as object,
);

type Row = [method: Method, path: string, owner: number, act: string | null, body?: unknown];

/** Where the example of a route is not what is asked here, or an owner is not answered the route's own status. */
const OWN: Record<string, { path?: string; status?: number; body?: unknown }> = {
  createProject: { status: 200, body: { name: 'matrix project', ifNotExists: true } },
  recoverDocumentOfProject: { path: '/api/projects/:projectId/collections/:collection/documents/:trashed/recover' },
  // The example would loosen the rules of the collection, which asks.
  setRules: { body: { rules: null } },
  setBucket: { body: BUCKET },
  // Past the guard: there is no bucket, no such session, file or mail.
  checkBucket: { status: 404 },
  setBucketCors: { status: 404 },
  endSessionOfUser: { status: 404 },
  // And no second factor.
  resetFactorsOfProject: { status: 409 },
  // The project names no page that mails may link to; there is no such invitation.
  sendInviteOfProject: { status: 400 },
  withdrawInviteOfProject: { status: 404 },
  readMailText: { status: 404 },
  deleteFileOfProject: { status: 404 },
  // A form is what it reads.
  uploadFileOfProject: { status: 400 },
};
/** Past the guard: a project without a mail provider of its own, so that nothing leaves the house. */
const NEEDS_PROVIDER = /\/mail\/(audiences|broadcasts)\b/;

/** Routes that only read although their method is none that says so. */
const READS = new Set(['aggregateDocumentsOfProject', 'checkRules', 'explainRead']);

const ROUTES = ROUTE_LISTS.flatMap((list) => list.routes).filter(({ path }) => path.startsWith('/api/projects'));
const changes = ({ id, method }: Route): boolean => method !== 'GET' && !READS.has(id);

/** Every route of the operators: what it is asked, what an owner is answered, and the act it is recorded as. */
const MATRIX = ROUTES.map((route): Row => {
  const { path = route.path.replace(/(\w+)s\/:id\b/, '$1s/:$1'), status, body = route.example } = OWN[route.id] ?? {};
  const answered = NEEDS_PROVIDER.test(path)
    ? 403
    : /\/logs\/:log/.test(path)
      ? 404
      : [route.answers].flat()[0]!.status;
  const method = route.method.toLowerCase() as Method;
  return [method, path, status ?? answered, changes(route) ? route.access.action! : null, body];
});

let names: Record<string, string>;
let project: Project;

const settings = {
  BSVC_ADMIN_TOKEN: ADMIN_TOKEN,
  BSVC_BCRYPT_COST: '4',
  BSVC_RATE_LIMIT: 'off',
  BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
};
const test = await useTestApp({ settings });
const owner = await buildOperator(test, 'owner');
const viewer = await buildOperator(test, 'viewer');
await owner.call('post', '/api/projects', { name: 'matrix project' }).expect(201);
await renew();

/**
 * Makes a new project with one of everything, whose names fill the paths: before what changes it, and once for all that
 * changes nothing.
 */
async function renew(): Promise<void> {
  ({ project } = await buildProject(test.app));
  const collection = await buildCollection(test.app, project);
  const user = await signUp(test.app, project, { email: 'user@b.test', password: 'long enough' }, 'project');
  const { webhook } = await addWebhook(test.app, project, { url: 'http://127.0.0.1:9/', events: ['*'] });
  const delivery = await testWebhook(test.app, project, webhook.id.toHexString());
  await setSocialProvider(test.app, project, { ...PROVIDER, name: 'github' });
  await setTemplate(test.app, project, 'own', { subject: 's', text: 't' });
  await addHook(test.app, project, { event: 'posts.create', url: 'http://127.0.0.1:9/' });
  await addSchedule(test.app, project, { name: 'own', cron: '0 3 * * *', url: 'http://127.0.0.1:9/' });
  const [document, trashed] = await placeDocuments(test.app, collection, [
    { title: 'a' },
    { title: 'b', isDeleted: true, deletedAt: new Date() },
  ]);
  names = {
    document: document!,
    trashed: trashed!,
    projectId: project._id.toHexString(),
    collection: collection.name,
    keyId: presentKey(project.keys[0]!, 0).id,
    user: user._id.toHexString(),
    session: '00000000-0000-4000-8000-000000000000',
    name: 'own',
    event: 'posts.create',
    provider: 'github',
    webhook: webhook.id.toHexString(),
    delivery: delivery._id,
    deliveryId: delivery._id,
  };
}

const fill = (path: string) => path.replace(/:(\w+)/g, (_, name: string) => names[name] ?? 'unknown');
const codeOf = ({ body }: { body: unknown }) => (body as { code?: string }).code;

describe('the operators’ API', () => {
  it('records every route that changes something, and none that reads', () => {
    const wrong = ROUTES.filter((route) => changes(route) !== (route.access.action !== undefined));
    expect(wrong.map(({ id }) => id)).toEqual([]);
    const ids = new Set(ROUTES.map(({ id }) => id));
    expect([...Object.keys(OWN), ...READS].filter((id) => !ids.has(id))).toEqual([]);
  });

  it.each(MATRIX)('%s %s: an owner is answered %i and recorded as %s', async (method, path, status, act, body) => {
    await renew();
    const before = (await listActs(test.app, { limit: 1000 })).length;
    const answer = await owner.call(method, fill(path), body);
    expect({ status: answer.status, body: answer.body as object }).toMatchObject({ status });
    // What is a file and no JSON is its status alone.
    if (answer.type === 'application/json') expect((answer.body as { success: boolean }).success).toBe(status < 300);
    const acts = await listActs(test.app, { limit: 1000 });
    expect(acts.length - before).toBe(act === null ? 0 : 1);
    if (act === null) return;
    expect(acts[0]).toMatchObject({
      actor: owner.email,
      action: act,
      outcome: status < 300 ? 'done' : 'failed',
      ...(path.includes(':projectId') && { input: { project: names.projectId } }),
    });
  });

  it.each(MATRIX)('%s %s: a viewer only looks', async (method, path, status, act, body) => {
    const before = (await listActs(test.app, { limit: 1000 })).length;
    const answer = await viewer.call(method, fill(path), body);
    expect(answer.status).toBe(act === null ? status : 403);
    if (act !== null) expect(codeOf(answer)).toBe('VIEWER_READS_ONLY');
    expect((await listActs(test.app, { limit: 1000 })).length).toBe(before);
  });

  it.each(MATRIX)('%s %s: BSVC_ADMIN_TOKEN is an owner', async (method, path, status, act, body) => {
    await renew();
    const admin: OperatorClient = openOperatorClient(test, ADMIN_TOKEN);
    expect((await admin(method, fill(path), body)).status).toBe(status);
    if (act) expect(await listActs(test.app, { limit: 1 })).toMatchObject([{ actor: 'BSVC_ADMIN_TOKEN', action: act }]);
  });

  it.each(MATRIX)('%s %s: 401 without a token, whatever the body', async (method, path, _status, _act, body) => {
    const answer = await supertest(test.server)
      [method](fill(path))
      .send(body as object);
    expect({ status: answer.status, code: codeOf(answer) }).toEqual({ status: 401, code: 'AUTH_REQUIRED' });
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
  });

  it.each(MATRIX.filter(([, path]) => path.includes(':projectId')))(
    '%s %s: a project of someone else is 404, to an owner too',
    async (method, path, _status, _act, body) => {
      const other = await buildProject(test.app);
      const stranger = await buildOperator(test, 'owner', [other.project]);
      const foreign = await stranger.call(method, fill(path), body);
      expect({ status: foreign.status, code: codeOf(foreign) }).toEqual({ status: 404, code: 'PROJECT_NOT_FOUND' });
      const absent = await owner.call(method, fill(path).replace(names.projectId!, 'f'.repeat(24)), body);
      // Nothing tells a foreign project from one that does not exist, except its name given by who deletes.
      if (method !== 'delete' || path !== '/api/projects/:projectId')
        expect({ ...(absent.body as object), requestId: '' }).toEqual({ ...(foreign.body as object), requestId: '' });
      expect(absent.status).toBe(404);
    },
  );

  it.each(MATRIX.filter(([, path]) => /:(collection|keyId|user|webhook)\b/.test(path)))(
    '%s %s: what belongs to another project is 404',
    async (method, path, _status, _act, body) => {
      const other = await buildProject(test.app);
      const foreign = fill(path).replace(names.projectId!, other.project._id.toHexString());
      expect((await owner.call(method, foreign, body)).status).toBe(404);
    },
  );
});

describe('an operator with some projects', () => {
  it('sees and changes these only, and creates none', async () => {
    await renew();
    const { email, call } = await buildOperator(test, 'owner', [project]);
    const { body } = await call('get', '/api/projects').expect(200);
    expect(body).toMatchObject({ data: { items: [{ id: names.projectId }], total: 1 } });
    await call('patch', `/api/projects/${names.projectId}`, { allowedDomains: ['*'] }).expect(200);
    const refused = await call('post', '/api/projects', { name: 'one more' }).expect(403);
    expect(codeOf(refused)).toBe('ALL_PROJECTS_REQUIRED');
    expect(await listActs(test.app, { limit: 1 })).toMatchObject([
      { actor: email, action: 'project create', outcome: 'failed', code: 'ALL_PROJECTS_REQUIRED' },
    ]);
  });

  it.each(SETTINGS)('%s: sets what belongs to the project, not what the installation grants it', async (name) => {
    await renew();
    const { call } = await buildOperator(test, 'owner', [project]);
    const before = (await call('get', `/api/projects/${names.projectId}`)).body as object;
    const { value, mayProject } = PROJECT_SETTINGS[name]!;
    const body = { allowedDomains: ['https://new.example.test'], [name]: value };
    const answer = await call('patch', `/api/projects/${names.projectId}`, body);
    expect([answer.status, codeOf(answer)]).toEqual(mayProject ? [200, undefined] : [403, 'ALL_PROJECTS_REQUIRED']);
    if (!mayProject) expect((await call('get', `/api/projects/${names.projectId}`)).body).toEqual(before);
    const { call: runsTheService } = await buildOperator(test, 'owner', null);
    await runsTheService('patch', `/api/projects/${names.projectId}`, body).expect(200);
  });

  it('no longer sees a deleted one', async () => {
    await renew();
    const { call } = await buildOperator(test, 'owner', [project]);
    await call('delete', `/api/projects/${names.projectId}`).expect(200);
    const { body } = await call('get', '/api/admin/me').expect(200);
    expect(body).toMatchObject({ data: { projects: [] } });
    await call('get', `/api/projects/${names.projectId}`).expect(404);
  });
});
