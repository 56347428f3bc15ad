import { randomToken } from '../ids.js';
import type { RedisConnection } from '../redis/redis.js';
import type { ProcessGroup } from './group-member.js';

/**
 * Short words between the processes of a service. They may be lost: whatever they hurry along happens without them
 * within a second.
 */
export interface PubSub {
  /** Sends to all other processes; returns at once. */
  send(text: string): void;
  on(listener: (text: string) => void): void;
}

const CHANNEL = 'bsvc:signals';

/** PubSub by Redis when there is one, otherwise among the processes of one `serve`, otherwise local. */
export function openPubSub(redis: RedisConnection | null, processGroup: ProcessGroup | null): PubSub {
  if (redis) return openRedisSignals(redis);
  if (processGroup) {
    return { send: (text) => processGroup.signal(text), on: (listener) => processGroup.onSignal(listener) };
  }
  return { send: () => undefined, on: () => undefined };
}

function openRedisSignals(redis: RedisConnection): PubSub {
  // This process's own messages come back too.
  const self = `${randomToken(9)} `;
  let subscribed = false;
  const listeners: ((text: string) => void)[] = [];
  const subscribe = (): void => {
    subscribed = true;
    const subscriber = redis.subscriber();
    subscriber.on('message', (_channel: string, message: string) => {
      if (message.startsWith(self)) return;
      const text = message.slice(message.indexOf(' ') + 1);
      for (const listener of listeners) listener(text);
    });
    // Repeated by the client whenever it connects again.
    subscriber.subscribe(CHANNEL).catch(() => undefined);
  };
  return {
    send: (text) =>
      void redis
        .client()
        .publish(CHANNEL, self + text)
        .catch(() => undefined),
    on(listener) {
      listeners.push(listener);
      if (!subscribed) subscribe();
    },
  };
}

/**
 * Lets those who wait for something know that it may have happened, here at once and in other processes by PubSub. A
 * lost hint is made up for by looking again within half a second.
 */
export interface Hints {
  tell(topic: string): void;
  /** Resolves at the next hint about the topic, after `ms`, or when `signal` aborts. */
  wait(topic: string, ms: number, signal?: AbortSignal): Promise<void>;
}

const WORD = 'hint';
/** Shortest time between two hints of a topic to other processes, in milliseconds. */
const SPREAD_MS = 20;

/** `hasOthers`: there may be processes that PubSub reaches. */
export function openHints(pubSub: PubSub, hasOthers: boolean): Hints {
  const waiting = new Map<string, Set<() => void>>();
  const untold = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const wake = (topic: string): void => {
    const waiters = waiting.get(topic);
    if (!waiters) return;
    waiting.delete(topic);
    for (const go of waiters) go();
  };
  const spread = (): void => {
    timer = undefined;
    for (const topic of untold) pubSub.send(`${WORD}\n${topic}`);
    untold.clear();
  };
  pubSub.on((text) => {
    if (text.startsWith(`${WORD}\n`)) wake(text.slice(WORD.length + 1));
  });
  return {
    tell(topic) {
      wake(topic);
      if (!hasOthers) return;
      untold.add(topic);
      timer ??= setTimeout(spread, SPREAD_MS).unref();
    },
    wait(topic, ms, signal) {
      return new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const waiters = waiting.get(topic) ?? new Set();
        waiting.set(topic, waiters);
        const end = (): void => {
          clearTimeout(limit);
          signal?.removeEventListener('abort', end);
          waiters.delete(end);
          if (waiters.size === 0 && waiting.get(topic) === waiters) waiting.delete(topic);
          resolve();
        };
        const limit = setTimeout(end, ms);
        signal?.addEventListener('abort', end);
        waiters.add(end);
      });
    },
  };
}
