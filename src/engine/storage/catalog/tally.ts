import { wrongCount } from '../storage-error.js';
import type { CollectionEntry, IndexEntry, KeptCounts } from '../keys/index-definition.js';
import type { Storage } from '../storage.js';
import { storedSum } from '../format/stored-form.js';

/**
 * Counts and sums what a walk over all documents, or over all entries of an index, meets. Where nobody wrote since
 * the result must equal the counts that are kept. Otherwise pages were lost or came back, although each document in
 * them is whole.
 */
export class Tally {
  private met = 0;
  private digest = 0;
  private before: KeptCounts | null = null;

  constructor(
    private readonly storage: Storage,
    private readonly collection: CollectionEntry,
    private readonly index: IndexEntry | null,
  ) {}

  /** Takes the stored value of a document or an entry, before its document is read into the same memory. */
  add(value: Buffer): void {
    this.met++;
    this.digest = (this.digest + storedSum(value, value.length)) | 0;
  }

  /**
   * To be called in the turn in which the chunk was read. Throws DAMAGED at the end of a walk that met something else.
   */
  chunkEnded(finished: boolean): void {
    const { storage, collection, index } = this;
    if (storage.queue.writing) return;
    const counts = storage.catalog.countsSeen(collection.id);
    if (counts === null) return;
    this.before ??= counts;
    if (!finished || this.before.writes !== counts.writes) return;
    const kept =
      index === null ? { entries: counts.documents, digest: counts.digest } : counts.indexes.get(index.definition.id);
    if ((kept?.entries ?? 0) === this.met && (kept?.digest ?? 0) === this.digest) return;
    throw wrongCount(collection.ns, index === null ? 'the collection' : `the index ${index.definition.name}`);
  }
}
