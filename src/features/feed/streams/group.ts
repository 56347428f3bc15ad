import { deserialize, type Document } from 'bson';
import type { Matcher } from '../../../platform/database/database.js';
import type { EarlierDocument, FoundChange, LogPosition, WatchedChange } from '../../changes/change-log.js';
import { allOf } from '../../documents/query/keyset-filter.js';
import { signFeedCursor, type FeedPosition, type SetPosition } from '../feed-cursor.js';
import type { Following } from '../read-page.js';
import type { RefNews } from '../populating.js';
import type { WindowPart } from '../window-order.js';
import { keyOfForm, writeReady, type Batch, type EventForm, EventBytes } from './batch.js';
import { LiveWindow } from './live-window.js';

/** A member of a group, which has received everything up to the group's position. */
export interface Member {
  readonly form: EventForm;
  /** `from`: the member has everything up to there, and with the batch everything in it. */
  deliver(batch: Batch, from: FeedPosition): void;
  /** The group has failed, or the collection is another one: the member goes on by itself from here. */
  leave(from: FeedPosition, failed: boolean): void;
}

/** News for members who have everything up to a position. */
interface Ready {
  seq: number;
  window: string | undefined;
  cursor: string;
  /** By the form of the event. */
  bytes: Map<string, EventBytes>;
}

/** Ids that were told of as gone; of more than these some may be told twice. */
const MAX_TOLD_GONE = 10_000;

/**
 * Those who follow the same with the same rights: what concerns them is found out once. Its judgement is that of a
 * list, by the same filters.
 */
export class Group {
  readonly members = new Set<Member>();
  /** The first documents alone; null: all of them. */
  readonly window: LiveWindow | null;
  /** The texts of top-level fields by which groups are looked up, one of which is there; null when there are none. */
  readonly keys: readonly GroupKey[] | null;
  /** The end user whose documents alone are shown. */
  readonly ownerId: string | null;
  readonly #current: Matcher;
  readonly #earlierAccess: Matcher;
  readonly #earlierConditions: Matcher | null;
  readonly #toldGone = new Set<string>();
  /** The log knows all that a document held before. */
  readonly #isExact: boolean;
  /** Rules of the collection's own say which documents the group is shown. */
  readonly #isRuled: boolean;
  /** Up to where the sets of the user are known to be as the group has them; null where rules ask about none. */
  #sets: readonly SetPosition[] | null;
  /** Up to where members have been told of documents that theirs refer to; null where none are populated. */
  #refs: readonly LogPosition[] | null;
  #ready: Ready | null = null;

  constructor(
    readonly following: Following,
    { sets, refs }: Pick<FeedPosition, 'sets' | 'refs'>,
    window: WindowPart | undefined,
    openMatcher: (filter: Document) => Matcher,
  ) {
    const { app, collection, readable, query, scope } = following;
    const { conditions } = query;
    const rules = readable ? [readable] : [];
    this.#current = openMatcher({ $and: [{ isDeleted: false }, ...rules, ...conditions] });
    this.#earlierAccess = openMatcher({ $and: [{ isDeleted: false }, ...rules] });
    this.#earlierConditions = conditions.length > 0 ? openMatcher(allOf(conditions)) : null;
    this.window = query.window && window ? new LiveWindow(query.window, window) : null;
    this.#sets = sets ?? null;
    this.#refs = refs ?? null;
    this.#isExact = app.db.changeLogs !== null;
    this.#isRuled = readable !== null && !collection.rls;
    this.ownerId = collection.rls ? scope.userId : null;
    this.keys = findKeys(readable ? [readable] : conditions);
  }

  /** Has the window of the group take a change; `read` decodes its document. */
  place(change: FoundChange, read: () => Document): void {
    const { document } = change;
    this.window!.take(change, document && this.shows(document) ? read() : null);
  }

  /** Whether members are shown a stored document, unless it is outside of their window. */
  shows(document: Buffer): boolean {
    return this.#current.matches(document);
  }

  /**
   * The news of a change for the group: that the document is as it is, that it is gone, or nothing; `unknown` where
   * nobody can say whether the group was shown it before.
   */
  judge(change: WatchedChange): 'upsert' | 'gone' | 'unknown' | null {
    const { id, document, earlier } = change;
    if (document && this.#current.matches(document)) {
      this.#toldGone.delete(id);
      return 'upsert';
    }
    if (!earlier && this.#isRuled) return 'unknown';
    const concerns = earlier
      ? earlier.some((before) => this.#met(before))
      : this.ownerId === null || change.owners.includes(this.ownerId);
    if (!concerns && this.#isRuled && earlier?.some((before) => this.#mayHaveMet(before))) return 'unknown';
    if (!concerns || this.#toldGone.has(id)) return null;
    if (earlier && this.#isExact) return 'gone';
    if (this.#toldGone.size >= MAX_TOLD_GONE) this.#toldGone.clear();
    this.#toldGone.add(id);
    return 'gone';
  }

  /** Somebody may have been shown since what was told of as gone: it is told once more when it is gone again. */
  forgetGone(): void {
    this.#toldGone.clear();
  }

  #mayHaveMet({ bytes, isCut }: EarlierDocument): boolean {
    return Boolean(isCut) && lacks(bytes, this.#earlierAccess.fields);
  }

  #met({ bytes, isPartial }: EarlierDocument): boolean {
    if (!this.#earlierAccess.matches(bytes)) return false;
    const conditions = this.#earlierConditions;
    if (!conditions) return true;
    if (isPartial && lacks(bytes, conditions.fields)) return true;
    return conditions.matches(bytes);
  }

  /** A position in the collection's log as one of the group. */
  placeAt(position: FeedPosition): FeedPosition {
    const refs = position.refs ?? this.#refs;
    const at = refs ? { ...position, refs } : position;
    if (this.window) return { ...at, window: position.window ?? this.window.told };
    return this.#sets ? { ...at, sets: this.#sets } : at;
  }

  /** The sets are the same up to these positions, by the id of the set's collection. */
  moveSets(to: ReadonlyMap<string, LogPosition>): void {
    if (!this.#sets) return;
    const { sets } = this.following.sets!;
    this.#sets = this.#sets.map((known, n) => to.get(sets[n]!.collection._id.toHexString()) ?? known);
    this.#ready = null;
  }

  /** Where the logs of documents that theirs refer to are, with the news of some of them. */
  refsAfter(news: ReadonlyMap<string, RefNews | null>): LogPosition[] {
    const { collections } = this.following.refs!;
    return this.#refs!.map((known, n) => news.get(collections[n]!.collection._id.toHexString())?.to ?? known);
  }

  /** Members have been told of the documents that theirs refer to, up to here. */
  moveRefs(to: readonly LogPosition[]): void {
    this.#refs = to;
    this.#ready = null;
  }

  cursorAt(position: FeedPosition): string {
    return signFeedCursor(this.following.app.secrets, this.following.scope, this.placeAt(position));
  }

  /** The event that members have everything up to a position. */
  readyAt(form: EventForm, position: FeedPosition): string {
    return writeReady(form, this.#readyOf(position).cursor);
  }

  /** The same as bytes, made once for all who are told it. */
  readyBytes(form: EventForm, position: FeedPosition): EventBytes {
    const { cursor, bytes } = this.#readyOf(position);
    const key = keyOfForm(form);
    let made = bytes.get(key);
    if (!made) bytes.set(key, (made = new EventBytes(writeReady(form, cursor))));
    return made;
  }

  #readyOf(position: FeedPosition): Ready {
    const { seq, window } = this.placeAt(position);
    if (this.#ready?.seq !== seq || this.#ready.window !== window) {
      this.#ready = { seq, window, cursor: this.cursorAt(position), bytes: new Map() };
    }
    return this.#ready;
  }
}

function lacks(bytes: Buffer, fields: ReadonlySet<string> | null): boolean {
  if (fields === null) return true;
  const document = deserialize(bytes, { validation: { utf8: false } });
  return [...fields].some((name) => !Object.hasOwn(document, name));
}

/** A text that a document has to hold in a top-level field. */
export interface GroupKey {
  field: string;
  text: string;
}

/** A group with more of them is tried on each change instead. */
const MAX_KEYS = 100;

/** Texts of which a document has to hold one to meet all the conditions; null when none can be told. */
function findKeys(conditions: readonly Document[]): GroupKey[] | null {
  for (const condition of conditions) {
    const { $or, $and, ...fields } = condition as { $or?: Document[]; $and?: Document[] };
    const [[field, test] = ['', null]] = Object.entries<unknown>(fields);
    const keys = $or ? keysOfAny($or) : $and ? findKeys($and) : keysOf(field, test);
    if (keys && keys.length <= MAX_KEYS) return keys;
  }
  return null;
}

/** Those of all alternatives: a document may meet any of them. */
function keysOfAny(alternatives: readonly Document[]): GroupKey[] | null {
  const keys: GroupKey[] = [];
  for (const alternative of alternatives) {
    const own = findKeys([alternative]);
    if (!own) return null;
    keys.push(...own);
  }
  return keys;
}

function keysOf(field: string, test: unknown): GroupKey[] | null {
  if (field === '' || field.startsWith('$') || field.includes('.')) return null;
  const { $eq, $in } = Object(test) as { $eq?: unknown; $in?: unknown[] };
  const values = typeof test === 'string' ? [test] : ($in ?? [$eq]);
  return values.every((value) => typeof value === 'string') ? values.map((text) => ({ field, text })) : null;
}
