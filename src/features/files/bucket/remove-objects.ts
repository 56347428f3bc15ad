import type { App } from '../../../app.js';
import type { ObjectStore } from '../../../platform/object-store/object-store.js';
import { objectOf, type FileRecord } from '../file.js';

/**
 * Removes the objects of an upload that do not hold its bytes, or all of them once it is deleted. False when the store
 * refuses: nothing is lost, the sweep tries again.
 */
export async function removeObjects(app: App, store: ObjectStore, file: FileRecord): Promise<boolean> {
  const kept = file.state === 'deleted' ? null : objectOf(file);
  const known = new Set([...(file.objects ?? []), objectOf(file)]);
  try {
    for (const object of known) if (object !== kept) await store.remove(object);
    return true;
  } catch (error) {
    app.log.warn(
      { err: error, path: file.path },
      'an object that no file needs could not be removed from its storage yet',
    );
    return false;
  }
}
