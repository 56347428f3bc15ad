import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { pathTo } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { useLoad } from '../load.js';
import { place } from '../routes.js';

/** Problems as they were last told, by whichever part of the page asked. */
export const problems = signal<ApiSchemas['ServiceStatus']['problems'] | null>(null);

const OLD_MS = 30_000;

/**
 * Names problems on every screen. The overview asks for them by itself; elsewhere they are asked for on the way from
 * screen to screen, never by a timer: a session that nobody uses is to end.
 */
export function Health() {
  const { parts, query } = place.value;
  const isOverview = parts.length === 0;
  const { data, reload } = useLoad(isOverview ? null : pathTo('/api/admin/status'));
  const askedAt = useRef(performance.now());
  useEffect(() => {
    if (data) problems.value = data.problems;
  }, [data]);
  useEffect(() => {
    if (performance.now() - askedAt.current < OLD_MS) return;
    askedAt.current = performance.now();
    reload();
  }, [parts, query]);
  if (problems.value === null) return null;
  const { length } = problems.value;
  return (
    <a href="#/" class={length > 0 ? 'state bad' : 'state good'}>
      {length === 0 ? 'healthy' : `${length} ${length === 1 ? 'problem' : 'problems'}`}
    </a>
  );
}
