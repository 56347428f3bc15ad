/** Random choices that a seed repeats. */
export interface Random {
  /** From 0 up to but not including `end`. */
  below(end: number): number;
  chance(share: number): boolean;
  pick<T>(items: readonly T[]): T;
  /** Another sequence of its own, for a client of that name. */
  fork(name: string): Random;
}

/** The mulberry32 generator. */
export function openRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (end: number): number => Math.floor(next() * end);
  return {
    below,
    chance: (share) => next() < share,
    pick: (items) => items[below(items.length)]!,
    fork: (name) =>
      openRandom([...name].reduce((hash, letter) => Math.imul(hash ^ letter.charCodeAt(0), 16_777_619), seed)),
  };
}
