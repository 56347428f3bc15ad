import type { App } from '../../../app.js';
import { valuesOfChanges } from '../../access/rules/bound-values.js';
import { hintOf, type LogPosition } from '../../changes/change-log.js';
import type { Collection } from '../../collections/collection.js';
import { findCollection } from '../../collections/collection-store.js';
import type { SetPosition } from '../feed-cursor.js';
import { readRefNews, type FollowedRef, type FollowedRefs, type RefNews } from '../populating.js';
import type { FollowedSet, FollowedSets } from '../set-view.js';

/** The logs of some collections, each followed from a position. */
class FollowedLogs<F extends { collection: Collection }> {
  protected readonly logs = new Map<string, { followed: F; at: LogPosition }>();

  /** Follows these too. False where one is known less far than it is followed: that is not sent again. */
  protected followAll(wanted: readonly F[], known: readonly LogPosition[]): boolean {
    const isBehind = wanted.some(({ collection }, n) => {
      const log = this.logs.get(collection._id.toHexString());
      const position = known[n];
      return !position || (log && (position.epoch !== log.at.epoch || position.seq < log.at.seq));
    });
    if (isBehind) return false;
    for (const [n, followed] of wanted.entries()) {
      const key = followed.collection._id.toHexString();
      const { epoch, seq } = known[n]!;
      if (!this.logs.has(key)) this.logs.set(key, { followed, at: { epoch, seq } });
    }
    return true;
  }

  /** The topics of hints that something has changed. */
  get topics(): string[] {
    return [...this.logs.values()].map(({ followed }) => hintOf(followed.collection._id));
  }
}

/** Follows the logs of collections that documents of groups refer to. */
export class RefLogs extends FollowedLogs<FollowedRef> {
  follow({ collections }: FollowedRefs, known: readonly LogPosition[]): boolean {
    return this.followAll(collections, known);
  }

  /** What has changed since the last call, by the id of the collection; null if unknown, or after a change of rules. */
  async read(app: App): Promise<Map<string, RefNews | null>> {
    const news = new Map<string, RefNews | null>();
    for (const [key, log] of this.logs) {
      // Each follower reads by itself, and meets what is wrong.
      const found = (await isSame(app, log.followed))
        ? await readRefNews(log.followed, log.at).catch(() => null)
        : null;
      if (found && found.to.seq === log.at.seq) continue;
      news.set(key, found);
      if (found) log.at = found.to;
      else this.logs.delete(key);
    }
    return news;
  }
}

async function isSame(app: App, { collection }: FollowedRef): Promise<boolean> {
  const now = await findCollection(app, collection.projectId, collection.name);
  return now !== null && String(now._id) === String(collection._id) && now.version === collection.version;
}

const CHUNK = 500;
const CHUNK_BYTES = 4 * 1024 * 1024;
/** If more has changed, every follower reads its own sets again. */
const MAX_FOLLOWED = 5_000;

/** Changes of memberships in one collection. */
export interface SetNews {
  /** The users whose memberships they are; null if unknown. */
  users: ReadonlySet<unknown> | null;
  to: LogPosition;
}

/** Follows the logs of the collections of which sets decide what groups are shown. */
export class SetLogs extends FollowedLogs<FollowedSet> {
  /** Fields that are asked for the user, by the collection. */
  readonly #userPaths = new Map<string, Set<string>>();

  follow({ sets }: FollowedSets, known: readonly SetPosition[]): boolean {
    if (!this.followAll(sets, known)) return false;
    for (const { collection, question } of sets) {
      const key = collection._id.toHexString();
      this.#userPaths.set(key, (this.#userPaths.get(key) ?? new Set()).add(question.set.userPath));
    }
    return true;
  }

  /** What changed since the last call, by the id of the collection; nothing of collections where nothing did. */
  async read(): Promise<Map<string, SetNews>> {
    const news = new Map<string, SetNews>();
    for (const [key, log] of this.logs) {
      const end = log.followed.log.position?.() ?? null;
      if (end?.epoch === log.at.epoch && end.seq === log.at.seq) continue;
      const users = end && (await findConcerned(log.followed, log.at, end, [...this.#userPaths.get(key)!]));
      news.set(key, { users, to: end ?? log.at });
      if (end) {
        log.at = end;
      } else {
        this.logs.delete(key);
        this.#userPaths.delete(key);
      }
    }
    return news;
  }
}

/** Up to the end at least: a user may be named whose change comes right behind it. */
async function findConcerned(
  { log }: FollowedSet,
  at: LogPosition,
  end: LogPosition,
  userPaths: readonly string[],
): Promise<Set<unknown> | null> {
  if (at.epoch !== end.epoch || end.seq - at.seq > MAX_FOLLOWED) return null;
  const users = new Set<unknown>();
  const search = { visible: {}, limit: CHUNK, maxBytes: CHUNK_BYTES };
  for (let seq = at.seq; seq < end.seq;) {
    const found = await log.watch({ after: { epoch: at.epoch, seq }, ...search });
    if (!found || found.seq === seq) return null;
    const changed = valuesOfChanges(found.changes, userPaths);
    if (!changed) return null;
    for (const user of changed) users.add(user);
    seq = found.seq;
  }
  return users;
}
