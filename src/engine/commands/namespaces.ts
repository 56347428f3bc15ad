import { EngineError } from '../errors.js';

/** Refuses writes into names that MongoDB keeps for itself. */
export function requireWritable(ns: string): void {
  const name = ns.slice(ns.indexOf('.') + 1);
  if (name.startsWith('system.')) throw new EngineError(73, `Invalid system namespace: ${ns}`);
}
