/** A line in which parties take turns: one at a time, each party once before any of them twice. */
export interface Line {
  inLine<T>(party: string, work: () => Promise<T>): Promise<T>;
}

/** `onEmpty` is called when nobody is left in the line. */
export function openLine(onEmpty: () => void): Line {
  /** Waiting calls by key, in the order of their turns. */
  const waiting = new Map<string, (() => void)[]>();
  let busy = false;

  const callNext = (): void => {
    const [next] = waiting;
    if (!next) {
      busy = false;
      onEmpty();
      return;
    }
    const [party, starts] = next;
    const start = starts.shift()!;
    // The party that was served goes behind all others.
    waiting.delete(party);
    if (starts.length > 0) waiting.set(party, starts);
    start();
  };

  return {
    async inLine(party, work) {
      if (busy) {
        await new Promise<void>((start) => {
          const starts = waiting.get(party);
          if (starts) starts.push(start);
          else waiting.set(party, [start]);
        });
      }
      busy = true;
      try {
        return await work();
      } finally {
        callNext();
      }
    },
  };
}
