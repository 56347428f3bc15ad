import type { App } from '../../../app.js';
import { hintOf, type LogPosition } from '../../changes/change-log.js';
import { findCollection } from '../../collections/collection-store.js';
import { readRefNews, type FollowedRef, type FollowedRefs, type RefNews } from '../populating.js';

interface FollowedLog {
  ref: FollowedRef;
  at: LogPosition;
}

/** Follows the logs of collections that documents of groups refer to. */
export class RefLogs {
  readonly #logs = new Map<string, FollowedLog>();

  /** Follows these too. False where one is known less far than it is followed: that is not sent again. */
  follow({ collections }: FollowedRefs, known: readonly LogPosition[]): boolean {
    const isBehind = collections.some(({ collection }, n) => {
      const followed = this.#logs.get(collection._id.toHexString());
      return followed && (known[n]?.epoch !== followed.at.epoch || known[n].seq < followed.at.seq);
    });
    if (isBehind) return false;
    for (const [n, ref] of collections.entries()) {
      const key = ref.collection._id.toHexString();
      if (!this.#logs.has(key)) this.#logs.set(key, { ref, at: known[n]! });
    }
    return true;
  }

  /** The topics of hints that something has changed. */
  get topics(): string[] {
    return [...this.#logs.values()].map(({ ref }) => hintOf(ref.collection._id));
  }

  /** What has changed since the last call, by the id of the collection; null if unknown, or after a change of rules. */
  async read(app: App): Promise<Map<string, RefNews | null>> {
    const news = new Map<string, RefNews | null>();
    for (const [key, followed] of this.#logs) {
      const found = (await isSame(app, followed.ref)) ? await findNews(followed) : null;
      if (found && found.to.seq === followed.at.seq) continue;
      news.set(key, found);
      if (found) followed.at = found.to;
      else this.#logs.delete(key);
    }
    return news;
  }
}

async function findNews({ ref, at }: FollowedLog): Promise<RefNews | null> {
  try {
    return await readRefNews(ref, at);
  } catch {
    // Each follower reads by itself, and meets what is wrong.
    return null;
  }
}

async function isSame(app: App, { collection }: FollowedRef): Promise<boolean> {
  const now = await findCollection(app, collection.projectId, collection.name);
  return now !== null && String(now._id) === String(collection._id) && now.version === collection.version;
}
