/**
 * How the engine's longer work shares the thread with everybody else's. A host that lets its own work take turns has
 * the engine's take turns among them (`EngineOptions.scheduler`).
 */
export interface Scheduler {
  /** Resolves when a piece of work that takes milliseconds may begin. */
  turn(): Promise<void>;
  /** For whom a read is done that ends with this signal: the reader threads are shared out evenly. Empty: nobody's. */
  partyOf(signal: AbortSignal | undefined): string;
}

let last = Promise.resolve();

/** One for the thread, as its event loop is: a turn of it for each piece of work, however many wait at once. */
let scheduler: Scheduler = {
  turn: () => (last = last.then(() => new Promise<void>((resolve) => setImmediate(resolve)))),
  partyOf: () => '',
};

/** From now on all engines of this thread take their turns there. */
export function scheduleBy(given: Scheduler): void {
  scheduler = given;
}

/** A turn of the event loop for one piece of work that takes milliseconds. */
export function nextTurn(): Promise<void> {
  return scheduler.turn();
}

/** For whom a read is done that ends with this signal. */
export function partyOf(signal: AbortSignal | undefined): string {
  return scheduler.partyOf(signal);
}
