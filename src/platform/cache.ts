import { LRUCache } from 'lru-cache';
import type { PubSub } from './processes/hints.js';

/** Answers are kept this long after they were asked for: a change by another process is seen within a second. */
const MAX_AGE_MS = 500;
/** The interval at which the clock is read for it. */
const AGE_RESOLUTION_MS = 20;
const MAX_ENTRIES = 10_000;
/** Message to other processes about a change: a line holds word, region and, for a single record, key. */
const FORGET = 'forget';

/** The name of a part of the cache, with the type of what it keeps. */
export interface CacheRegion<T extends object> {
  readonly name: string;
  /** Never there: ties the region to the type. */
  readonly kept?: T;
}

export const cacheRegion = <T extends object>(name: string): CacheRegion<T> => ({ name });

type Load<T> = (old: T | undefined) => Promise<T | null>;

/**
 * Short-lived copies of records that almost every request needs. Absent records are not kept: what was just created is
 * found at once.
 */
export interface Cache {
  /** The kept value, or undefined when there is none or it is too old. */
  peek<T extends object>(region: CacheRegion<T>, key: string): T | undefined;
  /** Keeps a value as if it had just been loaded. */
  keep<T extends object>(region: CacheRegion<T>, key: string, value: T): void;
  /**
   * The kept value, or what `load` finds; null is passed on and not kept. Waiters for one key share one load. `load` is
   * given the value that is too old, for what was derived from it.
   */
  read<T extends object>(region: CacheRegion<T>, key: string, load: Load<T>): Promise<T | null>;
  /** Drops one value, in this process at once. */
  forget(region: CacheRegion<object>, key: string): void;
  /** Drops all of a region, in this process at once. */
  forgetAll(region: CacheRegion<object>): void;
}

/** Other processes learn from `signals` which copies to drop; without a message a copy ends when it is too old. */
export function openCache(signals: PubSub): Cache {
  const regions = new Map<string, LRUCache<string, object>>();
  const loading = new Map<string, Promise<unknown>>();
  const region = (name: string): LRUCache<string, object> => {
    let found = regions.get(name);
    if (!found) {
      const age = { ttl: MAX_AGE_MS, ttlResolution: AGE_RESOLUTION_MS, noDeleteOnStaleGet: true };
      found = new LRUCache({ max: MAX_ENTRIES, ...age });
      regions.set(name, found);
    }
    return found;
  };
  const forgetLoads = (prefix: string): void => {
    for (const name of loading.keys()) if (name.startsWith(prefix)) loading.delete(name);
  };
  const forget = (name: string, key: string): void => {
    region(name).delete(key);
    loading.delete(`${name}\n${key}`);
  };
  const forgetAll = (name: string): void => {
    regions.delete(name);
    forgetLoads(`${name}\n`);
  };
  const readAnew = async <T extends object>(name: string, key: string, load: Load<T>): Promise<T | null> => {
    const loadName = `${name}\n${key}`;
    const underWay = loading.get(loadName) as Promise<T | null> | undefined;
    if (underWay) return underWay;
    // A load that takes long is as old as when it began.
    const start = performance.now();
    const started = load(region(name).peek(key, { allowStale: true }) as T | undefined);
    loading.set(loadName, started);
    try {
      const value = await started;
      // A load that was forgotten while under way may be older than the change that made it so.
      if (value && loading.get(loadName) === started) region(name).set(key, value, { start });
      return value;
    } finally {
      if (loading.get(loadName) === started) loading.delete(loadName);
    }
  };
  signals.on((text) => {
    const [word, name, key] = text.split('\n');
    if (word !== FORGET || name === undefined) return;
    if (key === undefined) forgetAll(name);
    else forget(name, key);
  });

  return {
    peek: <T extends object>({ name }: CacheRegion<T>, key: string) => region(name).get(key) as T | undefined,
    keep: ({ name }, key, value) => void region(name).set(key, value),
    read<T extends object>({ name }: CacheRegion<T>, key: string, load: Load<T>) {
      const kept = region(name).get(key) as T | undefined;
      return kept ? Promise.resolve(kept) : readAnew(name, key, load);
    },
    forget({ name }, key) {
      forget(name, key);
      signals.send(`${FORGET}\n${name}\n${key}`);
    },
    forgetAll({ name }) {
      forgetAll(name);
      signals.send(`${FORGET}\n${name}`);
    },
  };
}
