import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { invalid } from '../errors.js';
import { presentError } from './replies/write-errors.js';

/** Status line, code and text of a refusal that never reaches Koa. */
export type Refusal = readonly [status: string, code: string, message: string];

/** The time that a client has to read the last words, when it has not stopped sending. */
const LINGER_MS = 1_000;

/** Closes a connection of which nothing more is read; a reset at once might take the last words from its client. */
export function endGently(socket: Duplex, words = ''): void {
  socket.end(words, () => setTimeout(() => socket.destroy(), LINGER_MS).unref());
}

/** The last words on a connection. */
export function refuse(socket: Duplex, [status, code, message]: Refusal, more: readonly string[] = []): void {
  const requestId = randomUUID();
  const body = JSON.stringify(presentError(invalid(code, message), requestId));
  const head = [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    'Connection: close',
    ...more,
  ];
  endGently(
    socket.on('error', () => undefined),
    `${head.join('\r\n')}\r\n\r\n${body}`,
  );
}
