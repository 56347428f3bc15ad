import { setFlagsFromString } from 'node:v8';

let isAsked = false;

/**
 * From now on V8 collects when the old objects are 1.4 times of what lived at the last collection (decision 51). It
 * is asked for with the first large body, so that a process that gets none has V8's own rule.
 */
export function collectSooner(): void {
  if (isAsked) return;
  isAsked = true;
  setFlagsFromString('--heap-growing-percent=40');
}
