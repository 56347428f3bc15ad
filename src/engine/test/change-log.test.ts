import { rmSync } from 'node:fs';
import { deserialize } from 'bson';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ChangeLogs, type DataCollection, type Engine, openEngine } from '../index.js';
import { openRandom } from './helpers/random.js';
import { temporaryDir } from './transports.js';

const SETTINGS = { first: ['owner'], omit: ['hidden'] };
const EVERYTHING = { filter: {}, earlierAccess: {}, earlierConditions: {}, limit: 1000, maxBytes: 1e9 };
const SEED = 20_261_122;
const ROUNDS = 500;

interface Item {
  _id: number;
  [field: string]: unknown;
}

describe('the log of changes', () => {
  let dataDir: string;
  let engine: Engine;
  let items: DataCollection<Item>;
  let logs: ChangeLogs;

  const open = (): void => {
    engine = openEngine({ dataDir, durability: 'relaxed' });
    items = engine.db('d').collection<Item>('items');
    logs = engine.changeLogs('d');
  };

  beforeEach(() => {
    dataDir = temporaryDir();
    open();
  });

  afterEach(async () => {
    await engine.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const begin = async (): Promise<{ epoch: number; seq: number }> => {
    const position = await logs.begin('items', SETTINGS);
    return position!;
  };
  const read = (from: { epoch: number; seq: number }, more: object = {}) =>
    logs.read('items', { epoch: from.epoch, after: from.seq, ...EVERYTHING, ...more });
  const idsOf = async (from: { epoch: number; seq: number }, more: object = {}) => {
    const found = await read(from, more);
    return found && found.changes.map(({ id, document }) => `${String(id)}${document ? '' : ' gone'}`);
  };

  it('begins online in a store that has none, and survives a new start', async () => {
    await items.insertOne({ _id: 1, n: 1 });
    const start = await begin();
    await items.insertMany([
      { _id: 2, n: 2 },
      { _id: 3, n: 3 },
    ]);
    await items.updateOne({ _id: 1 }, { $set: { n: 4 } });
    expect(await idsOf(start)).toEqual(['2', '3', '1']);
    await engine.close();
    open();
    expect(await idsOf(start)).toEqual(['2', '3', '1']);
    expect(await begin()).toEqual({ epoch: start.epoch, seq: start.seq + 3 });
    expect(await engine.verify()).toEqual([]);
  });

  it('tells each document once, as it is now, in the order of the last changes', async () => {
    await items.insertMany([{ _id: 1 }, { _id: 2 }]);
    const start = await begin();
    await items.updateOne({ _id: 1 }, { $set: { n: 1 } });
    await items.updateOne({ _id: 2 }, { $set: { n: 1 } });
    await items.updateOne({ _id: 1 }, { $set: { n: 2 } });
    expect(await idsOf(start)).toEqual(['2', '1']);
  });

  it('tells of a departure only whoever could see the document before', async () => {
    await items.insertMany([
      { _id: 1, owner: 'ann', state: 'open' },
      { _id: 2, owner: 'bob', state: 'open' },
      { _id: 3, owner: 'ann', state: 'done' },
    ]);
    const start = await begin();
    await items.updateMany({}, { $set: { state: 'done', n: 1 } });
    await items.deleteMany({ _id: { $in: [2, 3] } });
    const anns = { filter: { owner: 'ann', state: 'open' }, earlierAccess: { owner: 'ann' } };
    expect(await idsOf(start, { ...anns, earlierConditions: { state: 'open' } })).toEqual(['1 gone']);
    expect(await idsOf(start, { ...anns, earlierConditions: { state: 'done' } })).toEqual(['3 gone']);
  });

  it('tells of a departure across pages, also of what came and went within one', async () => {
    await items.insertOne({ _id: 1, state: 'done' });
    const start = await begin();
    await items.updateOne({ _id: 1 }, { $set: { state: 'open' } });
    await items.insertOne({ _id: 2, state: 'open' });
    await items.updateOne({ _id: 1 }, { $set: { state: 'done' } });
    const open = { filter: { state: 'open' }, earlierConditions: { state: 'open' } };
    expect(await idsOf(start, open)).toEqual(['2', '1 gone']);
    const first = await read(start, { ...open, limit: 1 });
    expect(first).toMatchObject({ changes: [{ id: 2 }], isEnd: false });
    const rest = await read({ ...start, seq: first!.seq }, open);
    expect(rest).toMatchObject({ changes: [{ id: 1, document: null }], isEnd: true });
  });

  it('keeps the fields named first of a document that is too long to be kept, and takes the rest as met', async () => {
    const long = 'x'.repeat(600);
    await items.insertMany([
      { _id: 1, text: long, note: long, state: 'open', owner: 'ann' },
      { _id: 2, text: long, note: long, state: 'done', owner: 'ann' },
    ]);
    const start = await begin();
    await items.deleteMany({});
    const met = { filter: { owner: 'ann' }, earlierAccess: { owner: 'ann' } };
    expect(await idsOf(start, { ...met, earlierConditions: { state: 'open' } })).toEqual(['1 gone']);
    expect(await idsOf(start, { ...met, earlierConditions: { text: 'other' } })).toEqual(['1 gone', '2 gone']);
    expect(await idsOf(start, { filter: { owner: 'bob' }, earlierAccess: { owner: 'bob' } })).toEqual([]);
  });

  it('keeps of a field to be omitted the one inside that is excepted', async () => {
    await items.insertOne({ _id: 1, hidden: { secret: 'x', kept: { word: 'ann' }, more: [1] }, n: 0 });
    await items.insertOne({ _id: 2, hidden: { secret: 'x' }, n: 0 });
    const start = (await logs.begin('items', { ...SETTINGS, except: 'kept' }))!;
    // Alone it is no change.
    await items.updateOne({ _id: 2 }, { $set: { 'hidden.kept.word': 'bob' } });
    expect(await idsOf(start)).toEqual([]);
    await items.updateMany({}, { $set: { hidden: {}, n: 1 } });
    const left = (path: string, word: string) =>
      idsOf(start, { filter: { n: 2 }, earlierConditions: { [path]: word } });
    expect(await left('hidden.kept.word', 'ann')).toEqual(['1 gone']);
    expect(await left('hidden.kept.word', 'bob')).toEqual(['2 gone']);
    expect(await left('hidden.secret', 'x')).toEqual([]);
  });

  it('keeps fields named first up to 64 KiB, and says that it does not know by larger ones', async () => {
    const owners = (count: number): string[] => Array.from({ length: count }, (_, n) => `owner-${n}`);
    await items.insertOne({ _id: 1, owner: owners(2_000) });
    let start = await begin();
    const lastOwner = (n: number) => ({ filter: { owner: `owner-${n}` }, earlierAccess: { owner: `owner-${n}` } });
    await items.updateOne({ _id: 1 }, { $set: { owner: [] } });
    expect(await idsOf(start, lastOwner(1_999))).toEqual(['1 gone']);
    expect(await idsOf(start, lastOwner(2_000))).toEqual([]);
    await items.updateOne({ _id: 1 }, { $set: { owner: owners(10_000), n: 1 } });
    start = await begin();
    await items.updateOne({ _id: 1 }, { $set: { owner: ['owner-1'] } });
    expect(await read(start, lastOwner(9_999))).toBeNull();
    expect(await idsOf(start, lastOwner(1))).toEqual(['1']);
    expect(await idsOf(start, { filter: { n: 2 }, earlierConditions: { n: 1 } })).toEqual(['1 gone']);
    expect(await read(start, { earlierOf: 10 })).toMatchObject({ changes: [{ earlier: [{ isCut: true }] }] });
  });

  it('goes on keeping what it was told to keep first, whatever somebody else wants kept', async () => {
    const long = 'x'.repeat(600);
    await items.insertOne({ _id: 1, text: long, owner: 'ann', note: long });
    await logs.begin('items', { first: ['note'], omit: [] });
    const start = await begin();
    // As a process does that knows the rules of before.
    await logs.begin('items', { first: ['note'], omit: SETTINGS.omit });
    await items.updateOne({ _id: 1 }, { $set: { owner: 'bob', note: 'another' } });
    for (const earlierAccess of [{ owner: 'ann' }, { note: long }]) {
      expect(await idsOf(start, { filter: { _id: 2 }, earlierAccess })).toEqual(['1 gone']);
    }
    // Of any number of fields it does not: then it begins again.
    const many = Array.from({ length: 100 }, (_, n) => `f${n}`);
    const again = await logs.begin('items', { first: many, omit: SETTINGS.omit });
    expect(again!.epoch).not.toBe(start.epoch);
    expect(await read(start)).toBeNull();
    expect(await logs.begin('items', { first: many, omit: SETTINGS.omit })).toEqual(again);
  });

  it('leaves out what is to be omitted, and a change of it alone', async () => {
    await items.insertOne({ _id: 1, hidden: { secret: 'sealed-note-1' }, n: 1 });
    const start = await begin();
    await items.updateOne({ _id: 1 }, { $set: { 'hidden.secret': 'sealed-note-2' } });
    expect(await idsOf(start)).toEqual([]);
    await items.updateOne({ _id: 1 }, { $set: { n: 2 } });
    await items.deleteOne({ _id: 1 });
    expect(await idsOf(start)).toEqual(['1 gone']);
    expect(await idsOf(start, { earlierAccess: { hidden: { $exists: true } } })).toEqual([]);
  });

  it('has the history of one document, newest first, found in parts of the log', async () => {
    const found = async (id: unknown, more: object = {}) =>
      logs.history('items', { id, before: null, limit: 100, maxEntries: 1000, ...more });
    await items.insertOne({ _id: 1, n: 0 });
    expect(await found(1)).toBeNull();
    await begin();
    expect(await found(1)).toEqual({ changes: [], next: null });
    for (let n = 1; n <= 120; n++) {
      await items.updateOne({ _id: 1 }, { $set: { n } });
      if (n % 4 === 0) await items.insertOne({ _id: 1000 + n });
    }
    const whole = await found(1, { limit: 1000 });
    expect(whole?.changes.map(({ earlier }) => deserialize(earlier).n as number)).toEqual(
      Array.from({ length: 120 }, (_, at) => 119 - at),
    );
    for (const step of [{ limit: 7 }, { maxEntries: 3 }, { maxEntries: 90 }]) {
      const joined = [];
      for (let before: number | null = null; ;) {
        const page = await found(1, { ...step, before });
        joined.push(...page!.changes);
        before = page!.next;
        if (before === null) break;
      }
      expect(joined).toEqual(whole?.changes);
    }
    expect((await found(1004))?.changes).toMatchObject([{ operation: 'insert' }]);
    expect((await found(5))?.changes).toEqual([]);
    await items.deleteOne({ _id: 1004 });
    expect((await found(1004))?.changes).toMatchObject([{ operation: 'remove' }, { operation: 'insert' }]);
  });

  it('is another one after an end, and refuses positions of the one before', async () => {
    await items.insertOne({ _id: 1 });
    const start = await begin();
    await items.insertOne({ _id: 2 });
    await logs.end('items');
    expect(logs.position('items')).toBeNull();
    await items.insertOne({ _id: 3 });
    const next = await begin();
    await items.insertOne({ _id: 4 });
    expect(await idsOf(start)).toBeNull();
    expect(await idsOf(next)).toEqual(['4']);
    expect(await engine.verify()).toEqual([]);
  });

  it('goes with its collection', async () => {
    await items.insertOne({ _id: 1 });
    const start = await begin();
    await items.insertOne({ _id: 2 });
    await items.drop();
    expect(await idsOf(start)).toBeNull();
    await items.insertOne({ _id: 1 });
    expect(await idsOf(await begin())).toEqual([]);
    expect(await engine.verify()).toEqual([]);
  });

  it('is trimmed from the front by age and size, and refuses positions before what is left', async () => {
    await items.insertMany(Array.from({ length: 300 }, (_, _id) => ({ _id, n: 1 })));
    const start = await begin();
    await items.updateMany({}, { $set: { n: 2 } });
    const bytes = logs.bytes('items');
    expect(await logs.trim('items', { since: 0, maxBytes: bytes })).toBe(0);
    const removed = await logs.trim('items', { since: 0, maxBytes: bytes / 2 });
    expect(removed).toBe(150);
    expect(logs.bytes('items')).toBeLessThanOrEqual(bytes / 2);
    expect(await idsOf(start)).toBeNull();
    expect(await idsOf({ ...start, seq: start.seq + 149 })).toBeNull();
    expect(await idsOf({ ...start, seq: start.seq + 150 })).toHaveLength(150);
    expect(await logs.trim('items', { since: Date.now() + 1000, maxBytes: bytes })).toBe(150);
    expect(logs.bytes('items')).toBe(0);
    expect(await idsOf({ ...start, seq: start.seq + 300 })).toEqual([]);
    await items.updateOne({ _id: 7 }, { $set: { n: 3 } });
    expect(await idsOf({ ...start, seq: start.seq + 300 })).toEqual(['7']);
  });

  it('erases what it holds of removed documents but for the fields named first', async () => {
    await items.insertMany([
      { _id: 1, owner: 'ann', text: 'letter-one' },
      { _id: 2, owner: 'bob', text: 'letter-two' },
    ]);
    const start = await begin();
    await items.updateMany({}, { $set: { text: 'other' } });
    await items.deleteOne({ _id: 1 });
    expect(await logs.erase('items')).toBe(1);
    expect(await logs.erase('items')).toBe(0);
    expect(await idsOf(start, { earlierAccess: { owner: 'ann' }, filter: { owner: 'ann' } })).toEqual(['1 gone']);
    const kept = { filter: { _id: 0 }, earlierAccess: { text: { $exists: true } } };
    expect(await idsOf(start, kept)).toEqual(['2 gone']);
    expect(await engine.verify()).toEqual([]);
  });

  it('keeps a follower of any filter equal to a scan after any history of writes, however it pages', async () => {
    const random = openRandom(SEED);
    await items.createIndex({ state: 1 });
    await items.insertMany(Array.from({ length: 40 }, (_, _id) => ({ _id, owner: 'ann', state: 'open', n: _id })));
    const start = await begin();
    const filters = [{}, { state: 'open' }, { n: { $lt: 20 } }, { owner: 'ann', state: { $in: ['open', 'late'] } }];
    const followers = await Promise.all(
      filters.map(async (filter) => ({
        filter,
        at: start,
        known: new Map((await items.find(filter).toArray()).map((item) => [item._id, item])),
      })),
    );
    const write = (): Promise<unknown> => {
      const _id = random.below(60);
      const set = {
        state: random.pick(['open', 'done', 'late']),
        n: random.below(40),
        owner: random.pick(['ann', 'bob']),
      };
      return random.pick<() => Promise<unknown>>([
        () => items.updateOne({ _id }, { $set: set }, { upsert: true }),
        () => items.replaceOne({ _id }, { ...set, text: 'x'.repeat(random.below(900)) }, { upsert: true }),
        () => items.deleteOne({ _id }),
        () => items.updateMany({ n: { $lt: 5 } }, { $set: { state: 'open', n: 12 } }),
        () => items.deleteMany({ n: 39 }),
        () => items.findOneAndUpdate({ state: 'late' }, { $set: { state: 'done' } }, { sort: { n: 1 } }),
        () => items.bulkWrite([{ updateOne: { filter: { _id }, update: { $unset: { state: '' } } } }]),
        () => engine.insertTogether({ db: 'd', collection: 'items' }, [{ _id: 1000 + random.below(1e9), ...set }]),
      ])();
    };
    const follow = async (follower: (typeof followers)[number], limit: number): Promise<boolean> => {
      const { filter, at, known } = follower;
      const found = await read(at, { filter, earlierConditions: filter, limit });
      for (const { id, document } of found!.changes) {
        if (document === null) known.delete(id as number);
        else known.set(id as number, (await items.findOne({ _id: id as number }))!);
      }
      follower.at = { ...at, seq: found!.seq };
      return found!.isEnd;
    };
    for (let round = 0; round < ROUNDS; round++) {
      await write();
      if (random.below(4) === 0) await follow(random.pick(followers), 1 + random.below(5));
    }
    for (const follower of followers) {
      while (!(await follow(follower, 3)));
      const expected = await items.find(follower.filter).toArray();
      expect(expected.length).toBeGreaterThan(0);
      expect([...follower.known.values()].sort((a, b) => a._id - b._id)).toEqual(
        expected.sort((a, b) => a._id - b._id),
      );
    }
    expect(await engine.verify()).toEqual([]);
  });
});
