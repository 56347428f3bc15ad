import { ApiError } from './api-error.js';
import type { Change, ChangePage } from './collection.js';
import { backOff, type Connection } from './connection.js';
import { POLLED } from './filter-suffixes.js';
import { platform, sleep } from './platform.js';
import { buildQuery } from './query.js';

/**
 * A message to a follower. `ready`: it has what a list would show. `reset`: forget everything, all of it follows.
 * `error`: the service refused it; nothing more comes, except after 401 and 403 when another user signs in.
 */
export type FollowEvent<T> = Change<T> | { type: 'ready' } | { type: 'reset' } | { type: 'error'; error: ApiError };

/** The subscription of one follower. */
export interface Subscription {
  id: string;
  collection: string;
  /** As in the query of a list. */
  filter: string;
  fields?: readonly string[];
  populate?: readonly string[];
  /** Only the first so many as they are sorted. */
  limit?: number;
  sort?: string;
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
/** A stream that has said nothing by then is not waited for. */
const EARLY_MS = 2000;
/** Browsers open six connections to a server that has no HTTP/2. */
const MAX_STREAMS = 3;
/** A stream continues while it has no more than this many subscriptions without followers. */
const MAX_UNUSED = 10;
/** Several followers that begin at once are one request. */
const GATHER_MS = 25;
/** Without new followers for so long, several streams become one. */
const MERGE_MS = 10_000;
/** Between looks where several subscriptions are asked for one after the other. */
const LOOK_MS = 2000;
/** A stream that ends so soon is not begun again at once. */
const BRIEF_MS = 1000;

/** Reads news of a service; it remembers when streams do not come through. */
export interface NewsReader {
  /** Replaces the subscriptions. Those that were there before are read on undisturbed; with none it ends. */
  set: (subscriptions: readonly Subscription[]) => void;
}

/** A stream, or a series of questions, for some of the subscriptions. */
interface Read {
  ids: ReadonlySet<string>;
  isPolled: boolean;
  ends: AbortController;
}

/**
 * Reports news through outages and restarts of the service. A subscription that comes later gets another stream, as
 * long as there are few; after a while, or when one of them ends, the next one is for all.
 */
export function openNews(connection: Connection, tell: (news: News) => void): NewsReader {
  const live = new Map<string, Subscription>();
  const reads = new Set<Read>();
  /** Subscriptions whose filter no stream takes. */
  const asked = new Set<string>();
  let isStreamed = true;
  /** The service has answered a request for a stream. */
  let isAnswered = false;
  let tried = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let merging: ReturnType<typeof setTimeout> | undefined;
  let rest: AbortController | undefined;

  const isPolledNow = ({ id, filter }: Subscription): boolean => !isStreamed || asked.has(id) || POLLED.test(filter);
  const note = (news: News): void => {
    const subscription = live.get(news.id);
    if (!subscription) return;
    tried = 0;
    advance(subscription, news);
    if (news.event?.type === 'error') live.delete(news.id);
    tell(news);
  };
  const stop = (read: Read): void => {
    reads.delete(read);
    read.ends.abort();
  };

  /** Begins to read what is not read yet. */
  const open = (): void => {
    if (rest) return;
    for (const isPolled of [true, false]) {
      const same = [...reads].filter((read) => read.isPolled === isPolled);
      const isNew = ({ id }: Subscription): boolean => !same.some(({ ids }) => ids.has(id));
      const wanted = [...live.values()].filter((each) => isPolledNow(each) === isPolled);
      if (!wanted.some(isNew)) continue;
      const last = same.length >= (isPolled ? 1 : MAX_STREAMS) ? same.at(-1) : undefined;
      if (last) stop(last);
      const begun = wanted.filter((each) => isNew(each) || last?.ids.has(each.id));
      for (const part of isPolled ? [begun] : inRequests(begun)) {
        const read = { ids: new Set(part.map(({ id }) => id)), isPolled, ends: new AbortController() };
        reads.add(read);
        void run(read);
      }
    }
  };

  const merge = (): void => {
    const streams = [...reads].filter(({ isPolled }) => !isPolled);
    if (streams.length > inRequests([...live.values()].filter((each) => !isPolledNow(each))).length) {
      streams.forEach(stop);
      open();
    }
  };

  const run = async (read: Read): Promise<void> => {
    const { ids, isPolled, ends } = read;
    const { signal } = ends;
    const own = (): Subscription[] => [...live.values()].filter(({ id }) => ids.has(id));
    const startMs = Date.now();
    let isAsking = false;
    // A platform or a proxy that holds the stream back shows nothing of it: until that is known, questions do.
    const ask = (): void => {
      isAsking = true;
      poll(connection, own(), note, signal).catch(() => undefined);
    };
    const early = isPolled || isAnswered ? undefined : setTimeout(ask, EARLY_MS);
    const onOpen = (): void => {
      clearTimeout(early);
      isAnswered = true;
      if (!isAsking) return;
      // Goes on where the questions got to.
      stop(read);
      open();
    };
    let waitMs = 0;
    let ended: Iterable<Read> = reads;
    try {
      waitMs = await (isPolled
        ? poll(connection, own(), note, signal)
        : readStream(connection, own(), note, signal, onOpen));
      if (Date.now() - startMs < BRIEF_MS) waitMs += backOff(2);
    } catch (thrown) {
      if (signal.aborted) return;
      const error = thrown instanceof ApiError ? thrown : broken(thrown);
      if (error.status > 0) isAnswered = true;
      if (error.code === 'NO_STREAM') {
        isStreamed = false;
      } else if (isPassing(error)) {
        if (error.status === 0) connection.note('connecting');
        waitMs = (error.retryAfter ?? 0) * 1000 + backOff(tried++);
      } else {
        ended = [read];
        const ask = error.code === 'INVALID_QUERY' && !isPolled ? asked : undefined;
        blamed(error, own()).forEach((id) => (ask ? ask.add(id) : mend(id, error, live, note)));
      }
    } finally {
      clearTimeout(early);
    }
    if (signal.aborted) return;
    [...ended].forEach(stop);
    if (waitMs > 0) {
      rest = new AbortController();
      await pause(waitMs, rest.signal);
      rest = undefined;
    }
    open();
  };

  return {
    set(subscriptions) {
      replace(live, subscriptions);
      [...reads].filter((read) => isUnused(read, live)).forEach(stop);
      clearTimeout(timer);
      clearTimeout(merging);
      if (live.size === 0) return rest?.abort();
      timer = setTimeout(open, GATHER_MS);
      merging = setTimeout(merge, MERGE_MS);
    },
  };
}

/** Remembers where to continue after a message. */
export function advance(subscription: Subscription, { cursor, event }: News): void {
  if (event?.type === 'reset') delete subscription.since;
  if (cursor !== undefined) subscription.since = cursor;
}

/** Takes other subscriptions; those that stay keep their cursors, which have moved. */
function replace(live: Map<string, Subscription>, subscriptions: readonly Subscription[]): void {
  const ids = new Set(subscriptions.map(({ id }) => id));
  for (const id of live.keys()) if (!ids.has(id)) live.delete(id);
  for (const each of subscriptions) if (!live.has(each.id)) live.set(each.id, { ...each });
}

/** True if nothing, or little, of what it reads is still followed. */
function isUnused({ ids }: Read, live: ReadonlyMap<string, Subscription>): boolean {
  const left = [...ids].filter((id) => live.has(id)).length;
  return left === 0 || ids.size - left > MAX_UNUSED;
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
function blamed({ details }: ApiError, subscriptions: readonly Subscription[]): string[] {
  const ids = subscriptions.map(({ id }) => id);
  const named = details[0]?.rule ?? '';
  return ids.includes(named) ? [named] : ids;
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
  onOpen: () => void,
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
      if (!isOpen) onOpen();
      isOpen = true;
      if (signal.aborted) return 0;
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
    for (const { id, collection, filter, ...shown } of subscriptions) {
      const parameters = buildQuery(undefined, { ...shown, since: cursors.get(id), ...(!isFirst && { wait }) });
      const query = [filter, parameters].filter(Boolean).join('&');
      const path = `/data/${encodeURIComponent(collection)}/changes`;
      const { items, cursor, more, reset } = await askFor(connection, { path, query, signal, wait }, id);
      if (reset) note({ id, event: { type: 'reset' } });
      for (const event of items) note({ id, event });
      cursors.set(id, cursor);
      if (more) isQuiet = false;
      note({ id, cursor, ...((isFirst || reset || items[0]) && !more && { event: { type: 'ready' } }) });
    }
    if (isQuiet) await sleep(LOOK_MS, signal);
  }
}

async function askFor(
  connection: Connection,
  call: Parameters<Connection['send']>[0],
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
