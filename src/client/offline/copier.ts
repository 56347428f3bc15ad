import type { FollowEvent } from '../stream.js';
import type { Doc, Held, Kept } from './replica.js';
import type { Changes, LocalStore } from './store.js';

/** Follows a collection of the service from a cursor; the listener hears the cursor behind each event. */
export type FollowService = (
  since: string | undefined,
  listener: (event: FollowEvent<Doc>, cursor?: string) => void,
) => () => void;

/** A first copy is stored in parts of so many changes. */
const PART = 1000;

/**
 * Keeps the copy of a collection as the service has it, each step stored together with its cursor. `gone` has the
 * documents that were lost last; `fail` hears why nothing more comes, null if another tab keeps it too.
 */
export function keepCopy(
  store: LocalStore,
  collection: string,
  follow: FollowService,
  gone: Set<string>,
  fail: (error: unknown) => void,
): () => void {
  const { state } = store;
  const [about, prefix] = [`c/${collection}`, `d/${collection}/`];
  const kept = (): Kept => (state.get(about) as Kept | undefined) ?? {};
  const heldOf = (key: string): Held => (state.get(key) as Held | undefined) ?? {};
  const keys = (): string[] => [...state.keys()].filter((key) => key.startsWith(prefix));
  let since = kept().cursor;
  /** Answers from before: when the copy has caught up, it has all that they tell. */
  let old = new Map(keys().map((key) => [key, heldOf(key)]));
  let told = new Map<string, Doc | undefined>();
  let isReset = false;
  let isEnded = false;
  let tail = Promise.resolve();

  const put = (part: typeof told, isAll: boolean, cursor: string | undefined, isReady: boolean): Changes | null => {
    // Another tab has gone on.
    if (kept().cursor !== since) return null;
    const changes: Changes = new Map(isAll ? keys().map((key) => [key, undefined]) : []);
    for (const [key, held] of isReady && !isAll ? old : []) {
      if (held.answer !== undefined && heldOf(key) === held) changes.set(key, held.copy && { copy: held.copy });
    }
    for (const [id, copy] of part) {
      const key = prefix + id;
      const { answer } = heldOf(key);
      const isTold = !copy || !answer || copy.updatedAt >= answer.updatedAt;
      changes.set(key, copy && (isTold ? { copy } : { copy, answer }));
      if (copy) gone.delete(key);
      else gone.add(key);
    }
    return changes.set(about, { cursor, isReady: isReady || kept().isReady });
  };
  const end = (): void => {
    isEnded = true;
    stop();
  };
  const stop = follow(since, (event, cursor = since) => {
    if (event.type === 'error') return fail(event.error);
    if (event.type === 'reset') {
      told = new Map();
      isReset = true;
    } else if (event.type !== 'ready') {
      told.set(event.id, event.type === 'upsert' ? event.document : undefined);
    }
    const isReady = event.type === 'ready';
    if (!isReady && (isReset || told.size < PART)) return;
    const [part, isAll] = [told, isReset];
    told = new Map();
    isReset = false;
    tail = tail.then(async () => {
      if (isEnded) return;
      if (!(await store.commit(() => put(part, isAll, cursor, isReady)))) return fail(null);
      since = cursor;
      if (isReady) old = new Map();
    });
    tail.catch(fail);
  });
  return end;
}
