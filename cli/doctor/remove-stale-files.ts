import type { App } from '../../src/app.js';
import { removeLeftWorkFolders } from '../../src/platform/processes/work-folder.js';

/**
 * Removes what killed processes left before this one begins: half-written uploads and work folders of backups. Nothing
 * of it keeps a service from starting.
 */
export async function removeStaleFiles(app: App): Promise<void> {
  await app.files
    .sweepSpool()
    .catch((error: unknown) => app.log.warn({ err: error }, 'half-written uploads could not be removed'));
  await removeLeftWorkFolders();
}
