import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/**
 * Bytes that this process cannot give back: not those that wait to be collected, nor the pages of a mapped data file.
 */
export function measureHeldMemory(): number {
  // Memory outside of the heap is given back after the collection that found it unused, so another has to follow.
  for (let before = Infinity; ;) {
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    const held = heapUsed + external;
    if (held > before * 0.999) return held;
    before = held;
  }
}
