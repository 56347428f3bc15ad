import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataDb } from '../index.js';
import { UnionScan } from '../planner/scans/union-scan.js';
import { TRANSPORTS, type OpenTransport } from './transports.js';

interface Stage {
  stage: string;
  inputStage?: Stage;
  inputStages?: Stage[];
  indexName?: string;
  indexBounds?: Record<string, string[]>;
}
interface Explained {
  queryPlanner: { winningPlan: Stage };
  executionStats: { nReturned: number; totalKeysExamined: number; totalDocsExamined: number };
}
interface Article {
  _id: number;
  author: number;
  editor: number;
  code: string;
  at: number;
}

const DOCUMENTS = 3000;

describe.each(TRANSPORTS.filter(({ foreign }) => !foreign))('plans, $name', (transport) => {
  let opened: OpenTransport;
  let db: DataDb;

  beforeAll(async () => {
    opened = await transport.open();
    db = opened.db('plans');
    const articles = db.collection<Article>('articles');
    await articles.createIndexes([
      { key: { author: 1, at: -1 }, name: 'by_author' },
      { key: { editor: 1, at: -1 }, name: 'by_editor' },
      { key: { code: 1 }, name: 'by_code' },
    ]);
    await articles.insertMany(
      Array.from({ length: DOCUMENTS }, (_, n) => ({
        _id: n,
        author: n % 10,
        editor: (n * 7) % 30,
        code: `k${String(n).padStart(4, '0')}`,
        at: (n * 13) % DOCUMENTS,
      })),
    );
  });

  afterAll(() => opened.close());

  async function explain(find: object): Promise<{ plan: Stage; stats: Explained['executionStats'] }> {
    const reply = (await db.command({ explain: { find: 'articles', ...find } })) as unknown as Explained;
    return { plan: reply.queryPlanner.winningPlan, stats: reply.executionStats };
  }

  const twoFields = { $or: [{ author: 3 }, { editor: 1 }] };

  it('of an $or read each branch by its own index and name both', async () => {
    const { plan, stats } = await explain({ filter: twoFields });
    expect(plan).toMatchObject({ stage: 'FETCH', inputStage: { stage: 'OR' } });
    expect(plan.inputStage?.inputStages?.map(({ indexName }) => indexName)).toEqual(['by_author', 'by_editor']);
    const author = await explain({ filter: { author: 3 } });
    const editor = await explain({ filter: { editor: 1 } });
    expect(stats.totalKeysExamined).toBe(author.stats.totalKeysExamined + editor.stats.totalKeysExamined);
    expect(stats.nReturned).toBeLessThan(author.stats.nReturned + editor.stats.nReturned);
  });

  it('of a sorted $or with a limit merge the branches and read little more than is wanted', async () => {
    const find = { filter: twoFields, sort: { at: -1 }, limit: 20 };
    const { plan, stats } = await explain(find);
    expect(plan.inputStage?.inputStage).toMatchObject({ stage: 'SORT_MERGE', sortPattern: { at: -1 } });
    expect(stats.totalDocsExamined).toBeLessThanOrEqual(2 * (20 + 20));
    const found = await db.collection<Article>('articles').find(twoFields).sort({ at: -1 }).limit(20).toArray();
    const all = await db.collection<Article>('articles').find().toArray();
    const expected = all.filter(({ author, editor }) => author === 3 || editor === 1).sort((a, b) => b.at - a.at);
    expect(found).toEqual(expected.slice(0, 20));
  });

  it('of a list with a sort merge the ranges of its values', async () => {
    const filter = { author: { $in: [1, 5, 8] } };
    const { plan, stats } = await explain({ filter, sort: { at: -1 }, limit: 20 });
    expect(plan.inputStage?.inputStage).toMatchObject({
      stage: 'SORT_MERGE',
      inputStages: [{ indexName: 'by_author', indexBounds: { author: ['[1, 1]', '[5, 5]', '[8, 8]'] } }],
    });
    expect(stats.totalDocsExamined).toBeLessThan(100);
    const found = await db.collection<Article>('articles').find(filter).sort({ at: 1 }).batchSize(7).toArray();
    expect(found.map(({ at }) => at)).toEqual(found.map(({ at }) => at).sort((a, b) => a - b));
    expect(found).toHaveLength(900);
  });

  it('of a pattern with a literal beginning read what begins so', async () => {
    const { plan, stats } = await explain({ filter: { code: { $regex: '^k012' } } });
    expect(plan.inputStage).toMatchObject({
      stage: 'IXSCAN',
      indexBounds: { code: ['["k012", "k012"...]', '[/^k012/, /^k012/]'] },
    });
    expect(stats).toMatchObject({ nReturned: 10, totalDocsExamined: 10 });
    expect((await explain({ filter: { code: { $regex: '^K012', $options: 'i' } } })).plan.stage).toBe('COLLSCAN');
  });

  it('of an $or with a branch that no index serves read everything', async () => {
    const { plan } = await explain({ filter: { $or: [{ author: 3 }, { title: 'x' }] } });
    expect(plan.stage).toBe('COLLSCAN');
  });

  it('behind an array that is bound to one value keep the order and count without documents', async () => {
    const teams = db.collection<{ _id: number; members: number[]; at: number }>('teams');
    await teams.createIndex({ members: 1, at: -1 }, { name: 'by_member' });
    const docs = Array.from({ length: 400 }, (_, n) => ({ _id: n, members: [n % 7, 7 + (n % 3), n % 7], at: n % 50 }));
    await teams.insertMany(docs);
    const filter = { members: 3 };
    const run = async (command: object): Promise<Explained> =>
      (await db.command({ explain: command })) as unknown as Explained;
    const { queryPlanner, executionStats } = await run({ find: 'teams', filter, sort: { at: -1 }, limit: 5 });
    expect(queryPlanner.winningPlan.inputStage).toMatchObject({ inputStage: { indexName: 'by_member' } });
    expect(queryPlanner.winningPlan.inputStage?.stage).toBe('FETCH');
    expect(executionStats).toMatchObject({ nReturned: 5, totalDocsExamined: 5 });
    const counted = await run({ count: 'teams', query: filter });
    expect(counted.queryPlanner.winningPlan.inputStage?.stage).toBe('COUNT_SCAN');
    const those = docs.filter(({ members }) => members.includes(3));
    expect(await teams.countDocuments(filter)).toBe(those.length);
    // The array itself sorts by its least element, whichever the document was found by.
    const byMembers = await teams.find({ members: 8 }).sort({ members: 1, at: -1 }).toArray();
    const least = (ids: number[]): number => Math.min(...ids);
    const expected = docs
      .filter(({ members }) => members.includes(8))
      .sort((a, b) => least(a.members) - least(b.members) || b.at - a.at);
    expect(byMembers.map(({ members, at }) => [least(members), at])).toEqual(
      expected.map(({ members, at }) => [least(members), at]),
    );
  });

  it('of several bounds on one side take the tighter, whichever comes first', async () => {
    for (const bounds of [
      [{ at: { $gte: 10 } }, { at: { $gt: 2900 } }],
      [{ at: { $gt: 2900 } }, { at: { $gte: 10 } }],
    ]) {
      const { stats } = await explain({ filter: { $and: [{ author: 3 }, ...bounds] } });
      expect(stats.totalKeysExamined).toBe(stats.nReturned);
    }
  });

  it('of an aggregation are those that run: leading stages are joined', async () => {
    const pipeline = [{ $match: {} }, { $match: { author: 3 } }, { $sort: { at: -1 } }, { $skip: 2 }, { $limit: 5 }];
    const reply = await db.command({ explain: { aggregate: 'articles', pipeline, cursor: {} } });
    const { queryPlanner, executionStats } = reply as unknown as Explained;
    expect(JSON.stringify(queryPlanner.winningPlan)).toContain('by_author');
    expect(executionStats).toMatchObject({ nReturned: 5, totalDocsExamined: 7 });
  });

  it('tell what each that was considered is expected to read', async () => {
    const find = { find: 'articles', filter: { author: 3, editor: 1 }, sort: { at: -1 }, limit: 5 };
    const told = (await db.command({ explain: find })) as unknown as {
      queryPlanner: { estimate: object; rejectedPlans: { indexName: string; estimate: { entries: number } }[] };
    };
    expect(told.queryPlanner.estimate).toMatchObject({ entries: 100 });
    expect(told.queryPlanner.rejectedPlans).toMatchObject([{ indexName: 'by_author', estimate: { entries: 300 } }]);
  });

  it('of distinct values read one entry of each value', async () => {
    const steps = async (body: object): Promise<{ stats: Explained['executionStats']; values: unknown[] }> => {
      const explained = (await db.command({ explain: { distinct: 'articles', ...body } })) as unknown as Explained;
      expect(explained.queryPlanner.winningPlan.inputStage?.stage).toBe('DISTINCT_SCAN');
      const { values } = await db.command({ distinct: 'articles', ...body });
      return { stats: explained.executionStats, values: values as unknown[] };
    };
    const authors = await steps({ key: 'author' });
    expect(authors.values).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(authors.stats).toMatchObject({ totalKeysExamined: 10, totalDocsExamined: 10 });
    const some = await steps({ key: 'author', query: { author: { $gte: 7 } } });
    expect(some.values).toEqual([7, 8, 9]);
    expect(some.stats.totalKeysExamined).toBe(3);
  });

  it('of an $or over more documents than can be remembered read the rest once', async () => {
    const { maxSeen } = UnionScan;
    UnionScan.maxSeen = 100;
    try {
      const articles = db.collection<Article>('articles');
      expect(await articles.countDocuments(twoFields)).toBe(300);
      const found = await articles.find(twoFields).batchSize(60).toArray();
      expect(new Set(found.map(({ _id }) => _id)).size).toBe(300);
      expect(found).toHaveLength(300);
      // Beside what its branches had read: every document, once. The threads' limit is their own.
      if (!transport.name.includes('threads'))
        expect((await explain({ filter: twoFields })).stats.totalKeysExamined).toBeGreaterThan(DOCUMENTS);
    } finally {
      UnionScan.maxSeen = maxSeen;
    }
  });

  it('of updates by an $or change a document once, whichever branches find it', async () => {
    const counters = db.collection<{ _id: number; a: number; b: number; n: number }>('counters');
    await counters.createIndexes([{ key: { a: 1 } }, { key: { b: 1 } }]);
    await counters.insertMany(Array.from({ length: 300 }, (_, n) => ({ _id: n, a: n % 3, b: n % 2, n: 0 })));
    const result = await counters.updateMany({ $or: [{ a: 1 }, { b: 1 }] }, { $inc: { n: 1, a: 10, b: 0 } });
    expect(result).toMatchObject({ matchedCount: 200, modifiedCount: 200 });
    expect(await counters.countDocuments({ n: 1 })).toBe(200);
  });
});
