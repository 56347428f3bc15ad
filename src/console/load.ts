import { useEffect, useRef, useState } from 'preact/hooks';
import { api, Refusal } from './api.js';

export interface Loaded<T> {
  /** What came last; stays while the next is under way, and when it fails. */
  data: T | null;
  error: Refusal | null;
  loading: boolean;
  ms: number;
  reload(): void;
}

const FIRST_WAIT_MS = 2_000;
const LONGEST_WAIT_MS = 30_000;

/** Loads a path, again whenever it changes, and every `everyMs` while the page is looked at. null loads nothing. */
export function useLoad<T>(path: string | null, everyMs?: number): Loaded<T> {
  const [state, setState] = useState<{ path: string | null; data: T | null; error: Refusal | null; ms: number }>({
    path: null,
    data: null,
    error: null,
    ms: 0,
  });
  const [turn, setTurn] = useState(0);
  const [loading, setLoading] = useState(false);
  const failures = useRef(0);
  useEffect(() => {
    if (path === null) return undefined;
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = (ms: number): void => {
      timer = setTimeout(() => (document.hidden ? again(ms) : setTurn((n) => n + 1)), ms);
    };
    setLoading(true);
    const started = performance.now();
    api<T>('GET', path, undefined, { signal: ending.signal }).then(
      (data) => {
        if (ending.signal.aborted) return;
        failures.current = 0;
        setState({ path, data, error: null, ms: Math.round(performance.now() - started) });
        setLoading(false);
        if (everyMs !== undefined) again(everyMs);
      },
      (error: unknown) => {
        if (ending.signal.aborted) return;
        const refusal = error instanceof Refusal ? error : new Refusal(0, 'FAILED', String(error), '', null);
        setState((last) => ({ ...last, path, data: last.path === path ? last.data : null, error: refusal }));
        setLoading(false);
        // A server that is away or overloaded is asked again, less and less often.
        if (refusal.status === 0 || refusal.status >= 500) {
          const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures.current++);
          again(refusal.retryAfterSeconds === null ? wait : Math.max(wait, refusal.retryAfterSeconds * 1000));
        }
      },
    );
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [path, turn, everyMs]);
  const isOther = state.path !== path;
  return {
    data: isOther ? null : state.data,
    error: isOther ? null : state.error,
    loading: loading || isOther,
    ms: state.ms,
    reload: () => setTurn((n) => n + 1),
  };
}
