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
