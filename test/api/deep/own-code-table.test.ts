import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Webhook as Standard } from 'standardwebhooks';
import supertest from 'supertest';
import { Webhook as Svix } from 'svix';
import { afterEach, describe, expect, it } from 'vitest';
import { addAfter, addHook, listCalls } from '../../world/hooks.js';
import { addWebhook } from '../../world/projects.js';
import { buildCollection, buildProject, type TestProject } from '../../helpers/build-project.js';
import { settleWebhooks } from '../../helpers/build-webhook.js';
import { openTempDir } from '../../helpers/temp-dir.js';
import { use, useTestApp } from '../../helpers/use.js';
import { buildEmail, countMails, openUserClient, PASSWORD } from '../../helpers/user-client.js';
import { openWebhookReceiver, type WebhookReceiver } from '../../helpers/webhook-receiver.js';
/*
 * Every way in which a receiver or a file can go wrong, for every kind of event: what asked is refused or tried again,
 * nothing half-done is stored, and another project notices nothing.
 */

const folder = use(await openTempDir());
const test = await useTestApp({
  settings: {
    ...{ BSVC_HOOKS_DIR: folder.path, BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_BCRYPT_COST: '4' },
    ...{ BSVC_RATE_LIMIT: 'off', BSVC_AUTH_RATE_LIMIT: 'off' },
  },
  constants: { hooksMemoryMb: 40 },
});
test.app.ownCode.serveAt(test.url);
const neighbour = await buildProject(test.app);
await buildCollection(test.app, neighbour.project, { name: 'orders', rules: { create: 'anyone' } });
afterEach(() => test.app.ownCode.restart());

/** A project with what the events are about. */
async function openShop() {
  const owner = await buildProject(test.app);
  await buildCollection(test.app, owner.project, { name: 'orders', rules: { read: 'anyone', create: 'anyone' } });
  const email = buildEmail();
  const client = openUserClient(test, owner.publishable);
  await client.signUp({ email });
  await countMails(test, email);
  return { ...owner, client, email };
}
type Shop = Awaited<ReturnType<typeof openShop>>;

const insert = ({ publishable }: TestProject) =>
  supertest(test.url).post('/api/data/orders').set('x-api-key', publishable).send({ n: 1 });
const count = async ({ secret }: TestProject): Promise<number> => {
  const { body } = await supertest(test.url).get('/api/data/orders?count=true').set('x-api-key', secret);
  return (body as { data: { count: number } }).data.count;
};
const outcome = ({ status, body }: { status: number; body: unknown }): string =>
  `${status} ${(body as { code?: string }).code ?? ''}`.trim();

interface Kind {
  /** What the answer of a good handler is. */
  good: string;
  /** Also by an address, as the events that addresses are told of are. */
  byUrl: boolean;
  /** Makes the event happen; answers what came of it, in words. */
  happen: (shop: Shop) => Promise<string>;
  fails: string;
  works: string;
}

const KINDS: Readonly<Record<string, Kind>> = {
  'orders.create': {
    ...{ good: '{ allow: true }', byUrl: true, fails: '503 HOOK_FAILED, 0 stored', works: '201, 1 stored' },
    happen: async (shop) => `${outcome(await insert(shop))}, ${await count(shop)} stored`,
  },
  'users.signup': {
    ...{ good: '{ allow: true }', byUrl: true, fails: '503 HOOK_FAILED, then 401', works: '201, then 200' },
    async happen({ client }) {
      const email = buildEmail();
      const made = outcome(await client.post('/signup', { email, password: PASSWORD }));
      return `${made}, then ${(await client.logIn(email)).status}`;
    },
  },
  'users.login': {
    ...{ good: '{ allow: true }', byUrl: true, fails: '503 HOOK_FAILED', works: '200' },
    happen: async ({ client, email }) => outcome(await client.logIn(email)),
  },
  'users.deliver': {
    ...{ good: '{ delivered: true }', byUrl: true, fails: '200, 1 mailed, failed', works: '200, 1 mailed, delivered' },
    async happen(shop) {
      const asked = outcome(await shop.client.post('/request-password-reset', { email: shop.email }));
      const mailed = await countMails(test, shop.email);
      return `${asked}, ${mailed} mailed, ${await lastState(shop)}`;
    },
  },
  'POST /quote': {
    ...{ good: '{ body: 1 }', byUrl: false, fails: '503 HOOK_FAILED', works: '200' },
    happen: async ({ publishable }) =>
      outcome(await supertest(test.url).post('/api/run/quote').set('x-api-key', publishable)),
  },
  'after.orders.create': {
    ...{ good: 'undefined', byUrl: true, fails: '201, 1 stored, pending', works: '201, 1 stored, delivered' },
    async happen(shop) {
      const written = outcome(await insert(shop));
      await settleWebhooks(test.app);
      return `${written}, ${await count(shop)} stored, ${await lastState(shop)}`;
    },
  },
};

/** The id by which the log keeps what the hook or handler of each shop was asked. */
const owners = new Map<string, Parameters<typeof listCalls>[1]>();

async function lastState({ project }: Shop): Promise<string> {
  await test.app.backgroundTasks.idle();
  const [last] = await listCalls(test.app, owners.get(project._id.toHexString())!, 1);
  return last?.state ?? 'none';
}

/** Has what the event calls be asked; answers the secret of an address. */
async function listen(
  shop: Shop,
  event: string,
  target: { url: string } | { run: string },
): Promise<string | null | undefined> {
  const key = shop.project._id.toHexString();
  if (event.startsWith('POST')) return null;
  if (!event.startsWith('after.')) {
    const { hook, secret } = await addHook(test.app, shop.project, { event, ...target, timeoutMs: 3_000 });
    owners.set(key, hook.id);
    return secret;
  }
  const added: { webhook: { id: typeof shop.project._id }; secret?: string | null } =
    'run' in target
      ? await addAfter(test.app, shop.project, { event, ...target })
      : await addWebhook(test.app, shop.project, { ...target, events: ['orders.insert'] });
  owners.set(key, added.webhook.id);
  return added.secret;
}

type Entry = [event: string, kind: Kind];

/** What comes of each kind: at once, but for those that wait for the jobs of all; meanwhile another project goes on. */
async function forEach(
  kinds: Entry[],
  run: (event: string, kind: Kind, at: number) => Promise<string>,
): Promise<string[]> {
  const results: string[] = [];
  const tell = async (at: number): Promise<void> => {
    const [event, kind] = kinds[at]!;
    results[at] = `${event}: ${await run(event, kind, at)}`;
  };
  const [waited, byJobs] = [false, true].map((isByJob) =>
    [...kinds.keys()].filter((at) => isJob(kinds[at]![0]) === isByJob),
  );
  const running = Promise.all(waited!.map(tell));
  expect(outcome(await insert(neighbour))).toBe('201');
  await running;
  for (const at of byJobs!) await tell(at);
  return results;
}
const isJob = (event: string): boolean => event === 'users.deliver' || event.startsWith('after.');

const FILES: Readonly<Record<string, string>> = {
  'never answers': `await new Promise(() => undefined)`,
  'holds up its thread': `for (;;);`,
  crashes: `setTimeout(() => { throw new Error('later'); }); await new Promise(() => undefined)`,
  'ends itself': `process.exit(0)`,
  'eats memory': `const all = []; for (;;) all.push(new Array(100_000).fill({}))`,
  'leaks buffers': `const all = []; for (;;) { all.push(Buffer.alloc(16 * 1024 * 1024, 1)); await new Promise((next) => setTimeout(next, 5)); }`,
  'floods its log': `for (let n = 0; n < 50_000; n++) console.log('x'.repeat(200)); throw new Error('flooded')`,
  forks: `(await import('node:child_process')).fork('own.mjs')`,
  lies: `return { allow: 'yes', delivered: 1, status: 'ok', pretends: true }`,
  'answers too much': `return { allow: true, delivered: true, body: 'x'.repeat(8_000_000) }`,
  'writes to the service': `(await import('node:fs')).writeSync(3, '{"id":1,"answer":[]}\\n[[\\n'); await new Promise(() => undefined)`,
};
/** An event has reached a handler that returned, or says so, whatever else that says. */
const RETURNS = new Set(['lies', 'writes to the service']);

describe.each(Object.entries(FILES))('a file that %s', (what, code) => {
  it('has what asked it refused or tried again, until it is mended', async () => {
    const kinds = Object.entries(KINDS).filter(([event]) => !(event.startsWith('after.') && RETURNS.has(what)));
    const write = async ({ project }: Shop, event: string, body: string): Promise<void> => {
      const dir = join(folder.path, project.name);
      await mkdir(dir, { recursive: true });
      await writeFile(join(dir, 'own.mjs'), `export default { '${event}': async () => { ${body} } };\n`);
      test.app.ownCode.restart(project._id.toHexString());
    };
    const shops = await Promise.all(kinds.map(openShop));
    const begun = await forEach(kinds, async (event, kind, at) => {
      await write(shops[at]!, event, code);
      await listen(shops[at]!, event, { run: 'own.mjs' });
      return kind.happen(shops[at]!);
    });
    expect(begun).toEqual(kinds.map(([event, { fails }]) => `${event}: ${fails}`));
    const mended = await forEach(kinds, async (event, kind, at) => {
      const shop = isJob(event) ? await openShop() : shops[at]!;
      await write(shop, event, `return ${kind.good};`);
      if (shop !== shops[at]) await listen(shop, event, { run: 'own.mjs' });
      return kind.happen(shop);
    });
    expect(mended).toEqual(kinds.map(([event, { works }]) => `${event}: ${works}`));
  });
});

const RECEIVERS: Readonly<Record<string, WebhookReceiver['answer']>> = {
  hangs: () => undefined,
  'hangs in the middle': (response) => void response.writeHead(200).write('{"allow":'),
  'cuts the connection': (response) => void response.socket!.destroy(),
  lies: (response) => void response.writeHead(200).end('{"allow":"yes","delivered":1}'),
  'answers another status': (response) => void response.writeHead(500).end('{"allow":true,"delivered":true}'),
  redirects: (response) => void response.writeHead(302, { location: '/elsewhere' }).end('{"allow":true}'),
  'answers too much': (response) => void response.writeHead(200).end(`{"allow":true,"x":"${'x'.repeat(9_000_000)}"}`),
  'answers without an end': (response) => {
    response.writeHead(200);
    const more = (): void => void (response.destroyed || response.write('x'.repeat(64 * 1024), more));
    more();
  },
};
/** A webhook asks for a status alone. */
const ENOUGH = new Set(['lies', 'answers too much', 'answers without an end']);

describe.each(Object.entries(RECEIVERS))('a receiver that %s', (what, answer) => {
  it('has what asked it refused or tried again', async () => {
    const receiver = use(await openWebhookReceiver());
    receiver.answer = answer;
    const kinds = Object.entries(KINDS).filter(
      ([event, { byUrl }]) => byUrl && !(event.startsWith('after.') && ENOUGH.has(what)),
    );
    const shops = await Promise.all(kinds.map(openShop));
    const begun = await forEach(kinds, async (event, kind, at) => {
      await listen(shops[at]!, event, { url: receiver.url });
      return kind.happen(shops[at]!);
    });
    expect(begun).toEqual(kinds.map(([event, { fails }]) => `${event}: ${fails}`));
  });
});

describe('a receiver of foreign make', () => {
  const byUrl = Object.entries(KINDS).filter(([, kind]) => kind.byUrl);
  it.each(byUrl)('verifies the calls of %s', async (event, kind) => {
    const receiver = use(await openWebhookReceiver());
    receiver.answer = (response) => void response.writeHead(200).end('{"allow":true,"delivered":true}');
    const shop = await openShop();
    const secret = (await listen(shop, event, { url: receiver.url }))!;
    expect(await kind.happen(shop)).toBe(kind.works);
    const { headers, body } = receiver.received[0]!;
    const told = headers as Record<string, string>;
    for (const verifier of [new Standard(secret), new Svix(secret)]) {
      expect(verifier.verify(body, told)).toMatchObject({
        event: event.startsWith('after.') ? 'orders.insert' : event,
      });
      expect(() => verifier.verify(body.replace('"', ' "'), told)).toThrow();
    }
  });
});
