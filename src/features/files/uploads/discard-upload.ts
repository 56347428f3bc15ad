import type { App } from '../../../app.js';
import { deletion, type FileRecord } from '../file.js';
import { fileStore } from '../file-store.js';
import { settleFiles } from './settle-files.js';

/**
 * Gives up an upload that nobody has confirmed: its bytes go, also those that came after somebody else had given it up,
 * and a charge under way is given back. Leaves a confirmed file alone. The sweep does the rest if this cannot be done
 * now.
 */
export async function discardUpload(app: App, file: FileRecord): Promise<void> {
  try {
    await fileStore(app).updateOne(
      { _id: file._id, state: { $in: ['requested', 'stored'] } },
      { $set: deletion(new Date(app.clock.now())) },
    );
    const now = await fileStore(app).findOne({ _id: file._id });
    if (now?.state !== 'confirmed') await settleFiles(app, file.projectId, [file]);
  } catch (error) {
    app.log.warn({ err: error, path: file.path }, 'a failed upload is left to the sweep');
  }
}
