import { AppError } from '../../../errors.js';
import type { App } from '../../../app.js';
import { ownTurn } from '../../../scheduler.js';
import type { FairLimiter } from '../../../fair-limiter.js';
import { hintOf } from '../../changes/change-log.js';
import { findCollection } from '../../collections/collection-store.js';
import { tenantOfCaller } from '../../access/caller.js';
import { readWithin } from '../../documents/reply/reply-size.js';
import { signFeedCursor, type FeedPosition } from '../feed-cursor.js';
import { areSameRefs } from '../populating.js';
import { mayLoseRights, findStart, hasSameRights, type Following, type FeedPage } from '../read-page.js';
import { readNews } from '../read-window.js';
import { findSameView } from '../set-view.js';
import { Batch, writeReset, type EventForm, EventBytes } from './batch.js';
import type { Group, Member } from './group.js';
import type { Stream } from './stream.js';
import { Watcher, type WindowRoom } from './watcher.js';
import { loadMatchers } from '../../../platform/database/database.js';

/** The watchers of a process, one for each collection that streams follow. */
export class Watchers {
  readonly #opening = new Map<string, Promise<Watcher>>();
  readonly #ready = new Map<string, Watcher>();
  readonly #open = new Set<Watcher>();

  constructor(
    private readonly app: App,
    private readonly room: WindowRoom,
  ) {}

  /** The watcher of what is followed, by the collection's record that it was opened with. */
  async open({ collection, log }: Following): Promise<Watcher> {
    const key = keyOf(collection);
    const known = this.#opening.get(key);
    if (known) return known;
    const opening = Promise.all([loadMatchers(), log.begin()]).then(([openMatcher, start]) => {
      const watcher = new Watcher(this.app, collection, openMatcher, this.room, start, (ended) => {
        this.#open.delete(ended);
        if (this.#ready.get(key) === ended) this.#ready.delete(key);
        if (this.#opening.get(key) === opening) this.#opening.delete(key);
      });
      this.#open.add(watcher);
      this.#ready.set(key, watcher);
      return watcher;
    });
    this.#opening.set(key, opening);
    opening.catch(() => this.#opening.delete(key));
    return opening;
  }

  /** The watcher of what is followed when it is open already. */
  peek({ collection }: Following): Watcher | undefined {
    return this.#ready.get(keyOf(collection));
  }

  /** How late changes are told of, at worst. */
  lagSeconds(): number {
    return Math.max(0, ...[...this.#open].map((watcher) => watcher.lagSeconds));
  }
}

function keyOf({ _id, version }: Following['collection']): string {
  return `${_id.toHexString()} ${version}`;
}

/** A page holds no more of documents, but for one that alone is larger. */
const PAGE_BYTES = 64 * 1024;
/** Rounds in which others were always faster, after which it waits a moment. */
const MAX_ROUNDS = 3;
const ROUND_MS = 20;
/** Of those who meet a fault of ours, each comes back at another moment. */
const MAX_RETRY_MS = 5_000;

/** State shared by the followers of a process. */
export interface FollowerShares {
  app: App;
  watchers: Watchers;
  /** Turns for reading what a follower has missed. */
  turns: FairLimiter;
}

/** The request to follow a collection. */
export interface FollowRequest {
  /** Finds what to follow under the rules as they are now, and from where; an older cursor may have expired by them. */
  resolve(since: string | null, signal: AbortSignal): Promise<Following>;
}

/**
 * One subscription of a stream. It reads by itself what it has missed, then is told together with the others of its
 * group; when its client is too slow for that it reads by itself again.
 */
export class Follower implements Member {
  #group: Group | null = null;
  #watcher: Watcher | null = null;

  constructor(
    private readonly shares: FollowerShares,
    private readonly stream: Stream,
    readonly form: EventForm,
    private readonly wanted: FollowRequest,
  ) {}

  /**
   * Begins; what has been opened for the answer need not be opened again, nor the cursor, if it is one that has not
   * expired. Nothing is read for a follower that comes back and has everything, as thousands do after a restart.
   */
  start(following: Following, from: FeedPosition | null): void {
    void this.#guard(async () => {
      const watcher = this.shares.watchers.peek(following);
      if (watcher && (await this.#joinAtEnd(following, from, watcher))) return;
      await this.stream.read(async (signal) => {
        const own = { ...following, signal };
        return this.#read(own, from ?? (await this.#findStart(own)));
      });
    });
  }

  deliver(batch: Batch, from: FeedPosition): void {
    if (this.stream.expiresMs <= this.shares.app.clock.now()) {
      this.stream.end({ code: 'TOKEN_EXPIRED' });
    } else if (!this.stream.isFull) {
      this.stream.write(batch.bytes(this.form));
    } else {
      const { following } = this.#group!;
      this.quit();
      this.#readOn((signal) => this.#read({ ...following, signal }, from));
    }
  }

  leave(from: FeedPosition, failed: boolean): void {
    const group = this.#group;
    this.quit();
    if (failed || !group) this.#fail();
    else this.#readOn((signal) => this.#startAnew(group, from, signal));
  }

  /** The text for a client that has heard nothing for a while. */
  heartbeat(): string {
    if (!this.#group || !this.#watcher || this.#group.window?.isUntold) return '';
    return this.#group.readyAt(this.form, this.#watcher.told);
  }

  /** Leaves its group: it is told nothing more. */
  quit(): void {
    const group = this.#group;
    this.#group = null;
    if (group) this.#watcher?.leave(group, this);
  }

  /** Starts again where its user may read something else than when it joined its group. */
  async renewRights(): Promise<void> {
    const [group, watcher] = [this.#group, this.#watcher];
    if (!group || !watcher || !mayLoseRights(group.following)) return;
    const { caller } = this.stream;
    if ((await hasSameRights(group.following, caller)) || this.#group !== group) return;
    const from = watcher.told;
    this.quit();
    this.#readOn((signal) => this.#startAnew(group, from, signal));
  }

  /** The rules may be others than before. */
  async #startAnew(group: Group, from: FeedPosition, signal: AbortSignal): Promise<void> {
    const following = await this.wanted.resolve(group.cursorAt(from), signal);
    await this.#read(following, await this.#findStart(following));
  }

  async #findStart(following: Following): Promise<FeedPosition> {
    try {
      return await findStart(following);
    } catch (error) {
      if (!isExpired(error)) throw error;
      return this.#reset(following);
    }
  }

  async #reset(following: Following): Promise<FeedPosition> {
    const start = await findStart({ ...following, query: { ...following.query, since: null } });
    const cursor = signFeedCursor(this.shares.app.secrets, following.scope, start);
    this.stream.write(new EventBytes(writeReset(this.form, cursor)));
    return start;
  }

  /** Becomes a member when nothing has changed since `from`, null = since now. */
  async #joinAtEnd(following: Following, from: FeedPosition | null, watcher: Watcher): Promise<boolean> {
    if (from === null ? following.query.since !== 'now' : from.isListing) return false;
    const { sets, refs, query } = following;
    const end = await watcher.endSoon();
    if (this.stream.isOver) return true;
    if (!end) return false;
    const position: FeedPosition = { ...end, shown: null, isListing: false };
    if (query.window) position.window = from?.window;
    // What a window shows says alone whether something has changed.
    else if (from !== null && (from.epoch !== end.epoch || from.seq !== end.seq)) return false;
    if (sets) {
      position.sets = from && !query.window ? from.sets : sets.at;
      const asKnown = { ...position, until: from?.until };
      if (!findSameView(sets, following.readable, asKnown)) return false;
    }
    if (refs) {
      position.refs = from?.refs ?? refs.at;
      if (!areSameRefs(refs, position.refs)) return false;
    }
    const group = watcher.join(following, this, position);
    if (!group) return false;
    this.stream.write(group.readyBytes(this.form, position));
    this.#group = group;
    this.#watcher = watcher;
    return true;
  }

  async #read(following: Following, start: FeedPosition): Promise<void> {
    const { stream, shares } = this;
    let position = start;
    for (let round = 0; ; round++) {
      await stream.drained();
      if (stream.isOver) return;
      if (stream.expiresMs <= shares.app.clock.now()) {
        stream.end({ code: 'TOKEN_EXPIRED' });
        return;
      }
      const watcher = await shares.watchers.open(following);
      if (!(await this.#isCurrent(following)) || !(await hasSameRights(following, stream.caller))) {
        const cursor = signFeedCursor(shares.app.secrets, following.scope, position);
        const renewed = await this.wanted.resolve(cursor, following.signal);
        return this.#read(renewed, await this.#findStart(renewed));
      }
      if (await this.#joinAtEnd(following, position, watcher)) return;
      const read = await this.#readTurn(following, position, watcher);
      if (read === null) {
        position = await this.#reset(following);
        continue;
      }
      if (stream.isOver || this.#group) return;
      position = read.position;
      if (read.more) {
        round = 0;
      } else if (round >= MAX_ROUNDS) {
        await shares.app.hints.wait(hintOf(following.collection._id), ROUND_MS, following.signal);
      }
    }
  }

  async #isCurrent({ app, collection }: Following): Promise<boolean> {
    const now = await findCollection(app, collection.projectId, collection.name);
    return now !== null && String(now._id) === String(collection._id) && now.version === collection.version;
  }

  /** Sends a page; with the last one it becomes a member of its group. Null when the position is not known any more. */
  async #readTurn(following: Following, from: FeedPosition, watcher: Watcher): Promise<FeedPage | null> {
    const { app, turns } = this.shares;
    const project = following.collection.projectId;
    const { signal } = following;
    const tenant = { project: project.toHexString(), address: '' };
    const read = (): Promise<FeedPage> =>
      turns.run(
        tenant,
        async () => {
          await ownTurn(tenant);
          return readWithin(
            app.replies,
            tenantOfCaller(this.stream.caller),
            async (size) => {
              const page = await readNews(following, from, size, PAGE_BYTES);
              this.#send(following, from, page, watcher);
              if (size.isLarge) void this.stream.drained().then(() => size.release());
              else size.release();
              return page;
            },
            signal,
          );
        },
        signal,
      );
    try {
      return await this.stream.inLine(async () => {
        await this.stream.drained();
        signal.throwIfAborted();
        return read();
      });
    } catch (error) {
      if (isExpired(error)) return null;
      throw error;
    }
  }

  #send(following: Following, from: FeedPosition, page: FeedPage, watcher: Watcher): void {
    const { stream } = this;
    if (stream.isOver) return;
    const shown = { ...following, readable: page.readable };
    const group = page.more ? null : watcher.join(shown, this, page.position, page.window);
    const sign = (at: FeedPosition): string => signFeedCursor(this.shares.app.secrets, following.scope, at);
    const partly = following.query.window ? { ...page.position, window: '' } : from;
    const cursors = { from: () => sign(partly), to: sign(page.position) };
    if (page.isReset) stream.write(new EventBytes(writeReset(this.form, sign(partly))));
    const batch = new Batch(page.items, following.query, cursors, group !== null);
    stream.write(batch.bytes(this.form));
    this.#group = group;
    this.#watcher = watcher;
  }

  /** Reads by itself, with a signal that the end of the stream aborts; whatever fails ends the stream. */
  #readOn(work: (signal: AbortSignal) => Promise<void>): void {
    void this.#guard(() => this.stream.read(work));
  }

  async #guard(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (this.stream.isOver) return;
      if (!(error instanceof AppError)) {
        this.shares.app.log.error({ err: error }, 'a stream has failed');
        this.#fail();
      } else if (error.kind === 'unavailable') {
        this.stream.end({ n: this.form.n, code: error.code, retryAfterMs: randomRetry() });
      } else {
        this.stream.end({ n: this.form.n, code: error.code });
      }
    }
  }

  #fail(): void {
    this.stream.end({ n: this.form.n, code: 'INTERNAL', retryAfterMs: randomRetry() });
  }
}

/** Milliseconds after which a client may come back, each another time. */
export function randomRetry(): number {
  return Math.ceil(Math.random() * MAX_RETRY_MS);
}

function isExpired(error: unknown): boolean {
  return error instanceof AppError && error.code === 'CURSOR_EXPIRED';
}
