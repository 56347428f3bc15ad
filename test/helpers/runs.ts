import type { Random } from './random.js';

/**
 * How many cases a search at random draws: `usual` of them, or as many as BSVC_TEST_RUNS says for a long search. Over
 * the wire, where each costs several times as much, it is a third: what is drawn is decided above the database.
 */
export function runs(usual: number): number {
  const { BSVC_TEST_RUNS: given, BSVC_TEST_TRANSPORT: transport } = process.env;
  if (given !== undefined) return Number(given);
  return transport === 'wire' ? Math.ceil(usual / 3) : usual;
}

/** As many of the values as `runs` says, each at most once: with another commit others, in a long search all. */
export function drawSome<T>(random: Random, values: readonly T[], usual: number): T[] {
  const left = [...values];
  return Array.from(
    { length: Math.min(runs(usual), left.length) },
    () => left.splice(random.below(left.length), 1)[0]!,
  );
}
