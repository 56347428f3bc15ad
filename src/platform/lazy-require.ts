import { createRequire } from 'node:module';

const load = createRequire(import.meta.url);

/**
 * A CommonJS package that is loaded when it is first asked for, at once: what most commands and many servers never need
 * is not to cost them their start.
 */
export function lazyRequire<T>(name: string): () => T {
  let loaded: T | undefined;
  return () => (loaded ??= load(name) as T);
}
