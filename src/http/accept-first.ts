import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { takeTurns } from '../scheduler.js';

/** Most that requests wait while clients connect, and the time they then have before others wait, in milliseconds. */
const MAX_HELD_MS = 50;

export interface AcceptFirst {
  listener: RequestListener;
  /** To be called with every new connection. */
  noteConnection: () => void;
}

interface Held {
  request: IncomingMessage;
  response: ServerResponse;
}

/**
 * Lets clients in before it works for those who are in. Node takes one new connection a turn of the event loop, and a
 * turn lasts as long as the requests that came in it: the last of 500 clients that connect to a busy server at once
 * waited for seconds, while the first ones were answered hundreds of times.
 */
export function acceptFirst(begin: RequestListener): AcceptFirst {
  let isComing = false;
  let held: Held[] | null = null;
  let heldSince = 0;
  let restsUntil = 0;
  const look = (): void => {
    const now = performance.now();
    if (isComing && now - heldSince < MAX_HELD_MS) {
      isComing = false;
      setImmediate(look);
      return;
    }
    // Clients that do nothing but connect get half of the time at most.
    restsUntil = now + (now - heldSince);
    const waiting = held!;
    held = null;
    void beginAll(waiting);
  };
  const hold = (): void => {
    const now = performance.now();
    if (now < restsUntil) return;
    heldSince = now;
    held = [];
    setImmediate(look);
  };
  const beginAll = async (waiting: readonly Held[]): Promise<void> => {
    const turn = takeTurns();
    for (const { request, response } of waiting) {
      await turn();
      // Work for a client that has left already is not notified of it any more.
      if (!request.socket.destroyed) begin(request, response);
    }
  };
  return {
    noteConnection() {
      isComing = true;
    },
    listener(request, response) {
      if (!held && isComing) hold();
      if (held) held.push({ request, response });
      else begin(request, response);
    },
  };
}
