import type { ApiError } from './api-error.js';
import { randomKey } from './connection.js';
import { platform, type Channel } from './platform.js';
import type { News, Subscription } from './stream.js';

/** News as it goes from tab to tab: errors are no plain values. */
type Told = Omit<News, 'event'> & { event?: object };

/** Messages between tabs. */
type Message =
  | { type: 'want'; tab: string; subscriptions: readonly Subscription[] }
  | { type: 'who' }
  | { type: 'news'; news: Told };

/** Tabs of one browser that follow by the stream of one of them. */
export interface Tabs {
  /** Replaces the subscriptions of this tab; with an empty list it leaves. */
  want(subscriptions: readonly Subscription[]): void;
}

interface TabsOptions {
  name: string;
  /** True if other tabs see the same session: they may be told the same. */
  isShared: boolean;
  /** Subscriptions of this tab, with their cursors. */
  own: () => readonly Subscription[];
  /** Reads a stream for all tabs, until the signal. */
  lead: (subscriptions: readonly Subscription[], tell: (news: News) => void, signal: AbortSignal) => Promise<void>;
  take: (news: News) => void;
  revive: (error: object) => ApiError;
}

/** Several followers that begin at once are one request. */
const GATHER_MS = 10;

export function openTabs({ name, isShared, own, lead, take, revive }: TabsOptions): Tabs {
  const tab = randomKey();
  const locks = isShared && platform.BroadcastChannel ? platform.navigator?.locks : undefined;
  let channel: Channel | undefined;
  let isLeader = false;
  /** The lock by which others learn that this tab is gone is held: not before may they hear of it. */
  let isPresent = false;
  let leave: AbortController | undefined;

  const post = (message: Message): void => channel?.postMessage(message);
  const all = openAll({ lead, take, post });
  const announce = (): void => {
    if (isPresent && !isLeader) post({ type: 'want', tab, subscriptions: own() });
  };
  const becomeLeader = (): void => {
    isLeader = true;
    all.set(tab, own());
    post({ type: 'who' });
  };

  const join = (): void => {
    leave = new AbortController();
    const { signal } = leave;
    if (!locks) return becomeLeader();
    channel = new platform.BroadcastChannel!(name);
    channel.onmessage = (event) => {
      const data = event.data as Message;
      if (data.type === 'who') {
        announce();
      } else if (data.type === 'news') {
        take(revived(data.news, revive));
      } else if (isLeader) {
        if (!all.has(data.tab)) watchTab(data.tab, signal);
        all.set(data.tab, data.subscriptions);
      }
    };
    // Held as long as the tab is there: who waits for it learns that it is gone.
    const stay = (of: string, signal: AbortSignal, begin: () => void): Promise<void> =>
      locks
        .request(`${name}:${of}`, { signal }, () => {
          begin();
          return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
        })
        .catch(() => undefined);
    void stay(tab, signal, () => {
      isPresent = true;
      announce();
    });
    void stay('leader', signal, becomeLeader);
  };
  const watchTab = (of: string, signal: AbortSignal): void => {
    void locks!
      .request(`${name}:${of}`, { signal }, () => {
        all.set(of, []);
        return Promise.resolve();
      })
      .catch(() => undefined);
  };

  return {
    want(subscriptions) {
      if (subscriptions.length > 0 && !leave) join();
      if (isLeader) all.set(tab, subscriptions);
      else announce();
      if (subscriptions.length > 0) return;
      isLeader = isPresent = false;
      all.stop();
      leave?.abort();
      leave = undefined;
      channel?.close();
      channel = undefined;
    },
  };
}

/** The subscriptions of all tabs, as the leader has them, followed by one stream. */
function openAll({ lead, take, post }: Pick<TabsOptions, 'lead' | 'take'> & { post: (message: Message) => void }) {
  const wanted = new Map<string, readonly Subscription[]>();
  let reading: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const tell = (news: News): void => {
    // Cursors are kept for the next stream, of any tab; what was refused is in none.
    for (const [of, list] of wanted) {
      if (list.some(({ id }) => id === news.id)) {
        wanted.set(
          of,
          list.flatMap((each) => moved(each, news)),
        );
      }
    }
    take(news);
    const { event } = news;
    if (event?.type === 'error') {
      const { message, status, code, details } = event.error;
      post({ type: 'news', news: { ...news, event: { type: 'error', error: { message, status, code, details } } } });
    } else {
      post({ type: 'news', news: news });
    }
  };
  const restart = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      reading?.abort();
      const round = (reading = new AbortController());
      const all = [...wanted.values()].flat();
      if (all.length > 0) void lead(all, (news) => !round.signal.aborted && tell(news), round.signal);
    }, GATHER_MS);
  };

  return {
    has: (of: string) => wanted.has(of),
    set(of: string, subscriptions: readonly Subscription[]): void {
      const before = wanted.get(of) ?? [];
      if (subscriptions.length > 0) wanted.set(of, subscriptions);
      else wanted.delete(of);
      const isSame =
        before.length === subscriptions.length && before.every(({ id }, at) => subscriptions[at]?.id === id);
      if (!isSame) restart();
    },
    stop(): void {
      clearTimeout(timer);
      reading?.abort();
      wanted.clear();
    },
  };
}

function moved(subscription: Subscription, { id, cursor, event }: News): Subscription[] {
  if (subscription.id !== id) return [subscription];
  if (event?.type === 'error') return [];
  const { since, ...rest } = subscription;
  const next = event?.type === 'reset' ? undefined : (cursor ?? since);
  return [{ ...rest, ...(next !== undefined && { since: next }) }];
}

function revived(told: Told, revive: (error: object) => ApiError): News {
  const { event } = told as { event?: { type: string; error?: object } };
  if (event?.type !== 'error') return told as News;
  return { ...told, event: { type: 'error', error: revive(event.error!) } };
}
