/**
 * How many cases a search at random draws: `usual` of them, or as many as BSVC_TEST_RUNS says for a long search. Over
 * the wire, where each costs several times as much, it is a third: what is drawn is decided above the database.
 */
export function runs(usual: number): number {
  const { BSVC_TEST_RUNS: given, BSVC_TEST_TRANSPORT: transport } = process.env;
  if (given !== undefined) return Number(given);
  return transport === 'wire' ? Math.ceil(usual / 3) : usual;
}
