import type { Response } from 'supertest';
import { describe, expect, it } from 'vitest';
import { findCollection } from '../world/collections.js';
import { drainJobs, listOutbox } from '../world/jobs.js';
import { changeProject } from '../world/projects.js';
import { documentStore } from '../world/stored.js';
import { acceptInvite, requireUser } from '../world/users.js';
import { crashAfter, killAtEachChange } from '../features/files/crashing-app.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, buildEmail, openUserClient, PASSWORD } from '../helpers/user-client.js';

const clock = createFakeClock();
const PAGE = 'https://shop.example/join';
const DAY_MS = 86_400_000;

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' }, clock });
const made = await buildProject(test.app);
const project = await changeProject(test.app, made.project, { signIn: { redirects: [PAGE] } });
const shop = { ...made, project };
await buildCollection(test.app, project, {
  name: 'members',
  fields: [
    { name: 'userId', type: 'String', required: true },
    { name: 'board', type: 'String', required: true },
  ],
});
const [client, server] = [openUserClient(test, made.publishable), openUserClient(test, made.secret)];

const codeOf = (reply: Response): string => `${reply.status} ${(reply.body as { code?: string }).code ?? ''}`;
const dataOf = <T>(reply: Response): T => (reply.body as { data: T }).data;
const SET = { collection: 'members', document: { userId: '=user.id', board: 'b1' } };

async function signUp(email = buildEmail(), emailVerified = true): Promise<{ email: string; token: string }> {
  await server.post('/users', { email, password: PASSWORD, emailVerified });
  return { email, token: ((await client.logIn(email)).body as { accessToken: string }).accessToken };
}

async function invite(email: string, more: object = { roles: ['editor'], set: SET }): Promise<string> {
  expect(codeOf(await server.post('/invites', { email, redirect: PAGE, ...more }))).toBe('201 ');
  await drainJobs(test.app);
  const mails = await listOutbox(test.app, { to: email });
  const link = mails.flatMap(({ text }) => /https:\S+/.exec(text ?? '') ?? [])[0]!;
  return new URLSearchParams(new URL(link).hash.slice(1)).get('invite')!;
}
const accept = (token: string, as: string) => client.post('/invites/accept', { token }, bearer(as));

async function memberships(userId: string): Promise<object[]> {
  const members = await findCollection(test.app, shop.project._id, 'members');
  return documentStore(test.app, members!).find({ userId }).toArray();
}

describe('an invitation', () => {
  it('gives roles and a membership once, however many accept it at once', async () => {
    const { email, token } = await signUp();
    const invitation = await invite(email);
    expect(dataOf(await client.post('/invites/show', { token: invitation }))).toMatchObject({
      email,
      roles: ['editor'],
    });
    const replies = await Promise.all(Array.from({ length: 40 }, () => accept(invitation, token)));
    expect(replies.map(codeOf).sort()).toEqual(['200 ', ...Array<string>(39).fill('404 INVITE_NOT_FOUND')]);
    const { _id, roles } = (await client.me(token)).body as { _id: string; roles: string[] };
    expect(roles).toEqual(['editor']);
    expect(await memberships(_id)).toHaveLength(1);
    expect(codeOf(await accept(invitation, token))).toBe('404 INVITE_NOT_FOUND');
    expect(codeOf(await client.post('/invites/show', { token: invitation }))).toBe('404 INVITE_NOT_FOUND');
  });

  it('is for the proven address alone', async () => {
    const { email, token } = await signUp(buildEmail(), false);
    const stranger = await signUp();
    const invitation = await invite(email);
    expect(codeOf(await accept(invitation, token))).toBe('403 EMAIL_MISMATCH');
    expect(codeOf(await accept(invitation, stranger.token))).toBe('403 EMAIL_MISMATCH');
    expect(codeOf(await client.post('/invites/accept', { token: invitation }))).toBe('401 AUTH_REQUIRED');
    await server.send('patch', `/users/${email}`, { emailVerified: true });
    const later = ((await client.logIn(email)).body as { accessToken: string }).accessToken;
    expect(codeOf(await accept(invitation, later))).toBe('200 ');
  });

  it('gives all that it promises, or nothing, wherever the process is killed', async () => {
    const deaths = await killAtEachChange(
      (changes) => crashAfter(test.app, changes).app,
      async () => {
        const { email, token } = await signUp();
        return { token, invitation: await invite(email), user: await requireUser(test.app, shop.project._id, email) };
      },
      (mortal, { user, invitation }) => acceptInvite(mortal, shop.project, user, invitation),
      async ({ token, invitation }) => {
        const { _id, roles } = (await client.me(token)).body as { _id: string; roles: string[] };
        expect([roles, (await memberships(_id)).length]).toEqual([['editor'], 1]);
        expect(codeOf(await accept(invitation, token))).toBe('404 INVITE_NOT_FOUND');
      },
    );
    expect(deaths).toBe(1);
  });

  it('grants its roles to a member who has the document already', async () => {
    const { email, token } = await signUp();
    const user = await requireUser(test.app, shop.project._id, email);
    const unique = await buildCollection(test.app, shop.project, {
      fields: [{ name: 'userId', type: 'String', unique: true }],
    });
    await placeDocuments(test.app, unique, [{ userId: user._id.toHexString() }]);
    const set = { collection: unique.name, document: { userId: '=user.id' } };
    const invitation = await invite(email, { roles: ['editor'], set });
    expect(codeOf(await accept(invitation, token))).toBe('200 ');
    expect(((await client.me(token)).body as { roles: string[] }).roles).toEqual(['editor']);
    expect(await documentStore(test.app, unique).countDocuments({})).toBe(1);
  });

  it('ends after a week, and when it is withdrawn', async () => {
    const { email, token } = await signUp();
    const invitation = await invite(email);
    const { items } = dataOf<{ items: { id: string; email: string }[] }>(await server.get('/invites'));
    const { id } = items.find((each) => each.email === email)!;
    expect(codeOf(await server.send('delete', `/invites/${id}`))).toBe('200 ');
    expect(codeOf(await server.send('delete', `/invites/${id}`))).toBe('404 INVITE_NOT_FOUND');
    expect(codeOf(await accept(invitation, token))).toBe('404 INVITE_NOT_FOUND');
    const late = await signUp();
    const week = await invite(late.email);
    clock.advance(7 * DAY_MS);
    const renewed = ((await client.logIn(late.email)).body as { accessToken: string }).accessToken;
    expect(codeOf(await accept(week, renewed))).toBe('404 INVITE_NOT_FOUND');
  });

  it('is refused before it is mailed where it could not be accepted', async () => {
    const email = buildEmail();
    const send = async (more: object): Promise<string> =>
      codeOf(await server.post('/invites', { email, redirect: PAGE, ...more }));
    expect(await send({ email: 'nobody' })).toBe('400 INVALID_EMAIL');
    expect(await send({ redirect: `${PAGE}/other` })).toBe('400 REDIRECT_NOT_ALLOWED');
    expect(await send({ roles: ['No Role'] })).toBe('400 VALIDATION_FAILED');
    expect(await send({ set: { collection: 'nonesuch', document: {} } })).toBe('404 COLLECTION_NOT_FOUND');
    expect(await send({ set: { collection: 'users', document: {} } })).toBe('400 INVALID_INVITE');
    expect(await send({ set: { collection: 'members', document: { userId: 5 } } })).toBe('400 VALIDATION_FAILED');
    expect(codeOf(await client.post('/invites', { email, redirect: PAGE }))).toBe('403 SECRET_KEY_REQUIRED');
    for (let mail = 0; mail < 3; mail++) await invite(email, {});
    expect(await send({})).toBe('429 INVITE_LIMIT');
  });

  it('is one of a hundred open ones at most', async () => {
    const other = await buildProject(test.app);
    await changeProject(test.app, other.project, { signIn: { redirects: [PAGE] } });
    const at = openUserClient(test, other.secret);
    const outcomes: string[] = [];
    for (let sent = 0; sent <= 100; sent++) {
      outcomes.push(codeOf(await at.post('/invites', { email: buildEmail(), redirect: PAGE })));
    }
    expect(outcomes.filter((each) => each === '201 ')).toHaveLength(100);
    expect(outcomes.at(-1)).toBe('409 TOO_MANY_INVITES');
  });
});
