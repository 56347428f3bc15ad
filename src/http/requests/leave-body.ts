import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { CountedRequest, MAX_DROPPED_BYTES } from './counted-request.js';

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
