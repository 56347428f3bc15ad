import type { PubSub } from './pub-sub.js';

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
