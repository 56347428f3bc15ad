import { isDeepStrictEqual } from 'node:util';
import { ObjectId } from 'bson';
import { expect, it } from 'vitest';
import { setChanges } from '../../world/collections.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { openDataClient, serverOf, userOf } from '../../helpers/data-client.js';
import { eventually } from '../../helpers/eventually.js';
import { openRandom, type Random } from '../../helpers/random.js';
import { openSeed } from '../../helpers/seed.js';
import { openStreamFollower } from '../../helpers/stream-follower.js';
import { useTestApp } from '../../helpers/use.js';

const SEED = openSeed('populated');
const ROUNDS = 4;
const WRITES_EACH = 25;
const USERS = ['ann', 'bob'].map(() => new ObjectId().toHexString());
const TEAMS = ['a', 'b', 'c'];
const QUERIES = ['populate=plan', 'populate=plan,draft&sort=-n&limit=3', 'populate=draft&sort=n&limit=2&open=true'];

const test = await useTestApp();
const owner = await buildProject(test.app);
const secret = () => serverOf(owner);
const server = openDataClient(test, secret);

const text = (name: string) => ({ name, type: 'String' as const });
const ref = (name: string, to: string) => ({ name, type: 'Ref' as const, ref: to });

async function build(name: string, input: Parameters<typeof buildCollection>[2]): Promise<void> {
  await buildCollection(test.app, owner.project, { name, ...input });
  await setChanges(test.app, owner.project._id, name, { on: true });
}
await build('members', { fields: [text('user'), text('team')], rules: 'server-only' });
await build('plans', {
  fields: [text('team'), text('text')],
  rules: { read: 'doc.team in members[user = user.id].team' },
});
await build('drafts', { fields: [text('text'), text('userId')], rls: { mode: 'private', ownerField: 'userId' } });
await build('tasks', {
  fields: [
    { name: 'n', type: 'Number' as const },
    { name: 'open', type: 'Boolean' as const },
    ref('plan', 'plans'),
    ref('draft', 'drafts'),
  ],
  rls: null,
});

type Row = Record<string, unknown> & { _id: string };

async function rowsOf(collection: string, query: string, headers: Record<string, string>): Promise<Row[]> {
  const response = await fetch(`${test.url}/api/data/${collection}?${query}`, { headers });
  expect(response.status).toBe(200);
  return ((await response.json()) as { data: { items: Row[] } }).data.items;
}

const FIELDS: Readonly<Record<string, (random: Random, idOf: (collection: string) => Promise<string>) => unknown>> = {
  members: (random) => ({ user: random.pick(USERS), team: random.pick(TEAMS) }),
  plans: (random) => ({ team: random.pick(TEAMS), text: `plan ${random.below(1000)}` }),
  drafts: (random) => ({ userId: random.pick(USERS), text: `draft ${random.below(1000)}` }),
  tasks: async (random, idOf) => ({
    ...{ n: random.below(6), open: random.chance(0.7) },
    ...(random.chance(0.8) && { plan: await idOf('plans') }),
    ...(random.chance(0.8) && { draft: await idOf('drafts') }),
  }),
};

/** A document is written, changed, removed or brought back: a task, what it refers to, or who may read that. */
async function write(random: Random): Promise<void> {
  const collection = random.pick(['members', 'plans', 'drafts', 'tasks', 'tasks']);
  const idOf = async (of: string): Promise<string> => {
    const rows = await rowsOf(of, 'limit=100&include_deleted=true', secret());
    return rows.length > 0 ? random.pick(rows)._id : new ObjectId().toHexString();
  };
  const fields = (await FIELDS[collection]!(random, idOf)) as object;
  const id = await idOf(collection);
  const { userId: _, ...changed } = fields as { userId?: string };
  const { status } = await random.pick([
    () => server('post', collection, fields),
    () => server('post', collection, fields),
    () => server('patch', `${collection}/${id}`, changed),
    () => server('patch', `${collection}/${id}`, changed),
    () => server('delete', `${collection}/${id}`),
    () => server('patch', `${collection}/${id}/recover`),
  ])();
  expect([200, 201, 404, 409]).toContain(status);
}

it('followers of what is populated show what a list shows, whoever gains or loses the right to read it', async () => {
  const random = openRandom(SEED);
  const entries = [secret(), ...USERS.map((user) => userOf(test, owner, user))].flatMap((headers) =>
    QUERIES.map((query) => ({ headers, query, follower: openStreamFollower('tasks', query) })),
  );
  for (const { follower, headers, query } of entries) expect(await follower.connect(test, headers), query).toBe(200);
  for (let round = 0; round < ROUNDS; round++) {
    for (let n = 0; n < WRITES_EACH; n++) {
      await write(random);
      const { follower, headers } = random.pick(entries);
      if (random.chance(0.1)) expect(await follower.connect(test, headers)).toBe(200);
    }
    for (const { query, headers, follower } of entries) {
      const asked = query.includes('limit') ? query : `limit=100&${query}`;
      await eventually(`${query} shows what the list shows (seed ${SEED})`, async () => {
        const listed = (await rowsOf('tasks', asked, headers)).map((row) => [row._id, row]);
        return isDeepStrictEqual([...follower.known].sort(), listed.sort());
      });
    }
  }
  const drafts = await rowsOf('drafts', 'limit=100&include_deleted=true', secret());
  for (const { headers, follower } of entries) {
    expect(follower.ends).toEqual([]);
    await follower.disconnect();
    const user = USERS.find((id) => JSON.stringify(userOf(test, owner, id)) === JSON.stringify(headers));
    // A draft never changes its owner: nobody else may ever have been told its text.
    for (const { document } of user === undefined ? [] : follower.told) {
      const draft = document?.draft;
      if (typeof draft !== 'object' || draft === null) continue;
      expect(drafts.find(({ _id }) => _id === (draft as Row)._id)!.userId).toBe(user);
    }
  }
});
