import { beforeEach, describe, expect, it } from 'vitest';
import { drainJobs, listOutbox } from '../world/jobs.js';
import { listActs } from '../world/operators.js';
import { updateProject } from '../world/projects.js';
import { buildProject } from '../helpers/build-project.js';
import { buildOperator } from '../helpers/operator-client.js';
import { useTestApp } from '../helpers/use.js';

let path: string;

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', BSVC_RATE_LIMIT: 'off' } });
const { call } = await buildOperator(test);

beforeEach(async () => {
  const { project } = await buildProject(test.app);
  path = `/api/projects/${project._id.toHexString()}`;
});

const dataOf = <T = unknown>(answer: { body: unknown }): T => (answer.body as { data: T }).data;

describe('/api/projects/:projectId/schema', () => {
  const DECLARED = {
    format: 'bsvc-schema/1',
    collections: [{ name: 'notes', fields: [{ name: 'text', type: 'String', required: true }] }],
  };

  it('makes the declared collections; a second time it changes nothing', async () => {
    const dry = await call('put', `${path}/schema?dryRun=true`, DECLARED).expect(200);
    const changes = [{ action: 'add', kind: 'collection', name: 'notes' }];
    expect(dataOf(dry)).toEqual({ changes, applied: false });
    await call('get', `${path}/collections/notes`).expect(404);
    const done = await call('put', `${path}/schema`, DECLARED).expect(200);
    expect(dataOf(done)).toEqual({ changes, applied: true });
    await call('get', `${path}/collections/notes`).expect(200);
    const again = await call('put', `${path}/schema`, DECLARED).expect(200);
    expect(dataOf(again)).toEqual({ changes: [], applied: true });
  });

  it('answers by GET a file that PUT takes, in this or another project', async () => {
    const { project } = await buildProject(test.app);
    const other = `/api/projects/${project._id.toHexString()}`;
    await call('put', `${path}/schema`, DECLARED).expect(200);
    const answer = await call('get', `${path}/schema`).expect(200);
    expect(dataOf(answer)).toMatchObject({
      format: 'bsvc-schema/1',
      collections: [{ name: 'notes' }, { name: 'users' }],
    });
    await call('put', `${other}/schema`, dataOf(answer)).expect(200);
    expect(dataOf(await call('get', `${other}/schema`).expect(200))).toEqual(dataOf(answer));
  });

  it('drops unnamed collections only with ?prune=true', async () => {
    await call('put', `${path}/schema`, DECLARED).expect(200);
    const none = { ...DECLARED, collections: [] };
    expect(dataOf<{ changes: unknown }>(await call('put', `${path}/schema`, none).expect(200)).changes).toEqual([]);
    const pruned = await call('put', `${path}/schema?prune=true`, none).expect(200);
    expect(dataOf<{ changes: unknown }>(pruned).changes).toEqual([
      { action: 'drop', kind: 'collection', name: 'notes' },
    ]);
    await call('get', `${path}/collections/notes`).expect(404);
  });

  it('loosens access only with ?confirm= and the name of the project, or with ?prune=true', async () => {
    const { project } = await buildProject(test.app);
    const own = `/api/projects/${project._id.toHexString()}/schema`;
    const declare = (rls?: unknown) => ({
      ...DECLARED,
      collections: [{ ...DECLARED.collections[0], ...(rls !== undefined && { rls }) }],
    });
    const closed = { mode: 'private', ownerField: 'userId' };
    const now = async (): Promise<unknown> =>
      dataOf<{ collections: { access: unknown }[] }>(await call('get', own).expect(200)).collections[0]!.access;
    await call('put', own, declare(closed)).expect(200);
    expect(dataOf(await call('put', own, declare()).expect(200))).toMatchObject({ changes: [] });
    for (const off of ['off', null]) {
      const refused = await call('put', `${own}?confirm=other`, declare(off)).expect(409);
      expect(refused.body).toMatchObject({
        code: 'CONFIRMATION_REQUIRED',
        message: expect.stringContaining('notes: access: private by userId -> public') as string,
      });
      expect(await now()).toBe('private');
      await call('put', `${own}?dryRun=true`, declare(off)).expect(200);
      const agreed = off === null ? 'prune=true' : `confirm=${encodeURIComponent(project.name)}`;
      await call('put', `${own}?${agreed}`, declare(off)).expect(200);
      expect(await now()).toBe('public');
      await call('put', own, declare(closed)).expect(200);
    }
  });

  it('records changes, and no dry run', async () => {
    const recorded = async (): Promise<number> => (await listActs(test.app, { limit: 1000, action: 'apply' })).length;
    const before = await recorded();
    await call('put', `${path}/schema?dryRun=true`, DECLARED).expect(200);
    expect(await recorded()).toBe(before);
    await call('put', `${path}/schema`, DECLARED).expect(200);
    expect(await recorded()).toBe(before + 1);
  });

  it.each([
    [400, { collections: [] }, /format is required/],
    [400, { format: 'bsvc-schema/2', collections: [] }, /format/],
    [400, { ...DECLARED, collections: [{ name: 'empty' }] }, /At least one field is required/],
    [403, { ...DECLARED, collections: [{ name: 'users2', mode: 'flexible' }] }, /kept for end-user accounts/],
  ])('answers %i for %j', async (status, body, text) => {
    const reply = await call('put', `${path}/schema`, body).expect(status);
    expect((reply.body as { message: string }).message).toMatch(text);
  });
});

describe('/api/projects/:projectId/collections/:collection/documents', () => {
  it('lists, exports and imports what the secret key could', async () => {
    await call('post', `${path}/collections`, { name: 'notes', fields: [{ name: 'n', type: 'Number' }] }).expect(201);
    const documents = [{ n: 1 }, { n: 'two' }, { n: 3, _id: 'a'.repeat(24) }];
    const dry = await call('post', `${path}/collections/notes/documents/import?dryRun=true`, { documents }).expect(200);
    expect(dataOf(dry)).toMatchObject({ inserted: 2, rejected: [{ index: 1 }] });
    const stored = await call('post', `${path}/collections/notes/documents/import`, { documents }).expect(200);
    expect(dataOf(stored)).toMatchObject({ inserted: 2, rejected: [{ index: 1 }] });
    const again = await call('post', `${path}/collections/notes/documents/import`, { documents: [documents[2]] });
    expect(dataOf(again)).toMatchObject({ inserted: 0, rejected: [{ index: 0 }] });
    const list = await call('get', `${path}/collections/notes/documents?n_gte=2&fields=n`).expect(200);
    expect(dataOf(list)).toMatchObject({ items: [{ _id: 'a'.repeat(24), n: 3 }], total: 1 });
    const counted = await call('get', `${path}/collections/notes/documents?count=true`).expect(200);
    expect(dataOf(counted)).toEqual({ count: 2 });
    const exported = await call('get', `${path}/collections/notes/documents/export`).expect(200);
    expect(exported.headers['content-type']).toMatch(/^application\/x-ndjson/);
    const lines = exported.text.trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { n: number }).n).sort()).toEqual([1, 3]);
  });

  it('exports those that match the filters of a list, and no other parameter of one', async () => {
    const notes = `${path}/collections/notes/documents`;
    await call('post', `${path}/collections`, { name: 'notes', fields: [{ name: 'n', type: 'Number' }] }).expect(201);
    const documents = [1, 2, 3, 4].map((n) => ({ n, _id: String(n).repeat(24) }));
    await call('post', `${notes}/import`, { documents }).expect(200);
    await call('delete', `${notes}/${'4'.repeat(24)}`).expect(200);
    const exported = async (query: string) => {
      const { text } = await call('get', `${notes}/export?${query}`).expect(200);
      return text.split('\n').flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { n: number }).n]));
    };
    expect(await exported('n_gte=2')).toEqual([2, 3]);
    expect(await exported('n_gte=2&include_deleted=true')).toEqual([2, 3, 4]);
    expect(await exported('n_in=1,3&n_ne=1')).toEqual([3]);
    expect(await exported('n=9')).toEqual([]);
    for (const query of ['limit=1', 'sort=n', 'cursor=start', 'nothing=1', 'n=x', '_bsvc=1', 'n_regex=1'])
      expect((await call('get', `${notes}/export?${query}`).expect(400)).body).toMatchObject({ code: 'INVALID_QUERY' });
  });

  it('refuses the users collection, and keeps documents out of the audit log', async () => {
    for (const name of ['users', 'Users', 'users2'])
      expect((await call('get', `${path}/collections/${name}/documents`)).status).toBe(403);
    await call('post', `${path}/collections`, { name: 'notes', mode: 'flexible' }).expect(201);
    await call('post', `${path}/collections/notes/documents/import`, { documents: [{ of: 'nobody’s business' }] });
    expect(JSON.stringify(await listActs(test.app, { limit: 5 }))).not.toContain('nobody’s business');
  });

  it.each([{}, { documents: [] }, { documents: {} }, { documents: Array(1001).fill({}) }])(
    'refuses to import %j',
    async (body) => {
      await call('post', `${path}/collections`, { name: 'notes', mode: 'flexible' }).expect(201);
      await call('post', `${path}/collections/notes/documents/import`, body).expect(400);
    },
  );
});

describe('/api/projects/:projectId/social', () => {
  it('stores a provider, shows it without its secret, and removes it', async () => {
    const settings = { clientId: 'shop', clientSecret: 'hush-hush', redirectUrls: ['https://shop.example/in'] };
    const stored = await call('put', `${path}/social/google`, settings).expect(200);
    expect(dataOf(stored)).toMatchObject({ name: 'google', issuer: 'https://accounts.google.com', clientId: 'shop' });
    const listed = await call('get', `${path}/social`).expect(200);
    expect(dataOf(listed)).toEqual({ items: [dataOf(stored)], total: 1 });
    expect(JSON.stringify([stored.body, listed.body, await listActs(test.app, { limit: 3 })])).not.toContain('hush');
    await call('delete', `${path}/social/google`).expect(200);
    await call('delete', `${path}/social/google`).expect(404);
    await call('put', `${path}/social/acme`, settings).expect(400);
    await call('put', `${path}/social/google`, { ...settings, redirectUrls: ['javascript:alert(1)'] }).expect(400);
  });
});

describe('POST /api/projects/:projectId/rotate-tokens and /mail/test', () => {
  it('end access tokens at once with no grace, and refuse a bad duration or address', async () => {
    const rotated = await call('post', `${path}/rotate-tokens`, { grace: '0s' }).expect(200);
    expect(dataOf(rotated)).toEqual({ kid: expect.any(String) as string });
    await call('post', `${path}/rotate-tokens`).expect(200);
    await call('post', `${path}/rotate-tokens`, { grace: 'soon' }).expect(400);
    const queued = await call('post', `${path}/mail/test`, { to: 'me@shop.test' }).expect(200);
    expect(dataOf(queued)).toMatchObject({ id: expect.any(String) as string });
    await call('post', `${path}/mail/test`, { to: 'nobody' }).expect(400);
    await call('post', `${path}/mail/test`, {}).expect(400);
    await drainJobs(test.app);
    const mails = await listOutbox(test.app);
    expect(mails).toMatchObject([{ to: ['me@shop.test'], subject: expect.stringMatching(/^Test mail of /) as string }]);
  });

  it('refuse a test mail without a slot of the quota, and without a sender', async () => {
    await updateProject(test.app, path.split('/').at(-1)!, { limits: { mail: 0 } });
    const unpaid = await call('post', `${path}/mail/test`, { to: 'me@shop.test' }).expect(429);
    expect(unpaid.body).toMatchObject({ code: 'MAIL_QUOTA_EXCEEDED' });
    const other = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', RESEND_API_KEY: 're_no_sender' } });
    const { project } = await buildProject(other.app);
    const { call: ask } = await buildOperator(other);
    const to = { to: 'me@shop.test' };
    const nameless = await ask('post', `/api/projects/${project._id.toHexString()}/mail/test`, to).expect(400);
    expect(nameless.body).toMatchObject({ code: 'SENDER_MISSING' });
  });
});
