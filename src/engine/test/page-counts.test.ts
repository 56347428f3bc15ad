import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { SharedEntries } from '../planner/scans/shared-entries.js';
import { DATA_FILE, openEnvironment } from '../storage/file/environment.js';
import { PageRanges } from '../storage/file/page-ranges.js';
import { temporaryDir } from './transports.js';
import { openEnginePerTest } from './engine-per-test.js';

interface Item {
  _id: string;
  group: number;
  text: string;
}

const own = openEnginePerTest();

const items = () => own.engine.db('d').collection<Item>('items');

/** The same numbers each time. */
function* numbers(): Generator<number> {
  for (let seed = 7; ; seed = (seed * 48_271) % 2_147_483_647) yield seed;
}

describe('counting by the pages of the file', () => {
  it('agrees with the documents, whatever is written in between and however large keys and ids are', async () => {
    await items().createIndex({ group: 1, text: -1 });
    await items().createIndex({ text: 1 });
    const random = numbers();
    const next = (below: number): number => random.next().value! % below;
    const stored = new Map<string, Item>();
    // Few entries fit a page, and some values none beside their keys.
    const make = (n: number): Item => ({
      _id: `${n}-`.padEnd(n % 5 === 0 ? 500 : 8, 'i'),
      group: next(9),
      text: `${next(1000)}`.padEnd(n % 3 === 0 ? 1300 : 20, 't'),
    });
    for (let round = 0; round < 25; round++) {
      const added = Array.from({ length: 60 }, (_, n) => make(round * 1000 + n));
      await items().insertMany(added);
      for (const item of added) stored.set(item._id, item);
      const gone = [...stored.keys()].filter(() => next(4) === 0);
      await items().deleteMany({ _id: { $in: gone } });
      for (const id of gone) stored.delete(id);
      const group = next(9);
      const from = `${next(1000)}`;
      const to = `${next(1000)}`;
      const cases: [object, (item: Item) => boolean][] = [
        [{ group }, (item) => item.group === group],
        [{ group: { $gt: group } }, (item) => item.group > group],
        [{ group, text: { $gte: from } }, (item) => item.group === group && item.text >= from],
        [{ text: { $gte: from, $lt: to } }, (item) => item.text >= from && item.text < to],
        [{ $or: [{ group }, { text: { $lt: to } }] }, (item) => item.group === group || item.text < to],
      ];
      for (const [filter, matches] of cases) {
        const expected = [...stored.values()].filter(matches).length;
        expect(await items().countDocuments(filter), JSON.stringify(filter)).toBe(expected);
      }
    }
  });

  it('agrees for every $or over indexes, asked again and again while some of the entries change', async () => {
    interface Post {
      _id: string;
      owner: number;
      topic: number;
      state: number;
      at: number;
      views: number;
    }
    const posts = own.engine.db('d').collection<Post>('posts');
    // The first three have their documents in one order behind a wanted value, the others each in its own.
    await posts.createIndex({ owner: 1, at: -1 });
    await posts.createIndex({ topic: 1, at: -1 });
    await posts.createIndex({ state: -1, at: -1 }, { partialFilterExpression: { views: { $gte: 0 } } });
    await posts.createIndex({ views: 1 });
    await posts.createIndex({ at: 1, topic: 1 });
    const random = numbers();
    const next = (below: number): number => random.next().value! % below;
    const stored = new Map<string, Post>();
    const make = (n: number): Post => ({
      _id: `${next(1_000_000)}-${n}`.padEnd(n % 7 === 0 ? 400 : 12, 'i'),
      owner: next(6),
      topic: next(5),
      state: next(3),
      at: next(40),
      views: next(100),
    });
    type Case = [object, (post: Post) => boolean];
    const kinds: (() => Case)[] = [
      () => one('owner', next(6)),
      () => one('topic', next(5)),
      () => one('state', next(3)),
      () => one('owner', 99),
      () => {
        const [a, b] = [next(6), next(6)];
        return [{ owner: { $in: [a, b] } }, ({ owner }) => owner === a || owner === b];
      },
      () => {
        const most = next(100);
        return [{ views: { $gt: most } }, ({ views }) => views > most];
      },
      () => {
        const [at, topic] = [next(40), next(5)];
        return [{ at, topic }, (post) => post.at === at && post.topic === topic];
      },
    ];
    const one = (field: 'owner' | 'topic' | 'state', value: number): Case => [
      field === 'state' ? { state: value, views: { $gte: 0 } } : { [field]: value },
      (post) => post[field] === value,
    ];
    const asked: Case[] = Array.from({ length: 24 }, (_, n) => {
      // Every other one is of branches that have one order.
      const branches = Array.from({ length: 2 + next(4) }, () => kinds[next(n % 2 === 0 ? 5 : kinds.length)]!());
      return [{ $or: branches.map(([filter]) => filter) }, (post) => branches.some(([, matches]) => matches(post))];
    });
    for (let round = 0; round < 12; round++) {
      const added = Array.from({ length: round === 0 ? 1500 : 1 + next(120) }, (_, n) => make(round * 10_000 + n));
      await posts.insertMany(added);
      for (const post of added) stored.set(post._id, post);
      const gone = [...stored.keys()].filter(() => next(round === 6 ? 2 : 30) === 0);
      await posts.deleteMany({ _id: { $in: gone } });
      for (const id of gone) stored.delete(id);
      for (let n = 0; n < 5; n++) {
        const post = [...stored.values()][next(stored.size)]!;
        post.topic = next(5);
        await posts.updateOne({ _id: post._id }, { $set: { topic: post.topic } });
      }
      for (const [filter, matches] of asked) {
        const expected = [...stored.values()].filter(matches).length;
        const first = await posts.countDocuments(filter);
        expect(first, JSON.stringify(filter)).toBe(expected);
        expect(await posts.countDocuments(filter)).toBe(first);
      }
    }
  });

  it('reads little of a long range beside a short one, and nothing for what it has counted before', async () => {
    interface Wide {
      _id: string;
      owner: number;
      open: boolean;
      at: number;
      views?: number;
    }
    const posts = own.engine.db('d').collection<Wide>('posts');
    await posts.createIndex({ owner: 1, at: -1 });
    await posts.createIndex({ open: 1, at: -1 });
    const id = (n: number): string => String(n).padStart(200, '0');
    const all = Array.from({ length: 6000 }, (_, n) => ({ _id: id(n), owner: n % 1000, open: n % 3 > 0, at: n }));
    await posts.insertMany(all);
    const readPages = vi.spyOn(PageRanges.prototype, 'readLeafOf');
    try {
      const filter = { $or: [{ owner: 5 }, { open: true }] };
      const expected = all.filter(({ owner, open }) => owner === 5 || open).length;
      expect(await posts.countDocuments(filter)).toBe(expected);
      // The six of that owner lie on one page or two, and lead to one or two each of some 300.
      expect(readPages.mock.calls.length).toBeLessThan(20);
      readPages.mockClear();
      await posts.updateOne({ _id: id(7) }, { $set: { views: 1 } });
      expect(await posts.countDocuments(filter)).toBe(expected);
      expect(readPages).not.toHaveBeenCalled();
      await posts.updateOne({ _id: id(5) }, { $set: { open: false } });
      expect(await posts.countDocuments(filter)).toBe(expected);
      await posts.updateOne({ _id: id(4) }, { $set: { open: false } });
      expect(await posts.countDocuments(filter)).toBe(expected - 1);
    } finally {
      readPages.mockRestore();
    }
  });

  it('reads again only what was written since', async () => {
    const make = (id: string): Item => ({ _id: id.padEnd(300, 'i'), group: 0, text: 't' });
    await items().insertMany(Array.from({ length: 3000 }, (_, n) => make(String(n).padStart(6, '0'))));
    const pages = new PageRanges(join(own.path, DATA_FILE));
    try {
      const count = () => pages.read(pages.readState(), Buffer.from([0]), Buffer.from([0xff]), Infinity, null);
      const first = count();
      expect(first.pages).toBeGreaterThan(300);
      expect(count()).toMatchObject({ entries: first.entries, pages: 0 });
      await items().insertOne(make('001000-'));
      const afterwards = count();
      expect(afterwards.entries).toBe(first.entries + 1);
      expect(afterwards.pages).toBeLessThan(150);
    } finally {
      pages.close();
    }
  });

  it('is right at every border of a page, with keys and values of any size, while ranges fill and empty', () => {
    const random = numbers();
    const next = (below: number): number => random.next().value! % below;
    const dir = temporaryDir();
    const environment = openEnvironment(dir, 'relaxed');
    const { store, pages } = environment;
    /** Sorted, as LMDB has them. */
    let keys: Buffer[] = [];
    const SPACE = 0x20;
    // LMDB allows 1978 bytes; large values lie on pages of their own, or on the key's.
    const lengths = [2, 3, 10, 40, 300, 1977, 1978];
    const makeKey = (): Buffer => {
      const key = Buffer.alloc(lengths[next(lengths.length)]!, next(4));
      key[0] = SPACE;
      key[1] = next(3);
      for (let n = 2; n < Math.min(key.length, 6); n++) key[n] = next(255);
      return key;
    };
    const has = (from: Buffer, to: Buffer): number => {
      return keys.filter((key) => key.compare(from) >= 0 && key.compare(to) < 0).length;
    };
    const expectSame = (from: Buffer, to: Buffer): void => {
      const state = pages.readState();
      const counted = pages.read(state, from, to, Infinity, null).entries;
      expect(counted, `${from.toString('hex', 0, 8)} ${to.toString('hex', 0, 8)}`).toBe(has(from, to));
      if (next(8) > 0) return;
      const shown = pages.read(state, from, to, Infinity, () => true);
      expect([shown.entries, shown.accepted]).toEqual([counted, counted]);
      if (Math.max(from.length, to.length) <= 1978) expect(store.getKeysCount({ start: from, end: to })).toBe(counted);
    };
    try {
      for (let round = 0; round < 12; round++) {
        environment.commit(() => {
          const gone = round % 6 === 5 ? keys.filter((key) => key[1] === round % 3) : keys.filter(() => next(5) === 0);
          for (const key of gone) store.removeSync(key);
          keys = keys.filter((key) => !gone.includes(key));
          for (let n = 0; n < 60 + next(100); n++) {
            const key = makeKey();
            store.putSync(key, Buffer.alloc([0, 20, 200, 2000, 9000][next(5)]!));
            if (!keys.some((other) => other.equals(key))) keys.push(key);
          }
          return undefined;
        });
        keys.sort((a, b) => a.compare(b));
        store.resetReadTxn();
        const borders = [Buffer.of(SPACE), Buffer.of(SPACE, 1), Buffer.of(SPACE, 2), Buffer.of(SPACE, 0xff), ...keys];
        for (const border of borders) {
          const behind = Buffer.concat([border, Buffer.of(0)]);
          const other = borders[next(borders.length)]!;
          expectSame(border, behind);
          expectSame(border, Buffer.of(SPACE, 0xff));
          expectSame(Buffer.of(SPACE), border);
          expectSame(behind, other);
          expectSame(other, border);
        }
        // Asked again it is remembered, and what several ranges share is what a comparison finds.
        const ranges = [0, 1, 2].map((n) => ({
          start: Buffer.of(SPACE, n),
          end: Buffer.of(SPACE, n, 0xff),
          shared: 2,
        }));
        const shared = new SharedEntries(pages, ranges);
        let found = 0;
        while (!shared.finished) found += shared.countChunk(pages.readState());
        const tails = keys.filter((key) => key[1]! < 3 && key[2] !== 0xff).map((key) => key.latin1Slice(2));
        expect(found).toBe(tails.length - new Set(tails).size);
      }
    } finally {
      void environment.close();
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it('goes on where a part has ended, and meets each entry once', async () => {
    await items().insertMany(Array.from({ length: 2000 }, (_, n) => ({ _id: `${n}`, group: n, text: 't' })));
    const pages = new PageRanges(join(own.path, DATA_FILE));
    try {
      const state = pages.readState();
      const end = Buffer.from([0xff]);
      const whole = pages.read(state, Buffer.from([0]), end, Infinity, () => true);
      let entries = 0;
      let parts = 0;
      for (let from: Buffer | null = Buffer.from([0]); from !== null; parts++) {
        const part = pages.read(state, from, end, 1, () => true);
        entries += part.accepted;
        from = part.next;
      }
      expect(entries).toBe(whole.entries);
      expect(parts).toBeGreaterThan(20);
    } finally {
      pages.close();
    }
  });
});
