const waiting: (() => void)[] = [];

/**
 * A turn of the event loop for one piece of work that takes milliseconds: of all who ask, one gets each turn, so that
 * ten of them together keep others waiting no longer than one.
 */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(giveTurn);
  });
}

function giveTurn(): void {
  waiting[0]!();
  waiting.shift();
  if (waiting.length > 0) setImmediate(giveTurn);
}

/** So long somebody works before others get a turn. */
const TURN_MS = 5;

/** A function to be awaited between two pieces of work: it waits for a turn of its own when this one has lasted. */
export function takeTurns(): () => Promise<void> | void {
  let started = performance.now();
  return () => {
    if (performance.now() - started < TURN_MS) return;
    return ownTurn().then(() => {
      started = performance.now();
    });
  };
}

/** The list with `work` done on each item in order, however long that takes in all. */
export async function mapInTurns<T, R>(items: readonly T[], work: (item: T, at: number) => R): Promise<R[]> {
  const done: R[] = [];
  const turn = takeTurns();
  for (const [at, item] of items.entries()) {
    await turn();
    done.push(work(item, at));
  }
  return done;
}
