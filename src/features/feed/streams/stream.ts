import type { ServerResponse } from 'node:http';
import type { Caller } from '../../access/caller.js';

/** With more unsent nothing new is given to a stream: whoever follows by it reads the log again when it is taken. */
const MAX_UNSENT_BYTES = 64 * 1024;

/** Why a stream ends: a code for programs, and when to come back. */
export interface StreamEnd {
  code: string;
  /** Which subscription is to blame, if one is. */
  n?: number;
  retryAfterMs?: number;
}

/** An open reply of server-sent events. Nothing is queued for it but what the connection has not taken. */
export class Stream {
  readonly #gone = new AbortController();
  #isEnded = false;

  constructor(
    private readonly res: ServerResponse,
    readonly caller: Caller,
    /** Of the request, if it had one. */
    readonly origin: string | null,
    /** Milliseconds since 1970 at which the caller's token is over. */
    readonly expiresMs: number,
  ) {
    res.on('close', () => this.#gone.abort());
    if (res.destroyed) this.#gone.abort();
  }

  /** Aborted when the client has gone or the stream has ended. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  get isOver(): boolean {
    return this.#isEnded || this.#gone.signal.aborted;
  }

  /** The client takes less than it is given. */
  get isFull(): boolean {
    return this.res.writableLength > MAX_UNSENT_BYTES;
  }

  write(bytes: Buffer | string): void {
    if (!this.isOver) this.res.write(bytes);
  }

  /** Resolves when the client has taken what it was given, or has gone. */
  async drained(): Promise<void> {
    while (this.isFull && !this.isOver) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          this.res.off('drain', done);
          this.signal.removeEventListener('abort', done);
          resolve();
        };
        this.res.on('drain', done);
        this.signal.addEventListener('abort', done);
      });
    }
  }

  /** Says why and ends; harmless when it has ended. */
  end({ code, n, retryAfterMs = 0 }: StreamEnd): void {
    if (this.isOver) return;
    this.#isEnded = true;
    const data = JSON.stringify({ ...(n !== undefined && { n }), code, retryAfterMs });
    this.res.end(`event: end\ndata: ${data}\n\n`);
    this.#gone.abort();
  }
}
