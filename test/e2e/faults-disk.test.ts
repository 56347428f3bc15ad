import { randomBytes } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { migrate } from '../world/app.js';
import { openEngine } from '../world/engine.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { runOrThrow, startService, type RunningService } from '../helpers/run-binary.js';
import { openSmallDisk, type SmallDisk } from '../../src/engine/test/helpers/small-disk.js';
import { withApp } from '../helpers/with-app.js';
import { listStoredFiles, openStorageClient, putSigned, type StorageClient } from '../helpers/storage-client.js';

const MEGABYTES = 8;
const probe = await openSmallDisk(1);
afterAll(() => probe?.remove());

let disk: SmallDisk;
let service: RunningService;
let owner: TestProject;
let storage: StorageClient;
let env: Record<string, string>;

beforeEach(async ({ skip }) => {
  const opened = await openSmallDisk(MEGABYTES);
  if (!opened) return skip();
  disk = opened;
  env = {
    BSVC_DATA_DIR: join(disk.path, 'data'),
    BSVC_LOG_LEVEL: 'fatal',
    BSVC_BCRYPT_COST: '4',
    BSVC_AUTH_RATE_LIMIT: 'off',
  };
  owner = await withApp(env, async (app) => {
    await migrate(app.db);
    const made = await buildProject(app);
    await buildCollection(app, made.project, { name: 'notes' });
    return made;
  });
  service = await startService(['serve', '--port', '0', '--processes', '2'], env);
  storage = openStorageClient(service.ready, owner.secret);
});
afterEach(async () => {
  await service.stop('SIGKILL');
  // What LMDB prints when it meets a full disk, into memory that is too small for it.
  expect(service.stderr()).not.toContain('Write error');
  await disk.remove();
});

/** Something else on the disk takes all that is left. */
const ballast = (): string => join(disk.path, 'ballast');
async function fillDisk(): Promise<void> {
  await writeFile(ballast(), randomBytes(MEGABYTES * 1024 * 1024)).catch(() => undefined);
}
const freeDisk = (): Promise<void> => rm(ballast());

async function call(
  method: string,
  path: string,
  body?: object,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const reply = await fetch(`${service.ready.url}/api/${path}`, {
    method,
    headers: { 'x-api-key': owner.secret, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: reply.status, body: (await reply.json()) as Record<string, unknown> };
}

const text = 'x'.repeat(2_000);
/** Inserts until it is refused; the ids of what was answered, and the refusal. */
async function insertUntilRefused(ids: string[]): Promise<Awaited<ReturnType<typeof call>>> {
  for (;;) {
    const reply = await call('POST', 'data/notes', { n: ids.length, text });
    if (reply.status !== 201) return reply;
    ids.push(reply.body._id as string);
  }
}

async function problemsOfStore(): Promise<string[]> {
  const engine = openEngine({ dataDir: env.BSVC_DATA_DIR! });
  const problems = await engine.verify();
  await engine.close();
  return problems;
}

// Needs the right to mount a file system in memory.
describe.skipIf(!probe)('a full disk', () => {
  it('is 507 for what would be stored; what was answered stays, is read, and writes go on when there is space', async () => {
    const ids: string[] = [];
    await fillDisk();
    const refused = await insertUntilRefused(ids);
    expect(refused).toMatchObject({ status: 507, body: { success: false, code: 'NO_SPACE' } });
    expect(JSON.stringify(refused.body)).not.toContain(disk.path);
    // One by one and in a batch, all or nothing.
    const batch = Array.from({ length: 100 }, (_, n) => ({ batch: true, n, text }));
    expect((await call('POST', 'data/notes/bulk', batch as never)).status).toBe(507);

    expect((await call('GET', 'data/notes?count=true')).body).toMatchObject({ data: { count: ids.length } });
    for (const id of [ids[0], ids.at(-1)]) if (id) expect((await call('GET', `data/notes/${id}`)).status).toBe(200);
    expect((await call('GET', 'health/live')).status).toBe(200);
    expect((await call('GET', 'health/ready')).status).toBe(200);

    await freeDisk();
    await eventually('writes go on', async () => (await call('POST', 'data/notes', { n: -1 })).status === 201);
    const { body } = await call('GET', 'data/notes?count=true');
    expect(body).toMatchObject({ data: { count: ids.length + 1 } });
    expect((await call('GET', 'data/notes?count=true&batch=true')).body).toMatchObject({ data: { count: 0 } });
    expect(await service.stop('SIGTERM')).toBe(0);
    expect(await problemsOfStore()).toEqual([]);
  });

  it('is 507 for who signs up: no half account stands, nor keeps the address when there is space again', async () => {
    const account = (n: number) => ({ email: `new${n}@example.com`, password: 'correct horse 1' });
    const signUp = (n: number) => call('POST', 'userAuth/signup', account(n));
    expect((await signUp(-1)).status).toBe(201);
    await fillDisk();
    await insertUntilRefused([]);
    const answers: Awaited<ReturnType<typeof signUp>>[] = [];
    for (let n = 0; answers.at(-1)?.status !== 507 && n < 200; n++) answers.push(await signUp(n));
    expect(answers.at(-1)).toMatchObject({ status: 507, body: { success: false, code: 'NO_SPACE' } });
    expect(answers.slice(0, -1).filter(({ status }) => status !== 201)).toEqual([]);

    await freeDisk();
    const refused = answers.length - 1;
    await eventually('sign-ups go on', async () => (await signUp(refused)).status === 201);
    for (const n of [-1, ...answers.keys()]) {
      const reply = await call('POST', 'userAuth/login', account(n));
      expect(reply, `user ${n}`).toMatchObject({ status: 200 });
    }
    expect(await service.stop('SIGTERM')).toBe(0);
    expect(await problemsOfStore()).toEqual([]);
  });

  it('is 507 for an upload, which leaves nothing behind; files are served, deleted, and uploaded again later', async () => {
    const small = randomBytes(50_000);
    const before = (await storage.upload(small)).body;
    await fillDisk();
    const large = randomBytes(2_000_000);
    const refused = await storage.upload(large);
    expect(refused).toMatchObject({ status: 507, body: { code: 'NO_SPACE' } });
    expect(JSON.stringify(refused.body)).not.toContain(disk.path);
    const served = await fetch(`${service.ready.url}/files/${before.path}`);
    expect(Buffer.from(await served.arrayBuffer()).equals(small)).toBe(true);

    await freeDisk();
    const { signedUrl, filePath } = (
      await storage.request({ filename: 'a.png', contentType: 'image/png', size: large.length })
    ).body;
    await fillDisk();
    expect((await putSigned(signedUrl, large, 'image/png')).status).toBe(507);
    await freeDisk();
    await eventually('it is taken again', async () => (await putSigned(signedUrl, large, 'image/png')).ok);
    expect((await storage.confirm({ filePath, size: large.length })).status).toBe(200);
    expect((await storage.upload(small)).status).toBe(201);
    expect((await storage.remove(before.path)).status).toBe(200);
    await eventually(
      'nothing of the refused ones is left',
      async () => (await listStoredFiles(env.BSVC_DATA_DIR!)).length === 2,
    );
    const { usage } = JSON.parse(await runOrThrow(['project', 'show', owner.project.name, '--json'], env)) as {
      usage: object;
    };
    expect(usage).toMatchObject({ storage: { files: 2, bytes: large.length + small.length } });
  });

  it('lets documents be deleted for good, with the room that is kept for it, until writes go on; a project too', async () => {
    const reserve = join(env.BSVC_DATA_DIR!, 'reserve');
    await eventually('the reserve is there', () => existsSync(reserve) && statSync(reserve).size === 2 * 1024 * 1024);
    const ids: string[] = [];
    while (ids.length < 300) ids.push((await call('POST', 'data/notes', { text })).body._id as string);
    await fillDisk();
    await insertUntilRefused(ids);
    for (const id of ids.slice(0, 100)) {
      expect((await call('DELETE', `data/notes/${id}?permanent=true`)).status).toBe(200);
    }
    for (let n = 0; n < 20; n++) expect((await call('POST', 'data/notes', { text })).status).toBe(201);
    await insertUntilRefused(ids);
    await runOrThrow(['project', 'delete', owner.project.name, '--yes'], env);
    await freeDisk();
    await eventually('the reserve is filled again', () => statSync(reserve).size === 2 * 1024 * 1024);
    expect(await service.stop('SIGTERM')).toBe(0);
    expect(await problemsOfStore()).toEqual([]);
  });

  it('does not keep a killed server from starting and reading', async () => {
    const ids: string[] = [];
    await fillDisk();
    await insertUntilRefused(ids);
    await service.stop('SIGKILL');
    service = await startService(['serve', '--port', '0'], env);
    expect((await call('GET', 'data/notes?count=true')).body).toMatchObject({ data: { count: ids.length } });
  });
});
