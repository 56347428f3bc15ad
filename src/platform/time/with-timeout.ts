/** The result of `work`, or `late` if that takes longer than `ms`; `work` itself goes on. */
export function withTimeout<T, L>(work: Promise<T>, ms: number, late: L): Promise<T | L> {
  return race<T | L>(work, ms, (resolve) => resolve(late));
}

/** The result of `work`; what `late` makes is thrown if that takes longer than `ms`. `work` itself goes on. */
export function orTimeout<T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> {
  return race(work, ms, (_, reject) => reject(late()));
}

function race<T>(
  work: Promise<T>,
  ms: number,
  onTime: (resolve: (value: T) => void, reject: (error: Error) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(onTime, ms, resolve, reject);
    const isOver = (): void => clearTimeout(timer);
    work.then(resolve, reject);
    work.then(isOver, isOver);
  });
}
