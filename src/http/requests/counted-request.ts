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

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk === null) {
      // After the last words all that the client had to send has come in: nothing is lost by closing now.
      if (this.isCut && this.socket.writableEnded) this.socket.destroySoon();
      return super.push(null);
    }
    if (this.isCut) return false;
    this.bytes += chunk.length;
    if (++this.pieces === 2) this.since = performance.now();
    if ((this.pieces > FREE_PIECES || this.bytes > this.mostBytes) && this.isTooMuch()) {
      this.isCut = true;
      this.cut();
      return false;
    }
    return super.push(chunk, encoding);
  }

  override _read(size: number): void {
    if (this.isCut) return;
    if (this.continues) {
      this.continues.writeContinue();
      this.continues = null;
    }
    super._read(size);
  }

  /** The connection of a body that was cut stays open until the client has read why. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
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
