import { deserialize } from 'bson';
import { storedPath, valuesAt } from '../../access/rules/bound-values.js';
import { hintOf, type LogPosition } from '../../changes/change-log.js';
import type { SetPosition } from '../feed-cursor.js';
import type { FollowedSet, FollowedSets } from '../set-view.js';

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

interface FollowedLog {
  set: FollowedSet;
  at: LogPosition;
  /** Fields that are asked for the user. */
  userPaths: Set<string>;
}

/** Follows the logs of the collections of which sets decide what groups are shown. */
export class SetLogs {
  readonly #logs = new Map<string, FollowedLog>();

  /**
   * Follows the sets too. False where a set is known less far than it is followed: what changed in between is not told
   * again.
   */
  follow({ sets }: FollowedSets, known: readonly SetPosition[]): boolean {
    const behind = sets.some(({ collection }, n) => {
      const followed = this.#logs.get(collection._id.toHexString());
      const position = known[n];
      return !position || (followed && (position.epoch !== followed.at.epoch || position.seq < followed.at.seq));
    });
    if (behind) return false;
    for (const [n, set] of sets.entries()) {
      const key = set.collection._id.toHexString();
      const { epoch, seq } = known[n]!;
      const followed = this.#logs.get(key) ?? { set, at: { epoch, seq }, userPaths: new Set<string>() };
      if (!this.#logs.has(key)) this.#logs.set(key, followed);
      followed.userPaths.add(set.question.set.userPath);
    }
    return true;
  }

  /** The topics of hints that sets may be others. */
  get topics(): string[] {
    return [...this.#logs.values()].map(({ set }) => hintOf(set.collection._id));
  }

  /** What changed since the last call, by the id of the collection; nothing of collections where nothing did. */
  async read(): Promise<Map<string, SetNews>> {
    const news = new Map<string, SetNews>();
    for (const [key, followed] of this.#logs) {
      const end = followed.set.log.position?.() ?? null;
      if (end?.epoch === followed.at.epoch && end.seq === followed.at.seq) continue;
      const users = end && (await findConcerned(followed, end));
      const to = end ?? followed.at;
      news.set(key, { users, to });
      if (end) followed.at = to;
      else this.#logs.delete(key);
    }
    return news;
  }
}

/** Up to the end at least: a user may be named whose change comes right behind it. */
async function findConcerned({ set, at, userPaths }: FollowedLog, end: LogPosition): Promise<Set<unknown> | null> {
  if (at.epoch !== end.epoch || end.seq - at.seq > MAX_FOLLOWED) return null;
  const users = new Set<unknown>();
  const search = { visible: {}, limit: CHUNK, maxBytes: CHUNK_BYTES };
  for (let seq = at.seq; seq < end.seq;) {
    const found = await set.log.watch({ after: { epoch: at.epoch, seq }, ...search });
    if (!found || found.seq === seq) return null;
    for (const { document, earlier } of found.changes) {
      const states = [...(earlier ?? []), ...(document ? [{ bytes: document, isPartial: false }] : [])];
      for (const { bytes, isPartial } of states) {
        const fields = deserialize(bytes, { validation: { utf8: false } });
        for (const path of [...userPaths].map(storedPath)) {
          if (isPartial && !Object.hasOwn(fields, path.split('.')[0]!)) return null;
          for (const value of valuesAt(fields, path.split('.'))) users.add(value);
        }
      }
    }
    seq = found.seq;
  }
  return users;
}
