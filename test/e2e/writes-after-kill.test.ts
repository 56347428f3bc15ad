import { ObjectId } from 'bson';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type App, migrate } from '../world/app.js';
import { type Collection, documentsName, parseFieldSpec } from '../world/collections.js';
import { type JobRecord, drainJobs } from '../world/jobs.js';
import { jobStore } from '../world/stored.js';
import { CASCADE_REFERENCES } from '../../src/features/documents/store/referring-documents.js';
import { buildCollection, buildProject, storedDocuments, type TestProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { applyItem, type FeedItem } from '../helpers/feed-follower.js';
import { findFreePort } from '../helpers/listen.js';
import { openRandom, type Random } from '../helpers/random.js';
import { startService, type RunningService } from '../helpers/run-binary.js';
import { openSeed } from '../helpers/seed.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';
import { withApp } from '../helpers/with-app.js';

const ROUNDS = process.env.BSVC_TEST_RUNS;
const CLIENTS = 4;
const LATER_MS = 60 * 60 * 1000;
const COUNTERS = 3;
const START = 100;

const SCHEMA = {
  counters: ['n:Number{min:0,integer}!'],
  totals: ['boards:Number{min:0}=0', 'items:Number{min:0}=0'],
  boards: ['tag:String!&', 'size:Number!'],
  cards: ['board:Ref(boards)!{onDelete:trash}', 'tag:String!'],
  rents: ['board:Ref(boards)!{onDelete:restrict}'],
  notes: ['board:Ref(boards){onDelete:unset}'],
  items: ['tag:String!', 'size:Number!'],
} as const;
type Name = keyof typeof SCHEMA;

let dir: TempDir;
let store: Record<string, string>;
let owner: TestProject;
let collections: Record<Name, Collection>;
let totals: string;
let counters: string[];

const newId = (): string => new ObjectId().toHexString();

beforeEach(async () => {
  dir = await openTempDir();
  store = {
    BSVC_DATA_DIR: dir.path,
    BSVC_LOG_LEVEL: 'silent',
    BSVC_SECRET_KEY: '0123456789abcdef0123456789abcdef',
    // No power is lost here.
    BSVC_DURABILITY: 'relaxed',
  };
  [totals, counters] = [newId(), Array.from({ length: COUNTERS }, newId)];
  await withApp(store, async (app) => {
    await migrate(app.db);
    owner = await buildProject(app);
    const built: [string, Collection][] = [];
    for (const [name, specs] of Object.entries(SCHEMA)) {
      built.push([name, await buildCollection(app, owner.project, { name, fields: specs.map(parseFieldSpec) })]);
    }
    collections = Object.fromEntries(built) as Record<Name, Collection>;
  });
});
afterEach(() => dir.remove());

interface Operation {
  op: 'insert' | 'update' | 'remove' | 'recover';
  collection: Name;
  id?: string;
  body?: Record<string, unknown>;
}
/** What one client sends at a time, and what it expects of it. */
interface Act {
  key: string;
  operations: Operation[];
  /** The status, where it is none of success. */
  refused?: number;
  done: () => void;
}

interface Reply {
  status: number;
  body: { data?: Record<string, unknown> };
}

/** Null when the server was killed under it. */
async function call(url: string, method: string, path: string, body?: object, key?: string): Promise<Reply | null> {
  try {
    const reply = await fetch(`${url}/api/${path}`, {
      method,
      headers: {
        ...{ 'x-api-key': owner.secret, 'content-type': 'application/json' },
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: reply.status, body: (await reply.json()) as Reply['body'] };
  } catch (error) {
    if (error instanceof TypeError || error instanceof SyntaxError) return null;
    throw error;
  }
}

/** A client with boards of its own, and what it knows to be stored. */
class Client {
  readonly boards = new Map<string, { tag: string; size: number; isThere: boolean; rent: string | null }>();
  readonly counters = new Map<string, number>();
  items = 0;
  acts = 0;
  /** What was sent last, as long as it is not answered. */
  unanswered: Act | null = null;

  constructor(
    readonly name: string,
    readonly random: Random,
  ) {}

  next(): Act {
    const key = `${this.name}-${this.acts++}`;
    const drawn = this.random.below(10);
    const there = [...this.boards].filter(([, { isThere }]) => isThere);
    const gone = [...this.boards].filter(([, { isThere }]) => !isThere);
    if (this.acts === 1) return this.make(key, newId());
    // Chance alone may not meet it.
    if (this.acts === 2) return this.remove(key, ...there[0]!, true);
    if (drawn < 3 || there.length === 0) return this.make(key, this.random.chance(0.4) ? newId() : null);
    if (drawn < 6) return this.move(key);
    if (drawn < 7 && gone.length > 0) return this.takeBack(key, this.random.pick(gone)[0]);
    return this.remove(key, ...this.random.pick(there));
  }

  /** A board with cards, items, a note, at times a rent: all of them or none. */
  make(key: string, rent: string | null): Act {
    const board = newId();
    const size = 1 + this.random.below(5);
    const many = (collection: Name, body: object): Operation[] =>
      Array.from({ length: size }, () => ({ op: 'insert', collection, body: { _id: newId(), ...body } }));
    return {
      key,
      operations: [
        { op: 'insert', collection: 'boards', body: { _id: board, tag: key, size } },
        ...many('cards', { board, tag: key }),
        ...many('items', { tag: key, size }),
        { op: 'insert', collection: 'notes', body: { board } },
        ...(rent === null ? [] : [{ op: 'insert' as const, collection: 'rents' as const, body: { _id: rent, board } }]),
        { op: 'update', collection: 'totals', id: totals, body: { $inc: { boards: 1, items: size } } },
      ],
      done: () => {
        this.boards.set(board, { tag: key, size, isThere: true, rent });
        this.items += size;
      },
    };
  }

  move(key: string): Act {
    const [from, to] = [this.random.pick(counters), this.random.pick(counters)];
    const by = 1 + this.random.below(3);
    const add = (id: string, n: number): Operation => ({
      ...{ op: 'update', collection: 'counters', id },
      body: { $inc: { n } },
    });
    const count = (id: string, n: number): void => void this.counters.set(id, (this.counters.get(id) ?? 0) + n);
    return {
      key,
      operations: [add(from, by), add(to, -by)],
      done: () => {
        count(from, by);
        count(to, -by);
      },
    };
  }

  /** With its rent, or in vain as long as that is there. */
  remove(key: string, id: string, { rent }: { rent: string | null }, isVain = this.random.chance(0.5)): Act {
    const board = this.boards.get(id)!;
    const operations: Operation[] = [
      { op: 'remove', collection: 'boards', id },
      { op: 'update', collection: 'totals', id: totals, body: { $inc: { boards: -1 } } },
    ];
    if (rent !== null && isVain) return { key, operations, refused: 409, done: () => undefined };
    if (rent !== null) operations.unshift({ op: 'remove', collection: 'rents', id: rent });
    return {
      key,
      operations,
      done: () => Object.assign(board, { isThere: false, rent: null }),
    };
  }

  takeBack(key: string, id: string): Act {
    return {
      key,
      operations: [
        { op: 'recover', collection: 'boards', id },
        { op: 'update', collection: 'totals', id: totals, body: { $inc: { boards: 1 } } },
      ],
      done: () => (this.boards.get(id)!.isThere = true),
    };
  }

  /** Sends one act after the other, first again what was not answered; ends with the server. */
  async workUntilGone(url: string, between: (client: Client) => Promise<void>, reached: Reached): Promise<void> {
    while (await this.act(url, this.unanswered ?? this.next(), reached)) await between(this);
  }

  /** False when the server was killed under it. */
  async act(url: string, act: Act, reached: Reached): Promise<boolean> {
    const isAgain = act === this.unanswered;
    if (isAgain) reached.repeated++;
    this.unanswered = act;
    const reply = await call(url, 'POST', 'batch', { operations: act.operations }, act.key);
    if (!reply) return false;
    expect(act.refused ?? 200, JSON.stringify([act, reply])).toBe(reply.status);
    this.unanswered = null;
    act.done();
    reached[act.refused === undefined ? 'answered' : 'refused']++;
    return true;
  }
}

interface Reached {
  answered: number;
  refused: number;
  /** Acts that were sent again after a kill. */
  repeated: number;
  late: number;
}

/** Refers to a board that others may be removing. */
async function referToAny(url: string, clients: readonly Client[], random: Random, reached: Reached): Promise<void> {
  const board = random.pick(clients.flatMap((client) => [newId(), ...client.boards.keys()]));
  const collection = random.pick(['notes', 'cards'] as const);
  const reply = await call(url, 'POST', `data/${collection}`, { board, ...(collection === 'cards' && { tag: '' }) });
  if (!reply) return;
  expect([201, 400]).toContain(reply.status);
  if (reply.status === 400) reached.late++;
}

/** Notes what one read at a time shows of half batches. */
async function look(url: string, seen: string[]): Promise<void> {
  const group = { $group: { _id: null, n: { $sum: '$n' } } };
  const sums = await call(url, 'POST', 'data/counters/aggregate', { pipeline: [group] });
  const groups = { $group: { _id: '$tag', n: { $sum: 1 }, size: { $max: '$size' } } };
  const tags = sums && (await call(url, 'POST', 'data/items/aggregate', { pipeline: [groups] }));
  if (!tags) return;
  const [sum] = sums.body.data as unknown as { n: number }[];
  if (sum!.n !== COUNTERS * START) seen.push(`the counters: ${sum!.n}`);
  for (const { _id, n, size } of tags.body.data as unknown as { _id: string; n: number; size: number }[]) {
    if (n !== size) seen.push(`${_id}: ${n} of ${size}`);
  }
}

/** Follows the items by their changes over all kills; half a batch is never known once a page is the last. */
function openItemsFollower(seen: string[]): (url: string) => Promise<void> {
  const known = new Map<string, Record<string, unknown>>();
  let cursor: string | null = null;
  return async (url) => {
    for (;;) {
      const since = cursor === null ? '' : `&since=${encodeURIComponent(cursor)}`;
      const reply = await call(url, 'GET', `data/items/changes?limit=1000&wait=5${since}`);
      if (!reply) return;
      expect(reply.status, JSON.stringify(reply.body)).toBe(200);
      const page = reply.body.data as unknown as { items: FeedItem[]; cursor: string; more: boolean };
      for (const item of page.items) applyItem(known, item);
      cursor = page.cursor;
      if (page.more) continue;
      const counts = new Map<string, number>();
      for (const { tag } of known.values()) counts.set(tag as string, (counts.get(tag as string) ?? 0) + 1);
      for (const { tag, size } of known.values()) {
        if (counts.get(tag as string) !== size) seen.push(`told of ${tag as string}: ${counts.get(tag as string)}`);
      }
    }
  };
}

/** The database in a process of its own behind its wire transport, as a MongoDB is one. */
async function startDatabase(): Promise<{ database: RunningService; env: Record<string, string> }> {
  const port = await findFreePort();
  const env = { ...store, BSVC_ENGINE_LISTEN: `127.0.0.1:${port}` };
  const database = await startService(['serve', '--port', '0', '--no-worker'], env);
  return { database, env: { ...store, MONGODB_URI: `mongodb://127.0.0.1:${port}/?directConnection=true` } };
}

describe('batches and references while servers and their workers are killed', { timeout: 240_000 }, () => {
  it.each(['embedded', 'MongoDB'])('are whole, exact and nowhere dangling: %s', async (kind) => {
    const isEmbedded = kind === 'embedded';
    const seed = openSeed(`writes after kill, ${kind}`);
    const random = openRandom(seed);
    const { database, env } = isEmbedded ? { database: null, env: store } : await startDatabase();
    const clients = Array.from({ length: CLIENTS }, (_, n) => new Client(`c${n}`, random.fork(`c${n}`)));
    const reached: Reached = { answered: 0, refused: 0, repeated: 0, late: 0 };
    const seen: string[] = [];
    const follow = openItemsFollower(seen);
    const rounds = Number(ROUNDS ?? (isEmbedded ? 3 : 2));
    for (let round = 0; round < rounds; round++) {
      const server = await startService(['serve', '--port', '0'], env);
      const { url } = server.ready;
      if (round === 0) await fill(url);
      // Kills are what this is about, not what lies between them.
      const enough = reached.answered + 12 + random.below(12);
      const between = async (client: Client): Promise<void> => {
        if (client.random.chance(0.6)) return;
        if (client.random.chance(0.5)) await look(url, seen);
        else await referToAny(url, clients, client.random, reached);
      };
      const work = clients.map((client) => client.workUntilGone(url, between, reached));
      // The log of a MongoDB's changes is filled one document after the other.
      if (isEmbedded) work.push(follow(url));
      const failed = Promise.all(work).then(() => undefined);
      await Promise.race([eventually('acts are answered', () => reached.answered > enough, 60_000), failed]);
      await server.stop('SIGKILL');
      await failed;
    }
    const server = await startService(['serve', '--port', '0'], env);
    for (const client of clients) {
      if (client.unanswered) await client.act(server.ready.url, client.unanswered, reached);
    }
    await server.stop('SIGKILL');
    await database?.stop('SIGKILL');
    console.log(`writes after kill, ${kind}: ${JSON.stringify(reached)}`);
    expect(seen, `seed ${seed}`).toEqual([]);
    expect(Math.min(reached.answered, reached.refused, reached.repeated), JSON.stringify(reached)).toBeGreaterThan(0);
    await expectExact(clients);
  });
});

async function fill(url: string): Promise<void> {
  await call(url, 'POST', 'data/totals', { _id: totals });
  for (const _id of counters) await call(url, 'POST', 'data/counters', { _id, n: START });
}

/** What is stored once the jobs have ended is what the clients know. */
async function expectExact(clients: readonly Client[]): Promise<void> {
  const unsettled = { name: CASCADE_REFERENCES.name, state: { $ne: 'done' as const } };
  const settle = (app: App): Promise<JobRecord[]> => drainJobs(app).then(() => jobStore(app).find(unsettled).toArray());
  // A job whose worker was killed is tried again later, by its own delays.
  for (let at = 1, left = 1; left > 0; at++) {
    const jobs: JobRecord[] = await withApp(store, settle, at * LATER_MS);
    expect(jobs.filter(({ state }) => state === 'dead')).toEqual([]);
    left = jobs.length;
  }
  await withApp(store, async (app) => {
    const all = (name: Name): Promise<Record<string, unknown>[]> =>
      storedDocuments(app, collections[name]).find({}).toArray();
    const boards = clients.flatMap((client) => [...client.boards]);
    const there = new Set(boards.filter(([, { isThere }]) => isThere).map(([id]) => id));
    const shown = (documents: Record<string, unknown>[]) => documents.filter(({ isDeleted }) => isDeleted === false);
    const idsOf = (documents: Record<string, unknown>[]) => documents.map(({ _id }) => String(_id)).sort();

    const storedBoards = await all('boards');
    expect(idsOf(storedBoards)).toEqual(boards.map(([id]) => id).sort());
    expect(idsOf(shown(storedBoards))).toEqual([...there].sort());
    const items = clients.reduce((sum, client) => sum + client.items, 0);
    expect(await all('items')).toHaveLength(items);
    const [total] = await all('totals');
    expect(total).toMatchObject({ boards: there.size, items });
    for (const counter of await all('counters')) {
      const moved = clients.map((client) => client.counters.get(String(counter._id)) ?? 0);
      expect(counter.n).toBe(moved.reduce((sum, n) => sum + n, START));
    }
    const cards = await all('cards');
    for (const [id, { size, isThere, tag }] of boards) {
      const own = cards.filter((card) => card.board === id && card.tag === tag);
      expect([tag, own.length, shown(own).length]).toEqual([tag, size, isThere ? size : 0]);
    }
    for (const name of ['cards', 'notes', 'rents'] as const) {
      const held = shown(await all(name)).map(({ board }) => (board ?? null) as string | null);
      expect(
        held.filter((board) => board !== null && !there.has(board)),
        name,
      ).toEqual([]);
    }
    // What the quota counts.
    for (const collection of Object.values(collections)) {
      const raw = await storedDocuments(app, collection).find({}, { raw: true }).toArray();
      const bytes = raw.reduce((sum, document) => sum + (document as unknown as Buffer).length, 0);
      expect(await app.db.measure(documentsName(collection))).toEqual({ documents: raw.length, bytes });
    }
  });
}
