import request from 'supertest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GUIDES, GUIDES_PREFIX, type GuideSection } from '../../world/app.js';
import { CHROMIUM, drivePage, type DrivenPage } from '../../helpers/chromium.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp();

describe('GET /api/docs/guides.json', () => {
  it('has every heading of every guide under an address that exists', async () => {
    const { body } = await request(test.server).get('/api/docs/guides.json').expect(200);
    const sections = body as GuideSection[];
    expect(new Set(sections.map(({ address }) => address.split('#')[0]))).toEqual(
      new Set(GUIDES.map(({ name }) => name)),
    );
    for (const { name } of GUIDES) {
      const { text } = await request(test.server).get(`${GUIDES_PREFIX}/${name}`);
      const ids = [...text.matchAll(/<h[23] id="([^"]+)"/g)].map(([, id]) => `${name}#${id}`);
      const of = sections.filter(({ address }) => address === name || address.startsWith(`${name}#`));
      expect(of.map(({ address }) => address)).toEqual([name, ...ids]);
      for (const { text: said } of of) expect(said).not.toMatch(/```|\*\*|\]\(/);
    }
  });
});

/** What readers type, and the guide that comes first. */
const SUBJECTS: Readonly<Record<string, string>> = {
  auth: 'session auth authentication login oauth magic·link otp 2fa mfa two-factor passkey webauthn anonymous invite google social·login sign·up',
  rules: 'roles permissions access·control rls rules cors api·keys',
  'own-server': 'jwt refresh·token server',
  data: 'schema validation unique populate join filter sort pagination cursor search aggregation geo near',
  writes: 'relations references transaction batch increment upsert bulk import export csv',
  realtime: 'realtime subscribe websocket sse live·list latest',
  client: 'typescript types sdk openapi',
  offline: 'offline indexeddb sync conflicts',
  files: 'file·upload images private·files s3 bucket cdn',
  email: 'email smtp template newsletter',
  webhooks: 'webhook',
  'own-code': 'cron schedule function hook',
  deploy: 'deploy proxy nginx caddy https tls domain',
  'getting-started': 'docker node self-host production',
  scale: 'systemd redis scale high·availability',
  settings: 'environment·variables settings',
  backup: 'backup restore migrate upgrade',
  mongodb: 'mongodb replica·set',
  monitoring: 'monitoring metrics prometheus opentelemetry logs',
  console: 'audit',
  limits: 'rate·limit quota limits',
  react: 'react next.js vue react·native',
  declaration: 'ci',
  troubleshooting: 'troubleshooting errors',
  moving: 'pocketbase supabase parse',
  firestore: 'firebase firestore onsnapshot',
  realm: 'realm device·sync rxdb',
  instantdb: 'instantdb tanstack·db',
};
const QUESTIONS: readonly [typed: string, guide: string][] = [
  ...Object.entries(SUBJECTS).flatMap(([guide, words]) =>
    words.split(' ').map((word): [string, string] => [word.replace('·', ' '), guide]),
  ),
  ['sign in with Google', 'auth'],
  ['keep a file private', 'files'],
  ['show the latest 50 live', 'realtime'],
  ['deploy with HTTPS', 'deploy'],
  ['restore a backup', 'backup'],
  ['why is this 403', 'troubleshooting'],
];

describe.skipIf(!CHROMIUM)('the search of the docs', () => {
  let page: DrivenPage;
  const type = (words: string): Promise<unknown> =>
    page.evaluate(
      `(() => { const input = document.querySelector('#search'); input.value = ${JSON.stringify(words)}; input.dispatchEvent(new Event('input')); })()`,
    );
  const found = (): Promise<string[]> =>
    page.evaluate(`[...document.querySelectorAll('.found a')].map((link) => link.getAttribute('href'))`);

  beforeAll(async () => {
    page = await drivePage(`${test.url}/api/docs`);
    await page.until(`document.querySelector('.search') && !document.querySelector('.search').hidden`);
  });
  afterAll(() => page?.close());

  it('leads from what readers call a subject to the guide about it first', async () => {
    const wrong: string[] = [];
    for (const [words, guide] of QUESTIONS) {
      await type('');
      await page.until(`document.querySelector('.found').hidden`);
      await type(words);
      await page.until(`!document.querySelector('.found').hidden || !document.querySelector('.none').hidden`);
      const [first = 'nothing'] = await found();
      if (!first.startsWith(`${GUIDES_PREFIX}/${guide}`)) wrong.push(`${words}: ${first} instead of ${guide}`);
    }
    expect(wrong).toEqual([]);
  });

  it('finds guides beside operations, from the reference', async () => {
    await type('invite');
    await page.until(`document.querySelectorAll('.found a').length > 0`);
    expect((await found()).some((href) => href.startsWith('/api/docs/guides/auth'))).toBe(true);
    expect(await page.evaluate(`document.querySelectorAll('.found mark').length`)).toBeGreaterThan(0);
    await type('project webhooks register');
    await page.until(`document.querySelector('.found a strong')?.textContent.includes('Register a webhook')`);
    expect(await found()).toContain(`${test.url}/api/docs/operators#addWebhook`);
    await type('a.*(b[');
    await page.until(`!document.querySelector('.none').hidden`);
    await type('');
    await page.until(`document.querySelector('.found').hidden && !document.querySelector('.intro').hidden`);
  });

  it('leads from an address of an operation to the page that has it', async () => {
    await page.visit(`${test.url}/api/docs#addWebhook`);
    await page.until(`document.querySelector('details.operation[open]')?.id === 'addWebhook'`);
    expect(await page.evaluate('location.pathname')).toBe('/api/docs/operators');
  });

  it('finds other guides from a guide, and leads there', async () => {
    await page.visit(`${test.url}${GUIDES_PREFIX}/email`);
    await page.until(`document.querySelector('.search') && !document.querySelector('.search').hidden`);
    await type('membership rules board');
    await page.until(`document.querySelectorAll('.found a').length > 0`);
    const [first] = await found();
    await page.evaluate(`document.querySelector('.found a').click()`);
    await page.until(
      `location.pathname + location.hash === ${JSON.stringify(first)} && document.querySelector('article')`,
    );
  });
});
