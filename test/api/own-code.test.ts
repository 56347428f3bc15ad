import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import supertest, { type Test } from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import { addHook, listCalls, setOwnEnv } from '../world/hooks.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use, useTestApp } from '../helpers/use.js';
import { bearer, openUserClient } from '../helpers/user-client.js';

let owner: TestProject;

const folder = use(await openTempDir());
const settings = { BSVC_HOOKS_DIR: folder.path, BSVC_RATE_LIMIT: 'off', BSVC_BCRYPT_COST: '4' };
const test = await useTestApp({ settings });
test.app.ownCode.serveAt(test.url);
beforeEach(async () => {
  owner = await buildProject(test.app);
  const fields = [
    { name: 'quantity', type: 'Number', required: true },
    { name: 'price', type: 'Number', hook: true },
    { name: 'said', type: 'String', hook: true },
  ] as const;
  const rules = { read: 'anyone', create: 'anyone' };
  await buildCollection(test.app, owner.project, { name: 'orders', fields: [...fields], rules });
});

/** The project's file with the code of a handler of `orders.create`, whose hook is answered. */
async function handling(code: string, { head = '', timeoutMs = 10_000 } = {}) {
  const dir = join(folder.path, owner.project.name);
  await mkdir(dir, { recursive: true });
  const text = `${head}\nexport default { 'orders.create': async ({ document, caller, api }) => { ${code} } };\n`;
  await writeFile(join(dir, 'orders.mjs'), text);
  return addHook(test.app, owner.project, { event: 'orders.create', run: 'orders.mjs', timeoutMs });
}

const insert = (body: object = { quantity: 2 }, headers: Record<string, string> = {}): Test =>
  supertest(test.url)
    .post('/api/data/orders')
    .set({ 'x-api-key': owner.secret, ...headers })
    .send(body);
const lines = (): string => test.app.ownCode.lines(owner.project._id.toHexString()).join('\n');
const said = async (): Promise<unknown> => ((await insert().expect(201)).body as { said?: string }).said;

describe('a file of own code', () => {
  it('sets fields, refuses, and is the same process from call to call', async () => {
    await handling(
      `if (document.quantity > 9) return { allow: false, status: 409, code: 'TOO_MANY', message: 'Too many' };
       return { allow: true, set: { price: document.quantity * 7, said: String(process.pid) } };`,
    );
    const { body } = await insert().expect(201);
    expect(body).toMatchObject({ price: 14 });
    expect((await insert({ quantity: 10 }).expect(409)).body).toMatchObject({ code: 'TOO_MANY' });
    expect(await said()).toBe((body as { said: string }).said);
  });

  it('calls the API with a key of its own, and as the caller under their rules', async () => {
    await buildCollection(test.app, owner.project, { name: 'prices', rules: 'server-only' as never });
    await supertest(test.url).post('/api/data/prices').set('x-api-key', owner.secret).send({ each: 3 }).expect(201);
    await handling(
      `const { items: [price] } = await api.collection('prices').list();
       const mine = await api.as(caller).collection('prices').list().then(() => 'seen', (error) => error.code);
       return { allow: true, set: { price: price.each, said: mine } };`,
    );
    const { accessToken } = (await openUserClient(test, owner.publishable).signUp()).body as { accessToken: string };
    const { body } = await insert({ quantity: 1 }, { 'x-api-key': owner.publishable, ...bearer(accessToken) });
    expect(body).toMatchObject({ price: 3, said: 'READ_BLOCKED' });
  });
});

/** What own code may do wrong; the write is refused, and the next call is answered after the pause. */
const WRONG: [what: string, code: string, error: RegExp, timeoutMs?: number][] = [
  ['throws', `throw new Error('no price')`, /no price/],
  ['answers nothing', ``, /"allow"/],
  ['answers what is no JSON', `return { allow: true, set: { price: 1n } }`, /BigInt/],
  ['never answers', `await new Promise(() => undefined)`, /within 500 ms/, 500],
  ['holds up its thread', `for (;;);`, /within 500 ms/, 500],
  ['ends itself', `process.exit(3)`, /ended with 3/],
  ['kills itself', `process.kill(process.pid, 'SIGKILL')`, /SIGKILL/],
  [
    'writes junk to the service',
    `(await import('node:fs')).writeSync(3, '{"id":1,"error":{}}\\nnull\\n'); await new Promise(() => undefined)`,
    /ended|SIGKILL|allow/,
  ],
  ['eats the heap', `const all = []; for (;;) all.push(new Array(100_000).fill({}))`, /ended|within/],
  ['answers too much', `return { allow: true, x: 'x'.repeat(5_000_000) }`, /too large/],
  [
    'writes no end of one line to the service',
    `const { writeSync } = await import('node:fs'); for (;;) try { writeSync(3, 'x'.repeat(60_000)); } catch {}`,
    /ended|SIGKILL/,
  ],
];

describe('own code that', () => {
  for (const [what, code, error, timeoutMs] of WRONG) {
    it(`${what} refuses the write, and others go on`, async () => {
      const { hook } = await handling(code, { timeoutMs });
      const failed = await insert().expect(503);
      expect(failed.body).toMatchObject({ code: 'HOOK_FAILED' });
      await test.app.backgroundTasks.idle();
      const [logged] = await listCalls(test.app, hook.id, 1);
      expect(logged!.attempts[0]!.error).toMatch(error);
      await supertest(test.url).get('/api/health').expect(200);
    });
  }

  it('floods its log keeps the last fifty lines', async () => {
    await handling(`for (let n = 0; n < 20_000; n++) console.log('line ' + n); return { allow: true };`);
    await insert();
    expect(test.app.ownCode.lines(owner.project._id.toHexString()).length).toBeLessThanOrEqual(50);
    expect(lines()).toContain('line ');
  });

  it('cannot be loaded says so with file and line', async () => {
    await handling('return { allow: true };', { head: 'const = 1;' });
    await insert().expect(503);
    expect(lines()).toMatch(/orders\.mjs cannot be loaded: .*SyntaxError|orders\.mjs:1/s);
  });
});

describe('a child process of own code', () => {
  it('sees the variables that it is given, and none of the service', async () => {
    test.app.ownCode.seeEnvironment((name) => `the ${name}`);
    await setOwnEnv(test.app, owner.project, ['SHOP_WORD']);
    await handling(`return { allow: true, set: { said: JSON.stringify(process.env) } };`);
    expect(await said()).toBe('{"SHOP_WORD":"the SHOP_WORD"}');
    await expect(setOwnEnv(test.app, owner.project, ['BSVC_SECRET_KEY'])).rejects.toMatchObject({
      code: 'INVALID_ENV',
    });
  });

  it('reads its folder alone, and starts no process, thread or native part', async () => {
    const other = await buildProject(test.app);
    await mkdir(join(folder.path, other.project.name), { recursive: true });
    const foreign = join(folder.path, other.project.name, 'secret.mjs');
    await writeFile(foreign, 'export default {}');
    const files = [foreign, join(test.dataDir, 'data.mdb'), '/etc/passwd', `/proc/${process.pid}/environ`];
    const tries = [
      `await readFile('orders.mjs')`,
      ...files.map((path) => `await readFile(${JSON.stringify(path)})`),
      ...files.map((path) => `await import(${JSON.stringify(path)})`),
      `await writeFile('own.txt', 'x')`,
      `await symlink('/etc/passwd', 'link')`,
      `await import('node:child_process').then(({ execSync }) => execSync('id'))`,
      `await import('node:cluster').then(({ default: cluster }) => cluster.fork())`,
      `await import('node:worker_threads').then(({ Worker }) => new Worker('1', { eval: true }))`,
      `process.dlopen({ exports: {} }, '/lib/x.node')`,
    ];
    const attempts = tries.map((code) => `async () => { ${code} }`).join(',');
    await handling(
      `const reached = []; for (const [at, each] of [${attempts}].entries()) await each().then(() => reached.push(at), () => undefined);
       return { allow: true, set: { said: reached.join() } };`,
      { head: `import { readFile, symlink, writeFile } from 'node:fs/promises';` },
    );
    // Its own file, which shows that the others fail for where they are.
    expect(await said()).toBe('0');
  });
});
