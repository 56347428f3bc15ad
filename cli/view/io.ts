import type { Readable, Writable } from 'node:stream';
import type { Constants } from '../../src/config/config.js';

/** The part of its process that a command may touch, so that tests can run it without one. */
export interface Io {
  stdin: Readable & { isTTY?: boolean };
  stdout: Writable & { isTTY?: boolean; columns?: number };
  stderr: Writable & { isTTY?: boolean };
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
  /** Other constants, for tests. */
  constants?: Partial<Constants>;
  /** Aborted by SIGINT, SIGTERM or SIGHUP; its reason is the signal's name. */
  stop: AbortSignal;
}
