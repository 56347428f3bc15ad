import type { Catalog } from '../catalog/catalog.js';
import type { CommitQueue } from '../commit-queue.js';
import type { CollectionEntry } from '../keys/index-definition.js';
import { encodeEntry, entryKey, type ChangeOperation } from './change-entry.js';

/** Appends to the logs of collections, inside the transactions of the changes. */
export class ChangeWriter {
  constructor(
    private readonly catalog: Catalog,
    private readonly queue: CommitQueue,
  ) {}

  /**
   * Logs a change of a document whose BSON is `bytes`: as it was before, or as it is inserted. `touched` are the only
   * top-level fields that may differ, null when any may. Does nothing where nothing is logged.
   */
  append(
    collection: CollectionEntry,
    operation: ChangeOperation,
    bytes: Buffer,
    touched: ReadonlySet<string> | null = null,
  ): void {
    const { log } = collection;
    if (log === null || (touched !== null && isWithin(touched, log.omitted))) return;
    const end = this.catalog.logOf(collection.id);
    const key = entryKey(log.id, end.seq + 1);
    const value = encodeEntry(key, log, operation, bytes, Date.now());
    this.queue.put(key, value);
    end.seq++;
    end.bytes += value.length;
  }
}

function isWithin(names: ReadonlySet<string>, others: ReadonlySet<string>): boolean {
  for (const name of names) if (!others.has(name)) return false;
  return true;
}
