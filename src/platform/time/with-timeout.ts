/** The result of `work`, or `late` if that takes longer than `ms`; `work` itself goes on. */
export async function withTimeout<T, L>(work: Promise<T>, ms: number, late: L): Promise<T | L> {
  return race(work, ms, (resolve: (value: L) => void) => resolve(late));
}

/** The result of `work`; what `late` makes is thrown if that takes longer than `ms`. `work` itself goes on. */
export async function orTimeout<T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> {
  return race(work, ms, (_: (value: never) => void, reject) => reject(late()));
}

async function race<T, L>(
  work: Promise<T>,
  ms: number,
  onTime: (resolve: (value: L) => void, reject: (error: Error) => void) => void,
): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<L>((resolve, reject) => (timer = setTimeout(onTime, ms, resolve, reject)));
  try {
    return await Promise.race([work, timeUp]);
  } finally {
    clearTimeout(timer);
  }
}
