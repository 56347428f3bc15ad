import { isDeepStrictEqual } from 'node:util';
import { ObjectId } from 'bson';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { addCollection } from '../../world/collections.js';
import { signAccessToken } from '../../world/users.js';
import { buildProject } from '../../helpers/build-project.js';
import { eventually } from '../../helpers/eventually.js';
import { openRandom, type Random } from '../../helpers/random.js';
import { openSeed } from '../../helpers/seed.js';
import { useTestApp } from '../../helpers/use.js';

const SEED = openSeed('row-level security as rules');
const WORLDS = Number(process.env.BSVC_TEST_RUNS ?? 4);
const REQUESTS = 60;

const test = await useTestApp();

/** Statuses that were met, by what was asked. */
const reached = new Map<string, Set<number>>();

interface Reply {
  status: number;
  text: string;
  body: {
    _id?: string;
    code?: string;
    data?: { ids?: string[]; cursor?: string; items?: { id: string; document?: object }[] };
  };
}

/** A request without its collection; `%` stands there for the id of a document, which is another one in each. */
interface Asked {
  kind: string;
  who: string;
  method: 'get' | 'post' | 'patch' | 'delete';
  path: string;
  body?: object;
  /** Which document. */
  at: number;
}

/** A collection, and the ids of its documents in the order in which both have got them. */
interface Side {
  name: string;
  ids: string[];
  /** Of the feed, by who reads it, and the documents as its changes told them. */
  cursors: Map<string, string>;
  copies: Map<string, Map<string, object>>;
}

interface World {
  sides: [Side, Side];
  users: Record<string, Record<string, string>>;
  ids: string[];
  field: string;
  isPrivate: boolean;
}

async function buildWorld(random: Random): Promise<World> {
  const owner = await buildProject(test.app);
  const { project, publishable, secret } = owner;
  const ids = [new ObjectId().toHexString(), new ObjectId().toHexString()];
  const key = { 'x-api-key': publishable };
  const bearer = (id: string, ms: number) => `Bearer ${signAccessToken(test.app, project, id, ms)}`;
  const users = {
    ada: { ...key, authorization: bearer(ids[0]!, 600_000) },
    bob: { ...key, authorization: bearer(ids[1]!, 600_000) },
    nobody: key,
    expired: { ...key, authorization: bearer(ids[0]!, -1_000) },
    server: { 'x-api-key': secret },
  };
  const mode = random.pick(['private', 'public-read'] as const);
  const field = random.pick(['owner', 'userId']);
  const own = `doc.${field} = user.id`;
  const others = [
    { name: 'title', type: 'String' as const },
    { name: 'n', type: 'Number' as const },
  ];
  const shared = { mode: random.pick(['enforced', 'flexible'] as const), changes: { on: true }, indexes: ['n'] };
  const text = { name: field, type: 'String' as const };
  await addCollection(test.app, project, {
    ...{ ...shared, name: 'plain', fields: [text, ...others] },
    rls: { mode, ownerField: field },
  });
  await addCollection(test.app, project, {
    ...{ ...shared, name: 'ruled', fields: [{ ...text, stamp: 'user.id', fixed: true }, ...others] },
    rules: { read: mode === 'private' ? own : 'anyone', create: own, update: own, delete: own },
  });
  const side = (name: string): Side => ({ name, ids: [], cursors: new Map(), copies: new Map() });
  return { sides: [side('plain'), side('ruled')], users, ids, field, isPrivate: mode === 'private' };
}

function generate(random: Random, { sides, ids: [ada, bob], field, isPrivate }: World): Asked {
  const who = random.pick(['ada', 'ada', 'bob', 'bob', 'nobody', 'expired', 'server']);
  const owner = (): object => (random.chance(0.3) ? { [field]: random.pick([ada, bob, null, '']) } : {});
  const values = (more: object): object => ({
    title: random.pick(['a', 'b']),
    ...(random.chance(0.7) && { n: random.below(5) }),
    ...more,
  });
  // The secret key stands above rules; an owner under row-level security stays whoever asks.
  const isServer = who === 'server';
  const filter = random.pick([
    '',
    'title=a',
    'n_gte=2',
    `${field}=${bob}`,
    `${field}_in=${ada},${bob}`,
    `${field}_exists=false`,
  ]);
  const at = random.below(Math.max(1, sides[0].ids.length));
  // Under row-level security everybody who reads a collection reads its trash too; rules ask who may delete.
  const trash = isPrivate ? random.pick(['', '', '&include_deleted=true']) : '';
  return random.pick<Omit<Asked, 'who' | 'at'>>(
    [
      { kind: 'create', method: 'post', path: '', body: values(owner()) },
      { kind: 'create', method: 'post', path: '', body: values(owner()) },
      { kind: 'bulk', method: 'post', path: '/bulk', body: [values(owner()), values(owner())] },
      { kind: 'get', method: 'get', path: '/%' },
      { kind: 'list', method: 'get', path: `?${filter}${trash}&sort=${random.pick(['n', '-n', 'createdAt'])}&limit=7` },
      { kind: 'count', method: 'get', path: `?${filter}${trash}&count=true` },
      {
        kind: 'aggregate',
        method: 'post',
        path: '/aggregate',
        body: { pipeline: [{ $match: { n: { $gte: 1 } } }, { $count: 'n' }] },
      },
      { kind: 'changes', method: 'get', path: '/changes?' },
      { kind: 'update', method: 'patch', path: '/%', body: values(isServer ? {} : owner()) },
      { kind: 'update', method: 'patch', path: '/%', body: { $inc: { n: 1 } } },
      {
        kind: 'update',
        method: 'patch',
        path: '/%',
        body: { $unset: [isServer ? 'title' : random.pick(['title', field])] },
      },
      { kind: 'trash', method: 'delete', path: '/%' },
      { kind: 'remove', method: 'delete', path: '/%?permanent=true' },
      { kind: 'recover', method: 'patch', path: '/%/recover' },
    ].map((each) => ({ ...each, who, at })) as Asked[],
  ) as Asked;
}

async function send(side: Side, asked: Asked, users: Record<string, Record<string, string>>): Promise<Reply> {
  const { kind, who, method, path, body, at } = asked;
  const since = kind === 'changes' ? side.cursors.get(who) : undefined;
  const whole = path.replace('%', side.ids[at] ?? 'f'.repeat(24)) + (since ? `since=${encodeURIComponent(since)}` : '');
  const call = request(test.server)[method](`/api/data/${side.name}${whole}`).set(users[who]!);
  const reply = (await (body === undefined ? call : call.send(body))) as Reply;
  const { _id, data } = reply.body;
  if (reply.status === 201) side.ids.push(...(_id === undefined ? (data?.ids ?? []) : [_id]));
  if (kind === 'changes' && reply.status === 200) {
    side.cursors.set(who, data!.cursor!);
    const copy = side.copies.get(who) ?? new Map<string, object>();
    side.copies.set(who, copy);
    for (const { id, document } of data!.items!) {
      if (document) copy.set(id, document);
      else copy.delete(id);
    }
  }
  return reply;
}

/** Text without what is another one of the same: ids, times, cursors and the request's id. */
function plain(text: string, { ids }: Side): string {
  const known = ids.reduce((all, id, at) => all.replaceAll(id, `#${at}`), text);
  return known
    .replace(/"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, '"time"')
    .replace(/"(cursor|nextCursor|requestId)":"[^"]*"/g, '"$1":""');
}

/** What somebody who has followed the changes has of the documents. */
const copyOf = (side: Side, who: string): string[] =>
  [...(side.copies.get(who) ?? [])].map((entry) => plain(JSON.stringify(entry), side)).toSorted();

/** A MongoDB appends changes to the log after their commits, so that one page may lack what the next one has. */
const IS_LATER = process.env.BSVC_TEST_TRANSPORT === 'wire';

/**
 * Errors because of who asks; which of them a foreign write gets is one of the codes that differ (rules.md 11).
 */
const ACCESS = [401, 403, 404];
const WRITES = ['create', 'bulk', 'update', 'trash', 'remove', 'recover'];

const statusOf = ({ status }: Reply, { kind }: Asked): number | string =>
  WRITES.includes(kind) && ACCESS.includes(status) ? 'no access' : status;

/** rules.md 13, property 7. */
describe('row-level security and its rules', () => {
  it.each(Array.from({ length: WORLDS }, (_, at) => at))('differ in codes only (world %i)', async (at) => {
    const random = openRandom(SEED).fork(`world ${at}`);
    const world = await buildWorld(random);
    const { users } = world;
    const [first, second] = world.sides;
    for (let n = 0; n < REQUESTS; n++) {
      const asked = generate(random, world);
      const [plainly, ruled] = [await send(first, asked, users), await send(second, asked, users)];
      const what = JSON.stringify([asked, plainly.text, ruled.text]);
      if (plainly.status < 300 && !(asked.kind === 'changes' && IS_LATER)) {
        expect(plain(ruled.text, second), what).toEqual(plain(plainly.text, first));
      }
      expect(statusOf(ruled, asked), what).toBe(statusOf(plainly, asked));
      reached.set(asked.kind, (reached.get(asked.kind) ?? new Set()).add(plainly.status));
    }
    const all: Asked = {
      kind: 'list',
      who: 'server',
      method: 'get',
      path: '?include_deleted=true&sort=createdAt&limit=1000',
      at: 0,
    };
    const [stored, other] = [await send(first, all, users), await send(second, all, users)];
    expect(plain(other.text, second)).toEqual(plain(stored.text, first));
    for (const who of first.cursors.keys()) {
      const changes: Asked = { kind: 'changes', who, method: 'get', path: '/changes?', at: 0 };
      await eventually(`${who} has the same of both`, async () => {
        for (const side of world.sides) await send(side, changes, users);
        return isDeepStrictEqual(copyOf(second, who), copyOf(first, who));
      });
    }
  });

  it('was carried out and refused', () => {
    console.log(JSON.stringify([...reached].map(([kind, statuses]) => [kind, ...statuses])));
    for (const kind of ['create', 'update', 'trash']) {
      const statuses = [...(reached.get(kind) ?? [])];
      expect([statuses.some((status) => status < 300), statuses.some((status) => status > 400)], kind).toEqual([
        true,
        true,
      ]);
    }
  });
});
