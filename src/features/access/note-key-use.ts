import type { App } from '../../app.js';
import { isLiveKey } from '../projects/api-key.js';
import type { ApiKey, Project } from '../projects/project.js';
import { projectStore } from '../projects/project-store.js';

/** The use of a key is noted at most this often. */
const NOTE_USE_MS = 60_000;

/**
 * Notes that a key is used, at most once a minute; nobody waits for it. Called with a key just read from the database:
 * requests that find it in the shared copies cost nothing.
 */
export function noteKeyUse(app: App, { _id }: Project, key: ApiKey): void {
  const nowMs = app.clock.now();
  if (!isLiveKey(key, nowMs) || nowMs - (key.lastUsedAt?.getTime() ?? -Infinity) < NOTE_USE_MS) return;
  app.backgroundTasks.add('key-use', { _id, hash: key.hash }, async (used) => {
    for (const { _id, hash } of new Map(used.map((each) => [each.hash, each])).values()) {
      const noted = { $set: { 'keys.$.lastUsedAt': new Date(nowMs) } };
      await projectStore(app).updateOne({ _id, 'keys.hash': hash }, noted);
    }
  });
}
