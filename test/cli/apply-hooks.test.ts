import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { openCliHome } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const bsvc = (argv: string[]) => home.bsvc(argv, { env: { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });

const HOOKS = `
      - event: orders.create
        run: ./hooks/orders.mjs
      - event: orders.delete
        url: http://127.0.0.1:9/orders
        onFailure: allow
        timeout: 2000
      - event: users.deliver
        run: hooks/orders.mjs#sms
      - event: after.orders.create
        run: hooks/orders.mjs`;
const file = (hooks: string, ownCode = 'ownCode: { env: [STRIPE_KEY] }'): string => `format: bsvc/1
projects:
  - name: shop
    collections: [{ name: orders, fields: ["n:Number"] }]
    ${ownCode}
    hooks: ${hooks}
`;

interface Change {
  action: string;
  kind: string;
  name: string;
  what?: string[];
  secret?: string;
}

async function apply(text: string, ...words: string[]): Promise<Change[]> {
  mkdirSync(join(home.dir, 'hooks'), { recursive: true });
  writeFileSync(join(home.dir, 'bsvc.yaml'), text);
  const outcome = await bsvc(['apply', '--json', '--yes', ...words]);
  if (outcome.code !== 0) throw new Error(outcome.stderr);
  return outcome.json<{ changes: Change[] }>().changes;
}
const said = (changes: readonly Change[]): string[] =>
  changes.map(({ action, kind, name }) => `${action} ${kind} ${name}`);
const list = async () =>
  (await bsvc(['hook', 'list', '--project', 'shop', '--json'])).json<
    { event: string; run: string; timeoutMs: number }[]
  >();

beforeEach(() => apply(file('[]', ''), '--prune'));

describe('hooks of a declaration', () => {
  it('are made at once, with the secret of an address, and nothing the second time', async () => {
    const made = await apply(file(HOOKS));
    expect(said(made)).toEqual([
      'change project shop',
      'add hook shop/orders.create',
      'add hook shop/orders.delete',
      'add hook shop/users.deliver',
      'add hook shop/after.orders.create',
    ]);
    expect(made.flatMap(({ secret }) => secret ?? [])).toEqual([expect.stringMatching(/^whsec_/)]);
    expect(await apply(file(HOOKS), '--prune')).toEqual([]);
    const runs = (await list()).map(({ event, run }) => `${event} ${run}`);
    expect(runs).toEqual([
      'orders.create orders.mjs#orders.create',
      'orders.delete null',
      'users.deliver orders.mjs#sms',
      'after.orders.create orders.mjs#after.orders.create',
    ]);
    // What hears of events is declared as a hook alone.
    expect(await apply(`${file(HOOKS)}    webhooks: []\n`, '--prune')).toEqual([]);
  });

  it('are changed where they differ, and an address that stays keeps its secret', async () => {
    await apply(file(HOOKS));
    const next = HOOKS.replace('timeout: 2000', 'timeout: 900').replace('orders.mjs#sms', 'orders.mjs#whatsapp');
    const changed = await apply(file(next, 'ownCode: { env: [STRIPE_KEY, OTHER] }'));
    expect(changed.map(({ name, what }) => [name, what])).toEqual([
      ['shop', ['variables of own code: STRIPE_KEY -> OTHER, STRIPE_KEY']],
      ['shop/orders.delete', ['timeout: 2000 -> 900 ms']],
      ['shop/users.deliver', ['orders.mjs#sms -> orders.mjs#whatsapp']],
    ]);
    expect(changed.flatMap(({ secret }) => secret ?? [])).toEqual([]);
    expect((await list()).find(({ event }) => event === 'orders.delete')).toMatchObject({ timeoutMs: 900 });
  });

  it('move to another folder together with their project', async () => {
    await apply(file(HOOKS));
    const moved = HOOKS.replaceAll('hooks/orders.mjs', 'code/orders.mjs').replace('#sms', '#whatsapp');
    expect((await apply(file(moved))).map(({ name, what }) => [name, what])).toEqual([
      ['shop', [`own code: ${join(home.dir, 'hooks')} -> ${join(home.dir, 'code')}`]],
      ['shop/users.deliver', ['orders.mjs#sms -> orders.mjs#whatsapp']],
    ]);
  });

  it('stay where the list does not name them, unless --prune drops them', async () => {
    await apply(file(HOOKS));
    expect(await apply(file('[]'))).toEqual([]);
    expect(said(await apply(file('[]'), '--prune'))).toHaveLength(4);
    expect(await list()).toEqual([]);
  });

  it('are in the exported file, which changes nothing where it is applied', async () => {
    await apply(file(HOOKS));
    expect((await bsvc(['project', 'export', 'shop', '--out', join(home.dir, 'out.yaml')])).code).toBe(0);
    const exported = readFileSync(join(home.dir, 'out.yaml'), 'utf8');
    expect(exported).toContain('after.orders.create');
    expect(exported).not.toContain('whsec_');
    expect(await apply(exported, '--prune')).toEqual([]);
  });

  it.each([
    ['[{ event: orders.create, run: a.mjs }, { event: orders.create, run: a.mjs }]', 'declared twice'],
    ['[{ event: orders.create }]', 'either a url or a file'],
    ['[{ event: orders.create, run: a.mjs, url: "https://a.example" }]', 'either a url or a file'],
    ['[{ event: orders.create, run: a.sh }]', 'is JavaScript'],
    ['[{ event: orders.create, url: "no url" }]', 'is no url'],
    ['[{ event: orders.explode, run: a.mjs }]', 'is not an event of hooks'],
    ['[{ event: nope.create, run: a.mjs }]', 'no collection "nope"'],
    ['[{ event: after.nope.create, run: a.mjs }]', 'no collection "nope"'],
    ['[{ event: after.orders.create, url: "https://a.example" }]', 'declared under webhooks'],
    ['[{ event: after.orders.create, run: a.mjs, timeout: 900 }]', 'no timeout'],
    ['[{ event: orders.create, run: a.mjs, timeout: 1 }]', 'milliseconds'],
    ['[{ event: orders.create, run: a/a.mjs }, { event: orders.delete, run: b/a.mjs }]', 'in one folder'],
  ])('are refused before anything is changed: %s', async (hooks, message) => {
    await expect(apply(file(hooks, 'plan: pro'))).rejects.toThrow(message);
    expect((await bsvc(['project', 'show', 'shop', '--json'])).json<{ plan: string }>().plan).toBe('free');
  });

  it('come with schedules, which are added, changed and dropped by their names', async () => {
    const timed = (...schedules: string[]) => `${file('[]', '')}    schedules: [${schedules.join(', ')}]\n`;
    const at = (name: string, hour: number) => `{ name: ${name}, cron: "0 ${hour} * * *", url: "http://127.0.0.1:9/" }`;
    const made = await apply(timed(at('nightly', 3), at('early', 5)));
    expect(made.map(({ secret, ...change }) => [change, secret?.slice(0, 6)])).toEqual([
      [{ action: 'add', kind: 'schedule', name: 'shop/nightly' }, 'whsec_'],
      [{ action: 'add', kind: 'schedule', name: 'shop/early' }, 'whsec_'],
    ]);
    expect(await apply(timed(at('nightly', 4)), '--prune')).toEqual([
      { action: 'change', kind: 'schedule', name: 'shop/nightly', what: ['cron: 0 3 * * * -> 0 4 * * *'] },
      { action: 'drop', kind: 'schedule', name: 'shop/early' },
    ]);
    expect(await apply(timed(at('nightly', 4)), '--prune')).toEqual([]);
    expect(said(await apply(timed(), '--prune'))).toEqual(['drop schedule shop/nightly']);
    await expect(apply(timed(at('n', 1), at('n', 1)))).rejects.toThrow('The schedule "n" is declared twice');
  });

  it('see no variable of the service', async () => {
    await expect(apply(file('[]', 'ownCode: { env: [BSVC_SECRET_KEY] }'))).rejects.toThrow('cannot be given');
    await expect(apply(file('[]', 'ownCode: { env: [RESEND_API_KEY] }'))).rejects.toThrow('cannot be given');
  });
});

it('schedule add, list and remove know a schedule by its name, and hook test calls it now', async () => {
  const inShop = ['--project', 'shop'];
  const words = ['nightly', ...inShop, '--url', 'http://127.0.0.1:9/nightly', '--tz', 'Europe/Berlin'];
  const timeless = await bsvc(['schedule', 'add', ...words]);
  expect(timeless).toMatchObject({ code: 2, stderr: expect.stringContaining('add --cron <expression>') as string });
  const timed = [...words, '--cron', '0 3 * * *', '--missed', 'skip'];
  const added = (await bsvc(['schedule', 'add', ...timed, '--json'])).json();
  expect(added).toMatchObject({ name: 'nightly', timeZone: 'Europe/Berlin', missed: 'skip', created: true });
  expect((await bsvc(['schedule', 'add', ...timed, '--if-not-exists'])).stdout).toContain('schedule nightly already');
  expect((await bsvc(['schedule', 'list', ...inShop, '--json'])).json()).toMatchObject([
    { name: 'nightly', calls: [] },
  ]);
  const called = await bsvc(['hook', 'test', 'nightly', ...inShop]);
  expect(called).toMatchObject({ code: 1, stderr: expect.stringContaining('The hook failed') as string });
  const documented = await bsvc(['hook', 'test', 'nightly', ...inShop, '--document', '{}']);
  expect(documented).toMatchObject({ code: 2, stderr: expect.stringContaining('goes with an event') as string });
  const removed = await bsvc(['schedule', 'remove', 'nightly', ...inShop, '--yes']);
  expect(removed.stdout).toBe('The schedule nightly is removed.\n');
  expect((await bsvc(['schedule', 'list', ...inShop, '--json'])).json()).toEqual([]);
});
