import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { drainJobs, findBackupAge } from '../world/jobs.js';
import { findKeptRequests, storeKeptRequests } from '../world/operators.js';
import { sendTestMail } from '../world/projects.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { buildOperator, openOperatorClient } from '../helpers/operator-client.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use, useTestApp } from '../helpers/use.js';

const SECRET = 'an-admin-token-that-nobody-sees';

const settings = { BSVC_BCRYPT_COST: '4', BSVC_ADMIN_TOKEN: SECRET, BSVC_MAIL_FROM: 'shop@example.test' };
const test = await useTestApp({ settings });
const ann = await buildOperator(test);

const dataOf = <T>({ body }: { body: unknown }): T => (body as { data: T }).data;
const codeOf = ({ body }: { body: unknown }) => (body as { code?: string }).code;

describe('operators', () => {
  it('are added for projects that there are, changed while they are signed in, and removed', async () => {
    const { project } = await buildProject(test.app);
    const id = project._id.toHexString();
    const input = { email: 'Bob@example.test', password: 'long enough', role: 'viewer', projects: [id, id] };
    const made = dataOf<{ id: string }>(await ann.call('post', '/api/admin/operators', input).expect(201));
    expect(made).toMatchObject({ email: 'bob@example.test', role: 'viewer', projects: [id] });
    expect(codeOf(await ann.call('post', '/api/admin/operators', input).expect(409))).toBe('OPERATOR_EXISTS');
    const unknown = { ...input, email: 'c@example.test', projects: ['65f000000000000000000000'] };
    expect(codeOf(await ann.call('post', '/api/admin/operators', unknown).expect(404))).toBe('PROJECT_NOT_FOUND');
    const path = `/api/admin/operators/${made.id}`;
    const changed = await ann.call('patch', path, { role: 'owner', projects: null }).expect(200);
    expect(dataOf(changed)).toMatchObject({ role: 'owner', projects: null });
    await ann.call('delete', path).expect(200);
    expect(codeOf(await ann.call('delete', path).expect(404))).toBe('OPERATOR_NOT_FOUND');
  });

  it('lose what a change takes from them with their next request', async () => {
    const eve = await buildOperator(test);
    await eve.call('get', '/api/admin/operators').expect(200);
    const { project } = await buildProject(test.app);
    await ann.call('patch', `/api/admin/operators/${eve.id}`, { projects: [project._id.toHexString()] }).expect(200);
    expect(codeOf(await eve.call('get', '/api/admin/operators').expect(403))).toBe('ALL_PROJECTS_REQUIRED');
    await ann.call('post', `/api/admin/operators/${eve.id}/password`, { password: 'another one' }).expect(200);
    await eve.call('get', '/api/admin/me').expect(401);
  });

  it.each([
    ['patch', '', { role: 'viewer' }],
    ['delete', '', undefined],
    ['post', '/password', { password: 'long enough' }],
  ] as const)('do not %s%s their own account', async (method, rest, body) => {
    for (const name of [ann.id, ann.email]) {
      expect(codeOf(await ann.call(method, `/api/admin/operators/${name}${rest}`, body).expect(409))).toBe(
        'OWN_ACCOUNT',
      );
    }
  });
});

describe('settings', () => {
  it('are shown with where they came from, secrets masked', async () => {
    const answer = await ann.call('get', '/api/admin/settings').expect(200);
    expect(JSON.stringify(answer.body)).not.toContain(SECRET);
    const { items } = dataOf<{ items: { env: string; value: unknown; source: string }[] }>(answer);
    const of = (env: string) => items.find((each) => each.env === env);
    expect(of('BSVC_ADMIN_TOKEN')).toMatchObject({ value: '********', source: 'test' });
    expect(of('BSVC_BCRYPT_COST')).toMatchObject({ value: 4, source: 'test' });
    expect(of('BSVC_TRASH_DAYS')).toMatchObject({ source: 'default' });
  });
});

describe('requests', () => {
  interface Seen {
    path: string;
    status: number;
    by: string;
    project: string | null;
  }
  const list = async (query: string): Promise<Seen[]> =>
    dataOf<{ items: Seen[] }>(await ann.call('get', `/api/admin/requests?${query}`).expect(200)).items;

  it('are kept by path, key and project, without query, key and what is beyond 200 characters', async () => {
    const { project, secret } = await buildProject(test.app);
    const collection = await buildCollection(test.app, project);
    const [id] = await placeDocuments(test.app, collection, [{ title: 'a' }]);
    const path = `/api/data/${collection.name}/${id!}`;
    await fetch(`${test.url}${path}?fields=title`, { headers: { 'x-api-key': secret } });
    await fetch(`${test.url}/nothing/${'x'.repeat(3_000)}`);
    const own = { project: project._id.toHexString() };
    expect(await list(`q=${id!}`)).toMatchObject([{ path, status: 200, by: 'secret key', ...own }]);
    const answer = await ann.call('get', '/api/admin/requests?q=/nothing/&status=4').expect(200);
    expect(JSON.stringify(answer.body)).not.toContain(secret);
    const [long] = dataOf<{ items: Seen[] }>(answer).items;
    expect(long).toMatchObject({ status: 404, by: 'nobody', project: null });
    expect(long!.path).toHaveLength(200);
    expect((await list(`project=${own.project}&limit=5`)).every((each) => each.project === own.project)).toBe(true);
    expect(await list('status=503')).toEqual([]);
  });
});

describe('requests that failed or were slow', () => {
  it('are kept for seven days, ten thousand at most, whichever process answered them', async () => {
    let nowMs = Date.now();
    const clock = { now: () => nowMs };
    const own = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
    const { call } = await buildOperator(own);
    // A busy machine makes slow requests, which are kept too.
    const list = async (query = '') =>
      dataOf<{ items: { path: string; status: number; ms: number }[] }>(
        await call('get', `/api/admin/requests?kept=true${query}`).expect(200),
      )
        .items.filter(({ status, ms }) => status >= 500 || ms < 1_000)
        .map(({ path, status }) => `${status} ${path}`);
    own.app.db.ping = () => Promise.reject(new Error('away'));
    await fetch(`${own.url}/api/health/ready`);
    await fetch(`${own.url}/nothing`);
    await storeKeptRequests(own.app);
    expect(await list()).toEqual(['503 /api/health/ready']);
    expect(await list('&status=4')).toEqual([]);

    nowMs += 8 * 86_400_000;
    expect(await findKeptRequests(own.app, { limit: 10 })).toEqual([]);
    await fetch(`${own.url}/api/health/ready?again`);
    await storeKeptRequests(own.app);
    expect(await own.app.db.collection('kept_requests').countDocuments({ status: 503 })).toBe(1);

    const many = Array.from({ length: 10_005 }, (_, n) => ({ _id: new Date(nowMs - 60_000 + n).toISOString() }));
    await own.app.db.collection('kept_requests').insertMany(many as never);
    await fetch(`${own.url}/api/health/ready?third`);
    await storeKeptRequests(own.app);
    expect(await own.app.db.collection('kept_requests').countDocuments({})).toBe(10_000);
  });
});

describe('the text of a mail', () => {
  it('is read by an owner of its project, which is recorded, and by nobody else', async () => {
    const { project } = await buildProject(test.app);
    const { project: other } = await buildProject(test.app);
    await sendTestMail(test.app, project, 'ann@b.test');
    const base = (of: typeof project) => `/api/projects/${of._id.toHexString()}/mail/logs`;
    const [log] = dataOf<{ items: { id: string }[] }>(await ann.call('get', base(project)).expect(200)).items;
    const read = await ann.call('post', `${base(project)}/${log!.id}/text`).expect(200);
    expect(dataOf(read)).toMatchObject({ to: ['ann@b.test'], text: 'If you read this, mail works.', html: null });
    await ann.call('post', `${base(other)}/${log!.id}/text`).expect(404);
    const viewer = await buildOperator(test, 'viewer');
    const call = openOperatorClient(test, viewer.token);
    expect(codeOf(await call('post', `${base(project)}/${log!.id}/text`).expect(403))).toBe('VIEWER_READS_ONLY');
    const { items } = dataOf<{ items: { action: string; outcome: string }[] }>(
      await ann.call('get', '/api/admin/audit?action=mail%20text').expect(200),
    );
    expect(items.map(({ outcome }) => outcome)).toEqual(['failed', 'done']);
  });
});

describe('kept backups', () => {
  it('are none without a place, and an unreachable one is named', async () => {
    const { place, items, problem } = dataOf<{ place: null; items: []; problem: null }>(
      await ann.call('get', '/api/admin/backups').expect(200),
    );
    expect({ place, items, problem }).toEqual({ place: null, items: [], problem: null });
    expect(codeOf(await ann.call('post', '/api/admin/backups').expect(409))).toBe('NO_BACKUP_PLACE');
    const settings = {
      BSVC_BCRYPT_COST: '4',
      BSVC_BACKUP_TO: 's3://kept/here',
      BSVC_S3_URL: 's3+http://id:hidden-secret@127.0.0.1:1',
    };
    const away = await useTestApp({ settings });
    const { call } = await buildOperator(away);
    const answer = await call('get', '/api/admin/backups').expect(200);
    expect(dataOf(answer)).toMatchObject({ place: 's3://kept/here', isLate: true, items: [] });
    expect(dataOf<{ problem: string }>(answer).problem).toMatch(/^s3:\/\/kept\/here cannot be listed: /);
    expect(JSON.stringify(answer.body)).not.toContain('hidden-secret');
  });

  it('are downloaded encrypted, read back when asked, and called damaged when they are', async () => {
    const dir = use(await openTempDir());
    const kept = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', BSVC_BACKUP_TO: dir.path } });
    const { call } = await buildOperator(kept);
    const viewer = await buildOperator(kept, 'viewer');
    const base = '/api/admin/backups';
    const list = async () => dataOf<{ items: Kept[] }>(await call('get', base).expect(200)).items;
    await call('post', base).expect(202);
    await drainJobs(kept.app);
    const [made] = await list();
    expect(made).toMatchObject({ fault: null, verified: { files: 0 } });
    const name = made!.name;
    const bytes = await readFile(join(dir.path, name));
    const answer = await call('get', `${base}/${name}/file`).responseType('blob').expect(200);
    expect(bytes.equals(answer.body as Buffer)).toBe(true);
    expect(answer.headers['content-disposition']).toBe(`attachment; filename="${name}"`);

    for (const [method, rest] of [
      ['get', 'file'],
      ['post', 'check'],
    ] as const) {
      expect(codeOf(await viewer.call(method, `${base}/${name}/${rest}`).expect(403))).toBe('VIEWER_READS_ONLY');
      for (const other of ['bsvc-2020-01-01T000000Z.backup', '..', '%2e%2e%2fkept', `${name}.old`]) {
        const refused = await call(method, `${base}/${other}/${rest}`).expect(404);
        expect(codeOf(refused)).toMatch(/_NOT_FOUND$/);
      }
    }

    bytes[bytes.length - 20]! ^= 1;
    await writeFile(join(dir.path, name), bytes);
    await call('post', `${base}/${name}/check`).expect(202);
    await drainJobs(kept.app);
    expect(await list()).toMatchObject([{ name, verified: null, fault: 'It is damaged or cut short' }]);
    expect((await findBackupAge(kept.app))?.last).toBeNull();

    const unencrypted = 'bsvc-2026-01-01T000000Z.backup';
    await writeFile(join(dir.path, unencrypted), 'plain');
    expect(codeOf(await call('get', `${base}/${unencrypted}/file`).expect(409))).toBe('BACKUP_NOT_ENCRYPTED');
  });
});

interface Kept {
  name: string;
  verified: { documents: number; files: number } | null;
  fault: string | null;
}
