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
import { openRandom, type Random } from '../helpers/random.js';
import { startDatabase, startService } from '../helpers/run-binary.js';
import { openSeed } from '../helpers/seed.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';
import { withApp } from '../helpers/with-app.js';

const ROUNDS = process.env.BSVC_TEST_RUNS;
const CLIENTS = 4;
const LATER_MS = 60 * 60 * 1000;
const COUNTERS = 3;
const START = 100;
/** Documents of a bulk insert. */
const BULK = 40;

const SCHEMA = {
  counters: ['n:Number{min:0,integer}!'],
  totals: ['boards:Number{min:0}=0', 'items:Number{min:0}=0'],
  boards: ['tag:String!&', 'size:Number!'],
  cards: ['board:Ref(boards)!{onDelete:trash}', 'tag:String!'],
  rents: ['board:Ref(boards)!{onDelete:restrict}'],
  notes: ['board:Ref(boards){onDelete:unset}'],
  items: ['tag:String!', 'size:Number!', 'code:String&', 'at:Number'],
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
      const fields = specs.map(parseFieldSpec);
      const indexes = name === 'items' ? ['tag', 'at'] : [];
      built.push([name, await buildCollection(app, owner.project, { name, fields, indexes })]);
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
  path: string;
  body: object;
  status: number;
  done: () => void;
}
const batch = (key: string, operations: Operation[], done: () => void, status = 200): Act => ({
  ...{ key, path: 'batch', body: { operations }, status, done },
});

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
  bulks = 0;
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
    if (this.acts % 4 === 3) return this.bulk(key);
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
    const operations: Operation[] = [
      { op: 'insert', collection: 'boards', body: { _id: board, tag: key, size } },
      ...many('cards', { board, tag: key }),
      ...many('items', { tag: key, size }),
      { op: 'insert', collection: 'notes', body: { board } },
      ...(rent === null ? [] : [{ op: 'insert' as const, collection: 'rents' as const, body: { _id: rent, board } }]),
      { op: 'update', collection: 'totals', id: totals, body: { $inc: { boards: 1, items: size } } },
    ];
    return batch(key, operations, () => {
      this.boards.set(board, { tag: key, size, isThere: true, rent });
      this.items += size;
    });
  }

  /** In the order of `at` the documents of a bulk insert lie far apart. */
  bulk(key: string): Act {
    const body = Array.from({ length: BULK }, (_, n) => ({
      ...{ tag: key, size: BULK, code: `${key}-${n}`, at: (n * 7919) % 1000 },
    }));
    return { key, path: 'data/items/bulk', body, status: 201, done: () => this.bulks++ };
  }

  move(key: string): Act {
    const [from, to] = [this.random.pick(counters), this.random.pick(counters)];
    const by = 1 + this.random.below(3);
    const add = (id: string, n: number): Operation => ({
      ...{ op: 'update', collection: 'counters', id },
      body: { $inc: { n } },
    });
    const count = (id: string, n: number): void => void this.counters.set(id, (this.counters.get(id) ?? 0) + n);
    return batch(key, [add(from, by), add(to, -by)], () => {
      count(from, by);
      count(to, -by);
    });
  }

  /** With its rent, or in vain as long as that is there. */
  remove(key: string, id: string, { rent }: { rent: string | null }, isVain = this.random.chance(0.5)): Act {
    const board = this.boards.get(id)!;
    const operations: Operation[] = [
      { op: 'remove', collection: 'boards', id },
      { op: 'update', collection: 'totals', id: totals, body: { $inc: { boards: -1 } } },
    ];
    if (rent !== null && isVain) return batch(key, operations, () => undefined, 409);
    if (rent !== null) operations.unshift({ op: 'remove', collection: 'rents', id: rent });
    return batch(key, operations, () => Object.assign(board, { isThere: false, rent: null }));
  }

  takeBack(key: string, id: string): Act {
    const operations: Operation[] = [
      { op: 'recover', collection: 'boards', id },
      { op: 'update', collection: 'totals', id: totals, body: { $inc: { boards: 1 } } },
    ];
    return batch(key, operations, () => (this.boards.get(id)!.isThere = true));
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
    const reply = await call(url, 'POST', act.path, act.body, act.key);
    if (!reply) return false;
    expect(act.status, JSON.stringify([act, reply])).toBe(reply.status);
    this.unanswered = null;
    act.done();
    reached[act.status < 300 ? 'answered' : 'refused']++;
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

type Item = Record<string, unknown>;
type Note = (what: string) => void;

/** Notes of which batches and bulk inserts only a part is among the items. */
function noteParts(items: readonly Item[], note: Note): void {
  const counts = new Map<unknown, number>();
  for (const { tag } of items) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  for (const { tag, size } of items) {
    if (counts.get(tag) !== size) note(`${tag as string}: ${counts.get(tag)} of ${size as number}`);
  }
}

async function read<T>(url: string, path: string, pipeline?: object[]): Promise<T | null> {
  const reply = await call(url, pipeline ? 'POST' : 'GET', `data/${path}`, pipeline && { pipeline });
  return reply && (reply.body.data as T);
}

/** Ways to read; each notes what it shows of halves, and is false when the server was killed under it. */
const LOOKS: Record<string, (url: string, note: Note) => Promise<boolean>> = {
  async sum(url, note) {
    const sums = await read<{ n: number }[]>(url, 'counters/aggregate', [{ $group: { _id: null, n: { $sum: '$n' } } }]);
    if (sums && sums[0]!.n !== COUNTERS * START) note(`the counters: ${sums[0]!.n}`);
    return sums !== null;
  },
  async groups(url, note) {
    const group = { $group: { _id: '$tag', n: { $sum: 1 }, size: { $max: '$size' } } };
    const groups = await read<{ _id: string; n: number; size: number }[]>(url, 'items/aggregate', [group]);
    for (const { _id, n, size } of groups ?? []) if (n !== size) note(`${_id}: ${n} of ${size}`);
    return groups !== null;
  },
  async list(url, note) {
    const page = await read<{ items: Item[]; total: number }>(url, 'items?at_gte=0&sort=at&limit=1000');
    if (page && page.total % BULK !== 0) note(`a total of ${page.total}`);
    if (page?.total === page?.items.length) noteParts(page?.items ?? [], note);
    return page !== null;
  },
  async count(url, note) {
    const found = await read<{ count: number }>(url, 'items?count=true&at_gte=0');
    if (found && found.count % BULK !== 0) note(`a count of ${found.count}`);
    return found !== null;
  },
  /** By creation: new items come before its beginning. */
  async walk(url, note) {
    const items: Item[] = [];
    for (let cursor: string | null = 'start'; cursor !== null;) {
      const path: string = `items?limit=90&cursor=${encodeURIComponent(cursor)}`;
      const page: { items: Item[]; nextCursor: string | null } | null = await read(url, path);
      if (!page) return false;
      items.push(...page.items);
      cursor = page.nextCursor;
    }
    noteParts(items, note);
    return true;
  },
};

/** Reads in one way until the server is gone. */
async function readUntilGone(url: string, way: string, seen: string[]): Promise<void> {
  const note = (what: string): number => seen.push(`${way}: ${what}`);
  while (await LOOKS[way]!(url, note));
}

/** Follows the items by their changes over all kills; half a batch is never known once a page is the last. */
function openItemsFollower(seen: string[]): (url: string) => Promise<void> {
  const known = new Map<string, Item>();
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
      if (!page.more) noteParts([...known.values()], (what) => seen.push(`told of ${what}`));
    }
  };
}

describe('batches, bulk inserts and references while servers and their workers are killed', () => {
  it.each(['embedded', 'MongoDB'])('are whole, exact and nowhere dangling: %s', async (kind) => {
    const isEmbedded = kind === 'embedded';
    const seed = openSeed(`writes after kill, ${kind}`);
    const random = openRandom(seed);
    const { database, env } = isEmbedded ? { database: null, env: store } : await startDatabase(store);
    const clients = Array.from({ length: CLIENTS }, (_, n) => new Client(`c${n}`, random.fork(`c${n}`)));
    const reached: Reached = { answered: 0, refused: 0, repeated: 0, late: 0 };
    const seen: string[] = [];
    const follow = openItemsFollower(seen);
    const rounds = Number(ROUNDS ?? (isEmbedded ? 3 : 2));
    for (let round = 0; round < rounds; round++) {
      const server = await startService(['serve', '--port', '0'], env);
      const { url } = server.ready;
      if (round === 0) await fill(url);
      // Before anything else: what the kill has left.
      for (const [way, look] of Object.entries(LOOKS)) await look(url, (what) => seen.push(`${way} at first: ${what}`));
      // Kills are what this is about, not what lies between them.
      const enough = reached.answered + 12 + random.below(12);
      const between = async (client: Client): Promise<void> => {
        if (client.random.chance(0.2)) await referToAny(url, clients, client.random, reached);
      };
      const work = clients.map((client) => client.workUntilGone(url, between, reached));
      work.push(...Object.keys(LOOKS).map((way) => readUntilGone(url, way, seen)));
      // The log of a MongoDB's changes is filled one document after the other.
      if (isEmbedded) work.push(follow(url));
      const failed = Promise.all(work).then(() => undefined);
      await Promise.race([eventually('acts are answered', () => reached.answered > enough), failed]);
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
    const stored = await all('items');
    expect(stored).toHaveLength(clients.reduce((sum, { bulks }) => sum + bulks * BULK, items));
    noteParts(stored, (what) => expect(what).toBe('whole'));
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
