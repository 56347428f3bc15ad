import type { Hints } from '../../platform/processes/hints.js';

/** Resolves at the next hint about one of the topics, after `ms`, or when `signal` aborts. */
export async function waitForAny(
  hints: Hints,
  topics: readonly string[],
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  const [topic = '', ...more] = topics;
  if (more.length === 0) return hints.wait(topic, ms, signal);
  const done = new AbortController();
  const ends = AbortSignal.any([signal, done.signal]);
  await Promise.race(topics.map((each) => hints.wait(each, ms, ends)));
  done.abort();
}
