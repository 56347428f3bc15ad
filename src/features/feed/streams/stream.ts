import { setMaxListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Caller } from '../../access/caller.js';
import type { EventBytes } from './batch.js';

/** With more unsent nothing new is given to a stream: its followers read the log again when it is taken. */
const MAX_UNSENT_BYTES = 64 * 1024;

/** Why a stream ends: a code for programs, and when to come back. */
export interface StreamEnd {
  code: string;
  /** Which subscription is to blame, if one is. */
  n?: number;
  retryAfterMs?: number;
}

/** Who is told that a stream is over. */
export interface EndListener {
  streamOver(): void;
}

/**
 * An open reply of server-sent events. Nothing is queued for it but what the connection has not taken, and at rest it
 * holds as little as can be: there are thousands of them.
 */
export class Stream {
  readonly #socket: Socket;
  #whenOver: EndListener | null = null;
  /** One for all who wait until the client has taken what it was given: each listener of a socket costs. */
  #draining: { until: Promise<void>; done: () => void } | null = null;
  /** The end of the line of those who read pages. */
  #line: Promise<unknown> = Promise.resolve();
  #isOver: boolean;
  #reading: AbortController | null = null;
  #readers = 0;

  constructor(
    private readonly res: ServerResponse,
    readonly caller: Caller,
    /** Of the request, if it had one. */
    readonly origin: string | null,
    /** Milliseconds since 1970 at which the caller's token is over. */
    readonly expiresMs: number,
  ) {
    this.#socket = res.socket!;
    this.#isOver = res.destroyed;
    res.on('close', () => this.#settle());
  }

  /** The client has gone or the stream has ended. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The client takes less than it is given. */
  get isFull(): boolean {
    return this.#socket.writableLength > MAX_UNSENT_BYTES;
  }

  /** Calls the one listener when the stream ends, immediately if it has ended. */
  onOver(listener: EndListener): void {
    if (this.#isOver) listener.streamOver();
    else this.#whenOver = listener;
  }

  /** Does work that the signal it is given aborts when the stream is over. */
  async read<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (!this.#reading) {
      this.#reading = new AbortController();
      // A stream has up to fifty subscriptions that read at once: more than Node takes for a leak.
      setMaxListeners(0, this.#reading.signal);
    }
    if (this.#isOver) this.#reading.abort();
    this.#readers++;
    try {
      return await work(this.#reading.signal);
    } finally {
      if (--this.#readers === 0) this.#reading = null;
    }
  }

  /**
   * Sends events past the response, which would make several pieces of each. None are not sent: a chunk without bytes
   * is the end of a reply.
   */
  write(events: EventBytes): void {
    if (this.#isOver || events.length === 0) return;
    this.#socket.write(this.res.req.httpVersionMinor === 0 ? events.plain : events.chunk);
  }

  /** Resolves when the client has taken what it was given, or has gone. */
  async drained(): Promise<void> {
    while (this.isFull && !this.#isOver) await (this.#draining ?? this.#waitForDrain()).until;
  }

  #waitForDrain(): { until: Promise<void>; done: () => void } {
    let done = (): void => undefined;
    const until = new Promise<void>((resolve) => {
      done = () => {
        this.#socket.off('drain', done);
        this.#draining = null;
        resolve();
      };
    });
    this.#socket.on('drain', done);
    return (this.#draining = { until, done });
  }

  /** Does the work of its subscriptions one after the other: fifty that list cost the others no more than one. */
  inLine<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#line.then(work);
    this.#line = turn.catch(() => undefined);
    return turn;
  }

  /** Says why and ends; harmless when it has ended. */
  end({ code, n, retryAfterMs = 0 }: StreamEnd): void {
    if (this.#isOver) return;
    const data = JSON.stringify({ ...(n !== undefined && { n }), code, retryAfterMs });
    this.res.end(`event: end\ndata: ${data}\n\n`);
    this.#settle();
  }

  #settle(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#whenOver?.streamOver();
    this.#whenOver = null;
    this.#draining?.done();
    this.#reading?.abort();
  }
}
