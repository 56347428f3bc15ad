import { generateKeyPairSync, sign as signBytes } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { updateProject } from '../../world/projects.js';
import { buildCollection, buildProject, type TestProject } from '../../helpers/build-project.js';
import { openSocialBrowser } from '../../helpers/social-browser.js';
import { openSocialIssuer } from '../../helpers/social-issuer.js';
import { use, useTestApp } from '../../helpers/use.js';
import { bearer, openUserClient, type UserClient } from '../../helpers/user-client.js';
import { openSeed } from '../../helpers/seed.js';
import { runs } from '../../helpers/runs.js';

// Whatever stands where a token is expected: refused where one is needed, absent where none is, never an error of ours.

const seed = openSeed('junk tokens');
const RUNS = runs(60);
const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
const issuer = use(await openSocialIssuer());

const part = (value: unknown): string => Buffer.from(JSON.stringify(value) ?? '').toString('base64url');

/** A good token with one thing wrong: a part replaced, cut or grown, another header or claims that no client signs. */
function mangled(good: string): fc.Arbitrary<string> {
  const [header, payload, signature] = good.split('.') as [string, string, string];
  const known = JSON.parse(Buffer.from(header, 'base64url').toString()) as Record<string, unknown>;
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const junk = fc.oneof(
    fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes).toString('base64url')),
    fc.constantFrom('', 'AAAA', '.', 'null', 'e30', '=', part(null), part([]), part('x'), part(1)),
    fc.nat({ max: 90 }).map((length) => signature.slice(0, length)),
    fc.constant(`${signature}AAAA`),
  );
  const headers = fc.record(
    {
      alg: fc.constantFrom('none', 'HS256', 'HS512', 'ES256', 'ES512', 'RS256', '', null, 5, {}),
      kid: fc.constantFrom(known.kid, 'other', '__proto__', null, 5, ['x']),
      crit: fc.constantFrom(['b64'], 'x', null),
      typ: fc.anything(),
      jwk: fc.constantFrom({}, { kty: 'EC' }),
    },
    { requiredKeys: [] },
  );
  const forged = headers.map((each) => {
    const body = `${part({ ...known, ...each })}.${payload}`;
    return `${body}.${signBytes('sha256', Buffer.from(body), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  });
  return fc.oneof(
    junk.map((each) => `${header}.${payload}.${each}`),
    junk.map((each) => `${header}.${each}.${signature}`),
    junk.map((each) => `${each}.${payload}.${signature}`),
    headers.map((each) => `${part({ ...known, ...each })}.${payload}.${signature}`),
    forged,
    fc.string({ maxLength: 60 }).map((text) => text.replace(/[^\x21-\x7e]/g, 'x')),
  );
}

const statusOf = ({ status }: { status: number }): number => status;

describe.each(['HS256', 'ES256'] as const)('a bearer of a project that signs with %s', (tokens) => {
  let shop: TestProject;
  let client: UserClient;
  let good: string;
  beforeAll(async () => {
    shop = await buildProject(test.app);
    await updateProject(test.app, shop.project.name, { signIn: { tokens } });
    await buildCollection(test.app, shop.project, { name: 'open' });
    client = openUserClient(test, shop.publishable);
    good = ((await client.signUp()).body as { accessToken: string }).accessToken;
  });

  it('is 401 where a user is needed and counts as none elsewhere', async () => {
    const read = (token: string) =>
      fetch(`${test.url}/api/data/open`, { headers: { 'x-api-key': shop.publishable, ...bearer(token) } });
    expect([(await client.me(good)).status, (await read(good)).status]).toEqual([200, 200]);
    await fc.assert(
      fc.asyncProperty(mangled(good), async (token) => {
        fc.pre(token !== good);
        expect([statusOf(await client.me(token)), statusOf(await read(token))]).toEqual([401, 200]);
      }),
      { seed, numRuns: RUNS },
    );
  });
});

it('an id token is 401 ID_TOKEN_INVALID', async () => {
  const shop = await buildProject(test.app);
  const client = openUserClient(test, shop.publishable);
  await openSocialBrowser(test, issuer, shop, client);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const body = `${part({ alg: 'ES256', kid: 'k' })}.${part({ iss: issuer.url, sub: '1', aud: 'c' })}`;
  const good = `${body}.${signBytes('sha256', Buffer.from(body), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  await fc.assert(
    fc.asyncProperty(mangled(good), async (idToken) => {
      fc.pre(idToken !== '');
      const reply = await client.post('/social/acme/id-token', { idToken, nonce: 'n' });
      expect([reply.status, (reply.body as { code: string }).code]).toEqual([401, 'ID_TOKEN_INVALID']);
    }),
    { seed, numRuns: RUNS },
  );
});

it('other tokens are refused by their own codes', async () => {
  const shop = await buildProject(test.app);
  const client = openUserClient(test, shop.publishable);
  const token = fc.oneof(
    fc.string({ minLength: 1, maxLength: 90 }),
    fc.uint8Array({ minLength: 1, maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('base64url')),
    fc.constantFrom('__proto__', '.', 'a.b.c', `${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}.${'f'.repeat(64)}`),
  );
  const plain = token.map((text) => text.replace(/[^\x21-\x7e]/g, 'x'));
  await fc.assert(
    fc.asyncProperty(plain, async (text) => {
      const mfa = await client.post('/login/mfa', { mfaToken: text, totp: '123456' });
      expect(['MFA_TOKEN_INVALID', 'VALIDATION_FAILED']).toContain((mfa.body as { code: string }).code);
      expect((await client.refresh(text)).status).toBe(401);
      const ticket = await fetch(`${test.url}/api/stream?ticket=${encodeURIComponent(text)}`);
      expect(ticket.status).toBeLessThan(500);
      const headers = {
        'svix-id': text,
        'svix-timestamp': String(Math.floor(Date.now() / 1000)),
        'svix-signature': text,
      };
      const event = await fetch(`${test.url}/api/mail/webhook`, { method: 'POST', headers, body: '{}' });
      expect(event.status).toBeLessThan(500);
    }),
    { seed, numRuns: RUNS },
  );
});
