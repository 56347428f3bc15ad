import { encodeDocument } from '../../codec/encode.js';
import type { Catalog } from '../catalog/catalog.js';
import type { CommitQueue } from '../commit-queue.js';
import { type Environment, listProcesses, readFormat, STORAGE_FORMAT } from '../file/environment.js';
import { FORMAT_KEY } from '../format/key-spaces.js';
import { StorageError } from '../storage-error.js';
import { translateStorageError } from '../file/translate-error.js';

const OLDER = 'was written by an earlier version.';
const CONVERT =
  'It is only read until "bsvc migrate up", "bsvc serve" or "bsvc worker" converts it, after which earlier versions cannot read it: make a backup before, by "bsvc backup make --out <file>".';

/**
 * Makes a file of format 1 one of today's, in one short transaction: only the catalog is rewritten. What is stored in
 * the collections is converted later, in batches. Older versions refuse the file from then on. Without `upgrade` it is
 * only read; throws SHARED while another process has it open.
 */
export function upgradeFormat(environment: Environment, catalog: Catalog, queue: CommitQueue, upgrade: boolean): void {
  const { store, path, commit } = environment;
  if (!isOlder(environment)) return;
  if (!upgrade) {
    environment.refuse(new StorageError('READ_ONLY', `${path} ${OLDER} ${CONVERT}`));
    return;
  }
  const others = listProcesses(environment).filter((pid) => pid !== process.pid);
  if (others.length > 0) {
    const message = `${path} ${OLDER} It is converted when no other process has it open: end ${others.join(', ')} first.`;
    throw new StorageError('SHARED', message);
  }
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
