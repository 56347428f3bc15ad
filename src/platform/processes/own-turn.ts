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
