/** The collections of the store that is damaged, each with two indexes and a log of changes. */
export const COLLECTIONS = ['a', 'b', 'c'];
export const DOCUMENTS = 700;
export const GROUPS = 10;

export interface Stored {
  _id: number;
  group: number;
  slot: string;
  views: number;
  isDeleted: boolean;
  text: string;
}

/** What came of one damaged copy, as far as its process came. */
export interface Outcome {
  readonly at: number;
  /** What a look at every page finds before anything is done. */
  deep?: string[];
  /** Opening fails as a whole, or the store is only read. */
  refused?: string;
  /** By collection and way of reading: a digest of what was read, or `error: ` and the message. */
  reads?: Record<string, string>;
  /** By collection: how many writes were acknowledged, and the errors of the others. */
  writes?: Record<string, { done: number; errors: string[] }>;
  /** What a look at every page finds in the end; and the reads of what was written. */
  deepAfter?: string[];
  readsAfter?: Record<string, string>;
}
