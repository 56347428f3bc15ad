import { CODES, refusal } from '../../errors.js';
import { openTextSearch } from './text-search.js';
import { Stopwatch } from '../values/stopwatch.js';

/**
 * Steps (characters times instructions of a program) that take at most a few milliseconds: that much is searched
 * without looking at a clock.
 */
export const UNWATCHED_STEPS = 200_000;
const CHARACTERS_PER_LOOK = 64;

const watch = new Stopwatch();
let isRunning = false;
let steps = 0;

/**
 * Counts the steps of a search before it begins. All searches of one turn of the event loop together may take no longer
 * than the work on one document: 50 beyond it.
 */
export function meterSearch(count: number): void {
  if (!isRunning) {
    isRunning = true;
    steps = 0;
    watch.restart();
    setImmediate(() => (isRunning = false));
  }
  steps += count;
  if (steps > UNWATCHED_STEPS) look();
}

function look(): void {
  if (watch.isOver()) throw refusal(CODES.MaxTimeMSExpired, 'looking for a pattern in so long a text takes too long');
}

/** A text that looks at the clock while it is read by `charCodeAt` and `indexOf`, as the linear engine does. */
class WatchedText extends String {
  private left = CHARACTERS_PER_LOOK;

  override charCodeAt(at: number): number {
    if (--this.left === 0) {
      this.left = CHARACTERS_PER_LOOK;
      look();
    }
    return super.charCodeAt(at);
  }

  override indexOf(wanted: string, from = 0): number {
    return openTextSearch(wanted).indexIn(this.valueOf(), from);
  }
}

/** The same text for the linear engine, which ends with 50 when the time of this turn is over. */
export function watchText(text: string): string {
  // The matcher uses of a text only what the class has.
  return new WatchedText(text) as unknown as string;
}
