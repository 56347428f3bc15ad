import { ObjectId } from 'bson';
import supertest from 'supertest';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { signAccessToken } from '../../../src/features/access/sign-access-token.js';
import type { Collection } from '../../../src/features/collections/collection.js';
import { setChanges } from '../../../src/features/changes/set-changes.js';
import { completeRules } from '../../../src/features/collections/rules/check-rules.js';
import { buildCollection, buildProject, type TestProject } from '../../helpers/build-project.js';
import { openFollower, type FeedFollower } from '../../helpers/feed-follower.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';

/*
 * On a MongoDB the service logs changes itself: who follows a collection under rules is told that a document has gone
 * by what the entry knows of the document before.
 */
const [ANN, BEN, CAT, DAN] = Array.from({ length: 4 }, () => new ObjectId().toHexString()) as [
  string,
  string,
  string,
  string,
];
const PEOPLE = { ann: ANN, ben: BEN, cat: CAT, dan: DAN };

let test: TestApp;
let owner: TestProject;
let cards: Collection;
let followers: Record<keyof typeof PEOPLE, FeedFollower>;
let made = 0;

beforeAll(async () => {
  if (process.env.BSVC_TEST_MONGODB_URI === undefined) vi.stubEnv('BSVC_TEST_TRANSPORT', 'wire');
  test = await openTestApp();
  vi.unstubAllEnvs();
  owner = await buildProject(test.app);
});
afterAll(() => test.close());
beforeEach(async () => {
  const { name } = await buildCollection(test.app, owner.project, {
    name: `cards${++made}`,
    fields: [
      { name: 'team', type: 'String' },
      { name: 'n', type: 'Number' },
      {
        ...{ name: 'about', type: 'Object' },
        fields: [
          { name: 'kind', type: 'String' },
          { name: 'text', type: 'String' },
        ],
      },
    ],
    rules: completeRules({ read: 'doc.team = user.id or doc.about.kind in ["open"]' }),
  });
  cards = await setChanges(test.app, owner.project._id, name, { on: true });
  const follow = ([who, id]: [string, string]): [string, FeedFollower] => {
    const authorization = `Bearer ${signAccessToken(test.app, owner.project, id, 600_000)}`;
    return [who, openFollower(test, name, { 'x-api-key': owner.publishable, authorization })];
  };
  followers = Object.fromEntries(Object.entries(PEOPLE).map(follow)) as typeof followers;
  await news();
});

const send = (method: 'post' | 'patch' | 'delete', path: string, body?: object) =>
  supertest(test.server)[method](`/api/data/${cards.name}${path}`).set('x-api-key', owner.secret).send(body);
const insert = async (body: object): Promise<string> =>
  ((await send('post', '', body).expect(201)).body as { _id: string })._id;

/** What each is told since the last call: `+` a document, `-` one that has gone, `again` to start over. */
async function news(): Promise<Record<string, string>> {
  const told: Record<string, string> = {};
  for (const [who, follower] of Object.entries(followers)) {
    const [before, restarts] = [follower.told.length, follower.restarts];
    await follower.catchUp();
    const items = follower.told.slice(before).map(({ type, id }) => `${type === 'upsert' ? '+' : '-'}${id}`);
    told[who] = follower.restarts > restarts ? 'again' : items.join(' ');
  }
  return told;
}

describe('a document that goes from one reader to another', () => {
  it('is told as gone to the one, as there to the other, and to nobody else', async () => {
    const id = await insert({ team: ANN });
    expect(await news()).toEqual({ ann: `+${id}`, ben: '', cat: '', dan: '' });
    await send('patch', `/${id}`, { team: BEN }).expect(200);
    expect(await news()).toEqual({ ann: `-${id}`, ben: `+${id}`, cat: '', dan: '' });
    await send('delete', `/${id}`).expect(200);
    expect(await news()).toEqual({ ann: '', ben: `-${id}`, cat: '', dan: '' });
  });

  it('is told as gone to all who had it, where it went on before any of that was told', async () => {
    const [id, other] = [await insert({ team: ANN }), await insert({ team: DAN })];
    await news();
    for (const team of [BEN, CAT]) await send('patch', `/${id}`, { team }).expect(200);
    await send('patch', `/${other}`, { n: 1 }).expect(200);
    expect(await news()).toEqual({ ann: `-${id}`, ben: `-${id}`, cat: `+${id}`, dan: `+${other}` });
  });

  it('is told to its new readers alone where it is new itself', async () => {
    const id = await insert({ team: ANN });
    await send('patch', `/${id}`, { team: BEN }).expect(200);
    expect(await news()).toEqual({ ann: `-${id}`, ben: `+${id}`, cat: '', dan: '' });
  });

  it('has those start over who may have seen it, where it was too large before to be kept', async () => {
    const id = await insert({ team: ANN, n: 0 });
    const large = await insert({ team: DAN, about: { text: 'x'.repeat(5_000) } });
    await news();
    for (let n = 1; n < 20; n++) await send('patch', `/${id}`, { n }).expect(200);
    await send('patch', `/${id}`, { team: BEN }).expect(200);
    expect(await news()).toEqual({ ann: `-${id}`, ben: `+${id}`, cat: '', dan: '' });
    await send('patch', `/${large}`, { team: BEN }).expect(200);
    expect(await news()).toEqual({ ann: 'again', ben: `+${large}`, cat: 'again', dan: 'again' });
  });
});
