/** The connection string that the runner gave. */
export const uri = process.argv[2];

function tell(step, outcome, why = '') {
  console.log(`STEP ${JSON.stringify({ step, outcome, why: String(why).split('\n')[0].slice(0, 200) })}`);
}

/** Something that has to work. */
export async function works(step, run) {
  try {
    await run();
    tell(step, 'works');
  } catch (error) {
    tell(step, 'fails', error.stack ?? error);
  }
}

/** Something that the embedded engine does not have: the refusal has to say so in words that match `text`. */
export async function refused(step, text, run) {
  try {
    await run();
    tell(step, 'fails', 'it was not refused');
  } catch (error) {
    tell(step, text.test(error.message) ? 'refused' : 'fails', error.message);
  }
}

/** Throws unless both say the same in JSON. */
export function same(actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${a} instead of ${b}`);
}
