import type { App } from '../../../app.js';
import { overLimit, unavailable, forbidden } from '../../../errors.js';
import { openFairQueue } from '../../../platform/processes/fair-queue.js';
import { admitsOrigin } from '../../access/admits-origin.js';
import type { Caller } from '../../access/caller.js';
import { judgeHeldToken } from '../../access/read-bearer.js';
import { findLiveKey } from '../../access/require-key.js';
import { findLimit } from '../../plans/plan-limits.js';
import { EventBytes } from './event-bytes.js';
import { randomRetry, type Follower, type FollowerShares } from './follower.js';
import type { Stream } from './stream.js';
import { Watchers } from './watchers.js';

/** So often it is looked whether streams may go on. */
const LOOK_MS = 500;
/** A stream says something at least this often: proxies end connections that say nothing. */
const BEAT_LOOKS = 50;
/** Followers that read at once what they have missed, and of one project. */
const READING_AT_ONCE = 8;
const READING_OF_PROJECT = 4;
const SECONDS_TO_RETRY = 5;

interface OpenStream {
  stream: Stream;
  followers: readonly Follower[];
  /** The look at which it began: heartbeats of all are not due at once. */
  since: number;
}

/** A place that is taken, to be given back once. */
export interface Place {
  release: () => void;
}

/** The open streams of a process: how many there may be, and whether each may go on. */
class StreamHub {
  readonly shares: FollowerShares;
  readonly #byKey = new Map<string, Set<OpenStream>>();
  readonly #byAddress = new Map<string, number>();
  readonly #byProject = new Map<string, number>();
  #taken = 0;
  #streams = 0;
  #looks = 0;
  #timer: NodeJS.Timeout | null = null;
  #looking = false;

  constructor(private readonly app: App) {
    const most = app.config.streams;
    const turns = openFairQueue({
      concurrency: READING_AT_ONCE,
      perParty: READING_OF_PROJECT,
      // Each stream has so many subscriptions at most, and each waits once.
      maxWaiting: most * 50,
      maxWaitingPerParty: most * 50,
    });
    this.shares = { app, watchers: new Watchers(app), turns };
    app.metrics.gauge('streams', 'Open streams of changes', () => [{ value: this.#streams }]);
    app.metrics.gauge('feed_lag_seconds', 'How late the last changes were told to streams, at worst', () => [
      { value: this.shares.watchers.lagSeconds() },
    ]);
  }

  /** A place for somebody who waits for changes; 503 BUSY when all are taken. */
  take(): Place {
    if (this.#taken >= this.app.config.streams) {
      throw unavailable('BUSY', 'Too many wait for changes just now: ask without wait, or later', {
        retryAfterSeconds: SECONDS_TO_RETRY,
      });
    }
    this.#taken++;
    return once(() => void this.#taken--);
  }

  /**
   * A place for a stream; besides 503 it is 429 TOO_MANY_STREAMS for an address that has all it may have, and 403
   * QUOTA_EXCEEDED for such a project.
   */
  takeStream({ project }: Caller, address: string): Place {
    const { streamsPerAddress } = this.app.config;
    if ((this.#byAddress.get(address) ?? 0) >= streamsPerAddress) {
      const text = `One address may have ${streamsPerAddress} streams at once: close others, or share one among several subscriptions`;
      throw overLimit('TOO_MANY_STREAMS', text, { retryAfterSeconds: SECONDS_TO_RETRY });
    }
    const id = project._id.toHexString();
    const limit = findLimit(project, 'streams');
    if (limit !== null && (this.#byProject.get(id) ?? 0) >= limit) {
      throw forbidden('QUOTA_EXCEEDED', `The project may have ${limit} streams at once`);
    }
    const place = this.take();
    count(this.#byAddress, address, 1);
    count(this.#byProject, id, 1);
    return once(() => {
      place.release();
      count(this.#byAddress, address, -1);
      count(this.#byProject, id, -1);
    });
  }

  /** Looks after a stream until it is over. */
  add(stream: Stream, followers: readonly Follower[]): void {
    const { hash } = stream.caller.key;
    const open: OpenStream = { stream, followers, since: this.#looks };
    const known = this.#byKey.get(hash) ?? new Set();
    this.#byKey.set(hash, known.add(open));
    this.#streams++;
    this.#timer ??= setInterval(() => void this.#look(), LOOK_MS).unref();
    const remove = (): void => {
      known.delete(open);
      if (known.size === 0 && this.#byKey.get(hash) === known) this.#byKey.delete(hash);
      if (--this.#streams > 0 || !this.#timer) return;
      clearInterval(this.#timer);
      this.#timer = null;
    };
    if (stream.isOver) remove();
    else stream.onOver(remove);
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    this.#looks++;
    try {
      if (!this.app.readiness.isReady()) this.#stop();
      for (const [hash, streams] of [...this.#byKey]) {
        this.#beat(streams);
        await this.#judge(hash, streams);
      }
    } catch (error) {
      this.app.log.debug({ err: error }, 'streams could not be looked after');
    } finally {
      this.#looking = false;
    }
  }

  #stop(): void {
    for (const streams of this.#byKey.values()) {
      for (const { stream } of [...streams]) stream.end({ code: 'SERVER_STOPPING', retryAfterMs: randomRetry() });
    }
  }

  #beat(streams: Iterable<OpenStream>): void {
    // Those of a group are told the same.
    const made = new Map<string, EventBytes>();
    for (const { stream, followers, since } of streams) {
      if (this.#looks === since || (this.#looks - since) % BEAT_LOOKS !== 0 || stream.isFull) continue;
      const text = `: \n\n${followers.map((follower) => follower.beat()).join('')}`;
      const bytes = made.get(text) ?? new EventBytes(text);
      made.set(text, bytes);
      stream.write(bytes);
    }
  }

  /** Ends those of a key that is not good any more, and those whose origin or token is not. */
  async #judge(hash: string, streams: Iterable<OpenStream>): Promise<void> {
    const owner = await findLiveKey(this.app, hash);
    const now = this.app.clock.now();
    for (const { stream } of [...streams]) {
      const { bearer } = stream.caller;
      if (!owner) {
        stream.end({ code: 'API_KEY_INVALID' });
      } else if (stream.expiresMs <= now) {
        stream.end({ code: 'TOKEN_EXPIRED' });
      } else if (stream.origin !== null && !admitsOrigin(owner.project.allowedDomains, stream.origin)) {
        stream.end({ code: 'ORIGIN_NOT_ALLOWED' });
      } else if (bearer.state === 'user' && bearer.token) {
        const code = judgeHeldToken(this.app, owner.project, bearer.userId, bearer.token);
        const problem = code instanceof Promise ? await code : code;
        if (problem) stream.end({ code: problem });
      }
    }
  }
}

const hubs = new WeakMap<App['hints'], StreamHub>();

/** The streams of an application. */
export function streamHub(app: App): StreamHub {
  let hub = hubs.get(app.hints);
  if (!hub) hubs.set(app.hints, (hub = new StreamHub(app)));
  return hub;
}

function count(counts: Map<string, number>, key: string, by: number): void {
  const now = (counts.get(key) ?? 0) + by;
  if (now === 0) counts.delete(key);
  else counts.set(key, now);
}

function once(release: () => void): Place {
  let isTaken = true;
  return {
    release: () => {
      if (isTaken) release();
      isTaken = false;
    },
  };
}
