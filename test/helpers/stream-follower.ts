import { applyItem, type FeedItem } from './feed-follower.js';
import { openStreamClient, type StreamClient } from './event-stream.js';
import type { TestApp } from './open-test-app.js';

/** A client that keeps a local copy of a list by streams, one after the other. */
export interface StreamFollower {
  /** The copy, by id. */
  readonly known: Map<string, Record<string, unknown>>;
  /** Every item that was ever told. */
  readonly told: FeedItem[];
  /** The codes with which streams have ended. */
  readonly ends: string[];
  /** How often it had to start over. */
  restarts: number;
  /** Goes on by a new stream where the last one was; the answer's status. */
  connect(test: Pick<TestApp, 'url'>, headers: Record<string, string>): Promise<number>;
  /** Goes on by a page instead; the answer's status. */
  poll(test: Pick<TestApp, 'url'>, headers: Record<string, string>): Promise<number>;
  disconnect(): Promise<void>;
  /** False when its stream has ended. */
  isOpen(): boolean;
  pause(): void;
  resume(): void;
}

/** Follows a collection with this filter, as query text. */
export function openStreamFollower(collection: string, filter: string): StreamFollower {
  let cursor: string | null = null;
  let client: StreamClient | null = null;
  const take = (item: FeedItem): void => {
    follower.told.push(item);
    applyItem(follower.known, item);
  };
  const forget = (): void => {
    cursor = null;
    follower.known.clear();
    follower.restarts++;
  };
  const path = (): string => {
    const since = cursor === null ? '' : `&since=${encodeURIComponent(cursor)}`;
    return `/api/data/${collection}/changes?${filter}${since}`;
  };
  const follower: StreamFollower = {
    known: new Map(),
    told: [],
    ends: [],
    restarts: 0,
    async connect(test, headers) {
      await follower.disconnect();
      let isMine = true;
      const opened = await openStreamClient(test, {
        method: 'GET',
        path: path(),
        headers,
        onEvent({ event, data }) {
          if (!isMine) return;
          if (event === 'reset') forget();
          if (event === 'end') follower.ends.push(data.code!);
          if (event === 'change') take(data as FeedItem);
          if (data.cursor !== undefined) cursor = data.cursor;
        },
      });
      if (opened.status !== 200) return opened.status;
      client = opened;
      void opened.ended.then(() => {
        isMine = false;
        if (client === opened) client = null;
      });
      return 200;
    },
    async poll({ url }, headers) {
      await follower.disconnect();
      const response = await fetch(url + path(), { headers: { ...headers, connection: 'close' } });
      const { data } = (await response.json()) as { data: { items: FeedItem[]; cursor: string } };
      if (response.status === 410) forget();
      if (response.status !== 200) return response.status;
      data.items.forEach(take);
      cursor = data.cursor;
      return 200;
    },
    async disconnect() {
      const open = client;
      client = null;
      open?.close();
      await open?.ended;
    },
    isOpen: () => client !== null,
    pause: () => client?.pause(),
    resume: () => client?.resume(),
  };
  return follower;
}
