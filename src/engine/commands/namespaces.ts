import { CODES, EngineError } from '../errors.js';

/** Refuses writes into names that MongoDB keeps for itself. */
export function requireWritable(ns: string): void {
  const name = ns.slice(ns.indexOf('.') + 1);
  if (name.startsWith('system.')) throw new EngineError(CODES.InvalidNamespace, `Invalid system namespace: ${ns}`);
}
