/**
 * The seed of a property test of the deep run: another one each time, printed so that a failure can be repeated by
 * `BSVC_TEST_SEED`.
 */
export function openSeed(name: string): number {
  const given = process.env.BSVC_TEST_SEED;
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
  console.log(`seed of ${name}: ${seed}; BSVC_TEST_SEED=${seed} repeats it`);
  return seed;
}
