import type { FeedItem } from './feed-follower.js';
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
  const follower: StreamFollower = {
    known: new Map(),
    told: [],
    ends: [],
    restarts: 0,
    async connect(test, headers) {
      await follower.disconnect();
      const since = cursor === null ? '' : `&since=${encodeURIComponent(cursor)}`;
      let isMine = true;
      const opened = await openStreamClient(test, {
        method: 'GET',
        path: `/api/data/${collection}/changes?${filter}${since}`,
        headers,
        onEvent({ event, data }) {
          if (!isMine) return;
          if (event === 'reset') {
            follower.known.clear();
            follower.restarts++;
          }
          if (event === 'end') follower.ends.push(data.code!);
          if (event === 'change') {
            follower.told.push(data as FeedItem);
            if (data.type === 'gone') follower.known.delete(data.id!);
            else follower.known.set(data.id!, data.document!);
          }
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
