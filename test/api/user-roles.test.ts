import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { type Field, editCollection, requireCollection, rolesOf } from '../world/collections.js';
import { requireUser } from '../world/users.js';
import { buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, openUserClient } from '../helpers/user-client.js';

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' } });
const project = await buildProject(test.app);
const client = openUserClient(test, project.publishable);

interface SignedIn {
  accessToken: string;
  user: { _id: string; email: string; roles?: string[] };
}

const signUp = async (of = client): Promise<SignedIn> => (await of.signUp()).body as SignedIn;
const setRoles = (user: string, roles: unknown, key = project.secret) =>
  request(test.server).put(`/api/userAuth/users/${user}/roles`).set('x-api-key', key).send({ roles });
const codeOf = (reply: request.Response): string => `${reply.status} ${(reply.body as { code?: string }).code ?? ''}`;
const ROLES: Field = { name: 'roles', type: 'Array', items: { type: 'String' } };

describe('PUT /api/userAuth/users/:user/roles', () => {
  it('gives roles that the user reads in its profile, and nobody has before', async () => {
    const { user, accessToken } = await signUp();
    expect((await client.me(accessToken)).body).not.toHaveProperty('roles');
    const set = await setRoles(user.email, ['editor', 'team:7']);
    expect([set.status, (set.body as { data: object }).data]).toEqual([
      200,
      expect.objectContaining({ _id: user._id, roles: ['editor', 'team:7'] }),
    ]);
    expect((await client.me(accessToken)).body).toMatchObject({ roles: ['editor', 'team:7'] });
    expect((await client.logIn(user.email)).body).toMatchObject({ user: { roles: ['editor', 'team:7'] } });
    await setRoles(user._id, []);
    expect((await client.me(accessToken)).body).toMatchObject({ roles: [] });
  });

  it.each([
    ['no list', 'editor'],
    ['an upper-case letter', ['Editor']],
    ['a digit first', ['1st']],
    ['a space', ['a b']],
    ['something else than text', [7]],
    ['an object', [{ $gt: '' }]],
    ['65 characters', ['a'.repeat(65)]],
    ['one twice', ['a', 'a']],
    ['33 of them', Array.from({ length: 33 }, (_, at) => `r${at}`)],
  ])('refuses %s', async (_what, roles) => {
    const { user } = await signUp();
    expect(codeOf(await setRoles(user._id, roles))).toBe('400 VALIDATION_FAILED');
  });

  it('is for the secret key of the project alone', async () => {
    const { user, accessToken } = await signUp();
    expect(codeOf(await setRoles(user._id, ['admin'], project.publishable).set(bearer(accessToken)))).toBe(
      '403 SECRET_KEY_REQUIRED',
    );
    const other = await buildProject(test.app);
    expect(codeOf(await setRoles(user._id, ['admin'], other.secret))).toBe('404 USER_NOT_FOUND');
    expect((await client.me(accessToken)).body).not.toHaveProperty('roles');
  });
});

describe('the roles of a user', () => {
  it('cannot be set by the user, who may send the own profile back as it is', async () => {
    const refused = await client.signUp({ roles: ['admin'] });
    expect(codeOf(refused)).toBe('400 VALIDATION_FAILED');
    const { user, accessToken } = await signUp();
    await setRoles(user._id, ['editor']);
    const update = (roles: unknown) =>
      client.send('patch', '/update-profile', { name: 'Ann', roles }, bearer(accessToken));
    for (const roles of [['admin'], ['editor', 'admin'], [], null, 'editor']) {
      expect(codeOf(await update(roles))).toBe('400 VALIDATION_FAILED');
    }
    expect(codeOf(await client.send('patch', '/update-profile', { 'roles.0': 'x' }, bearer(accessToken)))).toBe(
      '400 VALIDATION_FAILED',
    );
    const same = await update(['editor']);
    expect([same.status, same.body]).toEqual([
      200,
      expect.objectContaining({ data: expect.objectContaining({ name: 'Ann', roles: ['editor'] }) as object }),
    ]);
  });

  it('can be set by the project at sign-up and in the profile', async () => {
    const server = openUserClient(test, project.secret);
    const { user, accessToken } = (await server.signUp({ roles: ['staff'] })).body as SignedIn;
    expect(user.roles).toEqual(['staff']);
    const changed = await server.send('patch', '/update-profile', { roles: ['chief'] }, bearer(accessToken));
    expect(changed.body).toMatchObject({ data: { roles: ['chief'] } });
  });

  it('are in no public profile', async () => {
    const own = await buildProject(test.app);
    await editCollection(test.app, own.project._id, 'users', {
      addFields: [{ name: 'username', type: 'String', unique: true, public: true }],
    });
    const app = openUserClient(test, own.publishable);
    const { user } = (await app.signUp({ username: 'ann' })).body as SignedIn;
    await setRoles(user._id, ['editor'], own.secret);
    expect((await app.get('/public/ann')).body).toEqual({ _id: user._id, username: 'ann' });
  });
});

describe('a project with a field `roles` of its own', () => {
  it('keeps it where users cannot set it and it holds texts', async () => {
    const own = await buildProject(test.app);
    const app = openUserClient(test, own.publishable);
    const before = await signUp(app);
    await setRoles(before.user._id, ['old'], own.secret);
    await editCollection(test.app, own.project._id, 'users', { addFields: [{ ...ROLES, protected: true }] });
    const { fields } = await requireCollection(test.app, own.project._id, 'users');
    const stored = async () => rolesOf(fields, await requireUser(test.app, own.project._id, before.user._id));
    expect(await stored()).toEqual(['old']);
    await setRoles(before.user._id, ['new'], own.secret);
    expect(await stored()).toEqual(['new']);
    expect((await app.me(before.accessToken)).body).toMatchObject({ roles: ['new'] });
  });

  it.each<[string, Field]>([
    ['that users can set', ROLES],
    ['that is one text', { name: 'roles', type: 'String', protected: true }],
    ['of anything', { name: 'roles', type: 'Array', protected: true }],
  ])('is told the command that mends one %s, which says nothing about roles', async (_what, field) => {
    const own = await buildProject(test.app);
    const change = editCollection(test.app, own.project._id, 'users', { addFields: [field] });
    await expect(change).rejects.toMatchObject({
      code: 'ROLES_FIELD',
      message: expect.stringContaining('bsvc ') as string,
    });
    expect(rolesOf([field], { roles: ['admin'], _bsvc: { roles: ['admin'] } })).toEqual([]);
  });
});
