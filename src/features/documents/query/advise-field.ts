import { findNearest } from '../../../platform/nearest.js';
import type { Collection } from '../../collections/collection.js';
import { quoted } from '../reply/query-text.js';

/** A hint at the field that was meant by one that there is not. */
export function adviseNearest({ fields }: Collection, path: string): string {
  const near = findNearest(
    path,
    fields.map(({ name }) => name),
  );
  return near === null ? '' : `: did you mean ${quoted(near)}?`;
}
