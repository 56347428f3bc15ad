import supertest from 'supertest';
import { describe, expect, it } from 'vitest';
import { openApp, type App } from '../../../../src/app.js';
import { documentsName } from '../../../../src/features/collections/collection.js';
import { dropCollection } from '../../../../src/features/collections/drop-collection.js';
import { setTemplate } from '../../../../src/features/mail/mail-template.js';
import { deleteProject } from '../../../../src/features/management/delete-project.js';
import type { Project } from '../../../../src/features/projects/project.js';
import { signUp } from '../../../../src/features/users/sign-up.js';
import { createApi } from '../../../../src/api.js';
import { drainJobs } from '../../../../src/worker.js';
import { buildCollection, buildProject, type TestProject } from '../../../helpers/build-project.js';
import { buildWebhook } from '../../../helpers/build-webhook.js';
import { createFakeClock } from '../../../helpers/fake-clock.js';
import { useTestApp } from '../../../helpers/use.js';
import type { CacheRegion } from '../../../../src/platform/cache.js';

const clock = createFakeClock();
const test = await useTestApp({
  clock,
  settings: {
    BSVC_MAIL_FROM: 'a@b.co',
    BSVC_BCRYPT_COST: '4',
    BSVC_RATE_LIMIT: 'off',
    BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
  },
});

const send = (path: string, key: string) => supertest(test.server).post(path).set('x-api-key', key);

/** A project that owns something of every kind. */
async function buildFullProject(): Promise<TestProject> {
  const owner = await buildProject(test.app);
  await buildWebhook(test.app, owner.project, 'http://127.0.0.1:9/');
  const { name } = await buildCollection(test.app, owner.project);
  await send(`/api/data/${name}`, owner.secret).set('idempotency-key', 'once').send({ a: 1 }).expect(201);
  const user = { email: 'ann@b.test', password: 'long enough' };
  await signUp(test.app, owner.project, user, 'project');
  await send('/api/userAuth/login', owner.publishable).send(user).expect(200);
  await send('/api/userAuth/login', owner.publishable)
    .send({ ...user, password: 'wrong' })
    .expect(401);
  await setTemplate(test.app, owner.project, 'welcome', { subject: 's', text: 't' });
  await send('/api/mail/send', owner.secret).send({ to: 'c@d.test', subject: 's', text: 't' }).expect(200);
  await send('/api/storage/upload', owner.secret).attach('file', Buffer.from('bytes'), 'a.txt').expect(201);
  await drainJobs(test.app);
  await send('/api/mail/send', owner.secret).send({ to: 'e@f.test', subject: 'queued', text: 't' }).expect(200);
  return owner;
}

/** Where a project's id still stands, jobs and the audit log excepted; files that are gone keep a record for a day. */
async function findTraces(app: App, { _id }: Project): Promise<string[]> {
  const traces: string[] = [];
  for (const name of await app.db.listNames()) {
    if (name.startsWith(`documents_${_id.toHexString()}`)) traces.push(name);
    if (['jobs', 'audit_log'].includes(name)) continue;
    for await (const record of app.db.collection(name).find({})) {
      if (name === 'files' && record.state === 'deleted' && record.settled === true) continue;
      if (JSON.stringify(record).includes(_id.toHexString())) traces.push(name);
    }
  }
  return traces;
}

const countOutbox = (app: App) => app.db.collection('mail_outbox').countDocuments({});

describe('deleting a project', () => {
  it('removes everything it owns; what was queued is harmless', async () => {
    const owner = await buildFullProject();
    const traces = new Set(await findTraces(test.app, owner.project));
    for (const name of ['projects', 'collections', 'sessions', 'counters', 'one_time_codes', 'mail_logs'])
      expect(traces).toContain(name);
    for (const name of ['mail_templates', 'mail_usage', 'files', 'storage_usage', 'project_webhooks'])
      expect(traces).toContain(name);
    for (const name of ['webhook_deliveries', 'idempotency_keys']) expect(traces).toContain(name);
    const kept = await countOutbox(test.app);
    await deleteProject(test.app, owner.project.name);
    expect(await findTraces(test.app, owner.project)).toEqual([]);
    expect(await countOutbox(test.app)).toBeLessThan(kept);
    await send('/api/data/posts', owner.secret).send({}).expect(401);
    const outbox = await countOutbox(test.app);
    clock.advance(200_000);
    await drainJobs(test.app);
    expect(await countOutbox(test.app)).toBe(outbox);
    expect(await findTraces(test.app, owner.project)).toEqual([]);
    await expect(deleteProject(test.app, owner.project.name)).rejects.toMatchObject({ code: 'PROJECT_NOT_FOUND' });
  });

  it('leaves other projects alone', async () => {
    const [owner, other] = [await buildFullProject(), await buildFullProject()];
    const before = await findTraces(test.app, other.project);
    await deleteProject(test.app, owner.project._id.toHexString());
    expect((await findTraces(test.app, other.project)).sort()).toEqual(before.sort());
  });

  it.each(['project_webhooks', 'sessions', 'collections', 'mail_logs', 'files', 'operators', 'projects'])(
    'comes to its end by itself after a crash at %s, and can be repeated',
    async (place) => {
      for (const finish of ['repeat', 'wait']) {
        const owner = await buildFullProject();
        await expect(deleteProject(breakAt(test.app, place), owner.project.name)).rejects.toThrow('crash');
        await send('/api/data/posts', owner.secret).send({}).expect(401);
        expect(await findTraces(test.app, owner.project)).toContain('projects');
        if (finish === 'repeat') await deleteProject(test.app, owner.project.name);
        else {
          clock.advance(5_000);
          await drainJobs(test.app);
        }
        expect(await findTraces(test.app, owner.project)).toEqual([]);
      }
    },
  );

  it('does nothing to a project whose deletion died before its first write', async () => {
    const owner = await buildFullProject();
    const broken = breakAt(test.app, 'projects', 'findOneAndUpdate');
    await expect(deleteProject(broken, owner.project.name)).rejects.toThrow('crash');
    const before = await findTraces(test.app, owner.project);
    clock.advance(200_000);
    await drainJobs(test.app);
    expect((await findTraces(test.app, owner.project)).sort()).toEqual(before.sort());
  });

  it('removes what another process, which remembered the project, wrote afterwards', async () => {
    const owner = await buildFullProject();
    const { name, _id } = await buildCollection(test.app, owner.project);
    const elsewhere = await openApp(test.app.config, test.app.log, clock);
    const other = createApi(elsewhere).callback();
    const insert = () => supertest(other).post(`/api/data/${name}`).set('x-api-key', owner.secret).send({ late: true });
    rememberForever(elsewhere);
    await insert().expect(201);
    await deleteProject(test.app, owner.project.name);
    await insert().expect(201);
    expect(await findTraces(test.app, owner.project)).toContain(documentsName({ projectId: owner.project._id, _id }));
    // What follows the late write in that process is over before the clean-up looks; otherwise the one after 150 s
    // would find it.
    await elsewhere.backgroundTasks.idle();
    clock.advance(5_000);
    await drainJobs(test.app);
    expect(await findTraces(test.app, owner.project)).toEqual([]);
    await elsewhere.close();
  });
});

describe('dropping a collection', () => {
  it('removes what another process, which remembered the collection, wrote afterwards; one of the same name is untouched', async () => {
    const owner = await buildProject(test.app);
    const dropped = await buildCollection(test.app, owner.project, { name: 'posts' });
    const elsewhere = await openApp(test.app.config, test.app.log, clock);
    const other = createApi(elsewhere).callback();
    const insert = () => supertest(other).post('/api/data/posts').set('x-api-key', owner.secret).send({ late: true });
    rememberForever(elsewhere);
    await insert().expect(201);
    await dropCollection(test.app, owner.project._id, 'posts');
    await insert().expect(201);
    expect(await test.app.db.listNames()).toContain(documentsName(dropped));
    await buildCollection(test.app, owner.project, { name: 'posts' });
    await send('/api/data/posts', owner.secret).send({ mine: true }).expect(201);
    clock.advance(5_000);
    await drainJobs(test.app);
    expect(await test.app.db.listNames()).not.toContain(documentsName(dropped));
    // A request that had begun before the drop may end long after it.
    await insert().expect(201);
    clock.advance(145_000);
    await drainJobs(test.app);
    expect(await test.app.db.listNames()).not.toContain(documentsName(dropped));
    const list = await supertest(test.server).get('/api/data/posts').set('x-api-key', owner.secret).expect(200);
    expect(list.body).toMatchObject({ data: { total: 1, items: [{ mine: true }] } });
    await elsewhere.close();
  });

  it('comes to its end by itself after a crash', async () => {
    const owner = await buildProject(test.app);
    const dropped = await buildCollection(test.app, owner.project, { name: 'posts' });
    const broken = breakAt(test.app, documentsName(dropped));
    await expect(dropCollection(broken, owner.project._id, 'posts')).rejects.toThrow('crash');
    await supertest(test.server).get('/api/data/posts').set('x-api-key', owner.secret).expect(404);
    await expect(buildCollection(test.app, owner.project, { name: 'posts' })).rejects.toMatchObject({
      code: 'COLLECTION_DROPPING',
    });
    clock.advance(5_000);
    await drainJobs(test.app);
    await buildCollection(test.app, owner.project, { name: 'posts' });
  });
});

/** The app, with a process that dies at the first removal (or the named call) in one stored collection. */
function breakAt(app: App, place: string, call?: string): App {
  const crash = (): never => {
    throw new Error('crash');
  };
  const broken = ['deleteOne', 'deleteMany', 'updateMany', 'drop'];
  return {
    ...app,
    db: {
      ...app.db,
      collection: ((name: string) => {
        const store = app.db.collection(name);
        if (name !== place) return store;
        return new Proxy(store, {
          get(target, key) {
            if (key === call || (call === undefined && broken.includes(String(key)))) return crash;
            const value: unknown = Reflect.get(target, key);
            return typeof value === 'function' ? (value as (...given: unknown[]) => unknown).bind(target) : value;
          },
        });
      }) as App['db']['collection'],
    },
  };
}

/** What this process has remembered stays so: as in a request that read it just before. */
function rememberForever(app: App): void {
  const { cache } = app;
  const kept = new Map<string, object>();
  const { read } = cache;
  const find = <T extends object>({ name }: CacheRegion<T>, key: string) =>
    kept.get(`${name}\n${key}`) as T | undefined;
  cache.peek = find;
  cache.read = async <T extends object>(region: CacheRegion<T>, key: string, load: (old?: T) => Promise<T | null>) => {
    const found = find(region, key) ?? (await read(region, key, load));
    if (found) kept.set(`${region.name}\n${key}`, found);
    return found;
  };
}
