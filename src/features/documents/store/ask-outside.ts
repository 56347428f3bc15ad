/**
 * Thrown by a decision inside of a write that needs what takes time: once `answer` has found it the decision is made
 * again. What `answer` throws refuses the write.
 */
export class AskOutside extends Error {
  constructor(readonly answer: () => Promise<void>) {
    super('a decision has to know more');
  }
}

/** So often a decision asks before it is made. */
const MAX_ASKED = 100;

/** Runs a write until its decisions ask nothing more. */
export async function untilDecided<T>(write: () => Promise<T>): Promise<T> {
  for (let asked = 0; ; asked++) {
    try {
      return await write();
    } catch (error) {
      const { cause } = error as { cause?: unknown };
      const ask = error instanceof AskOutside ? error : cause;
      if (!(ask instanceof AskOutside) || asked === MAX_ASKED) throw error;
      try {
        await ask.answer();
      } catch (refusal) {
        // Of several writes the error says which one has asked.
        throw ask === error ? refusal : Object.assign(error as Error, { cause: refusal });
      }
    }
  }
}
