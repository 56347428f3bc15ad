import { renewPage } from '../stale-page.js';
import { say } from './basics.js';

/** Code that few screens want, loaded when one does; null when it cannot be, which the page says. */
export async function loadPart<T>(load: () => Promise<T>): Promise<T | null> {
  try {
    return await load();
  } catch {
    // A newer server has other parts.
    await renewPage();
    say('A part of this page could not be loaded: load the page again when the server is back', { isBad: true });
    return null;
  }
}
