import type { Binary } from 'bson';
import { isDocument, typeOf } from './value.js';

/** Roughly the bytes a value occupies, for memory budgets; not the exact BSON size. */
export function weigh(value: unknown): number {
  switch (typeof value) {
    case 'string':
      return 16 + value.length;
    case 'object': {
      if (value === null) return 8;
      if (Array.isArray(value)) {
        let size = 16;
        for (const item of value) size += 8 + weigh(item);
        return size;
      }
      if (isDocument(value)) {
        let size = 16;
        for (const name in value) size += 8 + name.length + weigh(value[name]);
        return size;
      }
      return typeOf(value) === 'binData' ? 32 + (value as Binary).position : 32;
    }
    default:
      return 8;
  }
}
