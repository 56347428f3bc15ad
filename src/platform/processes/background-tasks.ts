import type { Logger } from '../observe/logger.js';

/**
 * Work that follows an answered request: the request does not wait for it, but closing does. Work that must not be lost
 * is stored elsewhere and found again by a sweep.
 */
export interface BackgroundTasks {
  /**
   * Hands the item, together with others of its kind that come until then, to `work`. One call of a kind at a time; a
   * failure is logged.
   */
  add<T>(kind: string, item: T, work: (items: T[]) => Promise<void>): void;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
}

const MAX_TOGETHER = 200;
const GATHER_MS = 20;
/** Beyond this, items are left to the sweep rather than kept in memory. */
const MAX_WAITING = 2_000;

export function openBackgroundTasks(log: Logger): BackgroundTasks {
  const waiting = new Map<string, unknown[]>();
  const underWay = new Map<string, Promise<void>>();

  const run = async <T>(kind: string, work: (items: T[]) => Promise<void>): Promise<void> => {
    for (;;) {
      // The answer goes out first, and what follows it soon is done together with it.
      await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
      const items = (waiting.get(kind)?.splice(0, MAX_TOGETHER) ?? []) as T[];
      if (items.length === 0) break;
      try {
        await work(items);
      } catch (error) {
        log.error({ err: error, kind }, 'work that follows a request failed');
      }
    }
    underWay.delete(kind);
  };

  return {
    add(kind, item, work) {
      const items = waiting.get(kind);
      if (items && items.length >= MAX_WAITING) return;
      if (items) items.push(item);
      else waiting.set(kind, [item]);
      if (!underWay.has(kind)) underWay.set(kind, run(kind, work));
    },
    async idle() {
      while (underWay.size > 0) await Promise.all(underWay.values());
    },
  };
}
