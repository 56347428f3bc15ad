import { request } from 'node:http';
import { applyItem, type FeedItem } from './feed-follower.js';
import type { TestApp } from './open-test-app.js';

/** One server-sent event; a comment has the name `:`. */
export interface StreamEvent {
  event: string;
  id?: string;
  data: { n: number; cursor?: string; code?: string; retryAfterMs?: number } & Partial<FeedItem>;
  /** Of a change: it was not known. The log of a MongoDB may tell twice. */
  isNews?: boolean;
}

/** A client of a stream that keeps local copies by its events, one for each subscription. */
export interface StreamClient {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** Of a refusal. */
  body: { code?: string; details?: { field: string }[] };
  readonly events: StreamEvent[];
  /** By the position of the subscription. */
  known(n?: number): Map<string, Record<string, unknown>>;
  /** The cursor to go on with. */
  cursor(n?: number): string | null;
  /** Every byte that came. */
  text(): string;
  /** Resolves when an event fits that came from `from` on; fails when the stream ends before. */
  until(fits: (event: StreamEvent, client: StreamClient) => boolean, from?: number): Promise<StreamEvent>;
  /** Resolves when the stream has ended. */
  ended: Promise<void>;
  /** Takes nothing more of it. */
  pause(): void;
  resume(): void;
  close(): void;
}

export interface StreamCall {
  method?: 'GET' | 'POST';
  path?: string;
  headers?: Record<string, string>;
  body?: unknown;
  onEvent?: (event: StreamEvent) => void;
}

/** Opens a stream; it may be refused. */
export function openStreamClient(
  test: Pick<TestApp, 'url'>,
  { method = 'POST', path = '/api/realtime', headers = {}, body, onEvent }: StreamCall,
): Promise<StreamClient> {
  return new Promise((resolve, reject) => {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const sent = request(`${test.url}${path}`, {
      method,
      agent: false,
      headers: {
        accept: 'text/event-stream',
        ...(payload !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      let text = '';
      let rest = '';
      let over = false;
      let whenOver = (): void => undefined;
      const ended = new Promise<void>((done) => (whenOver = done));
      const looks = new Set<() => void>();
      const copies = new Map<number, Map<string, Record<string, unknown>>>();
      const cursors = new Map<number, string>();
      const events: StreamEvent[] = [];
      const known = (n = 0): Map<string, Record<string, unknown>> => {
        const copy = copies.get(n) ?? new Map<string, Record<string, unknown>>();
        copies.set(n, copy);
        return copy;
      };
      const take = (event: StreamEvent): void => {
        events.push(event);
        onEvent?.(event);
        const { n, cursor } = event.data;
        if (event.event === 'reset') {
          known(n).clear();
          cursors.delete(n);
        }
        if (event.event === 'change') event.isNews = applyItem(known(n), event.data as FeedItem);
        if (cursor !== undefined) cursors.set(n, cursor);
      };
      const client: StreamClient = {
        status: response.statusCode!,
        headers: response.headers,
        body: {},
        events,
        known,
        cursor: (n = 0) => cursors.get(n) ?? null,
        text: () => text,
        until(fits, from = 0) {
          return new Promise((found, fail) => {
            const look = (): void => {
              const event = events.slice(from).find((candidate) => fits(candidate, client));
              if (!event && !over) return;
              looks.delete(look);
              if (event) found(event);
              else fail(new Error(`the stream ended before: ${text.slice(-500)}`));
            };
            looks.add(look);
            look();
          });
        },
        ended,
        pause: () => void response.pause(),
        resume: () => void response.resume(),
        close() {
          // A response that was paused and is complete would never tell of its end.
          response.destroy();
          sent.destroy();
        },
      };
      response.setEncoding('utf8');
      response.on('error', () => undefined);
      response.on('data', (chunk: string) => {
        text += chunk;
        if (client.status !== 200) return;
        rest += chunk;
        const blocks = rest.split('\n\n');
        rest = blocks.pop()!;
        for (const block of blocks) take(parse(block));
        for (const look of [...looks]) look();
      });
      response.on('close', () => {
        over = true;
        for (const look of [...looks]) look();
        whenOver();
        if (client.status === 200) return;
        client.body = JSON.parse(text) as StreamClient['body'];
        resolve(client);
      });
      if (client.status === 200) resolve(client);
    });
    sent.end(payload);
  });
}

function parse(block: string): StreamEvent {
  if (block.startsWith(':')) return { event: ':', data: { n: -1 } };
  const lines = new Map(
    block.split('\n').map((line) => {
      const at = line.indexOf(': ');
      return [line.slice(0, at), line.slice(at + 2)];
    }),
  );
  const id = lines.get('id');
  return {
    event: lines.get('event')!,
    ...(id !== undefined && { id }),
    data: JSON.parse(lines.get('data')!) as StreamEvent['data'],
  };
}
