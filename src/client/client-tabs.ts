import type { ApiError } from './api-error.js';
import type { ConnectionState, ConnectionStatus } from './connection.js';
import type { platform as parts, warn as report, Channel } from './platform.js';
import type { News, NewsReader, Subscription } from './stream.js';

/** News as it goes from tab to tab: errors are no plain values. */
type Told = Omit<News, 'event'> & { event?: object };

/** Messages between tabs. */
type Message =
  | { type: 'want'; tab: string; subscriptions: readonly Subscription[] }
  | { type: 'who' }
  | { type: 'state'; state: ConnectionState }
  | { type: 'news'; news: Told };

/** Tabs of one browser that follow by the stream of one of them. */
export interface Tabs {
  /** Replaces the subscriptions of this tab; with an empty list it leaves. */
  want(subscriptions: readonly Subscription[]): void;
}

/** What the client hands to this module, which is loaded in browsers only and imports nothing of the rest. */
export interface TabsOptions {
  name: string;
  /** Distinguishes this tab. */
  tab: string;
  platform: typeof parts;
  warn: typeof report;
  /** Subscriptions of this tab, with their cursors. */
  own: () => readonly Subscription[];
  /** Opens what reads for all tabs. */
  lead: (tell: (news: News) => void) => NewsReader;
  status: ConnectionStatus;
  note: (state: ConnectionState) => void;
  take: (news: News) => void;
  revive: (error: object) => ApiError;
}

/** The lock of the own tab is given at once; what takes longer hangs. */
const PRESENT_MS = 5000;

export function openTabs({ name, tab, platform, warn, own, lead, status, note, take, revive }: TabsOptions): Tabs {
  let locks = platform.navigator?.locks;
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
    try {
      channel = new platform.BroadcastChannel!(name);
    } catch (error) {
      doWithout(error);
    }
    if (!channel) return becomeLeader();
    const unwatch = status.onChange((state) => isLeader && post({ type: 'state', state }));
    signal.addEventListener('abort', unwatch, { once: true });
    channel.onmessage = (event) => {
      const data = event.data as Message;
      if (data.type === 'who') {
        announce();
      } else if (data.type === 'news') {
        take(revived(data.news, revive));
      } else if (data.type === 'state') {
        note(data.state);
      } else if (isLeader) {
        if (!all.has(data.tab)) watchTab(data.tab, signal);
        all.set(data.tab, data.subscriptions);
      }
    };
    // Held as long as the tab is there: who waits for it learns that it is gone.
    const stay = async (of: string, begin: () => void): Promise<void> => {
      try {
        await locks?.request(`${name}:${of}`, { signal }, () => {
          begin();
          return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
        });
      } catch (error) {
        fail(error);
      }
    };
    const fail = (error: unknown): void => {
      if (signal.aborted || !channel) return;
      doWithout(error);
      becomeLeader();
    };
    // No other tab requests this tab's lock: it is granted immediately, or locks hang.
    const late = setTimeout(() => isPresent || fail('no Web Lock'), PRESENT_MS);
    signal.addEventListener('abort', () => clearTimeout(late), { once: true });
    void stay(tab, () => {
      isPresent = true;
      clearTimeout(late);
      announce();
    });
    void stay('leader', becomeLeader);
  };
  /** This tab follows by a stream of its own. */
  const doWithout = (error: unknown): void => {
    warn('tabs cannot share a stream', error);
    channel?.close();
    locks = channel = undefined;
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

/** The subscriptions of all tabs, as the leader has them. */
function openAll({ lead, take, post }: Pick<TabsOptions, 'lead' | 'take'> & { post: (message: Message) => void }) {
  const wanted = new Map<string, readonly Subscription[]>();

  const reader = lead((news) => {
    // Cursors are kept for the next leader; rejected ones are dropped.
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
  });

  return {
    has: (of: string) => wanted.has(of),
    set(of: string, subscriptions: readonly Subscription[]): void {
      if (subscriptions.length > 0) wanted.set(of, subscriptions);
      else wanted.delete(of);
      reader.set([...wanted.values()].flat());
    },
    stop(): void {
      wanted.clear();
      reader.set([]);
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
