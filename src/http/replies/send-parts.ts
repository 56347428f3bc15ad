import type { ServerResponse } from 'node:http';
import type { Tenant } from '../../fair-limiter.js';
import { ownTurn } from '../../scheduler.js';

/** A piece of a body: bytes, or `latin1` text that stands for them. */
export type Part = string | Buffer;

/** The number of bytes given to a connection at once. */
export const PART_BYTES = 256 * 1024;

/**
 * Sends a body part by part, each made only when the client has taken those before, with a turn of the event loop for
 * others in between: all replies of a tenant share its turns. Ends early, without an error, when the client has gone;
 * cuts the connection and fails when a part cannot be made.
 */
export async function sendParts(res: ServerResponse, parts: Iterable<Part>, tenant: Tenant): Promise<void> {
  try {
    for (const part of parts) {
      for (let at = 0; at < part.length; at += PART_BYTES) {
        if (res.destroyed) return;
        const piece = part.length <= PART_BYTES ? part : cut(part, at);
        if (!res.write(piece, 'latin1')) await untilTaken(res);
        await ownTurn(tenant);
      }
    }
    if (!res.destroyed) res.end();
  } catch (error) {
    // Its end would make what has been sent look whole.
    res.destroy();
    throw error;
  }
}

/** The JSON or bytes of a whole body as parts. */
export function partsOf(text: string, encoding: 'utf8' | 'latin1'): Part[] {
  return [encoding === 'latin1' ? text : Buffer.from(text)];
}

function cut(part: Part, at: number): Part {
  return typeof part === 'string' ? part.slice(at, at + PART_BYTES) : part.subarray(at, at + PART_BYTES);
}

function untilTaken(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      res.off('drain', done);
      res.off('close', done);
      resolve();
    };
    res.on('drain', done);
    res.on('close', done);
  });
}
