import { findNearest } from '../../../platform/nearest.js';
import type { Collection } from '../../collections/collection.js';
import { quoted } from '../reply/query-text.js';

/** A hint at the field that was meant by one that there is not; of a hidden one nobody is told that it is there. */
export function adviseNearest({ fields }: Collection, path: string): string {
  const shown = fields.filter(({ hidden }) => !hidden);
  const near = findNearest(
    path,
    shown.map(({ name }) => name),
  );
  return near === null ? '' : `: did you mean ${quoted(near)}?`;
}
