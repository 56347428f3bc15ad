import { encodeRecord } from './catalog/catalog-records.js';
import { META_SPACE } from './format/key-spaces.js';
import type { Storage } from './storage.js';
import { StorageError } from './storage-error.js';

const PROBE_KEY = Buffer.from([META_SPACE, ...Buffer.from('probe')]);
/** Asked again within this time, it answers as before: asking often costs no more writes. */
const SAME_MS = 1_000;

/** Finds out whether the data file can be read and committed to. */
export class CommitProbe {
  private last: { readonly at: number; readonly answer: Promise<void> } | null = null;

  constructor(private readonly storage: Storage) {}

  /** Rejects with what stands in the way; a full disk does not, as reading and removing go on. */
  run(): Promise<void> {
    const now = performance.now();
    if (this.last === null || now - this.last.at >= SAME_MS) this.last = { at: now, answer: this.readAndCommit() };
    return this.last.answer;
  }

  private async readAndCommit(): Promise<void> {
    const { storage } = this;
    storage.refresh();
    storage.catalog.discarded(1);
    const now = Buffer.alloc(8);
    now.writeDoubleBE(Date.now());
    try {
      await storage.queue.write(() => {
        storage.queue.put(PROBE_KEY, encodeRecord(PROBE_KEY, now));
      });
    } catch (error) {
      if (!(error instanceof StorageError) || error.code !== 'NO_SPACE') throw error;
    }
  }
}
