import { ObjectId, type Document } from 'bson';
import { describe, expect, it } from 'vitest';
import type { App } from '../../../src/app.js';
import type { Bearer, Caller } from '../../../src/features/access/caller.js';
import type { KeyType } from '../../../src/features/projects/project.js';
import { documentStore } from '../../../src/features/documents/store/document-store.js';
import { listDocuments } from '../../../src/features/documents/read/list-documents.js';
import { buildCollection, buildProject, placeDocuments } from '../../helpers/build-project.js';
import { useTestApp } from '../../helpers/use.js';

const DOCUMENTS = 2_000;

const test = await useTestApp();
const owner = await buildProject(test.app);
const collection = await buildCollection(test.app, owner.project, {
  name: 'posts',
  fields: [
    { name: 'slug', type: 'String', unique: true },
    { name: 'status', type: 'String' },
    { name: 'views', type: 'Number' },
  ],
  rls: { mode: 'private', ownerField: 'userId' },
  indexes: ['status', 'views', 'status,-views'],
});
const documents = Array.from({ length: DOCUMENTS }, (_, at) => ({
  slug: `post-${at}`,
  status: at % 20 === 0 ? 'draft' : 'live',
  views: at,
  userId: `user${at % 40}`,
}));
await placeDocuments(test.app, collection, documents);

interface Explained {
  index: string | undefined;
  sortsInMemory: boolean;
  examined: number;
}

/** What the database says of each find that a list makes. */
async function explainList(query: string, caller: Caller): Promise<Explained[]> {
  const finds: { filter: Document; sort: Document; limit: number }[] = [];
  const watched = {
    ...test.app,
    db: { ...test.app.db, collection: (name: string) => watch(test.app.db.collection(name), finds) },
  } as App;
  await listDocuments(watched, caller, 'posts', query);
  return Promise.all(
    finds.map(async ({ filter, sort, limit }) => {
      const cursor = documentStore(test.app, collection)
        .find(filter)
        .sort(sort as never)
        .limit(limit);
      const { queryPlanner, executionStats } = await (cursor as unknown as { explain(): Promise<Document> }).explain();
      const stages = listStages(queryPlanner.winningPlan as Document);
      return {
        index: stages.find(({ indexName }) => indexName)?.indexName as string | undefined,
        sortsInMemory: stages.some(({ stage }) => stage === 'SORT'),
        examined: executionStats.totalDocsExamined as number,
      };
    }),
  );
}

function watch(store: object, finds: { filter: Document; sort: Document; limit: number }[]): object {
  return new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown;
      if (typeof value !== 'function') return value;
      const method = (value as (...given: unknown[]) => object).bind(target);
      if (name !== 'find') return method;
      return (filter: Document, options: Document) => {
        const seen = { filter, sort: {}, limit: 0 };
        finds.push(seen);
        return watchCursor(method(filter, options), seen);
      };
    },
  });
}

function watchCursor(cursor: object, seen: Document): object {
  const watched: object = new Proxy(cursor, {
    get(target, name) {
      const member = Reflect.get(target, name, target) as unknown;
      if (typeof member !== 'function') return member;
      return (...given: unknown[]) => {
        if (name === 'sort' || name === 'limit') seen[name] = given[0];
        const result: unknown = member.apply(target, given);
        return result === target ? watched : result;
      };
    },
  });
  return watched;
}

function listStages(plan: Document | undefined): Document[] {
  if (!plan) return [];
  const inputs = (plan.inputStages ?? [plan.inputStage]) as (Document | undefined)[];
  return [plan, ...inputs.flatMap(listStages)];
}

describe('the common lists are served by an index', () => {
  const callerWith = (type: KeyType, bearer: Bearer): Caller => ({
    project: owner.project,
    key: { ...owner.project.keys[0]!, type },
    bearer,
  });
  const server = (): Caller => callerWith('secret', { state: 'absent' });

  it.each([
    ['the newest documents', '', 'active_createdAt', 20],
    ['a further page', 'page=3', 'active_createdAt', 60],
    ['a filter in the default order', 'status=draft', 'list_status', 20],
    ['a filter on a list of values', 'status_in=draft,other', 'list_status', 100],
    ['a unique value', 'slug=post-77', 'unique_slug', 1],
    ['a range of an indexed field, sorted by it', 'views_gte=1900&sort=views', 'sort_views', 20],
    ['a beginning of an indexed field', 'slug_startswith=post-77', 'unique_slug', 12],
    ['a beginning, sorted by the field', 'slug_startswith=post-1&sort=slug', 'unique_slug', 20],
    ['a beginning, sorted by the field, descending', 'slug_startswith=post-1&sort=-slug', 'unique_slug', 20],
    ['an indexed field, descending', 'sort=-views', 'sort_views', 20],
    ['a filter and a sort of one index', 'status=live&sort=-views', 'list_status,-views', 20],
    ['one document', `_id=${new ObjectId().toHexString()}`, undefined, 1],
  ])('%s: ?%s', async (_, query, index, mostExamined) => {
    const [explained, ...others] = await explainList(query, server());
    expect(others).toEqual([]);
    expect(explained!.index).toBe(index);
    expect(explained!.examined).toBeLessThanOrEqual(mostExamined);
  });

  it('a user’s own documents, newest first', async () => {
    const [explained] = await explainList('', callerWith('publishable', { state: 'user', userId: 'user7' }));
    expect(explained).toMatchObject({ index: 'owner_userId', sortsInMemory: false });
    expect(explained!.examined).toBeLessThanOrEqual(20);
  });

  it('a user’s own documents, by an indexed field', async () => {
    const [explained] = await explainList('status=live', callerWith('publishable', { state: 'user', userId: 'user7' }));
    expect(explained).toMatchObject({ index: 'own_userId:status', sortsInMemory: false });
    expect(explained!.examined).toBeLessThanOrEqual(20);
  });

  it.each([
    ['sort=-createdAt', 'active_createdAt'],
    ['sort=views', 'sort_views'],
    ['sort=-views', 'sort_views'],
    ['status=live&sort=-views', 'list_status,-views'],
  ])('a page deep in a walk by cursor: ?%s', async (query, index) => {
    const caller = server();
    let cursor = 'start';
    for (let page = 0; page < 10; page++) {
      const reply = (await listDocuments(test.app, caller, 'posts', `${query}&limit=50&cursor=${cursor}`)) as {
        nextCursor: string;
      };
      cursor = reply.nextCursor;
    }
    const finds = await explainList(`${query}&limit=50&cursor=${cursor}`, caller);
    expect(finds).toHaveLength(1);
    expect(finds[0]).toMatchObject({ index, sortsInMemory: false });
    expect(finds[0]!.examined).toBeLessThanOrEqual(53);
  });
});
