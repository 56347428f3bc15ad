import { createLocalJWKSet, createRemoteJWKSet, jwtVerify, type JSONWebKeySet } from 'jose';
import { createHmac, createPublicKey, type JsonWebKey } from 'node:crypto';
import supertest from 'supertest';
import { describe, expect, it } from 'vitest';
import { changeProject, declareProject, requireProject, rotateTokenSecret } from '../world/projects.js';
import { buildProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, openUserClient } from '../helpers/user-client.js';

const MINUTE_MS = 60_000;
const clock = createFakeClock();

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
const shop = await buildProject(test.app);
const client = openUserClient(test, shop.publishable);

const tokenOf = ({ body }: { body: unknown }): string => (body as { accessToken: string }).accessToken;
const idOf = ({ body }: { body: unknown }): string => (body as { user: { _id: string } }).user._id;
const headOf = (token: string): { alg: string; kid: string } =>
  JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()) as { alg: string; kid: string };
const address = (key = shop.publishable): string => `/api/userAuth/jwks.json?key=${key}`;
const readKeys = async (key?: string): Promise<JSONWebKeySet> =>
  (await supertest(test.server).get(address(key)).expect(200)).body as JSONWebKeySet;
const sign = (tokens: 'HS256' | 'ES256') => changeProject(test.app, shop.project, { signIn: { tokens } });
const current = () => requireProject(test.app, shop.project.name);

describe('access tokens signed with ES256', () => {
  it('are checked by another server with the published keys alone', async () => {
    await sign('ES256');
    const reply = await client.signUp();
    const token = tokenOf(reply);
    expect(headOf(token).alg).toBe('ES256');
    const keys = createRemoteJWKSet(new URL(`${test.url}${address()}`));
    const { payload } = await jwtVerify(token, keys, { algorithms: ['ES256'], currentDate: new Date(clock.now()) });
    expect(payload).toMatchObject({ sub: idOf(reply), projectId: shop.project._id.toHexString(), amr: ['pwd'] });
    expect((await client.me(token)).status).toBe(200);
    expect((await client.me(`${token.slice(0, -4)}AAAA`)).status).toBe(401);
  });

  it('have keys that show no private part, and none are shown where tokens are signed with HS256', async () => {
    await sign('ES256');
    const other = await buildProject(test.app);
    expect(await readKeys(other.publishable)).toEqual({ keys: [] });
    const { keys } = await readKeys();
    for (const key of keys) {
      expect(Object.keys(key).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
    }
    expect(new Set(keys.map(({ kid }) => kid)).size).toBe(keys.length);
  });

  it('work beside those of before while they live; the keys of both go with the last token', async () => {
    await sign('HS256');
    const old = tokenOf(await client.signUp());
    await sign('ES256');
    const next = tokenOf(await client.signUp());
    expect([headOf(old).alg, headOf(next).alg]).toEqual(['HS256', 'ES256']);
    expect([(await client.me(old)).status, (await client.me(next)).status]).toEqual([200, 200]);
    await rotateTokenSecret(test.app, await current(), test.app.config.accessTokenTtlMs);
    const last = tokenOf(await client.signUp());
    expect(headOf(last)).toMatchObject({ alg: 'ES256' });
    const kids = async () => (await readKeys()).keys.map(({ kid }) => kid);
    expect(await kids()).toEqual(expect.arrayContaining([headOf(next).kid, headOf(last).kid]));
    clock.advance(16 * MINUTE_MS);
    expect(await kids()).toEqual([headOf(last).kid]);
    expect((await current()).tokenSecrets.at(-1)!.kid).toBe(headOf(last).kid);
  });

  it('end at once by a rotation without grace, and its key with them', async () => {
    await sign('ES256');
    const token = tokenOf(await client.signUp());
    await rotateTokenSecret(test.app, await current(), 0);
    clock.advance(1);
    expect((await client.me(token)).status).toBe(401);
    expect((await readKeys()).keys.map(({ kid }) => kid)).not.toContain(headOf(token).kid);
  });

  it('keep the session: the refresh token of before gets one of the new kind', async () => {
    await sign('HS256');
    const signedUp = await client.signUp();
    await sign('ES256');
    const refreshed = await client.refresh(signedUp.headers['x-refresh-token'] as string);
    expect(headOf(tokenOf(refreshed)).alg).toBe('ES256');
  });

  it('are not forged with the public key as a secret, nor by naming another algorithm', async () => {
    await sign('ES256');
    const token = tokenOf(await client.signUp());
    const [, claims, signature] = token.split('.') as [string, string, string];
    const { kid } = headOf(token);
    const jwk = (await readKeys()).keys.find((key) => key.kid === kid)!;
    const key = createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' });
    const secrets = [
      key.export({ type: 'spki', format: 'pem' }),
      key.export({ type: 'spki', format: 'der' }),
      Buffer.from(JSON.stringify(jwk)),
      Buffer.from(jwk.x!, 'base64url'),
      Buffer.alloc(0),
    ];
    const encode = (head: object): string => Buffer.from(JSON.stringify(head)).toString('base64url');
    const forged = ['HS256', 'HS384', 'HS512'].flatMap((alg) =>
      secrets.map((secret) => {
        const input = `${encode({ alg, typ: 'JWT', kid })}.${claims}`;
        return `${input}.${createHmac(`sha${alg.slice(2)}`, secret)
          .update(input)
          .digest('base64url')}`;
      }),
    );
    forged.push(
      `${encode({ alg: 'none', kid })}.${claims}.`,
      `${encode({ alg: 'ES384', kid })}.${claims}.${signature}`,
    );
    expect((await client.me(token)).status).toBe(200);
    for (const each of forged) expect((await client.me(each)).status).toBe(401);
  });

  it('change at once with other settings, by one write, also in a bsvc.yaml, and twice is as once', async () => {
    await sign('HS256');
    await changeProject(test.app, shop.project, { plan: 'pro', signIn: { tokens: 'ES256', codeLogin: 'existing' } });
    const changed = await current();
    expect(changed).toMatchObject({ plan: 'pro', signIn: { codeLogin: 'existing' } });
    expect(changed.signIn).not.toHaveProperty('tokens');
    expect((await declareProject(test.app, changed)).signIn).toMatchObject({ tokens: 'ES256' });
    await Promise.all([sign('ES256'), sign('ES256'), sign('ES256')]);
    expect((await current()).tokenSecrets).toEqual(changed.tokenSecrets);
    const races = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        index % 2 === 0 ? rotateTokenSecret(test.app, changed, 1000) : sign(index % 4 === 1 ? 'HS256' : 'ES256'),
      ),
    );
    const kept = (await current()).tokenSecrets.map(({ kid }) => kid);
    for (const each of races) if ('kid' in each) expect(kept).toContain(each.kid);
  });

  it('leave no private key readable in the store', async () => {
    await sign('ES256');
    const { keys } = await readKeys();
    const record = JSON.stringify(await current());
    // PKCS #8 of a P-256 key begins so.
    for (const mark of ['MIGHAgEAMBMGByqGSM49', 'PRIVATE KEY']) expect(record).not.toContain(mark);
    expect(keys.length).toBeGreaterThan(0);
    await createLocalJWKSet({ keys })({ alg: 'ES256', kid: keys[0]!.kid! });
  });
});

describe('GET /api/userAuth/verify', () => {
  it('answers the user of a token, and refuses one that may only enrol a factor', async () => {
    const token = tokenOf(await client.signUp());
    const reply = await client.get('/verify', bearer(token));
    expect(reply.body).toEqual((await client.me(token)).body);
    await changeProject(test.app, shop.project, { signIn: { mfa: 'required' } });
    expect((await client.me(token)).status).toBe(200);
    expect((await client.get('/verify', bearer(token))).body).toMatchObject({ code: 'MFA_ENROLMENT_REQUIRED' });
    await changeProject(test.app, shop.project, { signIn: { mfa: 'off' } });
  });
});
