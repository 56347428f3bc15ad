import { isDeepStrictEqual } from 'node:util';
import { ObjectId } from 'bson';
import supertest from 'supertest';
import { expect, it } from 'vitest';
import {
  type Collection,
  defaultUsersCollection,
  documentsName,
  parseFieldSpec,
  setChanges,
} from '../../world/collections.js';
import { drainJobs } from '../../world/jobs.js';
import { signAccessToken } from '../../world/users.js';
import { buildCollection, buildProject, storedDocuments } from '../../helpers/build-project.js';
import { openFollower } from '../../helpers/feed-follower.js';
import type { TestApp } from '../../helpers/open-test-app.js';
import { openRandom } from '../../helpers/random.js';
import { chooseWrites, type Chosen } from '../../helpers/random-writes.js';
import { openSeed } from '../../helpers/seed.js';
import { useTestApp } from '../../helpers/use.js';
import {
  MODEL,
  ModelRefusal,
  planWrite,
  returnWith,
  type ModelState,
  type ModelWrite,
  type ModelWriter,
} from '../../helpers/write-model.js';

const isWire = process.env.BSVC_TEST_TRANSPORT === 'wire';
/** Set to 100,000 by hand. */
const RUNS = Number(process.env.BSVC_TEST_RUNS ?? (isWire ? 1000 : 2000));
/** After so many the logs of changes are looked at. */
const LOOK = 200;
/** The answers that must have come, whatever the seed. */
const EXPECTED = [
  ...['carried out', '400 VALIDATION_FAILED', '400 REFERENCE_MISSING', '401 AUTH_REQUIRED', '403 WRITE_BLOCKED'],
  ...['403 RULE_REFUSED', '403 OWNER_MISMATCH', '403 FIELD_FIXED', '403 FIELD_PROTECTED'],
  ...['404 DOCUMENT_NOT_FOUND', '409 DUPLICATE_VALUE', '409 DOCUMENT_REFERRED_TO'],
  '412 CHANGED_MEANWHILE',
];

const ITEM = [
  ...['title:String{maxLength:6}!', 'n:Number{min:0,max:9}=0', 'tags:Array(String){maxItems:3,uniqueItems}'],
  ...['slug:String&', 'state:String{enum:open|closed}=open', 'by:String=user.id@fixed', 'team:String'],
  ...['board:Ref(boards){onDelete:trash}', 'also:Ref(boards){onDelete:unset}', 'kept:Ref(boards){onDelete:restrict}'],
];
const teams = (more = ''): string => `doc.team in members[user = user.id${more}].team`;
const MINE_OR_OPEN = 'doc.by = user.id or doc.state = "open"';

async function buildCollections(test: TestApp, { project }: Awaited<ReturnType<typeof buildProject>>) {
  const build = async (name: string, specs: string[], more: object): Promise<Collection> => {
    await buildCollection(test.app, project, { name, fields: specs.map(parseFieldSpec), ...more });
    return setChanges(test.app, project._id, name, { on: true });
  };
  const members = ['team:String!', 'user:String!', 'role:String{enum:viewer|editor|owner}!'];
  const server = { access: 'server-only' };
  const uniques = [{ fields: ['team', 'title'], where: { state: 'open' } }];
  return {
    members: await build('members', members, { ...server, uniques: [['team', 'user']] }),
    boards: await build('boards', ['name:String{maxLength:6}'], {
      rules: { read: 'user', create: 'nobody', update: 'user', delete: 'user' },
    }),
    plain: await build('plain', [...ITEM, 'level:Number'], { ...server, uniques }),
    owned: await build('owned', [...ITEM, 'level:Number', 'owner:String'], {
      ...{ rls: { mode: 'private', ownerField: 'owner' }, uniques },
    }),
    ruled: await build('ruled', [...ITEM, 'level:Number@write(doc.state = "closed")'], {
      rules: { read: MINE_OR_OPEN, create: 'user', update: MINE_OR_OPEN, delete: 'doc.by = user.id' },
      uniques,
    }),
    shared: await build('shared', [...ITEM, `level:Number@write(${teams(' and role = "owner"')})`], {
      rules: {
        ...{ read: teams(), create: teams(), update: teams(' and role in ["editor", "owner"]') },
        delete: teams(' and role = "owner"'),
      },
      uniques,
    }),
  };
}

/** What the model says of writes that are carried out together, and the state after them. */
function judge(
  state: ModelState,
  writer: ModelWriter,
  writes: readonly ModelWrite[],
  hasUniques = true,
): [string, ModelState] {
  const next = structuredClone(state);
  const ahead = structuredClone(state);
  try {
    const planned = writes.map((write) => {
      // An upsert is planned by what those before it leave.
      const run = planWrite(writer, write, hasUniques, ahead);
      told(() => run(ahead));
      return run;
    });
    for (const run of planned) run(next);
    return ['carried out', next];
  } catch (error) {
    if (error instanceof ModelRefusal) return [error.message, state];
    throw error;
  }
}

/** The refusal of work; null for none. */
function told(work: () => void): string | null {
  try {
    work();
    return null;
  } catch (error) {
    if (error instanceof ModelRefusal) return error.message;
    throw error;
  }
}

/** The refusals of a batch with upserts: which of several is told first depends on when they are planned. */
function refusalsOf(state: ModelState, writer: ModelWriter, writes: readonly ModelWrite[]): unknown[] {
  if (writes.length === 1 || !writes.some(({ op }) => op === 'upsert')) return [];
  // Of a document that the batch has changed before, somebody unknown is told what is wrong with the update.
  const ofUpdate = writer === undefined ? ['400 VALIDATION_FAILED'] : [];
  const ofWrites = [true, false].flatMap((hasUniques) => {
    const next = structuredClone(state);
    return writes.map((write) => {
      const refusal = told(() => planWrite(writer, write, hasUniques, next)(next));
      // An upsert after a removal goes by it, whether or not that will be refused.
      if (refusal && write.op === 'trash') delete next[write.collection]![write.id];
      return refusal;
    });
  });
  return [...ofWrites, ...ofUpdate];
}

it(
  'stores, refuses and tells of what the contract says, for any write alone, in bulk and in batches',
  async () => {
    const seed = openSeed('write model');
    const random = openRandom(seed);
    const test = await useTestApp();
    const built = await buildProject(test.app);
    const { project, publishable, secret } = built;
    const users = [new ObjectId(), new ObjectId()];
    const accounts = users.map((_id) => ({ _id, email: `${_id.toHexString()}@a.test`, isDeleted: false, _bsvc: {} }));
    await test.app.db.collection(documentsName(defaultUsersCollection(project._id))).insertMany(accounts as never);
    const collections: Record<string, Collection> = await buildCollections(test, built);

    const [ada, bob] = users.map((id) => id.toHexString()) as [string, string];
    const tokens = new Map([ada, bob].map((id) => [id, signAccessToken(test.app, project, id, 86_400_000)]));
    const headersOf = (writer: ModelWriter): Record<string, string> => {
      if (writer === null) return { 'x-api-key': secret };
      const key = { 'x-api-key': publishable };
      return writer === undefined ? key : { ...key, authorization: `Bearer ${tokens.get(writer)}` };
    };
    const followers = Object.keys(collections).map((name) => openFollower(test, name, headersOf(null)));
    let state: ModelState = Object.fromEntries(Object.keys(MODEL).map((name) => [name, {}]));
    const versions = new Map<string, string>();
    const reached: Record<string, number> = {};

    async function send(writer: ModelWriter, { writes, as, more }: Chosen) {
      const [first] = writes as [ModelWrite];
      const tagOf = ({ id, isFresh }: ModelWrite): string | undefined =>
        isFresh === undefined ? undefined : `"${isFresh ? versions.get(id) : '2001-01-01T00:00:00.000Z'}"`;
      const { op, collection, id, body } = first;
      const path = `/api/data/${collection}`;
      const [method, to, sent] = ((): ['post' | 'put' | 'patch' | 'delete', string, object?] => {
        if (as === 'batch') {
          const operations = writes.map((each) => ({
            ...{ op: each.op === 'trash' ? 'remove' : each.op, collection: each.collection, by: each.by },
            ...(each.op !== 'insert' && each.op !== 'upsert' && { id: each.id }),
            body: each.op === 'insert' ? { _id: each.id, ...each.body } : each.body,
          }));
          return ['post', '/api/batch', { operations }];
        }
        if (as === 'bulk') return ['post', `${path}/bulk`, writes.map((each) => each.body)];
        if (as === 'matching') {
          const filter = `?team=${more}&confirm=${writes.length}`;
          if (op === 'update') return ['patch', `${path}${filter}`, body];
          return ['delete', `${path}${filter}${op === 'remove' ? '&permanent=true' : ''}`];
        }
        if (op === 'insert') return ['post', path, { _id: id, ...body }];
        if (op === 'upsert') return ['post', `${path}?upsert=${first.by!.join()}`, body];
        if (op === 'update') return [more === 'put' ? 'put' : 'patch', `${path}/${id}`, body];
        if (op === 'recover') return ['patch', `${path}/${id}/recover`];
        return ['delete', `${path}/${id}${op === 'remove' ? '?permanent=true' : ''}`];
      })();
      const match = as === 'one' && tagOf(first) ? { 'if-match': tagOf(first)! } : {};
      const request = supertest(test.server)
        [method](to)
        .set({ ...headersOf(writer), ...match });
      const reply = (await (sent ? request.send(sent) : request)) as {
        status: number;
        body: { code?: string; _id?: string; data?: { ids?: string[]; results?: { id: string }[] } };
      };
      const answered = reply.status < 300 ? 'carried out' : `${reply.status} ${reply.body.code}`;
      const { _id, data } = reply.body;
      const ids = data?.ids ?? data?.results?.map((result) => result.id) ?? (op === 'upsert' && _id ? [_id] : null);
      return { answered, ids, text: JSON.stringify(reply.body) };
    }

    /** What is stored in collections is what the model says, and what did not change has its version. */
    async function compare(
      names: Iterable<string>,
      old: ModelState,
      written: ReadonlySet<string>,
      what: string,
    ): Promise<void> {
      for (const name of names) {
        const collection = collections[name]!;
        const found = await storedDocuments(test.app, collection)
          .find({ isDeleted: { $in: [false, true] } })
          .toArray();
        const ids = found.map(({ _id, _bsvc: _, createdAt: _at, deletedAt, updatedAt, ...fields }) => {
          const id = _id.toHexString();
          const { trashedWith: _with, ...wanted } = state[name]![id] ?? {};
          const document = { _id: id, ...fields };
          if (!isDeepStrictEqual(document, wanted)) expect(document, `${name}: ${what}`).toEqual(wanted);
          const [was, is] = [versions.get(id), updatedAt.toISOString()];
          const stays = !written.has(id) && isDeepStrictEqual(old[name]![id], state[name]![id]);
          const isLater =
            was === undefined || (stays ? is === was : is > was || isDeepStrictEqual(old[name]![id], state[name]![id]));
          if (!isLater || (deletedAt !== null) !== fields.isDeleted) {
            expect(`${id} ${is}, ${String(deletedAt)}`, `${name}, ${was} before: ${what}`).toBe('another version');
          }
          versions.set(id, is);
          return id;
        });
        expect(ids.sort(), `${name}: ${what}`).toEqual(Object.keys(state[name]!).sort());
      }
    }

    for (let run = 0; run < RUNS; run++) {
      const writer = random.pick<ModelWriter>([null, null, ada, ada, bob, bob, undefined]);
      const chosen = chooseWrites(random, state, writer, [ada, bob]);
      let { writes } = chosen;
      const old = state;
      const was = writes.map(({ collection, id }) => old[collection]![id]);
      const { answered, ids, text } = await send(writer, chosen);
      if (ids) writes = writes.map((write, at) => ({ ...write, id: ids[at]! }));
      const [said, next] = judge(old, writer, writes);
      state = next;
      const what = `seed ${seed}, run ${run}: ${JSON.stringify({ writer, ...chosen, was })} ${text}`;
      // On a MongoDB all of a transaction is decided about before its uniques are.
      const isBefore = isWire && said === '409 DUPLICATE_VALUE' && answered === judge(old, writer, writes, false)[0];
      const isOther = said !== 'carried out' && refusalsOf(old, writer, writes).includes(answered);
      if (!isBefore && !isOther) expect(answered, what).toBe(said);
      reached[said] = (reached[said] ?? 0) + 1;
      if (said === 'carried out' && writes.some(({ collection }) => collection === 'boards')) {
        await drainJobs(test.app);
        for (const { op, id } of writes) {
          if (op === 'recover' && state.boards![id]?.isDeleted === false) returnWith(id, state);
        }
      }
      const isLook = (run + 1) % LOOK === 0;
      const touched = new Set(writes.map(({ collection }) => collection));
      // Boards take others with them.
      const names = isLook || touched.has('boards') ? Object.keys(collections) : touched;
      await compare(names, old, new Set(said === 'carried out' ? writes.map(({ id }) => id) : []), what);
      if (!isLook) continue;
      await test.app.backgroundTasks.idle();
      for (const follower of followers) {
        await follower.catchUp();
        expect(follower.known, what).toEqual(await follower.list());
      }
    }
    console.log(`write model: ${JSON.stringify(reached)}`);
    expect(reached['carried out']! / RUNS).toBeGreaterThan(0.25);
    expect(Object.keys(reached)).toEqual(expect.arrayContaining(EXPECTED));
  },
  120_000 + 400 * RUNS,
);
