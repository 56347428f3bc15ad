import type { Document } from 'mongodb';

export interface CollectionSize {
  documents: number;
  bytes: number;
}

/** Reads the answer to `collStats`, in which figures are absent for a collection that does not exist. */
export function readSize({ count, size }: Document): CollectionSize {
  return { documents: Number(count ?? 0), bytes: Number(size ?? 0) };
}
