import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setSocialProvider } from '../world/projects.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { CHROMIUM, drivePage } from '../helpers/chromium.js';
import { openCookieJar } from '../helpers/cookie-jar.js';
import { readExamples, readGuides } from '../helpers/guide-examples.js';
import { findFreePort, listen, type Listening } from '../helpers/listen.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';
import { hasProxy, startProxy, type ProxyName } from '../helpers/proxies.js';
import { openSocialIssuer } from '../helpers/social-issuer.js';
import { buildEmail, PASSWORD } from '../helpers/user-client.js';

const blocks = readExamples(readGuides().get('deploy.md')!);
const configurationOf = (language: string): string => blocks.find((block) => block.language === language)!.text;

/** The guide's configuration, without TLS, on a port of this test. */
const LOCAL: Readonly<Record<ProxyName, (text: string, own: number) => string>> = {
  nginx: (text, own) =>
    text
      .replace('listen 443 ssl;', `listen 127.0.0.1:${own};`)
      .replace(/ *ssl_certificate.*\n/g, '')
      .replace('http {', 'http {\n access_log off;\n'),
  caddy: (text, own) =>
    `{\n admin off\n auto_https off\n}\n${text.replace(/^ap[ip]\.example\.com \{/, `http://127.0.0.1:${own} {`)}`,
  haproxy: (text, own) =>
    text
      .replace(/bind :443 ssl crt \S+/, `bind 127.0.0.1:${own}`)
      .replace('X-Forwarded-Proto https', 'X-Forwarded-Proto http'),
};
const LANGUAGES: Readonly<Record<ProxyName, string>> = { nginx: 'nginx', caddy: 'caddyfile', haproxy: 'haproxy' };

/** The service under an address that is known before the proxy in front of it starts. */
async function openBehind(name: ProxyName, path: string, write: (text: string) => string) {
  const own = await findFreePort();
  const base = `http://127.0.0.1:${own}${path}`;
  const test = await openTestApp({
    settings: {
      BSVC_BCRYPT_COST: '4',
      BSVC_PUBLIC_URL: base,
      BSVC_TRUST_PROXY: '1',
      BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
    },
  });
  // First: the own port may begin with the same digits.
  const text = write(configurationOf(LANGUAGES[name])).replace('127.0.0.1:4000', new URL(test.url).host);
  const proxy = await startProxy(name, LOCAL[name](text, own), `${base}/api/health/live`);
  return {
    base,
    test,
    async close() {
      await proxy.close();
      await test.close();
    },
  };
}

describe.each(['nginx', 'caddy', 'haproxy'] as const)('behind %s as the guide configures it', (name) => {
  it.skipIf(!hasProxy(name))('serves requests, uploads of ten megabytes and streams', async () => {
    const { base, test, close } = await openBehind(name, '', (text) => text);
    try {
      const { project, secret } = await buildProject(test.app);
      await buildCollection(test.app, project, { name: 'posts', fields: [{ name: 'title', type: 'String' }] });
      const headers = { 'x-api-key': secret };
      const form = new FormData();
      form.append('file', new Blob([Buffer.alloc(10_000_000)]), 'large.bin');
      const uploaded = await fetch(`${base}/api/storage/upload`, { method: 'POST', headers, body: form });
      expect([uploaded.status, await uploaded.json()]).toMatchObject([201, { url: expect.stringContaining(base) }]);

      const stream = await fetch(`${base}/api/data/posts/changes?since=now`, {
        headers: { ...headers, accept: 'text/event-stream' },
      });
      const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
      let shown = '';
      const read = async (word: string): Promise<void> => {
        while (!shown.includes(word)) shown += (await reader.read()).value!;
      };
      await read('event: ready');
      const json = { ...headers, 'content-type': 'application/json' };
      await fetch(`${base}/api/data/posts`, { method: 'POST', headers: json, body: '{"title":"through"}' });
      await read('"title":"through"');
      await reader.cancel();
    } finally {
      await close();
    }
  });
});

/** The guide's configuration for a service under a path. */
const UNDER_A_PATH: Readonly<Record<ProxyName, (text: string, part: string) => string>> = {
  nginx: (text, part) =>
    text
      .replace('location / {', 'location /backend/ {')
      .replace(/ *proxy_pass .*/, /location \/backend\/ \{\n(.*)\n\}/.exec(part)![1]!),
  caddy: (_text, part) => `api.${part}`,
  haproxy: (text, part) => {
    const [, choice, path] = /^frontend api\n(.*)\nbackend bsvc\n(.*)\n$/.exec(part)!;
    return text.replace('  default_backend bsvc', choice!).replace('\nbackend bsvc', () => `\nbackend bsvc\n${path}`);
  },
};

const openUnderPath = (name: ProxyName): ReturnType<typeof openBehind> => {
  const part = blocks.findLast((block) => block.language === LANGUAGES[name])!.text;
  return openBehind(name, '/backend', (text) => UNDER_A_PATH[name](text, part));
};

async function keepSession(base: string, publishable: string): Promise<void> {
  const jar = openCookieJar();
  const headers = { 'x-api-key': publishable, 'content-type': 'application/json' };
  const call = (name: string, body: object): Promise<Response> =>
    jar.fetch(`${base}/api/userAuth/${name}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const signedUp = await call('signup', { email: buildEmail(), password: PASSWORD });
  expect(signedUp.headers.get('set-cookie')).toContain('Path=/backend/api/userAuth;');
  expect((await call('refresh-token', {})).status).toBe(200);
}

describe.each(['caddy', 'haproxy'] as const)('under a path, behind %s', (name) => {
  it.skipIf(!hasProxy(name))('keeps a session by its cookie', async () => {
    const { base, test, close } = await openUnderPath(name);
    try {
      await keepSession(base, (await buildProject(test.app)).publishable);
    } finally {
      await close();
    }
  });
});

describe.skipIf(!hasProxy('nginx'))('under a path, behind nginx', () => {
  let behind: Awaited<ReturnType<typeof openBehind>>;
  let test: TestApp;
  let base: string;
  let project: TestProject;

  beforeAll(async () => {
    behind = await openUnderPath('nginx');
    ({ test, base } = behind);
    project = await buildProject(test.app);
  });
  afterAll(() => behind.close());

  it('keeps a session by its cookie', () => keepSession(base, project.publishable));

  it('signs in by a provider', async () => {
    const issuer = await openSocialIssuer();
    issuer.behaviour = { sub: 'ada', email: buildEmail(), emailVerified: true, name: 'Ada' };
    const home = 'https://app.example.test/signed-in';
    await setSocialProvider(test.app, project.project, {
      name: 'acme',
      issuer: issuer.url,
      clientId: issuer.clientId,
      clientSecret: issuer.clientSecret,
      redirectUrls: [home],
    });
    const jar = openCookieJar();
    const out = await jar.fetch(`${base}/api/userAuth/social/acme/start?key=${project.publishable}`);
    const back = await jar.fetch(await issuer.visit(out.headers.get('location')!));
    expect(back.headers.get('location')).toMatch(/signed-in\?rtCode=/);
    await issuer.close();
  });

  it('names itself in the documents of the API', async () => {
    const headers = { 'x-api-key': project.secret };
    for (const path of ['/api/openapi.json', '/api/schemas/openapi.json']) {
      const document = (await (await fetch(base + path, { headers })).json()) as { servers: object[] };
      expect(document.servers).toEqual([{ url: '/backend' }]);
    }
  });

  it.skipIf(!CHROMIUM)('has pages whose links, styles and scripts are there', async () => {
    const page = await drivePage(`${base}/`);
    const all = `[...document.querySelectorAll('[href], [src]')].map((each) => each.href || each.src)`;
    for (const path of ['/', '/api/docs', '/api/docs/guides/rules', '/console/']) {
      await page.visit(base + path);
      await page.until(`document.readyState === 'complete' && location.href.includes(${JSON.stringify(path)})`);
      const targets = new Set((await page.evaluate<string[]>(all)).map((target) => target.split('#')[0]!));
      const own = [...targets].filter((target) => target.startsWith('http://127.0.0.1'));
      expect(own.filter((target) => !target.startsWith(`${base}/`))).toEqual([]);
      for (const target of own) expect([target, (await fetch(target)).status]).toEqual([target, 200]);
    }
    await page.visit(`${base}/api/docs#getHealth`);
    await page.until(`document.querySelector('#getHealth .try button')`);
    await page.evaluate(`document.querySelector('#getHealth .try button').click()`);
    await page.until(`document.querySelector('#getHealth .try form button[type=submit]')`);
    await page.evaluate(`document.querySelector('#getHealth .try form button[type=submit]').click()`);
    await page.until(`document.querySelector('#getHealth .try .answer').textContent.startsWith('200')`);
    await page.close();
  });

  it.skipIf(!CHROMIUM)('lets a page of another origin use the typed client', async () => {
    await buildCollection(test.app, project.project, {
      name: 'notes',
      fields: [{ name: 'text', type: 'String' }],
      rls: { mode: 'public-read', ownerField: 'userId' },
    });
    let site: Listening | undefined;
    try {
      site = await listen(
        createServer((_request, response) => response.setHeader('content-type', 'text/html').end('<!doctype html>')),
      );
      const page = await drivePage(site.url);
      await page.until(`document.readyState === 'complete' && location.origin === '${site.url}'`);
      const { email, text } = await page.evaluate<{ email: string; text: string }>(`(async () => {
        const { createClient } = await import('${base}/api/client.js');
        const api = createClient({ url: '${base}', key: '${project.publishable}' });
        const user = await api.auth.signUp({ email: '${buildEmail()}', password: '${PASSWORD}' });
        const note = await api.collection('notes').insert({ text: 'from a page' });
        return { email: user.email, text: note.text };
      })()`);
      expect([email, text]).toEqual([expect.stringContaining('@'), 'from a page']);
      await page.close();
    } finally {
      await site?.close();
    }
  });
});
