import { PageError } from '../../storage/file/page-layout.js';
import type { PageRanges } from '../../storage/file/page-ranges.js';
import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import type { Storage } from '../../storage/storage.js';
import type { KeyRange } from '../key-ranges.js';
import { isBounded } from '../plan.js';
import type { Sizes } from '../plan-cost.js';

/** Most ranges that are looked at; of more, a sample spread over all of them. */
const MAX_RANGES = 32;
/** Most entries that are counted one by one, where pages cannot be read. */
const MAX_ENTRIES = 200;

/** The sizes by which plans for a collection are weighed, as they are now; `beforeAsking` is called for each. */
export function sizesOf(storage: Storage, collection: CollectionEntry, beforeAsking?: () => void): Sizes {
  const { pages, reader } = storage.environment;
  const state = lazily(() => pages.readState());
  const sizeOf = ({ start, end }: KeyRange): number => {
    try {
      return pages.estimate(state(), start, end);
    } catch (error) {
      // A guess is not the place to report damage.
      if (error instanceof PageError) return reader.count(start, end, MAX_ENTRIES);
      throw error;
    }
  };
  return {
    entriesOf(plan) {
      beforeAsking?.();
      const { index, ranges } = plan;
      if (!isBounded(plan)) {
        const { documents, indexes } = storage.catalog.counts(collection.id);
        if (index === null) return documents;
        const counted = indexes.get(index.definition.id);
        if (counted !== undefined) return counted.entries;
      }
      const looked = Math.min(ranges.length, MAX_RANGES);
      let sum = 0;
      for (let n = 0; n < looked; n++) sum += sizeOf(ranges[Math.floor(((n + 0.5) * ranges.length) / looked)]!);
      return looked === 0 ? 0 : (sum * ranges.length) / looked;
    },
    documentBytes() {
      const { documents, bytes } = storage.catalog.counts(collection.id);
      return documents === 0 ? 0 : bytes / documents;
    },
  };
}

function lazily(read: () => ReturnType<PageRanges['readState']>): typeof read {
  let known: ReturnType<typeof read> | undefined;
  return () => (known ??= read());
}
