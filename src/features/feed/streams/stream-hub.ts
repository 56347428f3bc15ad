import type { App } from '../../../app.js';
import { overLimit, unavailable, forbidden } from '../../../errors.js';
import { FairLimiter, type LimitScope, type Tenant } from '../../../fair-limiter.js';
import { type LoadRejection, requestShares } from '../../../http/admission/rejections.js';
import { admission } from '../../../http/admission/admission.js';
import { takeTurns } from '../../../scheduler.js';
import { isRestoring } from '../../../platform/database/restore-mark.js';
import { judgeHeldToken } from '../../access/read-bearer.js';
import { admitsOrigin, findLiveKey } from '../../access/require-key.js';
import { findLimit } from '../../plans/plan-limits.js';
import type { Project } from '../../projects/project.js';
import { EventBytes } from './batch.js';
import type { Following } from '../read-page.js';
import { randomRetry, type Follower, type FollowerShares, Watchers } from './follower.js';
import type { EndListener, Stream } from './stream.js';
import type { WindowRoom } from './watcher.js';

/** So often it is looked whether streams may go on. */
const LOOK_MS = 500;
/** A stream says something at least this often: proxies end connections that say nothing. */
const HEARTBEAT_LOOKS = 50;
/** The first heartbeat is not earlier; of those who come at once each has it at another look. */
const FIRST_HEARTBEAT_LOOKS = HEARTBEAT_LOOKS / 2;
/** Followers that read at once what they have missed, and of one project. */
const READING_AT_ONCE = 8;
const READING_OF_PROJECT = 4;
const SECONDS_TO_RETRY = 5;

/** A stream that is looked after. */
class OpenStream implements EndListener {
  constructor(
    private readonly hub: StreamHub,
    readonly stream: Stream,
    readonly followers: readonly Follower[],
    /** Which of the looks between two of its heartbeats they come with. */
    readonly heartbeat: number,
    private readonly place: Place,
  ) {}

  streamOver(): void {
    this.place.release();
    for (const follower of this.followers) follower.quit();
    this.hub.remove(this);
  }
}

/** The streams of a key. */
interface KeyStreams {
  all: Set<OpenStream>;
  /** Those that may have to end though the key is good: they have an origin or a token. */
  judged: Set<OpenStream>;
}

/** Whose place it is; of a stream also what its filters hold. */
interface PlaceShare {
  tenant: Tenant;
  conditions?: number;
}

/** A place that is taken, to be given back once. */
export class Place {
  #isTaken = true;

  constructor(
    private readonly hub: StreamHub,
    private readonly share: PlaceShare,
  ) {}

  release(): void {
    if (this.#isTaken) this.hub.giveBack(this.share);
    this.#isTaken = false;
  }
}

/** The open streams of a process: how many there may be, and whether each may go on. */
class StreamHub {
  readonly shares: FollowerShares;
  readonly #byKey = new Map<string, KeyStreams>();
  /** By the look that their heartbeats come with: a look touches no other stream that nothing can have ended. */
  readonly #byHeartbeat = Array.from({ length: HEARTBEAT_LOOKS }, () => new Set<OpenStream>());
  readonly #streamsOf = new FairLimiter({ shares: { all: Infinity } });
  readonly #polls: FairLimiter;
  readonly #conditions: FairLimiter;
  readonly #report: (refusal: LoadRejection) => void;
  #taken = 0;
  #streams = 0;
  #added = 0;
  #looks = 0;
  #timer: NodeJS.Timeout | null = null;
  #looking = false;

  constructor(private readonly app: App) {
    this.#polls = new FairLimiter({ shares: requestShares(app.config.streams) });
    this.#conditions = new FairLimiter({ shares: requestShares(app.config.liveConditions) });
    this.#report = admission(app).report;
    // Any number may wait: the subscriptions of a stream are limited, and each waits once.
    const turns = new FairLimiter({ shares: { all: READING_AT_ONCE, project: READING_OF_PROJECT } });
    this.shares = { app, watchers: new Watchers(app, this.#windowRoom()), turns };
    app.metrics.gauge('streams', 'Open streams of changes', () => [{ value: this.#streams }]);
    app.metrics.gauge('feed_lag_seconds', 'How late the last changes were told to streams, at worst', () => [
      { value: this.shares.watchers.lagSeconds() },
    ]);
  }

  /** A place for a request that waits for changes; 503 BUSY when all are taken, or the tenant's share of them. */
  takePoll(tenant: Tenant): Place {
    this.#requireRoom();
    const full = this.#polls.full(tenant, 1);
    if (full) {
      this.#report({ stage: 'kept', unit: 'waiting requests', ...full });
      throw tooManyWait();
    }
    this.#taken++;
    this.#polls.add(tenant, 1);
    return new Place(this, { tenant });
  }

  /** Counts a stream out; its place calls this once, when it is released. */
  giveBack({ tenant, conditions }: PlaceShare): void {
    this.#taken--;
    if (conditions === undefined) {
      this.#polls.giveBack(tenant, 1);
      return;
    }
    this.#streamsOf.giveBack(tenant, 1);
    this.#conditions.giveBack(tenant, conditions);
  }

  /**
   * A place for a stream; besides 503 it is 429 TOO_MANY_STREAMS for an address that has all it may have, of streams or
   * of what `countConditions` counts in their filters, and 403 QUOTA_EXCEEDED for a project that has all streams of its
   * plan.
   */
  takeStream(tenant: Tenant, project: Project, conditions: number): Place {
    const { streamsPerAddress } = this.app.config;
    if (this.#streamsOf.heldBy(tenant).address >= streamsPerAddress) {
      const text = `One address may have ${streamsPerAddress} streams at once: close others, or share one among several subscriptions`;
      throw overLimit('TOO_MANY_STREAMS', text, { retryAfterSeconds: SECONDS_TO_RETRY });
    }
    const limit = findLimit(project, 'streams');
    if (limit !== null && this.#streamsOf.heldBy(tenant).project >= limit) {
      throw forbidden('QUOTA_EXCEEDED', `The project may have ${limit} streams at once`);
    }
    this.#requireRoom();
    this.#requireConditions(tenant, conditions);
    this.#taken++;
    this.#streamsOf.add(tenant, 1);
    this.#conditions.add(tenant, conditions);
    return new Place(this, { tenant, conditions });
  }

  #requireConditions(tenant: Tenant, conditions: number): void {
    const full = this.#conditions.full(tenant, conditions);
    if (!full) return;
    this.#report({ stage: 'kept', unit: 'conditions', ...full });
    const text = `The filters of the streams of ${WHOSE[full.scope]} hold too many conditions and values: follow with fewer, or with shorter lists`;
    throw overLimit('TOO_MANY_STREAMS', text, { retryAfterSeconds: SECONDS_TO_RETRY });
  }

  /** The ids and sort keys of windows, two of which are as much as a condition. */
  #windowRoom(): WindowRoom {
    const sizeOf = ({ query, collection }: Following) => {
      return [
        { project: collection.projectId.toHexString(), address: '' },
        Math.ceil((query.window?.limit ?? 0) / 2),
      ] as const;
    };
    return {
      take: (following) => {
        const [tenant, size] = sizeOf(following);
        const full = this.#conditions.full(tenant, size);
        if (full) this.#report({ stage: 'kept', unit: 'conditions', ...full });
        if (full) throw tooManyWait();
        this.#conditions.add(tenant, size);
      },
      giveBack: (following) => this.#conditions.giveBack(...sizeOf(following)),
    };
  }

  #requireRoom(): void {
    if (this.#taken < this.app.config.streams) return;
    throw tooManyWait();
  }

  /** Looks after a stream until it is over, and gives back its place then. */
  add(stream: Stream, followers: readonly Follower[], place: Place): void {
    const { hash } = stream.caller.key;
    const firstHeartbeat = this.#looks + HEARTBEAT_LOOKS - (this.#added++ % FIRST_HEARTBEAT_LOOKS);
    const open = new OpenStream(this, stream, followers, firstHeartbeat % HEARTBEAT_LOOKS, place);
    let known = this.#byKey.get(hash);
    if (!known) this.#byKey.set(hash, (known = { all: new Set(), judged: new Set() }));
    known.all.add(open);
    if (stream.origin !== null || stream.expiresMs !== Infinity) known.judged.add(open);
    this.#byHeartbeat[open.heartbeat]!.add(open);
    this.#streams++;
    this.#timer ??= setInterval(() => void this.#look(), LOOK_MS).unref();
    stream.onOver(open);
  }

  /** Looks no longer after a stream. */
  remove(open: OpenStream): void {
    const { hash } = open.stream.caller.key;
    const known = this.#byKey.get(hash);
    if (!known?.all.delete(open)) return;
    known.judged.delete(open);
    this.#byHeartbeat[open.heartbeat]!.delete(open);
    if (known.all.size === 0) this.#byKey.delete(hash);
    if (--this.#streams > 0 || !this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  async #look(): Promise<void> {
    this.#looks++;
    this.#heartbeat();
    if (this.#looking) return;
    this.#looking = true;
    try {
      if (!this.app.readiness.isReady()) await this.#stop();
      // Not one of their keys or users could be found.
      if (await isRestoring(this.app.db)) {
        await this.#stop();
        return;
      }
      for (const [hash, streams] of [...this.#byKey]) await this.#judge(hash, streams);
    } catch (error) {
      this.app.log.debug({ err: error }, 'streams could not be looked after');
    } finally {
      this.#looking = false;
    }
  }

  async #stop(): Promise<void> {
    const turn = takeTurns();
    for (const { all } of this.#byKey.values()) {
      for (const { stream } of all) {
        await turn();
        stream.end({ code: 'SERVER_STOPPING', retryAfterMs: randomRetry() });
      }
    }
  }

  #heartbeat(): void {
    // Those of a group are told the same.
    const made = new Map<string, EventBytes>();
    for (const { stream, followers } of this.#byHeartbeat[this.#looks % HEARTBEAT_LOOKS]!) {
      if (stream.isFull) continue;
      const text = `: \n\n${followers.map((follower) => follower.heartbeat()).join('')}`;
      let bytes = made.get(text);
      if (!bytes) made.set(text, (bytes = new EventBytes(text)));
      stream.write(bytes);
    }
  }

  /** Ends those of a key that is not good any more, or whose origin or token is not; renews the rights of others. */
  async #judge(hash: string, { all, judged }: KeyStreams): Promise<void> {
    const owner = await findLiveKey(this.app, hash);
    const now = this.app.clock.now();
    const turn = takeTurns();
    for (const { stream, followers } of owner ? judged : all) {
      const pause = turn();
      if (pause) await pause;
      const { bearer } = stream.caller;
      if (!owner) {
        stream.end({ code: 'API_KEY_INVALID' });
      } else if (stream.expiresMs <= now) {
        stream.end({ code: 'TOKEN_EXPIRED' });
      } else if (stream.origin !== null && !admitsOrigin(owner.project.allowedDomains, stream.origin)) {
        stream.end({ code: 'ORIGIN_NOT_ALLOWED' });
      } else if (bearer.state === 'user' && bearer.token) {
        const problem = await judgeHeldToken(this.app, owner.project, bearer.userId, bearer.token);
        if (problem) stream.end({ code: problem });
        else for (const follower of followers) await follower.renewRights();
      }
    }
  }
}

function tooManyWait(): Error {
  return unavailable('BUSY', 'Too many requests are waiting for changes. Try again later, or without wait', {
    retryAfterSeconds: SECONDS_TO_RETRY,
  });
}

const WHOSE: Readonly<Record<LimitScope, string>> = {
  address: 'this address',
  project: 'this project',
  all: 'all clients',
};

const hubs = new WeakMap<App['hints'], StreamHub>();

/** The streams of an application. */
export function streamHub(app: App): StreamHub {
  let hub = hubs.get(app.hints);
  if (!hub) hubs.set(app.hints, (hub = new StreamHub(app)));
  return hub;
}
