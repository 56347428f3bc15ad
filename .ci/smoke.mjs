// What a first user does, with the built command or another one (`node .ci/smoke.mjs <path of bsvc>`): a page to start
// from, a project, rules, accounts, a file, own code, the service's pages, a backup, a clean stop.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const BINARY = process.argv[2] ?? join(import.meta.dirname, '..', 'bin', 'bsvc.js');
const home = mkdtempSync(join(tmpdir(), 'bsvc-smoke-'));
const env = {
  ...process.env,
  ...{ BSVC_DATA_DIR: join(home, 'data'), BSVC_LOG_LEVEL: 'warn', BSVC_PROJECT: 'demo' },
  BSVC_HOOKS_DIR: join(home, 'own code'),
};
const bsvc = (...words) => execFileSync(BINARY, words, { env, encoding: 'utf8' });

// Its own folder is the only one that own code can read.
mkdirSync(join(env.BSVC_HOOKS_DIR, 'demo'), { recursive: true });
writeFileSync(
  join(env.BSVC_HOOKS_DIR, 'demo', 'bills.mjs'),
  `import { readdirSync } from 'node:fs';
  export default { 'bills.create': () => {
    try { return { allow: true, set: { seen: readdirSync(${JSON.stringify(home)}).join() } }; }
    catch (error) { return { allow: true, set: { seen: error.code } }; }
  } };`,
);
const server = spawn(BINARY, ['serve', '--demo', '--processes', '2', '--port', '0', '--json'], {
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const [line] = await once(createInterface(server.stdout), 'line');
  const { url, demo } = JSON.parse(line);
  const call = async (path, { key = demo.keys.publishable, token, ...init } = {}) => {
    const headers = { 'x-api-key': key, ...(token && { authorization: `Bearer ${token}` }), ...init.headers };
    const reply = await fetch(`${url}/api/${path}`, { ...init, headers });
    return { status: reply.status, body: await reply.json() };
  };
  const post = (path, value, options = {}) =>
    call(path, {
      ...options,
      method: 'POST',
      body: JSON.stringify(value),
      headers: { 'content-type': 'application/json' },
    });

  assert.equal((await call('data/posts?limit=3')).body.data.items.length, 3);
  bsvc('collection', 'add', 'notes', '--field', 'text:String!', '--rls', 'private');
  const { body: user } = await post('userAuth/signup', { email: 'ada@example.com', password: 'correct horse' });
  const written = await post('data/notes', { text: 'Buy milk' }, { token: user.accessToken });
  assert.equal(written.status, 201);
  const own = await call('data/notes', { token: user.accessToken });
  assert.equal(own.body.data.items[0].text, 'Buy milk');
  assert.equal((await call('data/notes')).status, 401);
  const form = new FormData();
  form.append('file', new Blob(['picture'], { type: 'image/png' }), 'photo.png');
  const file = await call('storage/upload', { key: demo.keys.secret, method: 'POST', body: form });
  assert.equal(await (await fetch(file.body.url)).text(), 'picture');
  bsvc('collection', 'add', 'bills', '--field', 'seen:String@hook');
  bsvc('hook', 'add', 'bills.create', '--run', 'bills.mjs');
  // The processes learn of it within a second.
  let bill;
  const learnt = Date.now() + 60_000;
  do bill = await post('data/bills', {}, { key: demo.keys.secret });
  while (bill.body.seen === undefined && Date.now() < learnt);
  assert.equal(bill.body.seen, 'ERR_ACCESS_DENIED');
  for (const page of ['/', '/console/', '/api/docs', '/api/client.js', '/api/openapi.json']) {
    assert.equal((await fetch(url + page)).status, 200, page);
  }
  bsvc('init', join(home, 'app'), '--template', 'react');
  assert.ok(existsSync(join(home, 'app', 'bsvc-client', 'client.js')) && existsSync(join(home, 'app', '.gitignore')));
  bsvc('backup', '--out', join(home, 'all.bak'));
  bsvc('restore', join(home, 'all.bak'), '--verify');
  bsvc('doctor');
  server.kill('SIGTERM');
  const [code] = await once(server, 'exit');
  assert.equal(code, 0);
  console.log(`Node.js ${process.version}: all that a first user does works`);
} finally {
  server.kill('SIGKILL');
  rmSync(home, { recursive: true, force: true });
}
