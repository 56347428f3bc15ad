import { createHash } from 'node:crypto';

/**
 * The seed of a property test, printed so that a failure can be repeated. Each test keeps the seed that its name gives,
 * so that no commit fails over what it did not change; `BSVC_TEST_SEED=random` searches elsewhere.
 */
export function openSeed(name: string): number {
  const seed = readSeed(name);
  console.log(`seed of ${name}: ${seed}; BSVC_TEST_SEED=${seed} repeats it`);
  return seed;
}

function readSeed(name: string): number {
  const given = process.env['BSVC_TEST_SEED'];
  if (given === 'random') return Math.floor(Math.random() * 2 ** 31);
  if (given !== undefined) return Number(given);
  return createHash('sha256').update(name).digest().readUInt32BE() >>> 1;
}
