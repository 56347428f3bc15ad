import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Address, ApiPath, DataOf } from './api-paths.js';
import { get, refusalOf, type Refusal } from './api.js';

export interface Loaded<T> {
  /** What is loaded; null for nothing. */
  path: Address<ApiPath<'GET'>> | null;
  /** The last answer; stays while the next page of the same list is under way, and when the same is asked in vain. */
  data: T | null;
  error: Refusal | null;
  loading: boolean;
  ms: number;
  reload: () => void;
}

interface Answered<T> {
  path: string | null;
  /** Which of the requests for the path it was that was answered. */
  turn: number;
  data: T | null;
  error: Refusal | null;
  ms: number;
}

/** What is loaded by parts of the page that are there. */
const mounted = new Set<{ path: string; reload: () => void }>();

/** Loads again what a write to an address may have changed: what it is part of, and what is beside and below it. */
export function invalidate(written: string): void {
  const beside = written.replace(/\/[^/]*$/, '/');
  // What the write has closed is gone from the page by then.
  setTimeout(() => {
    for (const { path, reload } of mounted) {
      const [loaded = ''] = path.split('?', 1);
      if (`${written}/`.startsWith(`${loaded}/`) || `${loaded}/`.startsWith(beside)) reload();
    }
  });
}

const FIRST_WAIT_MS = 2_000;
const MAX_WAIT_MS = 30_000;

/** Loads a path, again whenever it changes, and every `everyMs` while the page is looked at. null loads nothing. */
export function useLoad<P extends ApiPath<'GET'>>(path: Address<P> | null, everyMs?: number): Loaded<DataOf<'GET', P>> {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<Answered<DataOf<'GET', P>>>({ path: null, turn, data: null, error: null, ms: 0 });
  const failures = useRef(0);
  // Before the page is painted: the answer is on its way while it is.
  useLayoutEffect(() => {
    if (path === null) return undefined;
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = (ms: number): void => {
      timer = setTimeout(() => (document.hidden ? again(ms) : setTurn((n) => n + 1)), ms);
    };
    const started = performance.now();
    get(path, ending.signal).then(
      (data) => {
        if (ending.signal.aborted) return;
        failures.current = 0;
        setState({ path, turn, data, error: null, ms: Math.round(performance.now() - started) });
        if (everyMs !== undefined) again(everyMs);
      },
      (error: unknown) => {
        if (ending.signal.aborted) return;
        const refusal = refusalOf(error);
        setState((last) => ({ ...last, path, turn, data: last.path === path ? last.data : null, error: refusal }));
        // A server that is away or overloaded is asked again, less and less often.
        if (refusal.status === 0 || refusal.status >= 500) {
          const wait = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** failures.current++);
          again(refusal.retryAfterSeconds === null ? wait : Math.max(wait, refusal.retryAfterSeconds * 1000));
        }
      },
    );
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [path, turn, everyMs]);
  const reload = (): void => setTurn((n) => n + 1);
  useLayoutEffect(() => {
    if (path === null) return undefined;
    const one = { path, reload };
    mounted.add(one);
    return () => mounted.delete(one);
  }, [path]);
  const isOther = state.path !== path;
  return {
    path,
    reload,
    data: isOther && listOf(state.path) !== listOf(path) ? null : state.data,
    error: isOther ? null : state.error,
    loading: path !== null && (isOther || state.turn !== turn),
    ms: state.ms,
  };
}

/**
 * A path, and as whom it is read: rows stay until the next ones of the same list come, so that nothing jumps,
 * but never those of another operator.
 */
function listOf(path: string | null): string | null {
  const [list, query] = path?.split('?', 2) ?? [];
  return list === undefined ? null : `${list} ${new URLSearchParams(query).get('as')}`;
}
