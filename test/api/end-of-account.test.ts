import { ObjectId } from 'bson';
import type { Response } from 'supertest';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { type Collection, editCollection, parseFieldSpec } from '../world/collections.js';
import { drainJobs, removeAnonymousUsersJob } from '../world/jobs.js';
import { changeProject } from '../world/projects.js';
import { sessionStore } from '../world/stored.js';
import { CUTOFFS } from '../world/users.js';
import { buildCollection, buildProject, storedDocuments } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { buildOperator } from '../helpers/operator-client.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, openUserClient, PASSWORD } from '../helpers/user-client.js';

// What becomes of a user's documents is what their references to the user say (decision 7).

const DAY_MS = 86_400_000;
const clock = createFakeClock();

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', BSVC_ANONYMOUS_RATE_LIMIT: 'off' }, clock });
const shop = await buildProject(test.app);
await changeProject(test.app, shop.project, { signIn: { anonymous: true } });
const client = openUserClient(test, shop.publishable);
const server = openUserClient(test, shop.secret);
const build = (spec: string): Promise<Collection> =>
  buildCollection(test.app, shop.project, {
    fields: ['text:String', spec].map(parseFieldSpec),
    rls: { mode: 'private', ownerField: 'owner' },
  });
const collections = {
  removed: await build('owner:Ref(users){onDelete:remove}'),
  trashed: await build('owner:Ref(users){onDelete:trash}'),
  cleared: await build('owner:Ref(users){onDelete:unset}'),
  kept: await build('owner:Ref(users)'),
  held: await build('owner:Ref(users){onDelete:restrict}'),
};

interface SignedIn {
  id: string;
  token: string;
}
const signedIn = ({ body }: Response): SignedIn => {
  const { user, accessToken } = body as { user: { _id: string }; accessToken: string };
  return { id: user._id, token: accessToken };
};
const write = ({ token }: SignedIn, { name }: Collection): Promise<Response> =>
  Promise.resolve(
    request(test.server)
      .post(`/api/data/${name}`)
      .set({ 'x-api-key': shop.publishable, ...bearer(token) })
      .send({ text: 'mine' })
      .expect(201),
  );
const stateOf = async (collection: Collection): Promise<unknown[]> =>
  (await storedDocuments(test.app, collection).find({}).sort({ _id: 1 }).toArray()).map(
    ({ owner = null, isDeleted }) => [owner, isDeleted],
  );
const codeOf = ({ status, body }: Response): string => `${status} ${(body as { code?: string }).code ?? ''}`;

/** Every way in which an account ends. */
const ENDS: Readonly<Record<string, (user: SignedIn) => Promise<Response> | PromiseLike<Response>>> = {
  'the user': ({ token }) => client.send('delete', '/me', { currentPassword: PASSWORD }, bearer(token)),
  'the secret key': ({ id }) => server.send('delete', `/users/${id}`),
  'an operator': async ({ id }) => {
    const operator = await buildOperator(test);
    return operator.call('delete', `/api/projects/${shop.project._id.toHexString()}/users/${id}`);
  },
};

describe('the documents of an account that ends', () => {
  it.each(Object.keys(ENDS))('are removed, trashed, cleared or kept as their references say: by %s', async (how) => {
    const { held, ...others } = collections;
    const [user, other] = [signedIn(await client.signUp()), signedIn(await client.signUp())];
    const before = await Promise.all(Object.values(others).map(stateOf));
    for (const each of Object.values(others)) for (const person of [user, other]) await write(person, each);
    expect(codeOf(await ENDS[how]!(user))).toBe('200 ');
    await drainJobs(test.app);
    const after = await Promise.all(Object.values(others).map(stateOf));
    const added = after.map((list, index) => list.slice(before[index]!.length));
    expect(added).toEqual([
      [[other.id, false]],
      [
        [user.id, true],
        [other.id, false],
      ],
      [
        [null, false],
        [other.id, false],
      ],
      [
        [user.id, false],
        [other.id, false],
      ],
    ]);
    expect(await stateOf(held)).toEqual([]);
  });

  it.each(Object.keys(ENDS))('keep the account, its sessions and all else where they hold it: by %s', async (how) => {
    const user = signedIn(await client.signUp());
    await write(user, collections.removed);
    const { body } = await write(user, collections.held);
    const before = await stateOf(collections.removed);
    const refused = await ENDS[how]!(user);
    expect(codeOf(refused)).toBe('409 DOCUMENT_REFERRED_TO');
    // The user may not be shown what refers.
    expect(refused.text.includes(collections.held.name)).toBe(how !== 'the user');
    await drainJobs(test.app);
    expect(await stateOf(collections.removed)).toEqual(before);
    expect((await client.me(user.token)).status).toBe(200);
    await storedDocuments(test.app, collections.held).deleteMany({});
    expect(body).toMatchObject({ owner: user.id });
    expect(codeOf(await ENDS[how]!(user))).toBe('200 ');
    await drainJobs(test.app);
    expect((await client.me(user.token)).status).toBe(401);
  });

  it('of guests go with them; a guest who is held keeps no other guest', async () => {
    const guests: SignedIn[] = [];
    for (let made = 0; made < 3; made++) guests.push(signedIn(await client.post('/signup/anonymous')));
    const [first, held, last] = guests as [SignedIn, SignedIn, SignedIn];
    for (const guest of [first, last]) await write(guest, collections.removed);
    await write(held, collections.held);
    // Longer than a session lives.
    clock.advance(31 * DAY_MS);
    await removeAnonymousUsersJob.run(test.app, {}, { stopping: new AbortController().signal } as never);
    await drainJobs(test.app);
    const left = await Promise.all(guests.map(({ id }) => server.get(`/users/${id}`)));
    expect(left.map(codeOf)).toEqual(['404 USER_NOT_FOUND', '200 ', '404 USER_NOT_FOUND']);
    expect((await stateOf(collections.removed)).flat()).not.toContain(first.id);
    expect((await stateOf(collections.removed)).flat()).not.toContain(last.id);
  });
});

describe('an account whose document goes by itself', async () => {
  const firm = await buildProject(test.app);
  const people = openUserClient(test, firm.publishable);
  const office = openUserClient(test, firm.secret);
  const call = (method: 'get' | 'post' | 'delete', path: string, headers: Record<string, string>): Promise<Response> =>
    Promise.resolve(request(test.server)[method](`/api/data/${path}`).set(headers).send({}));
  const asOffice = { 'x-api-key': firm.secret };
  const fields = [parseFieldSpec('userId:String')];
  const { name: notes } = await buildCollection(test.app, firm.project, {
    fields,
    rls: { mode: 'private', ownerField: 'userId' },
  });
  const { name: teams } = await buildCollection(test.app, firm.project, { fields });
  const specs = [`leads:Ref(${teams}){onDelete:remove}`, `in:Ref(${teams}){onDelete:trash}`];
  await editCollection(test.app, firm.project._id, 'users', { addFields: specs.map(parseFieldSpec) });

  const dissolve = async (user: SignedIn, field: string): Promise<void> => {
    const { _id } = (await call('post', teams, asOffice)).body as { _id: string };
    expect(codeOf(await office.send('patch', `/users/${user.id}`, { [field]: _id }))).toBe('200 ');
    expect(codeOf(await call('delete', `${teams}/${_id}`, asOffice))).toBe('200 ');
  };
  const GOES: Readonly<Record<string, (user: SignedIn) => Promise<unknown>>> = {
    'with one that it refers to': (user) => dissolve(user, 'leads'),
    'into the trash, with one that it refers to': (user) => dissolve(user, 'in'),
  };

  it.each(Object.keys(GOES))('opens nothing from then on: %s', async (how) => {
    const [user, other] = [signedIn(await people.signUp()), signedIn(await people.signUp())];
    const held = (): Promise<number[]> =>
      Promise.all([user, other].map(({ id }) => sessionStore(test.app).countDocuments({ userId: new ObjectId(id) })));
    await GOES[how]!(user);
    await drainJobs(test.app);
    // Other processes hear of it within a second.
    test.app.cache.forgetAll(CUTOFFS);
    const asked = [user, other].map(({ token }) =>
      call('get', notes, { 'x-api-key': firm.publishable, ...bearer(token) }),
    );
    expect((await Promise.all(asked)).map(codeOf)).toEqual(['401 TOKEN_INVALID', '200 ']);
    // One in the trash can come back.
    expect(await held()).toEqual([how.includes('trash') ? 1 : 0, 1]);
  });
});
