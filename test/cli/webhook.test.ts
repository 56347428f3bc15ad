import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openCliHome } from '../helpers/run-cli.js';
import { openWebhookReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.js';

const env = { BSVC_PROJECT: 'shop', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' };

let home: ReturnType<typeof openCliHome>;
let receiver: WebhookReceiver;

beforeEach(async () => {
  home = openCliHome();
  receiver = await openWebhookReceiver();
  await home.bsvc(['project', 'create', 'shop']);
});

afterEach(async () => {
  await receiver.close();
  home.remove();
});

const bsvc = (argv: string[]) => home.bsvc(argv, { env });
const addArgv = (...more: string[]) => ['webhook', 'add', '--url', receiver.url, '--events', 'posts.insert', ...more];

describe('bsvc webhook', () => {
  it('adds one and shows its secret this once', async () => {
    const added = await bsvc(addArgv('--events', 'posts.update,notes.*', '--json'));
    expect(added).toMatchObject({ code: 0, stderr: '' });
    const webhook = added.json<{ id: string; secret: string; created: boolean }>();
    expect(webhook).toMatchObject({
      url: receiver.url,
      events: ['posts.insert', 'posts.update', 'notes.*'],
      secret: expect.stringMatching(/^whsec_/),
      created: true,
    });
    const listed = await bsvc(['webhook', 'list', '--json']);
    expect(listed.json()).toMatchObject([{ id: webhook.id, enabled: true }]);
    expect(listed.stdout).not.toContain('whsec_');
    // It may come later, or is a mistake.
    const events = ['--events', 'posts.*,*.delete,nope.insert'];
    expect((await bsvc(['webhook', 'edit', webhook.id, ...events])).stdout).toMatch(
      /\nThere is no collection posts yet: .*\nThere is no collection nope yet: its events come once there is one\.\n$/,
    );
    expect((await bsvc(['collection', 'add', 'nope', '--flexible'])).code).toBe(0);
    expect((await bsvc(['webhook', 'edit', webhook.id, ...events, '--json'])).json()).toMatchObject({
      absent: ['posts'],
    });
    const again = await bsvc(addArgv('--if-not-exists', '--json'));
    expect(again.json()).toMatchObject({ id: webhook.id, created: false });
    expect(again.json()).not.toHaveProperty('secret');
  });

  it('says with --if-not-exists what of the wish the webhook that is there does not meet', async () => {
    const { id } = (await bsvc(addArgv('--json'))).json<{ id: string }>();
    const ask = async (...more: string[]): Promise<unknown> =>
      (await bsvc(addArgv('--if-not-exists', '--json', ...more))).json<{ unmet: unknown }>();
    expect(await ask()).toMatchObject({ id, created: false, unmet: [] });
    expect(await ask('--events', 'posts.update,notes.*')).toMatchObject({
      unmet: ['+ posts.update', '+ notes.*'],
      events: ['posts.insert'],
    });
    expect(await ask('--description', 'search')).toMatchObject({ unmet: ['description: none -> search'] });
    await bsvc(['webhook', 'edit', id, '--description', 'orders']);
    expect(await ask('--description', 'search')).toMatchObject({ unmet: ['description: orders -> search'] });
    expect(await ask('--description', 'orders')).toMatchObject({ unmet: [] });
    expect((await bsvc(['webhook', 'list', '--json'])).json()).toMatchObject([{ id, description: 'orders' }]);
    // Another address is another webhook.
    const other = ['webhook', 'add', '--url', `${receiver.url}/other`, '--events', '*', '--if-not-exists', '--json'];
    expect((await bsvc(other)).json()).toMatchObject({ created: true });
  });

  it('takes a description of 200 characters at most', async () => {
    expect((await bsvc(addArgv('--description', 'x'.repeat(200)))).code).toBe(0);
    expect(await bsvc(addArgv('--description', 'x'.repeat(201)))).toMatchObject({
      code: 1,
      stderr: 'bsvc: A description has at most 200 characters.\n',
    });
  });

  it('says what is wrong: exit 1 for what is refused, exit 2 for what is missing', async () => {
    const refused = await home.bsvc(['webhook', 'add', '--url', 'https://127.0.0.1/', '--events', '*'], {
      env: { BSVC_PROJECT: 'shop' },
    });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/not a public address.*BSVC_WEBHOOK_ALLOW_PRIVATE/);
    const plain = ['webhook', 'add', '--url', 'http://example.com/', '--events', '*'];
    expect((await home.bsvc(plain, { env: { BSVC_PROJECT: 'shop' } })).stderr).toBe(
      'bsvc: The url must be an https:// address of at most 2048 characters; http and private addresses only where BSVC_WEBHOOK_ALLOW_PRIVATE=true is set, for the server and for this command.\n',
    );
    expect((await bsvc(['webhook', 'add', '--url', receiver.url])).code).toBe(2);
    expect((await bsvc(['webhook', 'add', '--events', '*'])).code).toBe(2);
    expect(await bsvc(addArgv('--strict'))).toMatchObject({
      code: 1,
      stderr: 'bsvc: There is no collection "posts" in this project.\n',
    });
    expect(await bsvc(addArgv('--events', 'posts'))).toMatchObject({ code: 1, stderr: expect.stringMatching(/posts/) });
    for (let n = 0; n < 3; n++) await bsvc(addArgv());
    expect(await bsvc(addArgv())).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^bsvc: Webhook limit reached\. Remove one/),
    });
  });

  it('tests, lists the deliveries, replays one, rotates, edits and removes', async () => {
    const { id } = (await bsvc(addArgv('--json'))).json<{ id: string }>();
    expect(await bsvc(['webhook', 'test', id])).toMatchObject({ code: 0, stdout: 'test.ping: delivered (200).\n' });
    receiver.answer = (response) => void response.writeHead(503).end();
    const failed = await bsvc(['webhook', 'test', id]);
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringMatching(/The receiver answered 503/) });
    const deliveries = (await bsvc(['webhook', 'deliveries', id, '--json'])).json<{ id: string }[]>();
    expect(deliveries).toMatchObject([{ state: 'failed' }, { state: 'delivered' }]);
    expect(await bsvc(['webhook', 'replay', id, deliveries[0]!.id])).toMatchObject({ code: 0 });
    const jobs = (await bsvc(['jobs', '--json'])).json<{ id: string; name: string }[]>();
    expect(jobs).toMatchObject([{ name: 'webhooks.deliver', state: 'queued' }]);
    expect((await bsvc(['webhook', 'rotate-secret', id, '--quiet'])).stdout).toMatch(/^whsec_\S+\n$/);
    expect(await bsvc(['webhook', 'edit', id, '--disable'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('1 delivery waits and fails with it.'),
    });
    const kept = await bsvc(['webhook', 'edit', id, '--disable', '--keep', '--json']);
    expect(kept.json()).toMatchObject({ enabled: false, keepsWaiting: true });
    expect((await bsvc(['webhook', 'edit', id, '--keep'])).code).toBe(2);
    expect((await bsvc(['webhook', 'edit', id, '--disable', '--keep', '--drop'])).code).toBe(2);
    const edited = await bsvc(['webhook', 'edit', id, '--disable', '--yes', '--json']);
    expect(edited.json()).toMatchObject({ enabled: false, keepsWaiting: false });
    expect((await bsvc(['webhook', 'list', '--json'])).json()).toMatchObject([{ enabled: false }]);
    expect((await bsvc(['webhook', 'edit', id, '--enable', '--disable'])).code).toBe(2);
    expect((await bsvc(['webhook', 'remove', id])).code).toBe(2);
    expect(await bsvc(['webhook', 'remove', id, '--yes'])).toMatchObject({ code: 0 });
    expect(await bsvc(['webhook', 'test', id])).toMatchObject({ code: 1, stderr: expect.stringMatching(/no webhook/) });
  });
});

describe('bsvc jobs', () => {
  it('refuses a retry of nothing', async () => {
    expect((await bsvc(['jobs', '--retry', 'dead', '--limit', '3'])).code).toBe(2);
    expect(await bsvc(['jobs', '--retry', '0123456789abcdef01234567'])).toMatchObject({ code: 1 });
    expect(await bsvc(['jobs', '--retry', 'dead'])).toMatchObject({ code: 0, stdout: 'There are no dead jobs.\n' });
  });
});
