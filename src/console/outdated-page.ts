import { effect, signal } from '@preact/signals';
import { addressOf, trouble } from './api.js';
import { reloadWithDrafts } from './drafts.js';

/** The server is of another version than this page, which could not be loaded again without losing something. */
export const isStale = signal(false);

const EVERY_MS = 10 * 60_000;

/** The script that this page runs: its name has the hash of its content. */
const own = document.querySelector<HTMLScriptElement>('script[type=module]')?.getAttribute('src') ?? '';

/** Loads the page again, with what was typed, when the server hands out another one by now. */
export async function renewPage(): Promise<void> {
  const page = await fetch(new URL('.', document.baseURI), { cache: 'no-cache' }).then(
    (response) => (response.ok ? response.text() : ''),
    () => '',
  );
  // A proxy's own page, or none: it says nothing.
  if (!page.includes('id="app"') || page.includes(own)) return;
  if (!reloadWithDrafts()) isStale.value = true;
}

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 15_000;

/** While the server is away it is asked, less and less often, whether it is back: what waits for it then goes on. */
export function watchServer(): void {
  effect(() => {
    if (trouble.value === null) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;
    const lookAfter = (ms: number): void => {
      timer = setTimeout(() => void look(ms), ms);
    };
    const look = async (waited: number): Promise<void> => {
      const answer = document.hidden ? null : await fetch(addressOf('/api/health/ready')).catch(() => null);
      if (isOver) return;
      if (answer?.ok) trouble.value = null;
      else lookAfter(Math.min(MAX_WAIT_MS, waited * 2));
    };
    lookAfter(FIRST_WAIT_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  });
}

/** Checks when the server is reachable again, when the page gets focus, and periodically. */
export function watchVersion(): void {
  let wasAway = false;
  effect(() => {
    const isAway = trouble.value !== null;
    if (wasAway && !isAway) void renewPage();
    wasAway = isAway;
  });
  const look = (): void => void (document.hidden || renewPage());
  document.addEventListener('visibilitychange', look);
  setInterval(look, EVERY_MS);
}
