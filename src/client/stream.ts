import { ApiError } from './api-error.js';
import type { Change, ChangePage } from './collection.js';
import { backOff, type Connection } from './connection.js';
import { POLLED } from './filter-suffixes.js';
import { platform, sleep } from './platform.js';

/**
 * A message to a follower. `ready`: it has what a list would show. `reset`: forget everything, all of it follows.
 * `error`: the service refused for good, nothing more comes.
 */
export type FollowEvent<T> = Change<T> | { type: 'ready' } | { type: 'reset' } | { type: 'error'; error: ApiError };

/** The subscription of one follower. */
export interface Subscription {
  id: string;
  collection: string;
  /** As in the query of a list. */
  filter: string;
  fields?: readonly string[];
  /** Where to go on. */
  since?: string;
}

/** News of one subscription; `cursor` is where to go on behind it. */
export interface News {
  id: string;
  cursor?: string;
  event?: FollowEvent<unknown>;
}

/** As many as the service takes in one request, and of how many characters. */
const MAX_SUBSCRIPTIONS = 50;
const MAX_CHARACTERS = 60_000;
/** A proxy that holds a stream back shows nothing of it at all. */
const FIRST_NEWS_MS = 10_000;
/** The service says something every 25 seconds. */
const SILENCE_MS = 60_000;
/** Between looks where several subscriptions are asked for one after the other. */
const LOOK_MS = 2000;
/** A stream that ends so soon is not begun again at once. */
const BRIEF_MS = 1000;

/** Reads news of a service; it remembers when streams do not come through. */
export interface NewsReader {
  /** Reports news until the signal ends it, through outages and restarts of the service. */
  read: (subscriptions: readonly Subscription[], tell: (news: News) => void, signal: AbortSignal) => Promise<void>;
}

export function openNews(connection: Connection): NewsReader {
  let isStreamed = true;
  /** Subscriptions whose filter no stream takes. */
  const asked = new Set<string>();
  const isPolled = ({ id, filter }: Subscription): boolean => !isStreamed || asked.has(id) || POLLED.test(filter);

  /** As few streams as can be, and questions for the rest, until the first of them ends; milliseconds to wait then. */
  const readRound = async (
    live: readonly Subscription[],
    note: (news: News) => void,
    signal: AbortSignal,
  ): Promise<number> => {
    const polled = live.filter(isPolled);
    const streamed = inRequests(live.filter((each) => !isPolled(each)));
    const works = streamed.map((each) => readStream(connection, each, note, signal));
    if (polled.length > 0) works.push(poll(connection, polled, note, signal));
    return Promise.race(works);
  };

  return {
    async read(subscriptions, tell, signal) {
      // Cursors move on while it reads.
      const live = new Map(subscriptions.map((each) => [each.id, { ...each }]));
      let tried = 0;
      const note = (news: News): void => {
        const subscription = live.get(news.id);
        tried = 0;
        if (news.event?.type === 'reset') delete subscription?.since;
        if (subscription && news.cursor !== undefined) subscription.since = news.cursor;
        if (news.event?.type === 'error') live.delete(news.id);
        tell(news);
      };
      while (live.size > 0 && !signal.aborted) {
        const round = new AbortController();
        const end = (): void => round.abort();
        signal.addEventListener('abort', end);
        try {
          const startMs = Date.now();
          const waitMs = await readRound([...live.values()], note, round.signal);
          const isBrief = Date.now() - startMs < BRIEF_MS;
          await pause(waitMs + (isBrief ? backOff(2) : 0), signal);
        } catch (thrown) {
          if (signal.aborted) return;
          const error = thrown instanceof ApiError ? thrown : broken(thrown);
          if (error.code === 'NO_STREAM') {
            isStreamed = false;
          } else if (isPassing(error)) {
            await pause((error.retryAfter ?? 0) * 1000 + backOff(tried++), signal);
          } else {
            for (const id of blamed(error, live)) {
              if (error.code !== 'INVALID_QUERY' || isPolled(live.get(id)!)) mend(id, error, live, note);
              else asked.add(id);
            }
          }
        } finally {
          signal.removeEventListener('abort', end);
          end();
        }
      }
    },
  };
}

/** Subscriptions by the requests that take them. */
function inRequests(subscriptions: readonly Subscription[]): Subscription[][] {
  const requests: Subscription[][] = [];
  let left = 0;
  for (const each of subscriptions) {
    const { length } = JSON.stringify(each);
    if (left < length || requests.at(-1)?.length === MAX_SUBSCRIPTIONS) {
      requests.push([]);
      left = MAX_CHARACTERS;
    }
    requests.at(-1)!.push(each);
    left -= length;
  }
  return requests;
}

const broken = (cause: unknown): ApiError =>
  new ApiError('The stream broke off', { status: 0, code: 'NETWORK', cause });
const noStream = (): ApiError => new ApiError('Streams do not come through', { status: 0, code: 'NO_STREAM' });

/** No answer of the service, or that of one which cannot just now. */
const isPassing = ({ status }: ApiError): boolean => status < 400 || status === 429 || status >= 500;

/** A subscription that the refusal names, or else all of them. */
function blamed({ details }: ApiError, live: ReadonlyMap<string, Subscription>): string[] {
  const id = details[0]?.rule;
  return id !== undefined && live.has(id) ? [id] : [...live.keys()];
}

/** A cursor that is good no more means to start over; everything else is for the follower to know. */
function mend(id: string, error: ApiError, live: ReadonlyMap<string, Subscription>, note: (news: News) => void): void {
  const isStale = error.code === 'CURSOR_EXPIRED' || error.code === 'INVALID_CURSOR';
  if (isStale && live.get(id)?.since !== undefined) note({ id, event: { type: 'reset' } });
  else note({ id, event: { type: 'error', error } });
}

/** Waits; but not when the browser says that it is connected again. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms === 0) return;
  const online = new AbortController();
  const end = (): void => online.abort();
  platform.addEventListener?.('online', end);
  signal.addEventListener('abort', end, { once: true });
  await sleep(ms, online.signal).catch(() => undefined);
  platform.removeEventListener?.('online', end);
  signal.removeEventListener('abort', end);
}

/** Reads one stream to its end; milliseconds until the service wants to be asked again. */
async function readStream(
  connection: Connection,
  subscriptions: readonly Subscription[],
  note: (news: News) => void,
  signal: AbortSignal,
): Promise<number> {
  const ends = new AbortController();
  const end = (): void => ends.abort();
  signal.addEventListener('abort', end, { once: true });
  let isOpen = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const watch = (ms: number): void => {
    clearTimeout(timer);
    timer = setTimeout(end, ms);
  };
  watch(FIRST_NEWS_MS);
  try {
    const call = {
      method: 'POST',
      path: '/realtime',
      body: { subscriptions: subscriptions.map(({ id: _id, ...wanted }) => wanted) },
      headers: { accept: 'text/event-stream' },
      // A pause that the service wants would be taken for a stream that does not come through.
      repeat: 'never',
      signal: ends.signal,
    } as const;
    const response = await connection.open(call);
    const reader = (response.body as ReadableStream<Uint8Array> | null)?.getReader();
    if (!reader) throw noStream();
    const decoder = new TextDecoder();
    let waitMs = 0;
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return waitMs;
      isOpen = true;
      watch(SILENCE_MS);
      text += decoder.decode(value, { stream: true });
      const events = text.split('\n\n');
      text = events.pop()!;
      for (const event of events) {
        const end = readEvent(event, subscriptions, note);
        if (end !== null) waitMs = end;
      }
    }
  } catch (error) {
    if (signal.aborted) throw error;
    if (error instanceof ApiError) throw named(error, subscriptions);
    // Ended by the watch: nothing came through at all, or nothing more.
    throw ends.signal.aborted && !isOpen ? noStream() : broken(error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    ends.abort();
  }
}

/** A service without streams; or the refusal with the id of the subscription that it is about. */
function named(error: ApiError, subscriptions: readonly Subscription[]): ApiError {
  if (error.status === 405 || error.code === 'NOT_FOUND') return noStream();
  const n = /^subscriptions\.(\d+)/.exec(error.details[0]?.field ?? '')?.[1];
  if (n === undefined) return error;
  const { message, status, code, requestId, retryAfter } = error;
  const details = [{ field: 'subscriptions', rule: subscriptions[Number(n)]?.id ?? '', message }];
  return new ApiError(message, { status, code, details, requestId, retryAfter });
}

/** Reports one event; of the last one when to ask again. */
function readEvent(text: string, subscriptions: readonly Subscription[], note: (news: News) => void): number | null {
  const type = /^event: ?(.*)$/m.exec(text)?.[1];
  const data = /^data: ?(.*)$/m.exec(text)?.[1];
  if (type === undefined || data === undefined) return null;
  const { n, cursor, retryAfterMs, ...change } = JSON.parse(data) as Change<unknown> & {
    n: number;
    cursor?: string;
    retryAfterMs?: number;
  };
  if (type === 'end') return retryAfterMs ?? 0;
  const { id } = subscriptions[n]!;
  const event = type === 'change' ? change : { type: type as 'ready' | 'reset' };
  note({ id, ...(cursor !== undefined && { cursor }), event });
  return null;
}

/** Asks again and again; the service waits with its answer where there is only one to ask for. */
async function poll(
  connection: Connection,
  subscriptions: readonly Subscription[],
  note: (news: News) => void,
  signal: AbortSignal,
): Promise<number> {
  const wait = subscriptions.length === 1 ? 25 : 0;
  const cursors = new Map(subscriptions.map(({ id, since }) => [id, since]));
  for (let isFirst = true; ; isFirst = false) {
    let isQuiet = wait === 0;
    for (const { id, collection, filter, fields } of subscriptions) {
      const query = new URLSearchParams(filter);
      const since = cursors.get(id);
      if (since !== undefined) query.set('since', since);
      if (fields) query.set('fields', fields.join(','));
      if (!isFirst) query.set('wait', String(wait));
      const path = `/data/${encodeURIComponent(collection)}/changes`;
      const { items, cursor, more } = await askFor(connection, { path, query, signal }, id);
      for (const event of items) note({ id, event });
      cursors.set(id, cursor);
      if (more) isQuiet = false;
      note({ id, cursor, ...((isFirst || items.length > 0) && !more && { event: { type: 'ready' } }) });
    }
    if (isQuiet) await sleep(LOOK_MS, signal);
  }
}

async function askFor(
  connection: Connection,
  call: { path: string; query: URLSearchParams; signal: AbortSignal },
  id: string,
): Promise<ChangePage<unknown>> {
  try {
    return (await connection.send<{ data: ChangePage<unknown> }>(call)).data;
  } catch (error) {
    if (!(error instanceof ApiError) || isPassing(error)) throw error;
    const { message, status, code } = error;
    throw new ApiError(message, { status, code, details: [{ field: 'subscriptions', rule: id, message }] });
  }
}
