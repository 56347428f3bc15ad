import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import bcrypt from 'bcrypt';
import { EJSON } from 'bson';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { defaultUsersCollection, HIDDEN_FIELD } from '../world/collections.js';
import { drainJobs, buildPayload } from '../world/jobs.js';
import { setSocialProvider, SYSTEM } from '../world/projects.js';
import { requireUser } from '../world/users.js';
import { buildProject, storedDocuments } from '../helpers/build-project.js';
import { openCookieJar } from '../helpers/cookie-jar.js';
import { openSocialIssuer } from '../helpers/social-issuer.js';
import type { TestApp } from '../helpers/open-test-app.js';
import { use, useTestApp } from '../helpers/use.js';
import { bearer, buildEmail, openUserClient, readMailedCode } from '../helpers/user-client.js';

const test = await useTestApp({
  settings: { BSVC_BCRYPT_COST: '4', BSVC_LOG_LEVEL: 'trace', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' },
});
const project = await buildProject(test.app);
const client = openUserClient(test, project.publishable);
const issuer = use(await openSocialIssuer());
afterEach(() => vi.restoreAllMocks());

interface Secret {
  what: string;
  value: string;
  /** Its only rightful place in a reply: the one that handed it over. */
  handedOver?: boolean;
}

/** Six digits stand in many an id; a code counts as found only where nothing surrounds it. */
const holds = (text: string, { value }: Secret): boolean =>
  /^\d{6}$/.test(value) ? new RegExp(`(?<![\\w-])${value}(?![\\w-])`).test(text) : text.includes(value);

describe('secrets of end users', () => {
  it('are in no log line, no reply but the one that hands them over, and nowhere in the database', async () => {
    const secrets: Secret[] = [];
    const replies: string[] = [];
    const note = (what: string, value: string, handedOver = false): string => {
      secrets.push({ what, value, handedOver });
      return value;
    };
    const keep = <T extends { text: string; headers: object }>(reply: T): T => {
      replies.push(`${JSON.stringify(reply.headers)}\n${reply.text}`);
      return reply;
    };
    const tokensOf = (reply: {
      body: unknown;
      headers: Record<string, string>;
    }): { access: string; refresh: string } => ({
      access: note('access token', (reply.body as { accessToken: string }).accessToken, true),
      refresh: note('refresh token', reply.headers['x-refresh-token']!, true),
    });

    const email = buildEmail();
    const first = note('password', 'pässword-one-4711-äöü');
    const second = note('password', 'password-two-0815-xyz');
    const third = note('password', 'password-three-2342-abc');
    const typo = note('mistyped password', 'pässword-one-4712-äöü');

    const signedUp = tokensOf(keep(await client.post('/signup', { email, password: first, name: 'Ada' })));
    keep(await client.post('/signup', { email, password: second }));
    keep(await client.post('/signup', { email: 'no', password: note('refused password', 'refused-password-99') }));
    const code = note('code', await readMailedCode(test, email));
    keep(
      await client.post('/verify-email', { email, otp: note('wrong code', code === '111111' ? '222222' : '111111') }),
    );
    keep(await client.post('/verify-email', { email, otp: code }, bearer(signedUp.access)));
    keep(await client.logIn(email, typo));
    const loggedIn = tokensOf(keep(await client.logIn(email, first)));
    const refreshed = tokensOf(keep(await client.refresh(loggedIn.refresh)));
    keep(await client.refresh(loggedIn.refresh.slice(0, -1)));
    keep(await client.me(refreshed.access));
    keep(await client.me(`${refreshed.access}x`));
    keep(
      await client.send(
        'patch',
        '/update-profile',
        { password: note('misplaced password', 'misplaced-password') },
        bearer(refreshed.access),
      ),
    );
    keep(
      await client.post('/change-password', { currentPassword: first, newPassword: second }, bearer(refreshed.access)),
    );
    keep(await client.post('/request-password-reset', { email }));
    const resetCode = note('code', await readMailedCode(test, email));
    keep(await client.post('/reset-password', { email, otp: resetCode, newPassword: third }));
    tokensOf(keep(await client.logIn(email, third)));
    keep(await client.post('/logout', undefined, { 'x-refresh-token': signedUp.refresh }));
    const broken = await fetch(`${test.url}/api/userAuth/login`, {
      method: 'POST',
      headers: { 'x-api-key': project.publishable, 'content-type': 'application/json' },
      body: `{"email":"${email}","password":"${third}`,
    });
    replies.push(await broken.text());

    note('client secret', issuer.clientSecret);
    issuer.behaviour = { sub: 'p', email: buildEmail(), emailVerified: true };
    await setSocialProvider(test.app, project.project, {
      name: 'acme',
      issuer: issuer.url,
      clientId: issuer.clientId,
      clientSecret: issuer.clientSecret,
      redirectUrls: ['https://app.example.test'],
    });
    const jar = openCookieJar();
    const out = await jar.fetch(`${test.url}/api/userAuth/social/acme/start?key=${project.publishable}`);
    const outward = new URL(out.headers.get('location')!);
    const state = note('state', outward.searchParams.get('state')!, true);
    note('nonce', outward.searchParams.get('nonce')!, true);
    const callback = await issuer.visit(outward.href);
    note('authorization code', new URL(callback).searchParams.get('code')!);
    note('browser cookie', jar.find(jar.names()[0]!)!.value, true);
    const back = await jar.fetch(callback);
    const rtCode = note('rtCode', new URL(back.headers.get('location')!).searchParams.get('rtCode')!, true);
    tokensOf(keep(await client.post('/social/exchange', { rtCode })));
    expect(state).not.toBe('');
    await drainJobs(test.app);

    const user = await requireUser(test.app, project.project._id, email);
    const hash: Secret = { what: 'hash', value: user[HIDDEN_FIELD].passwordHash! };
    const logs = test.logLines.join('');
    const dump = await dumpDatabase(test);
    const files = readFiles(test.dataDir);

    expect(secrets.length).toBeGreaterThan(20);
    expect(hash.value).toMatch(/^\$2b\$04\$/);
    expect(dump).toContain(hash.value);
    expect(files).toContain(hash.value);
    expect(logs).toContain('/api/userAuth/login');
    const found = (text: string, among: Secret[]): string[] =>
      among.filter((each) => holds(text, each)).map(({ what }) => what);
    expect(found(logs, [...secrets, hash])).toEqual([]);
    expect(found(dump, secrets)).toEqual([]);
    expect(
      found(
        files,
        secrets.filter(({ value }) => value.length > 6),
      ),
    ).toEqual([]);
    for (const reply of replies) {
      expect(found(reply, [...secrets.filter(({ handedOver }) => !handedOver), hash])).toEqual([]);
    }
    for (const secret of secrets.filter(({ handedOver, what }) => handedOver && what.endsWith('token'))) {
      expect(replies.filter((reply) => holds(reply, secret))).toHaveLength(1);
    }
  });

  it('are in no webhook', async () => {
    const email = buildEmail();
    await client.signUp({ email });
    const user = await requireUser(test.app, project.project._id, email);
    const about = { id: 'evt_1', at: new Date(), projectId: project.project._id, collection: 'users', documentId: 'x' };
    const event = { ...about, action: 'update' as const, actor: SYSTEM };
    const before = { ...user, password: '$2b$04$old', name: 'changed' };
    const payload = buildPayload(event, user, before);
    expect(payload).toContain(email);
    expect(payload).toContain('"before":{"name":"changed"}');
    expect(payload).not.toContain('$2b$');
    expect(payload).not.toMatch(/password|_bsvc/);
  });

  it('are compared once per sign-in, whether or not the address has an account', async () => {
    const email = buildEmail();
    await client.signUp({ email });
    const compare = vi.spyOn(bcrypt, 'compare');
    const costs = async (address: string): Promise<string[]> => {
      compare.mockClear();
      expect((await client.logIn(address, 'wrong password')).status).toBe(401);
      return compare.mock.calls.map(([, hash]) => hash.slice(0, 7));
    };
    const known = await costs(email);
    const unknown = await costs(buildEmail());
    expect(known).toEqual(['$2b$04$']);
    expect(unknown).toEqual(known);
  });

  it('take on a new cost at the next sign-in', async () => {
    const email = buildEmail();
    await client.signUp({ email });
    const user = await requireUser(test.app, project.project._id, email);
    const own = await useTestApp({ settings: { BSVC_BCRYPT_COST: '5' } });
    const other = await buildProject(own.app);
    const users = openUserClient(own, other.publishable);
    await users.signUp({ email });
    const there = await requireUser(own.app, other.project._id, email);
    await storedDocuments(own.app, defaultUsersCollection(other.project._id)).updateOne({ _id: there._id }, {
      $set: { [`${HIDDEN_FIELD}.passwordHash`]: user[HIDDEN_FIELD].passwordHash },
    } as never);
    expect((await users.logIn(email)).status).toBe(200);
    const renewed = await requireUser(own.app, other.project._id, email);
    expect(renewed[HIDDEN_FIELD].passwordHash).toMatch(/^\$2b\$05\$/);
    expect((await users.logIn(email)).status).toBe(200);
  });
});

async function dumpDatabase({ app }: TestApp): Promise<string> {
  const parts: string[] = [];
  for (const name of await app.db.listNames()) {
    for await (const document of app.db.collection(name).find({})) parts.push(EJSON.stringify(document));
  }
  return parts.join('\n');
}

/** Every byte of the data directory, pages that are no longer in use included. */
function readFiles(folder: string): string {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .join('\n');
}
