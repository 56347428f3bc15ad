import { setMaxListeners } from 'node:events';
import { EJSON, type Document, deserialize } from 'bson';
import type { App } from '../../../app.js';
import { FairLimiter } from '../../../fair-limiter.js';
import { ownTurn, takeTurns } from '../../../scheduler.js';
import type { Matcher } from '../../../platform/database/database.js';
import {
  hintOf,
  type ChangeLog,
  type FoundChange,
  type LogPosition,
  type WatchedChange,
} from '../../changes/change-log.js';
import { openChangeLog } from '../../changes/open-change-log.js';
import { findCollection } from '../../collections/collection-store.js';
import type { Collection } from '../../collections/collection.js';
import type { FeedPosition } from '../feed-cursor.js';
import { digest } from '../feed-query.js';
import { waitForAny } from '../read-feed.js';
import { allOf } from '../../documents/query/keyset-filter.js';
import { decodeMeta, decodeStored } from '../../documents/reply/encode-document.js';
import { readRows, readWithin, ReplySize } from '../../documents/reply/reply-size.js';
import { documentStore } from '../../documents/store/document-store.js';
import { visibleDocuments } from '../../documents/store/document.js';
import { populateChanges, referringFilter, type FollowedRef, type RefNews } from '../populating.js';
import type { Following } from '../read-page.js';
import { readPart } from '../read-window.js';
import type { WindowPart } from '../window-order.js';
import { Batch, type SharedChange } from './batch.js';
import { Group, type Member } from './group.js';
import type { Filling } from './live-window.js';
import { RefLogs, SetLogs } from './followed-logs.js';

type ByText = Map<string, Set<Group>>;

/** Finds the groups that a change may concern: by owner and by the texts that they ask for, not one by one. */
class GroupIndex {
  readonly #owned: ByText = new Map();
  readonly #byField = new Map<string, ByText>();
  readonly #others = new Set<Group>();

  constructor(private readonly ownerField: string | null) {}

  add(group: Group): void {
    const places = this.#placesOf(group);
    if (!places) this.#others.add(group);
    else for (const { place, text } of places) place.set(text, (place.get(text) ?? new Set<Group>()).add(group));
  }

  remove(group: Group): void {
    this.#others.delete(group);
    for (const { place, text } of this.#placesOf(group) ?? []) {
      place.get(text)?.delete(group);
      if (place.get(text)?.size === 0) place.delete(text);
    }
  }

  #placesOf({ ownerId, keys }: Group): { place: ByText; text: string }[] | null {
    if (ownerId !== null) return [{ place: this.#owned, text: ownerId }];
    if (!keys) return null;
    return keys.map(({ field, text }) => {
      const place = this.#byField.get(field) ?? new Map<string, Set<Group>>();
      this.#byField.set(field, place);
      return { place, text };
    });
  }

  find({ document, earlier, owners }: WatchedChange): Set<Group> {
    const found = new Set(this.#others);
    if (this.#owned.size === 0 && this.#byField.size === 0) return found;
    const versions = [...(document ? [{ bytes: document, isPartial: false }] : []), ...(earlier ?? [])].map(
      ({ bytes, isPartial }) => ({ fields: deserialize(bytes, { validation: { utf8: false } }), isPartial }),
    );
    const take = (groups: Set<Group> | undefined): void => groups?.forEach((group) => found.add(group));
    if (this.ownerField !== null && this.#owned.size > 0) {
      const values = [...versions.map(({ fields }) => fields[this.ownerField!] as unknown), ...owners];
      for (const text of values.flatMap(textsOf)) take(this.#owned.get(text));
    }
    for (const [field, place] of this.#byField) {
      // What is not known counts as met.
      const isUnknown =
        earlier === null || versions.some(({ fields, isPartial }) => isPartial && !Object.hasOwn(fields, field));
      if (isUnknown) for (const groups of place.values()) take(groups);
      else for (const { fields } of versions) for (const text of textsOf(fields[field])) take(place.get(text));
    }
    return found;
  }
}

/** The texts that a value is equal to for the database: itself, or items of the list that it is. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** A hint may get lost: so often it is looked without one. */
const LOOK_MS = 500;
/** After a read that failed. */
const RETRY_MS = 1_000;
/** The follower it was opened for has not come: it reads what was before, or has gone. */
const MAX_LOOKS_ALONE = 20;
/** Windows that are filled at once. */
const FILLS_AT_ONCE = 4;
const MAX_CHANGES = 500;
/** So often it is looked for changes of documents that others refer to. */
const REFS_MS = 200;
/** Documents that refer to changed ones; where there are more, their followers read by themselves. */
const MAX_REFERRING = 500;
const MAX_BYTES = 4 * 1024 * 1024;

/** What windows may hold in all. */
export interface WindowRoom {
  /** Takes the room for the window of what is followed, if it is one; 503 BUSY when there is none. */
  take: (following: Following) => void;
  giveBack: (following: Following) => void;
}

/** The one follower of a collection's log in this process: it reads for all who are up to date. */
export class Watcher {
  readonly #groups = new Map<string, Group>();
  readonly #index: GroupIndex;
  readonly #log: ChangeLog;
  readonly #sets = new SetLogs();
  readonly #refs = new RefLogs();
  #refsLookedMs = -Infinity;
  readonly #stop = new AbortController();
  #position: LogPosition;
  /** All followers have received everything up to this position. */
  #told: LogPosition;
  #lagSeconds = 0;
  #looksAlone = 0;
  #end: Promise<LogPosition | null> | null = null;
  /** Groups of which the window has changed or lacks documents. */
  readonly #unsettled = new Set<Group>();
  readonly #fills = new FairLimiter({ shares: { all: FILLS_AT_ONCE } });
  #wake: () => void = () => undefined;

  /** `onIdle` is called once, when no follower is left and it has stopped. */
  constructor(
    private readonly app: App,
    readonly collection: Collection,
    private readonly openMatcher: (filter: Document) => Matcher,
    private readonly room: WindowRoom,
    start: LogPosition,
    private readonly onIdle: (watcher: Watcher) => void,
  ) {
    // Each window that is filled waits for its turn.
    setMaxListeners(0, this.#stop.signal);
    this.#index = new GroupIndex(collection.rls?.ownerField ?? null);
    this.#log = openChangeLog(app, collection);
    this.#position = start;
    this.#told = start;
    void this.#run();
  }

  /** Members have everything up to here at least. */
  get told(): FeedPosition {
    return placed(this.#told);
  }

  /**
   * Where the log ends at a moment after the call, null where nobody knows without asking the database. One look serves
   * all who ask in a turn of the event loop.
   */
  endSoon(): Promise<LogPosition | null> {
    this.#end ??= new Promise((resolve) => setImmediate(resolve)).then(() => {
      this.#end = null;
      return this.#log.position?.() ?? null;
    });
    return this.#end;
  }

  /** How late the last changes were told of. */
  get lagSeconds(): number {
    return this.#lagSeconds;
  }

  /**
   * Takes in a member that has everything up to a position, of a window with what it has read; null when changes since
   * have been told to the others, which the member has to read first. 503 BUSY for a window where there is no room.
   */
  join(following: Following, member: Member, at: FeedPosition, window?: WindowPart): Group | null {
    if (this.#stop.signal.aborted || at.epoch !== this.#position.epoch || at.seq < this.#position.seq) return null;
    if (following.sets && (at.until !== undefined || !this.#sets.follow(following.sets, at.sets ?? []))) return null;
    if (following.refs && !this.#refs.follow(following.refs, at.refs ?? [])) return null;
    const key = keyOf(following);
    let group = this.#groups.get(key);
    if (following.query.window && !window) {
      // Without having read it only who has been shown the same.
      if (!group || (at.window ?? group.window!.digest) !== group.window!.digest) return null;
    } else if (group?.window && window && group.window.digest !== at.window) {
      // All members are told what this one has read.
      group.window.adopt(window);
      this.#settleSoon(group);
    }
    if (!group) {
      this.room.take(following);
      group = new Group(following, at, window, this.openMatcher);
      this.#groups.set(key, group);
      this.#index.add(group);
    }
    // It has read documents as they are now, further than the watcher, who may find what came back and went in one
    // batch, as gone.
    group.forgetGone();
    group.members.add(member);
    return group;
  }

  leave(group: Group, member: Member): void {
    group.members.delete(member);
    if (group.members.size > 0) return;
    this.#drop(group);
    if (this.#groups.size === 0) this.#close();
  }

  #drop(group: Group): void {
    const key = keyOf(group.following);
    if (this.#groups.get(key) !== group) return;
    this.#groups.delete(key);
    this.#index.remove(group);
    this.#unsettled.delete(group);
    this.room.giveBack(group.following);
  }

  #close(): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    this.onIdle(this);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const topic = hintOf(this.collection._id);
    let hint: Promise<void> | null = null;
    while (!signal.aborted) {
      // From before the read: a change that comes during it is not waited for.
      hint ??= waitForAny(this.app.hints, [topic, ...this.#sets.topics, ...this.#refs.topics], LOOK_MS, signal).finally(
        () => (hint = null),
      );
      const woken = this.#sleep();
      try {
        await this.#settleWindows();
        if (await this.#step()) await Promise.race([hint, woken]);
      } catch (error) {
        if (signal.aborted) return;
        this.app.log.warn({ err: error, collection: this.collection.name }, 'changes could not be read for streams');
        await this.app.hints.wait('', RETRY_MS, signal);
      }
    }
  }

  /** Sends new changes to all followers; true if nothing was left. */
  async #step(): Promise<boolean> {
    if (!(await this.#isSame())) {
      this.#dismiss();
      return true;
    }
    const after = this.#position;
    const found = await this.#log.watch({
      after,
      visible: visibleDocuments(),
      limit: MAX_CHANGES,
      maxBytes: MAX_BYTES,
    });
    if (this.#stop.signal.aborted) return true;
    // The rules may have changed while it was read.
    if (!found || !(await this.#isSame())) {
      this.#dismiss();
      return true;
    }
    // No change is sent by membership sets that have changed since.
    await this.#followSets();
    await this.#followRefs();
    if (this.#stop.signal.aborted) return true;
    if (found.seq === after.seq) {
      this.#lagSeconds = 0;
      this.#looksAlone = this.#groups.size > 0 ? 0 : this.#looksAlone + 1;
      if (this.#looksAlone > MAX_LOOKS_ALONE) this.#close();
      return true;
    }
    await this.#tell(found.changes, { epoch: after.epoch, seq: found.seq }, found.isEnd);
    const oldest = Math.min(...found.changes.map(({ at }) => at.getTime()));
    this.#lagSeconds = found.changes.length > 0 ? Math.max(0, (Date.now() - oldest) / 1000) : 0;
    return found.isEnd;
  }

  /** Sends those away whose sets are others: they read by themselves what that changes, and join another group. */
  async #followSets(): Promise<void> {
    const news = await this.#sets.read();
    if (news.size === 0) return;
    const to = new Map([...news].map(([id, { to: position }]) => [id, position]));
    for (const group of [...this.#groups.values()]) {
      const { sets, scope } = group.following;
      const isConcerned = (sets?.sets ?? []).some(({ collection }) => {
        const found = news.get(collection._id.toHexString());
        return found !== undefined && (found.users === null || found.users.has(scope.userId));
      });
      if (!isConcerned) {
        group.moveSets(to);
        continue;
      }
      this.#drop(group);
      for (const member of [...group.members]) member.leave(group.placeAt(placed(this.#position)), false);
    }
    if (this.#groups.size === 0) this.#close();
  }

  /** Sends once more what refers to documents that have changed, as it is populated now. */
  async #followRefs(): Promise<void> {
    const now = performance.now();
    if (this.#refs.topics.length === 0 || now - this.#refsLookedMs < REFS_MS) return;
    this.#refsLookedMs = now;
    const news = await this.#refs.read(this.app);
    if (news.size === 0) return;
    const idOf = ({ collection }: { collection: Collection }): string => collection._id.toHexString();
    const concerned = [...this.#groups.values()].flatMap((group) => {
      const refs = group.following.refs?.collections.filter((ref) => news.has(idOf(ref))) ?? [];
      return refs.length > 0 ? [{ group, refs }] : [];
    });
    const rows = await this.#readReferring(
      concerned.flatMap(({ refs }) => refs),
      news,
    );
    for (const { group, refs } of concerned) {
      if (rows && refs.every((ref) => news.get(idOf(ref)))) {
        await this.#resend(group, rows, news);
        continue;
      }
      // They read by themselves, and start over where that is too much.
      this.#drop(group);
      for (const member of [...group.members]) member.leave(group.placeAt(placed(this.#position)), false);
    }
    if (this.#groups.size === 0) this.#close();
  }

  /** One read for all groups: documents that refer to changed ones. Null where they are too many. */
  async #readReferring(
    refs: readonly FollowedRef[],
    news: ReadonlyMap<string, RefNews | null>,
  ): Promise<SharedChange[] | null> {
    const unique = [
      ...new Map(refs.map((ref) => [`${ref.collection._id.toHexString()} ${ref.paths.join()}`, ref])).values(),
    ];
    const known = unique.map(({ collection }) => news.get(collection._id.toHexString()));
    if (known.some((each) => !each)) return null;
    const referring = referringFilter(unique, known as RefNews[]);
    if (!referring) return [];
    const tenant = { project: this.collection.projectId.toHexString(), address: '' };
    await ownTurn(tenant);
    let rows: Buffer[];
    try {
      const cursor = documentStore(this.app, this.collection)
        .find(allOf([visibleDocuments(), referring]), { raw: true, signal: this.#stop.signal })
        .limit(MAX_REFERRING + 1)
        .maxTimeMS(this.app.config.queryTimeoutMs);
      rows = await readRows(cursor, new ReplySize());
    } catch (error) {
      this.app.log.warn({ err: error, collection: this.collection.name }, 'referring documents could not be read');
      return null;
    }
    if (rows.length > MAX_REFERRING || rows.reduce((sum, row) => sum + row.length, 0) > MAX_BYTES) return null;
    const at = new Date(this.app.clock.now());
    return rows.map((row) => ({ id: String(decodeMeta(row)._id), at, document: row, encoded: new Map() }));
  }

  async #resend(group: Group, rows: readonly SharedChange[], news: ReadonlyMap<string, RefNews | null>): Promise<void> {
    const refs = group.refsAfter(news);
    const { window } = group;
    // By the rules and the filter as they are met now: a change that is not told yet may have taken it away.
    const shown = rows.filter(({ document }) => group.shows(document!));
    if (window) {
      for (const row of shown) window.resend(row);
      this.#unsettled.add(group);
      await this.#settleWindows(new Map([[group, refs]]));
    } else {
      const at = placed(this.#position);
      const cursors = { from: () => group.cursorAt(at), to: group.cursorAt({ ...at, refs }) };
      if (shown.length > 0) await this.#deliver(group, shown, cursors, group.placeAt(at), true);
    }
    group.moveRefs(refs);
  }

  async #isSame(): Promise<boolean> {
    const { projectId, name, _id, version } = this.collection;
    const now = await findCollection(this.app, projectId, name);
    return now !== null && String(now._id) === String(_id) && now.version === version;
  }

  /** Ends all followers' subscriptions; they start again from their positions, under the rules of that time. */
  #dismiss(): void {
    const from = this.told;
    const groups = [...this.#groups.values()];
    for (const group of groups) this.#drop(group);
    this.#close();
    for (const group of groups) for (const member of [...group.members]) member.leave(group.placeAt(from), false);
  }

  async #tell(changes: readonly WatchedChange[], to: LogPosition, isEnd: boolean): Promise<void> {
    const from = placed(this.#position);
    // Followers who join from now on have what is sent here: a judgement does not look at what they were shown.
    this.#position = to;
    const turn = takeTurns();
    const told = new Map<Group, SharedChange[]>();
    const failed = new Set<Group>();
    const unsure = new Set<Group>();
    for (const change of changes) {
      const shown: SharedChange = { ...change, encoded: new Map() };
      let read: Document | null = null;
      const decode = (): Document => (read ??= decodeStored(change.document!));
      const gone: SharedChange = { ...change, document: null, encoded: new Map() };
      for (const group of this.#index.find(change)) {
        await turn();
        if (failed.has(group) || unsure.has(group)) continue;
        try {
          if (group.window) {
            group.place(shown, decode);
            this.#unsettled.add(group);
            continue;
          }
          const verdict = group.judge(change);
          if (verdict === null) continue;
          if (verdict === 'unknown') {
            unsure.add(group);
            continue;
          }
          const list = told.get(group) ?? [];
          told.set(group, list);
          list.push(verdict === 'upsert' ? shown : gone);
        } catch (error) {
          failed.add(group);
          this.app.log.error({ err: error, collection: this.collection.name }, 'a group of followers has failed');
        }
      }
    }
    const recipients = [...told].map(([group, list]) => ({ group, list, members: [...group.members] }));
    // Who has to read by themselves will be told to start over.
    for (const group of [...failed, ...unsure]) {
      this.#drop(group);
      for (const member of [...group.members]) member.leave(group.placeAt(from), failed.has(group));
    }
    for (const { group, list, members } of recipients) {
      if (failed.has(group) || unsure.has(group)) continue;
      const cursors = { from: () => group.cursorAt(from), to: group.cursorAt(placed(to)) };
      await this.#deliver(group, list, cursors, group.placeAt(from), isEnd, members);
    }
    this.#told = to;
    await this.#settleWindows();
    if (this.#groups.size === 0) this.#close();
  }

  /** Sends members what has changed of their windows, and has those filled that lack documents. */
  async #settleWindows(refs: ReadonlyMap<Group, readonly LogPosition[]> = new Map()): Promise<void> {
    const groups = [...this.#unsettled];
    this.#unsettled.clear();
    for (const group of groups) {
      const { window } = group;
      const untold = window!.takeUntold();
      const filling = window!.begin();
      if (filling) void this.#fill(group, filling);
      if (!untold) continue;
      const shown = window!.digest;
      const at = { ...placed(this.#position), ...(refs.has(group) && { refs: refs.get(group)! }) };
      const before = group.placeAt({ ...placed(this.#position), window: '' });
      const cursors = { from: () => group.cursorAt(before), to: group.cursorAt({ ...at, window: shown }) };
      await this.#deliver(group, untold.changes, cursors, before, untold.isCaughtUp);
      window!.told = shown;
    }
  }

  /** Sends changes to all members of a group, populated where they asked for it. */
  async #deliver(
    group: Group,
    changes: readonly FoundChange[],
    cursors: { from: () => string; to: string },
    before: FeedPosition,
    isCaughtUp: boolean,
    members: readonly Member[] = [...group.members],
  ): Promise<void> {
    const { query, refs } = group.following;
    let shown = changes;
    let release = (): void => undefined;
    if (refs) {
      const tenant = { project: this.collection.projectId.toHexString(), address: '' };
      const read = async (size: ReplySize): Promise<FoundChange[]> => {
        release = () => size.release();
        return populateChanges(this.app, refs, changes, query, size);
      };
      try {
        shown = await readWithin(this.app.replies, tenant, read, this.#stop.signal);
      } catch (error) {
        if (!this.#stop.signal.aborted) this.#fail(group, error, before);
        return;
      }
    }
    const turn = takeTurns();
    const batch = new Batch(shown, query, cursors, isCaughtUp);
    for (const member of members) {
      // Waiting for nothing would cost as much as the delivery.
      const pause = turn();
      if (pause) await pause;
      if (group.members.has(member)) member.deliver(batch, before);
    }
    release();
  }

  /** Ends the streams of a group. */
  #fail(group: Group, error: unknown, at: FeedPosition): void {
    this.app.log.warn({ err: error, collection: this.collection.name }, 'a group of followers has failed');
    this.#drop(group);
    for (const member of [...group.members]) member.leave(at, true);
  }

  /** Reads what a window lacks; few at once, since others wait for the same database. */
  async #fill(group: Group, filling: Filling): Promise<void> {
    const { following } = group;
    const { signal } = this.#stop;
    const tenant = { project: this.collection.projectId.toHexString(), address: '' };
    try {
      const part = await this.#fills.run(
        tenant,
        async () => {
          await ownTurn(tenant);
          const asked = { readable: following.readable, ...filling };
          return readWithin(
            this.app.replies,
            tenant,
            (size) => readPart({ ...following, signal }, asked, size).finally(() => size.release()),
            signal,
          );
        },
        signal,
      );
      group.window!.fill(filling, part);
      this.#settleSoon(group);
    } catch (error) {
      if (!signal.aborted && this.#isOpen(group)) this.#fail(group, error, group.placeAt(this.told));
    }
  }

  #isOpen(group: Group): boolean {
    return this.#groups.get(keyOf(group.following)) === group;
  }

  #settleSoon(group: Group): void {
    if (this.#isOpen(group)) this.#unsettled.add(group);
    this.#wake();
  }

  /** Resolves when a window has to be settled. */
  #sleep(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }
}

function placed(at: LogPosition): FeedPosition {
  return { ...at, shown: null, isListing: false };
}

/** Followers of the same rules and filter get the same. */
function keyOf({ scope, query, sets, readable }: Following): string {
  const values = sets ? [digest(EJSON.stringify(readable))] : [];
  return JSON.stringify([query.filterText, scope.userId, scope.admitted, query.fields, query.meta, ...values]);
}
