import { Agent, request } from 'node:http';
import { loadavg } from 'node:os';
import { openApp } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import { addCollection } from '../../src/features/collections/add-collection.js';
import { changeProject } from '../../src/features/declaration/plan-projects.js';
import { findPendingEmail, openCode } from '../../src/features/users/codes/one-time-code.js';
import { totpCode } from '../../src/features/users/factors/totp.js';
import { openLogger } from '../../src/platform/observe/logger.js';
import { migrate } from '../../src/migrations/migrate.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { startService } from '../helpers/run-binary.js';
import { openAuthenticator, type SoftAuthenticator } from '../helpers/soft-authenticator.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { compareAddresses } from './account-addresses.js';
import { threadMicros } from './process-cost.js';

/*
 * What the ways in cost (accounts.md 6): processor time of whole requests, of all threads of the server; the median of
 * several interleaved blocks, after some that are not counted, as a server in use has its code compiled. `me` and lists
 * are compared with those of a project that has switched nothing on. Linux only.
 *
 * npm run bench accounts -- 7 40 200  blocks, sign-ins of a block (requests: ten times as many), calls by each address
 * npm run bench accounts -- 0         only whether times tell which addresses have an account
 */

const BLOCKS = Number(process.argv[2] ?? 7);
const SIGN_INS = Number(process.argv[3] ?? 40);
const CALLS = Number(process.argv[4] ?? 200);
const REQUESTS = 10 * SIGN_INS;
/** Two projects take turns within a block, so that what happens beside it meets both. */
const TURNS = 10;
const WARM_BLOCKS = 10;
const SIGN_IN_GOAL_MICROS = 3_000;
const SAME_GOAL = 0.02;
const SITE = { rpId: 'shop.example', origin: 'https://app.shop.example' };
const PASSWORD = 'correct horse battery';

const dir = await openTempDir();
const env = {
  BSVC_DATA_DIR: dir.path,
  BSVC_DURABILITY: 'relaxed',
  BSVC_LOG_LEVEL: 'warn',
  BSVC_BCRYPT_COST: '4',
  BSVC_RATE_LIMIT: 'off',
  BSVC_AUTH_RATE_LIMIT: 'off',
  BSVC_ANONYMOUS_RATE_LIMIT: 'off',
};
const { config } = loadConfig([{ source: 'bench', values: env }]);
const app = await openApp(config, openLogger({ level: 'warn', format: 'json' }));
await migrate(app.db);
const plain = await buildProject(app, 'plain');
const made = await buildProject(app, 'every way in');
const signIn = {
  codeLogin: 'signup' as const,
  mfa: 'optional' as const,
  anonymous: true,
  passkeys: { rpId: SITE.rpId, origins: [SITE.origin] },
};
const full: TestProject = { ...made, project: await changeProject(app, made.project, { signIn }) };
for (const { project } of [plain, full]) {
  const fields = [{ name: 'text', type: 'String' as const }];
  await addCollection(app, project, { name: 'notes', fields, rls: { mode: 'private', ownerField: 'userId' } });
}
const server = await startService(['serve', '--port', '0', '--no-worker'], env);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const spent = new Map<string, number[]>();
let accounts = 0;

interface Account {
  email: string;
  token: string;
}

const [ofPlain, ofFull] = [await openAccount(plain), await openAccount(full)];
for (const [{ publishable }, { token }] of [[plain, ofPlain] as const, [full, ofFull] as const]) {
  for (let n = 0; n < 30; n++) await ask('POST', '/data/notes', publishable, { text: `note ${n}` }, token);
}
const device = await enrolPasskey(await openAccount(full));

for (let block = BLOCKS === 0 ? 0 : -WARM_BLOCKS; block < BLOCKS; block++) {
  if (block === 0) spent.clear();
  const codes = await Promise.all(Array.from({ length: SIGN_INS }, () => prepareCode()));
  await measure('code sign-in', codes, (body) => ask('POST', '/userAuth/login/code/verify', full.publishable, body));
  const answers: object[] = [];
  for (let n = 0; n < SIGN_INS; n++) answers.push(device.get(await challenge()));
  await measure('passkey sign-in', answers, (response) =>
    ask('POST', '/userAuth/login/passkey', full.publishable, { response }),
  );
  const factors: object[] = [];
  for (let n = 0; n < Math.ceil(SIGN_INS / 4); n++) factors.push(await prepareFactor());
  await measure('second factor', factors, (body) => ask('POST', '/userAuth/login/mfa', full.publishable, body));
  const projects = [
    ['plain', plain.publishable, ofPlain.token],
    ['full', full.publishable, ofFull.token],
  ] as const;
  for (const [what, path] of [['me', '/userAuth/me'] as const, ['list', '/data/notes?limit=20'] as const]) {
    const sums = new Map<string, number>();
    for (let turn = 0; turn < TURNS; turn++) {
      for (const [name, key, token] of turn % 2 === 0 ? projects : [...projects].reverse()) {
        const before = threadMicros(server.ready.pid);
        for (let n = 0; n < REQUESTS / TURNS; n++) await ask('GET', path, key, undefined, token);
        sums.set(name, (sums.get(name) ?? 0) + threadMicros(server.ready.pid) - before);
      }
    }
    for (const [name, micros] of sums) note(`${what} ${name}`, micros / REQUESTS);
  }
}
console.log(`load ${loadavg()[0]!.toFixed(1)}; processor µs of a request, median of ${BLOCKS} blocks`);
for (const what of BLOCKS === 0 ? [] : ['code sign-in', 'passkey sign-in', 'second factor']) {
  const micros = median(spent.get(what)!);
  const isMet = micros <= SIGN_IN_GOAL_MICROS ? 'met' : 'missed';
  console.log(`${what.padEnd(18)}${micros.toFixed(0).padStart(6)}   goal ${SIGN_IN_GOAL_MICROS} ${isMet}`);
}
for (const what of BLOCKS === 0 ? [] : ['me', 'list']) {
  const [without, all] = [spent.get(`${what} plain`)!, spent.get(`${what} full`)!];
  const ratio = median(all.map((micros, block) => micros / without[block]!));
  const isMet = Math.abs(ratio - 1) <= SAME_GOAL ? 'met' : 'missed';
  const told = `${median(without).toFixed(0).padStart(6)} → ${median(all).toFixed(0)}`;
  console.log(`${what.padEnd(18)}${told}   ${ratio.toFixed(3)}x, goal 1 ± ${SAME_GOAL} ${isMet}`);
}
await compareAddresses(
  CALLS,
  async (method, path, body, token) => (await send(method, `/userAuth/${path}`, full.publishable, body, token)).status,
  server.ready.pid,
  (email) => ask('POST', '/userAuth/users', full.secret, { email, password: PASSWORD, emailVerified: true }),
  async () => (await ask('POST', '/userAuth/signup/anonymous', full.publishable, {})).accessToken as string,
);
agent.destroy();
await server.stop();
await app.close();
await dir.remove();

async function measure<T>(what: string, inputs: readonly T[], run: (input: T) => Promise<unknown>): Promise<void> {
  const before = threadMicros(server.ready.pid);
  for (const input of inputs) await run(input);
  note(what, (threadMicros(server.ready.pid) - before) / inputs.length);
}

function note(what: string, micros: number): void {
  spent.set(what, [...(spent.get(what) ?? []), micros]);
}

/** An account with a proven address, signed in. */
async function openAccount({ publishable, secret }: TestProject): Promise<Account> {
  const email = `user${++accounts}@example.test`;
  await ask('POST', '/userAuth/users', secret, { email, password: PASSWORD, emailVerified: true });
  const { accessToken } = await ask('POST', '/userAuth/login', publishable, { email, password: PASSWORD });
  return { email, token: accessToken as string };
}

async function prepareCode(): Promise<object> {
  const { email } = await openAccount(full);
  const opened = await openCode(app, full.project._id, 'login', email, () => Promise.resolve([]), { network: '' });
  return { email, otp: (await findPendingEmail(app, (opened as { id: string }).id))!.code };
}

async function challenge(): Promise<{ challenge: string }> {
  return (await ask('POST', '/userAuth/login/passkey/options', full.publishable)) as { challenge: string };
}

async function enrolPasskey({ token }: Account): Promise<SoftAuthenticator> {
  const options = await ask('POST', '/userAuth/passkeys/options', full.publishable, {}, token);
  const made = openAuthenticator(SITE.rpId, SITE.origin);
  const response = made.create(options as { challenge: string });
  await ask('POST', '/userAuth/passkeys', full.publishable, { response }, token);
  return made;
}

/** An account whose sign-in waits for a code of its app. */
async function prepareFactor(): Promise<object> {
  const { email, token } = await openAccount(full);
  const begun = await ask('POST', '/userAuth/mfa/totp', full.publishable, {}, token);
  const { secret } = begun.data as { secret: string };
  // A code is good once, and a step before and after now: the sign-in has the next one.
  const code = totpCode(secret, Date.now() - 30_000);
  await ask('POST', '/userAuth/mfa/totp/confirm', full.publishable, { code }, token);
  const refused = await ask('POST', '/userAuth/login', full.publishable, { email, password: PASSWORD }, undefined, 401);
  const { mfaToken } = refused.data as { mfaToken: string };
  return { mfaToken, totp: totpCode(secret, Date.now()) };
}

async function ask(
  method: string,
  path: string,
  key: string,
  body?: object,
  token?: string,
  expected?: number,
): Promise<Record<string, unknown>> {
  const { status, text } = await send(method, path, key, body, token);
  if (expected === undefined ? status >= 300 : status !== expected) {
    throw new Error(`${method} ${path}: ${status} ${text}`);
  }
  return JSON.parse(text) as Record<string, unknown>;
}

function send(
  method: string,
  path: string,
  key: string,
  body?: object,
  token?: string,
): Promise<{ status: number; text: string }> {
  const headers = {
    'x-api-key': key,
    'content-type': 'application/json',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  return new Promise((resolve, reject) => {
    const sent = request(`${server.ready.url}/api${path}`, { method, agent, headers }, (reply) => {
      let text = '';
      reply.setEncoding('utf8').on('data', (part: string) => (text += part));
      reply.on('end', () => resolve({ status: reply.statusCode ?? 0, text }));
    });
    sent.on('error', reject).end(body && JSON.stringify(body));
  });
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
