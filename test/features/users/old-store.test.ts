import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changeProject } from '../../../src/features/declaration/change-project.js';
import { requireProject } from '../../../src/features/projects/project-store.js';
import { totpCode } from '../../../src/features/users/factors/totp.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';
import { runOrThrow } from '../../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../../helpers/temp-dir.js';
import { bearer, openUserClient, PASSWORD, readMailedCode, type UserClient } from '../../helpers/user-client.js';

/** Of whom the store has an account, and what their devices kept. */
interface Person {
  id: string;
  email: string;
  accessToken: string;
  refreshToken: string;
  /** Mailed, not used yet. */
  otp?: string;
}

const HERE = join(import.meta.dirname, 'old-store');
/**
 * The store and tokens that the service of commit 4bade07 left after a few sign-ups, before sessions noted proofs. It
 * was started from that commit, asked over HTTP and stopped by SIGTERM.
 */
const { at, publishable, people } = JSON.parse(readFileSync(join(HERE, 'people.json'), 'utf8')) as {
  at: number;
  publishable: string;
  people: Record<
    'signedUp' | 'refreshed' | 'kept' | 'ended' | 'signedOut' | 'proven' | 'resetting' | 'moving' | 'social',
    Person
  >;
};
const SETTINGS = { BSVC_SECRET_KEY: 'a-master-key-for-tests-only-0123456789', BSVC_BCRYPT_COST: '4' };
const MINUTE_MS = 60_000;

let dir: TempDir;
let test: TestApp;
let client: UserClient;
const clock = createFakeClock(at + MINUTE_MS);

beforeAll(async () => {
  dir = await openTempDir();
  writeFileSync(join(dir.path, 'bsvc.mdb'), gunzipSync(readFileSync(join(HERE, 'bsvc.mdb.gz'))));
  await runOrThrow(['migrate', 'up'], { ...SETTINGS, BSVC_DATA_DIR: dir.path });
  test = await openTestApp({ clock, settings: { ...SETTINGS, BSVC_DATA_DIR: dir.path } });
  client = openUserClient(test, publishable);
});
afterAll(async () => {
  await test.close();
  await dir.remove();
});

const codeOf = ({ status, body }: { status: number; body: unknown }): string =>
  `${status} ${(body as { code?: string }).code ?? ''}`;
const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Record<string, unknown>;
const GOOD = ['signedUp', 'refreshed', 'kept', 'resetting', 'moving', 'social'] as const;

describe('a store from before sessions noted proofs', () => {
  it.each(GOOD)('keeps signed in who %s, as by password at the beginning, at level 1', async (name) => {
    const { id, email, accessToken, refreshToken } = people[name];
    const me = await client.me(accessToken);
    expect([me.status, me.body]).toEqual([200, expect.objectContaining({ _id: id, email })]);
    const sessions = await client.get('/sessions', bearer(accessToken));
    expect(sessions.body).toMatchObject({
      data: { items: expect.arrayContaining([expect.objectContaining({ current: true, amr: ['pwd'] })]) as unknown },
    });
    const refreshed = await client.refresh(refreshToken);
    expect(codeOf(refreshed)).toBe('200 ');
    const { accessToken: renewed } = refreshed.body as { accessToken: string };
    const claims = claimsOf(renewed);
    expect(claims).toMatchObject({ sub: id, amr: ['pwd'] });
    expect(Math.abs((claims.auth_time as number) - at / 1000)).toBeLessThan(60);
    expect(codeOf(await client.get('/identities', bearer(renewed)))).toBe('200 ');
    // A passkey or a second factor would be level 2.
    await changeProject(test.app, await requireProject(test.app, 'shop'), { signIn: { mfa: 'required' } });
    expect(codeOf(await client.get('/sessions', bearer(renewed)))).toBe('403 MFA_ENROLMENT_REQUIRED');
    await changeProject(test.app, await requireProject(test.app, 'shop'), { signIn: { mfa: 'optional' } });
    expect(codeOf(await client.get('/sessions', bearer(renewed)))).toBe('200 ');
  });

  it('lets in nobody whose session had ended', async () => {
    const { ended, proven, signedOut } = people;
    // By a new password, and by whoever proved the address outside the session.
    for (const { accessToken, refreshToken } of [ended, proven]) {
      expect(codeOf(await client.me(accessToken))).toMatch(/^401 /);
      expect(codeOf(await client.refresh(refreshToken))).toMatch(/^401 /);
    }
    expect(codeOf(await client.refresh(signedOut.refreshToken))).toMatch(/^401 /);
  });

  it('takes the codes that were on their way', async () => {
    const { resetting, moving } = people;
    const newPassword = `${PASSWORD} 2`;
    const reset = { email: resetting.email, otp: resetting.otp, newPassword };
    expect(codeOf(await client.post('/reset-password', reset))).toBe('200 ');
    expect(codeOf(await client.me(resetting.accessToken))).toMatch(/^401 /);
    expect(codeOf(await client.logIn(resetting.email, newPassword))).toBe('200 ');
    const proven = await client.post(
      '/verify-email',
      { email: 'hal2@example.test', otp: moving.otp },
      bearer(moving.accessToken),
    );
    expect(codeOf(proven)).toBe('200 ');
    expect(codeOf(await client.logIn('hal2@example.test'))).toBe('200 ');
  });

  it('signs in by the old password, and enrols a second factor after a proof of now', async () => {
    const { email } = people.proven;
    const { accessToken } = (await client.logIn(email)).body as { accessToken: string };
    clock.advance(11 * MINUTE_MS);
    expect(codeOf(await client.post('/mfa/totp', {}, bearer(accessToken)))).toBe('403 STEP_UP_REQUIRED');
    expect(codeOf(await client.post('/step-up/code', undefined, bearer(accessToken)))).toBe('200 ');
    const otp = await readMailedCode(test, email);
    expect(codeOf(await client.post('/step-up', { otp }, bearer(accessToken)))).toBe('200 ');
    const begun = await client.post('/mfa/totp', {}, bearer(accessToken));
    expect(codeOf(begun)).toBe('200 ');
    const { secret } = (begun.body as { data: { secret: string } }).data;
    const code = totpCode(secret, clock.now());
    expect(codeOf(await client.post('/mfa/totp/confirm', { code }, bearer(accessToken)))).toBe('200 ');
    expect(codeOf(await client.logIn(email))).toBe('401 MFA_REQUIRED');
  });
});
