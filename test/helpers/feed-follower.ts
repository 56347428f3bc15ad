import { isDeepStrictEqual } from 'node:util';
import supertest from 'supertest';
import type { TestApp } from './open-test-app.js';

/** One item of a page of changes. */
export interface FeedItem {
  type: 'upsert' | 'gone';
  id: string;
  at: string;
  document?: Record<string, unknown>;
}

/** A client that keeps a local copy of a list by its changes. */
export interface FeedFollower {
  /** The copy, by id. */
  readonly known: Map<string, Record<string, unknown>>;
  /** Every item that was ever told. */
  readonly told: FeedItem[];
  /** Those of them that were not known: the log of a MongoDB may tell twice, and of documents that nobody has seen. */
  readonly news: FeedItem[];
  cursor: string | null;
  /** Takes one page; whether there is more. Starts over when the service says so. */
  step(more?: string): Promise<boolean>;
  /** Takes pages until there is no more. */
  catchUp(): Promise<void>;
  /** What a list answers at this moment, by id. */
  list(): Promise<Map<string, Record<string, unknown>>>;
  /** How often it had to start over. */
  restarts: number;
}

/** Changes a local copy as an item tells; false when it was so before. */
export function applyItem(known: FeedFollower['known'], { type, id, document }: FeedItem): boolean {
  if (type === 'gone') return known.delete(id);
  const isNew = !isDeepStrictEqual(known.get(id), document);
  known.set(id, document!);
  return isNew;
}

/** Follows a collection with these headers and this filter, as query text. */
export function openFollower(
  test: TestApp,
  collection: string,
  headers: Record<string, string>,
  filter = '',
): FeedFollower {
  const get = (path: string) => supertest(test.server).get(`/api/data/${collection}${path}`).set(headers);
  const follower: FeedFollower = {
    known: new Map(),
    told: [],
    news: [],
    cursor: null,
    restarts: 0,
    async step(more = '') {
      const since = follower.cursor === null ? '' : `&since=${encodeURIComponent(follower.cursor)}`;
      const response = await get(`/changes?${filter}${since}${more}`);
      if (response.status === 410) {
        follower.known.clear();
        follower.cursor = null;
        follower.restarts++;
        return true;
      }
      if (response.status !== 200) throw new Error(`${response.status} ${JSON.stringify(response.body)}`);
      const page = (response.body as { data: { items: FeedItem[]; cursor: string; more: boolean } }).data;
      for (const item of page.items) {
        follower.told.push(item);
        if (applyItem(follower.known, item)) follower.news.push(item);
      }
      follower.cursor = page.cursor;
      return page.more;
    },
    async catchUp() {
      while (await follower.step());
    },
    async list() {
      const response = await get(`?${filter}&limit=1000`);
      if (response.status !== 200) throw new Error(`${response.status} ${JSON.stringify(response.body)}`);
      const { items } = (response.body as { data: { items: { _id: string }[] } }).data;
      return new Map(items.map((item) => [item._id, item]));
    },
  };
  return follower;
}
