import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';

/**
 * The part of an unwanted body that is still read and dropped: a client that is cut off while sending never sees the
 * answer.
 */
const MAX_DROPPED_BYTES = 64 * 1024 * 1024;

/**
 * Lets the rest of a body come in and drops it when the request is answered before it has arrived, whichever reader had
 * it (decision 1304). The connection goes on when the rest is known to be small enough; otherwise the reply announces
 * that it closes, and it does when the client has stopped sending.
 */
export function leaveBody({ req, res }: Context): void {
  if (req.destroyed) return;
  const { socket } = req;
  // A body that was piped into something that has failed stands still otherwise, and the connection with it.
  req.unpipe();
  req.on('error', () => undefined);
  const declared = req.headers['content-length'];
  const goesOn = declared !== undefined && Number(declared) <= MAX_DROPPED_BYTES;
  let dropped = 0;
  req.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > MAX_DROPPED_BYTES) socket.destroy();
  });
  req.resume();
  if (goesOn) return;
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
