import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useLoad } from '../load.js';
import { place } from '../routes.js';

/** The state of the service, as the operators' API tells it. */
export interface Status {
  version: string;
  store: string;
  storedBytes: number | null;
  uptimeSeconds: number;
  processes: number;
  memoryBytes: number;
  disk: { freeBytes: number; totalBytes: number } | null;
  jobs: { queued: number; running: number; dead: number };
  backup: { at: string | null; isLate: boolean } | null;
  problems: { kind: string; project: string | null; id: string | null; text: string; since: string | null }[];
}

/** Problems as they were last told, by whichever part of the page asked. */
export const problems = signal<Status['problems'] | null>(null);

const OLD_MS = 30_000;

/**
 * Names problems on every screen. The overview asks for them by itself; elsewhere they are asked for on the way from
 * screen to screen, never by a timer: a session that nobody uses is to end.
 */
export function Health() {
  const { parts, query } = place.value;
  const isOverview = parts.length === 0;
  const { data, reload } = useLoad<Status>(isOverview ? null : '/api/admin/status');
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
