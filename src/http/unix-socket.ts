import { lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { conflict } from '../errors.js';

const PREFIX = 'unix:';

/** The path of a host such as `unix:/run/bsvc.sock`; null for a host of the network. */
export const unixSocketOf = (host: string): string | null =>
  host.startsWith(PREFIX) ? host.slice(PREFIX.length) : null;

/**
 * Removes the socket of a killed process. A socket with a listener stays, and so does whatever else
 * is at the path: 409 CANNOT_LISTEN.
 */
export async function clearStaleSocket(host: string): Promise<void> {
  const path = unixSocketOf(host);
  const found = path === null ? null : await lstat(path).catch(() => null);
  if (path === null || !found) return;
  if (!found.isSocket()) {
    throw conflict('CANNOT_LISTEN', `${path} already exists and is no socket: choose another with --host.`);
  }
  if (await isHeard(path)) {
    throw conflict(
      'CANNOT_LISTEN',
      `${host} is already taken: choose another with --host, or stop what is listening there.`,
    );
  }
  await unlink(path);
}

/** Only a refused connection means that no process listens; other errors leave the socket. */
function isHeard(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED'));
  });
}
