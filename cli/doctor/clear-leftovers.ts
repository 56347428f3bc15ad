import type { App } from '../../src/app.js';
import { removeLeftWorkFolders } from '../../src/platform/processes/work-folder.js';
import { keepBatchesSettled } from '../../src/features/documents/bulk/keep-settled.js';

/**
 * Removes what killed processes left before this one begins: half-written uploads, work folders of backups, and bulk
 * inserts that do not stand.
 * The latter go on being looked for until what it returns is called. Nothing of it keeps a service from starting.
 */
export async function clearLeftovers(app: App): Promise<() => Promise<void>> {
  await app.files
    .sweepSpool()
    .catch((error: unknown) => app.log.warn({ err: error }, 'half-written uploads could not be removed'));
  await removeLeftWorkFolders();
  return keepBatchesSettled(app);
}
