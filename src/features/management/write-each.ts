import { AppError } from '../../errors.js';

export const MAX_DOCUMENTS_AT_ONCE = 500;
const AT_ONCE = 10;

export interface WrittenEach {
  done: string[];
  refused: { id: string; code: string; message: string }[];
}

/**
 * Writes documents one by one, some at the same time; returns which were refused and why, in the order of the ids. An
 * error that is nobody's refusal ends it: those before it are written.
 */
export async function writeEach(ids: readonly string[], write: (id: string) => Promise<unknown>): Promise<WrittenEach> {
  const outcome: WrittenEach = { done: [], refused: [] };
  const wanted = [...new Set(ids)];
  for (let at = 0; at < wanted.length; at += AT_ONCE) {
    const some = wanted.slice(at, at + AT_ONCE);
    const refusals = await Promise.all(some.map((id) => write(id).then(() => null, asRefusal)));
    some.forEach((id, place) => {
      const refusal = refusals[place];
      if (refusal) outcome.refused.push({ id, code: refusal.code, message: refusal.message });
      else outcome.done.push(id);
    });
  }
  return outcome;
}

function asRefusal(error: unknown): AppError {
  if (error instanceof AppError) return error;
  throw error;
}
