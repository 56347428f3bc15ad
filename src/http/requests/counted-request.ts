import { IncomingMessage, type ServerResponse } from 'node:http';
import type { Context } from 'koa';

/**
 * Each piece of a body, a chunk or what came in one packet, costs the event loop about as much as 10 kB do. A body may
 * come in this many pieces, in one more for each of these bytes, and in so many more a second, as when typed by hand.
 */
const FREE_PIECES = 64;
const BYTES_PER_PIECE = 256;
const PIECES_PER_SECOND = 25;

/** What is read and dropped of a body after its request was answered. */
const MAX_DROPPED_BYTES = 64 * 1024;
const MAX_DROPPED_PIECES = 200;

interface WholeBody {
  parts: Buffer[];
  resolve: (body: Buffer) => void;
  reject: (error: Error) => void;
  ms: number;
  late: () => Error;
  timer: NodeJS.Timeout | undefined;
}

/** Requests whose body was asked for in this turn of the event loop: most have it when it ends, and need no timer. */
let asked: CountedRequest[] = [];

function setTimers(): void {
  const waiting = asked;
  asked = [];
  for (const request of waiting) request.setTimer();
}

/** Node's own way to drop the rest of a body when the reply is sent, which its types leave out. */
const { _dump: dump } = IncomingMessage.prototype as IncomingMessage & { _dump: () => void };

/**
 * A request that counts the pieces of its body for every reader (decision 50), and stops reading when there are too
 * many. Closures for each request would cost more than the two counters.
 */
export class CountedRequest extends IncomingMessage {
  /** The response to `Expect: 100-continue`; null if the client does not wait for it. */
  continues: ServerResponse | null = null;
  pieces = 0;
  bytes = 0;
  isCut = false;
  /** Bytes that may still arrive after the body is ignored. */
  private mostPieces = Infinity;
  private mostBytes = Infinity;
  /** When the body began to come in pieces. */
  private since = 0;
  /** Who waits for the whole body, which then does not enter the stream. */
  private whole: WholeBody | null = null;
  /** Whether somebody reads the stream. */
  private isRead = false;
  /** All has arrived that nobody has read from the stream. */
  private endsUnread = false;
  /** Node's own, which its types leave out. */
  declare protected readonly _readableState: { endEmitted: boolean };

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk === null) {
      // After the last words all that the client had to send has come in: nothing is lost by closing now.
      if (this.isCut && this.socket.writableEnded) this.socket.destroySoon();
      this.endsUnread = !this.isRead && this.readableLength === 0;
      const goesOn = !this.endsUnread && super.push(null);
      this.endWhole(null);
      return goesOn;
    }
    if (this.isCut) return false;
    this.bytes += chunk.length;
    if (++this.pieces === 2) this.since = performance.now();
    if ((this.pieces > FREE_PIECES || this.bytes > this.mostBytes) && this.isTooMuch()) {
      this.isCut = true;
      this.cut();
      return false;
    }
    if (!this.whole) return super.push(chunk, encoding);
    this.whole.parts.push(chunk);
    return true;
  }

  /**
   * The body, once all of it is there, without the cost of a stream; null when some of it has come already. `late`: the
   * error when that takes longer than `ms`.
   */
  takeWhole(ms: number, late: () => Error): Promise<Buffer> | null {
    if (this.pieces > 0 || this.complete || this.destroyed) return null;
    this.beginSending();
    if (asked.push(this) === 1) setImmediate(setTimers);
    return new Promise((resolve, reject) => {
      this.whole = { parts: [], resolve, reject, ms, late, timer: undefined };
    });
  }

  override _read(size: number): void {
    if (this.isCut) return;
    this.beginSending();
    this.isRead = true;
    super._read(size);
    if (!this.endsUnread) return;
    this.endsUnread = false;
    super.push(null);
  }

  /** Where nothing is to drop, the events of a stream that ends and closes would cost as much as reading a document. */
  _dump(): void {
    const isHeard = this.listenerCount('end') > 0 || this.listenerCount('close') > 0;
    if (this.endsUnread && !isHeard) this._readableState.endEmitted = true;
    else dump.call(this);
  }

  /** The connection of a body that was cut stays open until the client has read why. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (this.whole) this.endWhole(error ?? new Error('the connection has ended'));
    if (!this.isCut) {
      super._destroy(error, done);
      return;
    }
    this.emit('aborted');
    process.nextTick(done, this.listenerCount('error') > 0 ? error : null);
  }

  /** Ignores the rest of the body. False for a client that waits for `100 Continue` and is not sent it. */
  leave(): boolean {
    this.mostPieces = this.pieces + MAX_DROPPED_PIECES;
    this.mostBytes = this.bytes + MAX_DROPPED_BYTES;
    this.endWhole(new Error('the request was answered'));
    const waits = this.continues !== null;
    this.continues = null;
    return !waits;
  }

  /** Whether the response is being sent, so that the rest of the body is not needed. */
  get isLeft(): boolean {
    return this.mostBytes !== Infinity;
  }

  /** Ends the request; nothing more of its body is read. */
  protected cut(): void {
    this.destroy();
  }

  /** Lets the time for a body that is still awaited begin. */
  setTimer(): void {
    if (this.whole) this.whole.timer = setTimeout(() => this.endWhole(this.whole!.late()), this.whole.ms);
  }

  private beginSending(): void {
    this.continues?.writeContinue();
    this.continues = null;
  }

  private endWhole(error: Error | null): void {
    if (!this.whole) return;
    const { parts, resolve, reject, timer } = this.whole;
    this.whole = null;
    if (timer) clearTimeout(timer);
    if (error) reject(error);
    else resolve(parts.length === 1 ? parts[0]! : Buffer.concat(parts));
  }

  private isTooMuch(): boolean {
    if (this.pieces > this.mostPieces || this.bytes > this.mostBytes) return true;
    const over = this.pieces - FREE_PIECES - this.bytes / BYTES_PER_PIECE;
    return over > 0 && over > ((performance.now() - this.since) / 1000) * PIECES_PER_SECOND;
  }
}

/** The class of a server's requests, of which `onCut` ends those whose body is not read on. */
export function countedRequests(onCut: (request: CountedRequest) => void): typeof CountedRequest {
  return class extends CountedRequest {
    protected override cut(): void {
      onCut(this);
    }
  };
}

/**
 * Drops the rest of a body when the request is answered before it has arrived, whichever reader had it (decision 50).
 * The connection goes on when the rest is known to be small; otherwise the reply announces that it closes, and it does
 * when the client has stopped sending or has sent more than is dropped.
 */
export function leaveBody({ req, res }: Context): void {
  if (req.destroyed) return;
  // A body that was piped into something that has failed stands still otherwise, and the connection with it.
  req.unpipe();
  req.on('error', () => undefined);
  const isAwaited = !(req instanceof CountedRequest) || req.leave();
  if (isAwaited) req.resume();
  // A client that was not sent `100 Continue` may send it all the same, or its next request.
  if (isAwaited && Number(req.headers['content-length'] ?? NaN) <= MAX_DROPPED_BYTES) return;
  res.shouldKeepAlive = false;
  closeGently(req);
}

/**
 * Makes the connection close only when what the client still sends has come in: an answer that is followed by a reset
 * may be lost. The server's timeouts hold.
 */
function closeGently(req: IncomingMessage): void {
  const { socket } = req;
  const destroySoon = socket.destroySoon.bind(socket);
  // Node's server calls it when the last reply of a connection is sent.
  socket.destroySoon = () => {
    if (req.complete) return destroySoon();
    socket.end();
    req.once('close', destroySoon);
  };
}
