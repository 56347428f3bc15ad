import { encodeDocument } from '../../codec/encode.js';
import type { Catalog } from '../catalog/catalog.js';
import type { CommitQueue } from '../commit-queue.js';
import { type Environment, FORMAT_KEY, readFormat, STORAGE_FORMAT } from '../file/environment.js';
import { translateStorageError } from '../file/translate-error.js';

/**
 * Makes a file of format 1 one of today's, in one short transaction: only the catalog is rewritten. What is stored in
 * the collections is converted later, in batches. Older versions refuse the file from then on.
 */
export function upgradeFormat(environment: Environment, catalog: Catalog, queue: CommitQueue): void {
  const { store, path, commit } = environment;
  if (!isOlder(environment)) return;
  try {
    commit(() => {
      // Another process may have been faster.
      if (!isOlder(environment)) return undefined;
      catalog.beginTransaction();
      const record = readFormat(Buffer.from(store.getBinary(FORMAT_KEY)!), path);
      queue.put(FORMAT_KEY, encodeDocument({ ...record, format: STORAGE_FORMAT }));
      catalog.upgrade();
      catalog.finishTransaction();
      return undefined;
    });
  } catch (error) {
    catalog.forget();
    throw translateStorageError(error, path);
  }
}

function isOlder({ store, path }: Environment): boolean {
  const { format } = readFormat(Buffer.from(store.getBinary(FORMAT_KEY)!), path);
  return typeof format === 'number' && format < STORAGE_FORMAT;
}
