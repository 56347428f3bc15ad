import { createHash } from 'node:crypto';

/**
 * The seed of a property test of the deep run, printed so that a failure can be repeated by `BSVC_TEST_SEED`. `.ci/run`
 * gives the commit: each commit draws new seeds, and a commit that passed draws the same ones again. Else it is drawn
 * at random.
 */
export function openSeed(name: string): number {
  const seed = readSeed(name);
  console.log(`seed of ${name}: ${seed}; BSVC_TEST_SEED=${seed} repeats it`);
  return seed;
}

function readSeed(name: string): number {
  const { BSVC_TEST_SEED: given, BSVC_TEST_COMMIT: commit } = process.env;
  if (given !== undefined) return Number(given);
  if (!commit) return Math.floor(Math.random() * 2 ** 31);
  return createHash('sha256').update(`${commit} ${name}`).digest().readUInt32BE() >>> 1;
}
