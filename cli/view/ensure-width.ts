import type { Io } from './output.js';

/** Of a terminal that says 0: one made by `ssh -tt` from cron, or by a container. */
const UNKNOWN_WIDTH = 80;

/** Gives a terminal's stream a width that one can divide by, for tables, spinners and prompts alike. */
export function ensureWidth(stream: Io['stdout'] | Io['stderr']): void {
  if (!stream.isTTY) return;
  let told = (stream as Io['stdout']).columns;
  // The stream itself writes it again when the window changes.
  Object.defineProperty(stream, 'columns', {
    configurable: true,
    enumerable: true,
    get: () => (told === 0 ? UNKNOWN_WIDTH : told),
    set: (columns: number) => void (told = columns),
  });
}
