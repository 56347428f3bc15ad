import { EngineError } from '../../errors.js';
import type { Doc } from '../../codec/document.js';

/** The entry of `writeErrors` for a statement that was refused; anything but a refusal is thrown on. */
export function describeWriteError(index: number, error: unknown): Doc {
  if (!(error instanceof EngineError)) throw error;
  return { index, code: error.code, errmsg: error.message, ...error.extra };
}
